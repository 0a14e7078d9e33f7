"""Files and archives that a hostile or careless person wrote.

Each gets one message, nothing hangs, and nothing is half read.
"""

import ast
import gzip
import json
import os
import re
import zipfile
from pathlib import Path

import pytest

from harness.answers.chat_prompts import delimited
from harness.answers.systems import CITATION_MARK
from harness.dataset import (
    DatasetReference,
    listing,
    load_dataset,
    parse_reference,
    rows,
)
from harness.dataset.file import File
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers import trec_rows
from harness.dataset.readers.front_matter import parse_text_document
from retrievers.errors import InputError
from retrievers.services.chat_replies import quote_text
from tests.support import layouts
from tests.support.costs import is_cheap
from tests.support.small import refusal

ASKED = json.dumps([{"query": "one", "relevant_documents": ["a"]}]).encode()


def markdown(folder: Path) -> Path:
    folder.mkdir()
    (folder / "a.md").write_text("# One\n\ntext")
    (folder / "queries.json").write_bytes(ASKED)
    return folder


def refused(folder: Path) -> str:
    return str(refusal(load_dataset, DatasetReference(folder)))


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, raw in members.items():
            packed.writestr(name, raw)
    return path


LOCAL, ENTRY = b"PK\x03\x04", b"PK\x01\x02"
LEAVING = (
    "../out.jsonl",
    "/etc/out.jsonl",
    "a/../../out.jsonl",
    "C:/out.jsonl",
    "..\\out",
)
WRONG = [
    *((name, [], "leads out of the archive") for name in LEAVING),
    (
        "ä.md",
        [("ä.md".encode(), 0, b"\xff\xfe.md")],
        "is not a zip archive that can be read: .utf-8. codec",
    ),
    # The version needed to extract, and encryption: APPNOTE.TXT, 4.4.3 and 4.4.4.
    (
        "a.md",
        [(ENTRY, 6, b"\x63")],
        "is not a zip archive that can be read: zip file version 9.9",
    ),
    (
        "a.md",
        [(LOCAL, 6, b"\x01"), (ENTRY, 8, b"\x01")],
        "json: cannot be read: .*password required",
    ),
]


@pytest.mark.parametrize(("name", "changes", "message"), WRONG)
def test_an_archive_with_a_hostile_member_is_refused(tmp_path, name, changes, message):
    path = archive(tmp_path / "set.zip", {name: b"# A", "queries.json": ASKED})
    raw = bytearray(path.read_bytes())
    for header, offset, value in changes:
        for match in re.finditer(re.escape(header), bytes(raw)):
            raw[match.start() + offset : match.start() + offset + len(value)] = value
    path.write_bytes(raw)
    with pytest.raises(InputError, match=message):
        load_dataset(parse_reference(path))


@pytest.mark.parametrize("value", ["&a [*a]", "&a {b: *a}", "bomb"])
def test_a_head_that_stands_for_too_much_is_text(value):
    text = f"---\nx: {value}\n---\n"
    if value == "bomb":
        lines = ["a0: &a0 [b, b]"]
        lines += [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 60)]
        text = "\n".join(["---", *lines, "---", ""])
    document = parse_text_document(text, "a")
    assert (document.text, document.fields) == (text.strip(), {})


def test_a_folder_that_may_not_be_read_is_a_problem(tmp_path, monkeypatch):
    folder = markdown(tmp_path / "data")
    locked = folder / "locked"
    locked.mkdir()
    list_folder = os.scandir

    def refuse(path):
        if str(path) == str(locked):
            raise PermissionError(13, "Permission denied", str(path))
        return list_folder(path)

    def is_run_folder(path):
        raise PermissionError(13, "Permission denied", str(path))

    # Whoever runs the tests may be allowed to read everything.
    monkeypatch.setattr(os, "scandir", refuse)
    monkeypatch.setattr(listing, "is_run_folder", is_run_folder)
    problems = ReadProblems()
    listing.list_files(folder, problems)
    (problem,) = problems.problems
    assert problem.what == "cannot be listed: Permission denied"


