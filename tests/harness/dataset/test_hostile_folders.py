"""Files that somebody hostile or careless wrote: one message each, nothing that hangs, nothing half read."""

import ast
import gzip
import json
import os
import threading
from pathlib import Path

import pytest

from harness.answers.chat_judge import as_data
from harness.answers.systems import MARK, read_systems
from harness.dataset import DatasetReference, files, load, reference_of, rows, trec
from harness.dataset.markdown_folder import parse_document
from harness.dataset.source import Findings
from harness.evaluation.readers import read_scores
from retrievers.chat import quoted
from retrievers.errors import InputError
from tests.harness.dataset.test_corpus import beir
from tests.support import layouts
from tests.support.costs import is_cheap
from tests.support.small import refusal


def markdown(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "a.md").write_text("# One\n\ntext")
    (folder / "queries.json").write_text(json.dumps([{"query": "one", "relevant_documents": ["a"]}]))
    return folder


def refused(folder: Path) -> str:
    return str(refusal(load, DatasetReference(folder)))


@pytest.mark.parametrize(
    ("id_", "reason"),
    [("a\rb", "U+000D"), ("a\nb", "U+000A"), ("a\x1b[31m", "U+001B"), ("\ufeffa", "byte order mark"),
     ("a\u2028b", "U+2028"), ("a\0", "U+0000")],
)  # fmt: skip
def test_ids_that_break_the_files_that_are_written_are_refused(tmp_path, id_, reason):
    line = json.dumps({"_id": id_, "text": "one"})
    assert reason in refused(beir(tmp_path / "documents", corpus=f"{line}\n"))
    folder = beir(tmp_path / "queries")
    (folder / "queries.jsonl").write_text(json.dumps({"_id": id_, "text": "uno"}) + "\n")
    assert reason in refused(folder)


@pytest.mark.parametrize("grade", ["1_0", "١", "1e0", "nan", "inf", "9" * 400, "0x1", "1.5"])
def test_grades_that_only_a_programming_language_reads_are_refused(tmp_path, grade):
    assert "is not a whole number" in refused(beir(tmp_path / "set", qrels=f"1\td1\t{grade}\n"))


def test_links_that_lead_out_of_the_data_set_are_refused(tmp_path):
    (tmp_path / "secret.txt").write_text("a secret")
    folder = markdown(tmp_path / "set")
    (folder / "b.txt").symlink_to(tmp_path / "secret.txt")
    assert "b.txt: is a link that leads out of the data set" in refused(folder)
    (folder / "b.txt").unlink()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "c.txt").write_text("text")
    (folder / "inner").symlink_to(tmp_path / "folder")
    assert "inner: is a link that leads out of the data set" in refused(folder)
    (folder / "inner").unlink()
    (folder / "b.md").symlink_to(folder / "a.md")
    assert load(DatasetReference(folder)).count == 2


def test_a_link_to_itself_is_refused(tmp_path):
    folder = markdown(tmp_path / "set")
    (folder / "b.md").symlink_to(folder / "b.md")
    assert "b.md: cannot be read" in refused(folder)


def test_a_name_that_is_not_utf8_is_refused(tmp_path):
    folder = markdown(tmp_path / "set")
    try:
        Path(os.fsdecode(os.fsencode(folder) + b"/\xff.md")).write_text("text")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert "its name is not UTF-8" in refused(folder)


