"""Files of a results folder whose content was edited.

The digests in the manifest are those of the edited files, so that the reader of the
file is reached: each edit is one sentence with the file and, where there is one, the
line.
"""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import records
from harness.records import Results
from harness.records.judge_files import PASSAGES_FILE, read_passages
from tests.support import small
from tests.support.small import ends

Change = Callable[[Path], object]


@pytest.fixture
def folder(finished: Results, tmp_path: Path) -> Path:
    """A copy of a results folder."""
    return Path(shutil.copytree(finished.folder, tmp_path / "results"))


def first_line(text: str) -> Change:
    """Return an edit that puts another text in the place of the first line."""

    def edit(path: Path) -> None:
        lines = path.read_text(encoding="utf-8").splitlines()
        path.write_text("\n".join([text, *lines[1:]]) + "\n", encoding="utf-8")

    return edit


def first_row(**cells: Any) -> Change:
    """Return an edit of keys of the first line of JSON; ... removes a key."""

    def edit(path: Path) -> None:
        row = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
        for key, value in cells.items():
            if value is ...:
                del row[key]
            else:
                row[key] = value
        first_line(json.dumps(row))(path)

    return edit


def cell(row: int, column: str, text: str) -> Change:
    """Return an edit of a cell of a table; row 0 is the header."""

    def edit(path: Path) -> None:
        rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
        rows[row][rows[0].index(column)] = text
        write_rows(path, rows)

    return edit


def repeat_first_row(path: Path) -> None:
    """Write the first row of a table twice."""
    rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    write_rows(path, [*rows, rows[1]])