def test_two_files_of_one_name_are_refused_where_they_are_read(tmp_path):
    folder = layouts.beir(tmp_path / "data")
    for name in ("notes.bin", "notes.bin.gz"):
        (folder / name).write_text("read by nobody")
    assert load_dataset(parse_reference(folder)).document_count
    (folder / "corpus.jsonl.gz").write_bytes(
        gzip.compress(b'{"_id": "only", "text": "here"}\n')
    )
    with pytest.raises(
        InputError,
        match=r"corpus.jsonl: corpus.jsonl.gz is there as well .keep one of them",
    ):
        load_dataset(parse_reference(folder))
    path = archive(tmp_path / "twice.zip", {"a.md": b"# A", "queries.json": ASKED})
    with (
        zipfile.ZipFile(path, "a") as again,
        pytest.warns(UserWarning, match="Duplicate name"),
    ):
        again.writestr("a.md", b"# Another")
    with pytest.raises(
        InputError, match=r"twice.zip/a.md: a.md is there as well .keep one of them"
    ):
        load_dataset(parse_reference(path))


@pytest.mark.parametrize(
    "suffix", [".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst", ".7z"]
)
@pytest.mark.parametrize("form", [None, "beir", "markdown"])
def test_archives_of_other_kinds_are_refused_with_what_to_do(tmp_path, suffix, form):
    """A tar has no list of its members, and each pass would unpack all of it."""
    path = tmp_path / f"scifact{suffix}"
    path.write_bytes(b"x")
    with pytest.raises(
        InputError,
        match=r"not read: only zip is .unpack it and name the folder, or pack",
    ):
        load_dataset(DatasetReference(path, format=form))


@pytest.mark.parametrize(
    ("id_", "reason"),
    [
        ("a\rb", "U+000D"),
        ("a\nb", "U+000A"),
        ("a\x1b[31m", "U+001B"),
        ("\ufeffa", "byte order mark"),
        ("a\u2028b", "U+2028"),
        ("a\0", "U+0000"),
    ],
)
@pytest.mark.parametrize("file", ["corpus.jsonl", "queries.jsonl"])
def test_ids_that_break_the_files_that_are_written_are_refused(
    tmp_path, id_, reason, file
):
    folder = layouts.beir(tmp_path / "set")
    (folder / file).write_text(json.dumps({"_id": id_, "text": "one"}) + "\n")
    assert reason in refused(folder)


@pytest.mark.parametrize(
    "grade", ["1_0", "١", "1e0", "nan", "inf", "9" * 400, "0x1", "1.5"]
)
def test_grades_that_only_a_programming_language_reads_are_refused(tmp_path, grade):
    folder = layouts.beir(tmp_path / "set")
    (folder / "qrels" / "test.tsv").write_text(f"q1\tcar\t{grade}\n")
    assert "is not a whole number" in refused(folder)


@pytest.mark.parametrize(
    ("link", "target", "message"),
    [
        ("b.txt", "outside/a.md", "is a link that leads out of the data set"),
        ("inner", "outside", "is a link that leads out of the data set"),
        ("b.md", "set/b.md", "cannot be read"),
    ],
    ids=["to a file", "to a folder", "to itself"],
)
def test_links_that_lead_out_of_the_data_set_or_to_themselves_are_refused(
    tmp_path, link, target, message
):
    folder = markdown(tmp_path / "set")
    markdown(tmp_path / "outside")
    (folder / link).symlink_to(tmp_path / target)
    assert f"{link}: {message}" in refused(folder)


def test_a_link_within_the_data_set_is_a_document(tmp_path):
    folder = markdown(tmp_path / "set")
    (folder / "b.md").symlink_to(folder / "a.md")
    assert load_dataset(DatasetReference(folder)).document_count == 2


def test_a_name_that_is_not_utf8_is_refused(tmp_path):
    folder = markdown(tmp_path / "set")
    try:
        Path(os.fsdecode(os.fsencode(folder) + b"/\xff.md")).write_text("text")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert "its name is not UTF-8" in refused(folder)


def test_code_of_a_data_set_is_never_run(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = tmp_path / "evil"
    folder.mkdir()
    (folder / "evil.py").write_text("raise SystemExit('it ran')")
    with pytest.raises(
        InputError, match=r"Dataset scripts are no longer supported, but found evil.py"
    ):
        load_dataset(parse_reference(f"hf:{folder.as_posix()}"))


UNPICKLING = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "joblib",
    "shelve",
    "marshal",
    "jsonpickle",
}
BUILT_IN = {"eval", "exec", "compile", "__import__"}
METHODS = {"read_pickle", "unsafe_load", "full_load"}