def test_a_folder_that_cannot_be_listed_is_named(tmp_path, monkeypatch):
    folder = markdown(tmp_path / "set")
    (folder / "closed").mkdir()
    listed = os.scandir

    def denied(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", denied)
    assert "closed: cannot be listed: Permission denied" in refused(folder)


@pytest.mark.parametrize("text", [" " * 6000 + "x", "* " + " " * 6000, "*" + ":" * 6000 + " " * 6000 + "x"])
def test_spaces_cost_no_more_than_their_number(text):
    assert is_cheap(lambda: parse_document(text, "a"))  # 68 s with the pattern that looked at them three times over


def test_code_of_a_data_set_is_never_run(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = tmp_path / "evil"
    folder.mkdir()
    (folder / "evil.py").write_text("raise SystemExit('it ran')")
    with pytest.raises(InputError, match=r"Dataset scripts are no longer supported, but found evil.py"):
        load(reference_of(f"hf:{folder.as_posix()}"))


PROJECT = Path(__file__).parents[3]
UNPICKLING = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "jsonpickle"}
BUILT_IN, METHODS = {"eval", "exec", "compile", "__import__"}, {"read_pickle", "unsafe_load", "full_load"}


def called(node: ast.Call) -> str:
    """What a call may do that data must never lead to; "" for any other."""
    if isinstance(node.func, ast.Name) and node.func.id in BUILT_IN:
        return node.func.id
    if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
        return node.func.attr
    trusting = [
        one for one in node.keywords if one.arg == "allow_pickle" and getattr(one.value, "value", 0) is not False
    ]
    return "allow_pickle" if trusting else ""


def test_nothing_is_unpickled_and_no_text_is_run_as_code():
    """The syntax trees say so: no module that unpickles is imported, and nothing that evaluates is called."""
    wrong = []
    for path in sorted([*(PROJECT / "harness").rglob("*.py"), *(PROJECT / "retrievers").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            wrong += [f"{path}: {name}" for name in names if name.partition(".")[0] in UNPICKLING]
            if isinstance(node, ast.Call) and (name := called(node)):
                wrong.append(f"{path}:{node.lineno}: {name}")
    assert wrong == []
    assert called(ast.parse("np.load(f, allow_pickle=True)").body[0].value) == "allow_pickle"


SPACES = " " * 20_000


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (lambda text: quoted(text, "DOCUMENT"), f"<{SPACES}"),
        (lambda text: as_data(text, "PASSAGE"), f"<{SPACES}"),
        (lambda text: MARK.sub("", text), f"so [1]{SPACES}it is"),
        (trec.NUMBERED.search, "<topic number" * 10_000),
    ],
)
def test_no_pattern_looks_at_a_text_twice_over(read, text):
    assert is_cheap(lambda: read(text))  # seconds to a minute, in the square of the length


def test_a_pipe_that_is_written_to_is_read_from_its_first_byte(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(gzip.compress(b"q1 0 d1 1\n"),))
    writer.start()
    assert trec.read_qrels(tmp_path / "pipe") == {"q1": {"d1": 1}}
    writer.join()


def test_a_file_of_answers_is_read_as_every_other(tmp_path):
    (tmp_path / "two.jsonl").write_text('{"query_id": "q1", "response": "a", "response": "b"}\n[[' + "[" * 100_000)
    contexts = [{"id": "c1", "text": "x"}, {"id": "c2", "text": "y", "txt": "z"}]
    layouts.jsonl(tmp_path / "four.jsonl", [{"query_id": "q1", "response": "a", "contexts": contexts}])
    (tmp_path / "three.jsonl").write_text(
        '{"query_id": "q1", "contexts": ["x"], "response": "so [%s]"}\n' % ("9" * 5000)
    )
    caught = refusal(read_systems, tmp_path, ["q1"])
    for part in ("two.jsonl:1: is not JSON: the key 'response' occurs twice",
                 "two.jsonl:2: is not JSON: it is nested too deep",
                 "four.jsonl:1: contexts[1].txt: unknown key 'txt' (did you mean 'text'"):  # fmt: skip
        assert part in str(caught)
    assert "three.jsonl" not in str(caught)  # a mark of 5,000 digits names no context


@pytest.mark.parametrize("value", ["1e308", "-1e308", "1e101"])
def test_scores_whose_squares_are_no_numbers_are_refused(tmp_path, value):
    path = tmp_path / "scores.csv"
    path.write_text(f"retriever,query_id,measure,value\na,q1,m,{value}\nb,q1,m,0.5\n")
    with pytest.raises(
        InputError, match=rf"scores.csv:2: '{value}' is not a score .a number of at most 1e\+100; empty"
    ):
        read_scores(path)


@pytest.mark.parametrize(
    ("names", "values", "what"),
    [
        (("text", "text"), lambda pa: pa.array(["x", "y"]), "the column 'text' occurs twice"),
        (("text", "when"), lambda pa: pa.array([2**62, 0], pa.timestamp("us")), "cannot be read as Parquet"),
        (("text", "when"), lambda pa: pa.array([2**31 - 1, 0], pa.date32()), "cannot be read as Parquet"),
        (
            ("text", "s"),
            lambda pa: pa.StructArray.from_arrays([pa.array([1, 2])] * 2, ["a", "a"]),
            "cannot be read as Parquet",
        ),
    ],
)
def test_a_table_with_columns_of_one_name_or_values_that_python_has_not_is_one_message(tmp_path, names, values, what):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "corpus.parquet"
    table = pa.table([pa.array(["1", "2"]), pa.array(["a", "b"]), values(pa)], ["_id", *names])
    parquet.write_table(table, path)
    seen = Findings()
    assert list(rows.read_rows(files.File(path), seen)) == []
    [problem] = seen.problems
    assert what in problem.what and problem.where == str(path)