def write_rows(path: Path, rows: list[list[str]]) -> None:
    """Write the rows of a table."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


RANKING = "rankings/bm25.jsonl"
EDITS: dict[str, tuple[str, Change, str]] = {
    "a document that is null": (
        "documents.jsonl",
        first_line("null"),
        "line 1: Input should be an object",
    ),
    "a document without title": (
        "documents.jsonl",
        first_row(title=...),
        "line 1: title: Field required",
    ),
    "a list as id of a document": (
        "documents.jsonl",
        first_row(id=[]),
        "line 1: id: Input should be a valid string",
    ),
    "a document that is no JSON": (
        "documents.jsonl",
        first_line("{"),
        "line 1: Invalid JSON",
    ),
    "a ranking that is null": (
        RANKING,
        first_line("null"),
        "line 1: Input should be an object",
    ),
    "a ranking without documents": (
        RANKING,
        first_row(doc_ids=...),
        "line 1: doc_ids: Field required",
    ),
    "a ranking with a list as document": (
        RANKING,
        first_row(doc_ids=[["apple"]]),
        "line 1: doc_ids.0: Input should be a valid string",
    ),
    "a ranking with one number as scores": (
        RANKING,
        first_row(scores=1),
        "line 1: scores: Input should be",
    ),
    "a ranking with a score too many": (
        RANKING,
        first_row(doc_ids=["apple"], scores=[2.0, 1.0]),
        "a ranking has 1 documents and 2 scores",
    ),
    "labels with a number as text": (
        "labels.jsonl",
        first_row(text=3),
        "line 1: text: Input should be a valid string",
    ),
    "labels with a list as fields": (
        "labels.jsonl",
        first_row(fields=[]),
        "line 1: fields: Input should be",
    ),
    "labels with true as claim": (
        "labels.jsonl",
        first_row(claims=[True]),
        "line 1: claims.0",
    ),
    "labels with a list as grade": (
        "labels.jsonl",
        first_row(ranked=None, grades={"apple": [1]}),
        "line 1: grades.apple: Input should be a valid integer",
    ),
    "labels with a grade beyond 32 bits": (
        "labels.jsonl",
        first_row(ranked=None, grades={"apple": 2**31}),
        "line 1: grades.apple: Input should be less than",
    ),
    "a score of an unknown query": (
        "scores.csv",
        cell(1, "query_id", "x"),
        "line 2: 'x' is not in labels.jsonl",
    ),
    "a score of an unknown retriever": (
        "scores.csv",
        cell(1, "retriever", "x"),
        "line 2: 'x' did not finish in this run",
    ),
    "a score that is text": (
        "scores.csv",
        cell(2, "value", "x"),
        "line 3: value is 'x'",
    ),
    "a column of scores that is absent": (
        "scores.csv",
        cell(0, "measure", "x"),
        "it has no column 'measure'",
    ),
    "a column of scores that occurs twice": (
        "costs.csv",
        cell(0, "measured_at", "stage"),
        "it has no column 'measured_at'",
    ),
    "scores that occur twice": ("scores.csv", repeat_first_row, "repeats bm25, "),
    "means that occur twice": ("summary.csv", repeat_first_row, "repeats bm25, nDCG@3"),
    "costs below 0": ("costs.csv", cell(1, "seconds", "-1"), "line 2: seconds is -1"),
    "half a text": ("costs.csv", cell(1, "texts", "0.5"), "line 2: texts is 0.5"),
    "a number of 400 digits": (
        "costs.csv",
        cell(1, "texts", "9" * 400),
        "line 2: texts is ",
    ),
}


@pytest.mark.parametrize(("name", "edit", "message"), EDITS.values(), ids=EDITS)
def test_a_file_with_edited_content_is_one_sentence(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    edit: Change,
    message: str,
) -> None:
    edit(folder / name)
    small.signed_anew(folder)
    (folder / records.REPORT_FILE).unlink()
    (folder / "evaluation.json").unlink()
    command = ["export", folder, "--as", "parquet"]
    output = ends(capsys, 2, *command)
    assert f"{folder / name}: cannot be read whole: " in output.err
    assert message in output.err
    assert output.err.count("\n") == 1


MANIFEST_EDITS: dict[str, tuple[tuple[str | int, ...], Any, str]] = {
    "a retriever without a name": (
        ("resolved", "retrievers", 0),
        {"kind": "bm25"},
        "resolved.retrievers.0: Value error, name: Field required",
    ),
    "a number as part": (
        ("resolved", "retrievers", 2, "of"),
        [3],
        "resolved.retrievers.2: Value error, of",
    ),
    "a text as encoder": (
        ("resolved", "retrievers", 1, "encoder"),
        "x",
        "resolved.retrievers.1: Value error, encoder: Input should be",
    ),
    "a part that does not exist": (
        ("resolved", "retrievers", 2, "of"),
        ["x"],
        "'hybrid' uses 'x', which is not a retriever",
    ),
    "a retriever that uses itself": (
        ("resolved", "retrievers", 2, "of"),
        ["hybrid"],
        "'hybrid' uses itself",
    ),
    "two retrievers with one name": (
        ("resolved", "retrievers", 1, "name"),
        "bm25",
        "two have the same name",
    ),
    "a list as statistics": (
        ("resolved", "statistics"),
        [["x"]],
        "resolved.statistics: Input should be",
    ),
    "a number as field of clusters": (
        ("resolved", "statistics", "cluster"),
        -1,
        "resolved.statistics: Value error, cluster",
    ),
    "a primary measure that is none": (
        ("resolved", "primary"),
        "x",
        "resolved.primary: Value error, ",
    ),
    "a primary measure that was not computed": (
        ("resolved", "primary"),
        "P@3",
        "'P@3' is not among the measures",
    ),
    "a baseline that does not exist": (
        ("resolved", "baseline"),
        "x",
        "resolved.baseline: 'x' is not a retriever",
    ),
    "null in the experiment": (
        ("experiment", "measures", 1),
        None,
        "experiment: Value error, cannot be written as TOML",
    ),
    "a truth value as data set": (
        ("experiment", "dataset"),
        True,
        "experiment: Value error, dataset should be a text or a table",
    ),
    "a text as load": (
        ("machine", "load"),
        "high",
        "machine.load: Input should be a valid number",
    ),
    "a text as number of vectors": (
        ("retrievers", "bm25", "provenance"),
        {"vectors": "many"},
        "retrievers.bm25.provenance: Value error, vectors is 'many'",
    ),
    "a judge without depth": (
        ("judge",),
        {"judge": "lexical", "prompt": ""},
        "judge: Value error, 'depth' is missing",
    ),
    "a text as count of a judge": (
        ("judge",),
        {"judge": "lexical", "prompt": "", "depth": "5", "verdicts": "x"},
        "judge: Value error, queries is '', not a whole number",
    ),
    "no quality of a retriever": (
        ("ledger",),
        {"dataset": {}},
        "ledger: has no 'bm25'",
    ),
}


@pytest.mark.parametrize(
    ("keys", "value", "message"), MANIFEST_EDITS.values(), ids=MANIFEST_EDITS
)
def test_an_edited_manifest_is_one_sentence(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    keys: tuple[str | int, ...],
    value: Any,
    message: str,
) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    table = manifest
    for key in keys[:-1]:
        table = table[key]
    table[keys[-1]] = value
    path.write_text(json.dumps(manifest), encoding="utf-8")
    output = ends(capsys, 2, "report", folder)
    assert f"{path}: is damaged: " in output.err
    assert message in output.err
    assert output.err.count("\n") == 1


def test_a_default_that_a_manifest_lacks_is_filled_in(folder: Path) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    del manifest["resolved"]["relevance"]["ideal"]
    path.write_text(json.dumps(manifest), encoding="utf-8")
    assert records.read_manifest(folder).resolved.relevance.ideal == "judged"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("document,digest\n", "line 1 is not id,digest"),
        ("id,digest\napple\n", "line 2 has 1 cells"),
        ("", "line 1 is not id,digest"),
    ],
    ids=["another column", "a short line", "empty"],
)
def test_an_edited_corpus_file_is_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    path = folder / "corpus.csv"
    path.write_text(text, encoding="utf-8")
    gate = ["--baseline", "bm25", "--challenger", "hashing", "--margin", "0.5"]
    command = ["gate", folder, *gate, "--from", folder, "--corpus-changed"]
    output = ends(capsys, 2, *command)
    assert f"{path}: cannot be read whole: {message}" in output.err


def test_a_folder_in_the_place_of_rankings_is_one_sentence_before_a_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / RANKING
    path.unlink()
    path.mkdir()
    output = ends(capsys, 2, "reproduce", folder, "--trust")
    assert f"{path}: cannot be read whole: " in output.err


PROPERTY_EDITS: dict[str, tuple[Change, str]] = {
    "another column": (
        cell(0, "value", "x"),
        "line 1 is not query,property,value",
    ),
    "an unknown property": (
        cell(1, "property", "mood"),
        "line 2: unknown property 'mood'",
    ),
    "an unknown query": (cell(1, "query", "x"), "line 2: 'x' is not in labels.jsonl"),
    "a text as length": (
        cell(1, "value", "long"),
        "line 2: value is 'long', not a number from 0",
    ),
    "a length below 0": (
        cell(1, "value", "-1"),
        "line 2: value is '-1', not a number from 0",
    ),
    "a number as yes or no": (
        cell(2, "value", "1"),
        "line 3: value is '1', not yes or no",
    ),
    "a property twice": (repeat_first_row, "repeats q-fruit, query length"),
    "a short line": (first_line("query,property"), "line 1 is not query,"),
    "an empty file": (lambda path: path.write_text(""), "line 1 is not query,"),
}


@pytest.mark.parametrize(
    ("edit", "message"), PROPERTY_EDITS.values(), ids=PROPERTY_EDITS
)
def test_edited_properties_are_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], edit: Change, message: str
) -> None:
    path = folder / "properties.csv"
    edit(path)
    small.signed_anew(folder)
    output = ends(capsys, 2, "explain", folder, "bm25", "hashing")
    assert f"{path}: cannot be read whole: " in output.err
    assert message in output.err
    assert output.err.count("\n") == 1


def test_changed_properties_are_refused_by_every_command(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "properties.csv"
    path.write_text(path.read_text(encoding="utf-8") + "q,digits,no\n")
    output = ends(capsys, 2, "report", folder)
    assert f"{path}: cannot be read whole: it was changed or cut" in output.err


def test_missing_properties_are_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "properties.csv").unlink()
    output = ends(capsys, 2, "report", folder)
    assert f"{folder / 'properties.csv'}: is missing" in output.err


@pytest.mark.parametrize(
    "header", [b"a,b\n", b"\xff\xfe\n", b"", b"[" * 200_000], ids=len
)
def test_an_edited_table_of_data_sets_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], header: bytes
) -> None:
    path = tmp_path / "data_sets.csv"
    path.write_bytes(header)
    output = ends(capsys, 2, "report", tmp_path)
    assert f"{path}: cannot be read whole: " in output.err


@pytest.mark.parametrize("key", ["id", "passage"])
def test_a_passage_without_a_key_is_refused_with_its_line(
    tmp_path: Path, key: str
) -> None:
    row = {"id": "d1", "passage": "f36a08de5a65a3e3"}
    del row[key]
    path = tmp_path / PASSAGES_FILE
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    problem = f"{path}:1: is not an entry of passages.jsonl: '{key}'"
    assert problem in str(small.refusal(read_passages, tmp_path))