def called(node: ast.Call) -> str:
    """Return the name of a call that evaluates or unpickles; empty for any other."""
    if isinstance(node.func, ast.Name) and node.func.id in BUILT_IN:
        return node.func.id
    if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
        return node.func.attr
    trusting = (
        keyword.arg == "allow_pickle"
        and getattr(keyword.value, "value", 0) is not False
        for keyword in node.keywords
    )
    return "allow_pickle" if any(trusting) else ""


def test_nothing_is_unpickled_and_no_text_is_run_as_code(project):
    """By syntax trees: nothing that unpickles is imported, and no evaluation called."""
    wrong = []
    for path in (
        *(project / "harness").rglob("*.py"),
        *(project / "retrievers").rglob("*.py"),
    ):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else []
            )
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            wrong += [
                f"{path}: {name}"
                for name in names
                if name.partition(".")[0] in UNPICKLING
            ]
            name = called(node) if isinstance(node, ast.Call) else ""
            if name:
                wrong.append(f"{path}:{node.lineno}: {name}")
    assert wrong == []


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("np.load(f, allow_pickle=True)", "allow_pickle"),
        ("np.load(f, allow_pickle=flag)", "allow_pickle"),
        ("np.load(f, allow_pickle=False)", ""),
        ("eval(text)", "eval"),
        ("yaml.full_load(text)", "full_load"),
        ("re.compile(text)", ""),
    ],
)
def test_a_call_that_unpickles_or_runs_text_would_be_seen(code, name):
    assert called(ast.parse(code).body[0].value) == name


SPACES = " " * 20_000


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (lambda text: parse_text_document(text, "a"), " " * 6000 + "x"),
        (lambda text: parse_text_document(text, "a"), "* " + " " * 6000),
        (
            lambda text: parse_text_document(text, "a"),
            "*" + ":" * 6000 + " " * 6000 + "x",
        ),
        (lambda text: quote_text(text, "DOCUMENT"), f"<{SPACES}"),
        (lambda text: delimited(text, "PASSAGE"), f"<{SPACES}"),
        (lambda text: CITATION_MARK.sub("", text), f"so [1]{SPACES}it is"),
        (trec_rows.TOPIC_NUMBER_ATTRIBUTE.search, "<topic number" * 10_000),
    ],
)
def test_no_pattern_looks_at_a_text_twice_over(parse, text):
    assert is_cheap(
        lambda: parse(text)
    )  # seconds to a minute, in the square of the length


OLD = "cannot be read as Parquet"
COLUMNS = [
    (
        ("text", "text"),
        lambda pa: pa.array(["x", "y"]),
        "the column 'text' occurs twice",
    ),
    (("text", "when"), lambda pa: pa.array([2**62, 0], pa.timestamp("us")), OLD),
    (
        ("text", "s"),
        lambda pa: pa.StructArray.from_arrays([pa.array([1, 2])] * 2, ["a", "a"]),
        OLD,
    ),
]


@pytest.mark.parametrize(("names", "values", "message"), COLUMNS)
def test_a_table_with_columns_of_one_name_or_values_that_python_has_not_is_one_message(
    tmp_path, names, values, message
):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "corpus.parquet"
    problems = ReadProblems()
    parquet.write_table(
        pa.table(
            [pa.array(["1", "2"]), pa.array(["a", "b"]), values(pa)], ["_id", *names]
        ),
        path,
    )
    assert list(rows.read_file_rows(File(path), problems)) == []
    [problem] = problems.problems
    assert message in problem.what and problem.where == str(path)


def queries_without_header(folder: Path, text: str) -> DatasetReference:
    """A data set whose queries are a table without a header."""
    folder.mkdir()
    (folder / "documents.csv").write_text("d1,one\n")
    (folder / "labels.csv").write_text("q1,d1,1\n")
    (folder / "queries.csv").write_text(text, encoding="utf-8")
    return DatasetReference(folder, header=False)


def test_a_byte_order_mark_at_the_beginning_of_a_file_is_no_part_of_an_id(tmp_path):
    reference = queries_without_header(tmp_path / "d", "\ufeffq1,one\n")
    assert [query.id for query in load_dataset(reference).queries] == ["q1"]


@pytest.mark.parametrize(
    "text", ["\ufeff\ufeffq1,one\n", "q1,one\n\ufeffq2,two\n"], ids=["twice", "line 2"]
)
def test_any_other_byte_order_mark_stays_and_is_refused(text, tmp_path):
    reference = queries_without_header(tmp_path / "d", text)
    assert "begins with a byte order mark" in str(refusal(load_dataset, reference))
