"""What is said of data that cannot be taken as they are: the row, what a file looks like, the remedy that helps."""

import json
from pathlib import Path

import pytest

from harness.dataset import DatasetReference, corpus, load, markdown_folder, reference_of
from harness.dataset.judgments import read_judgments
from harness.dataset.rows import read_jsonl
from harness.dataset.source import Findings
from harness.dataset.trec import read_qrels
from harness.running.check import check
from retrievers.errors import InputError
from tests.support import labels_small
from tests.support.layouts import book
from tests.support.small import ends, refusal


def folder(place: Path, asked: str = "query,doc\nleave,a\n") -> Path:
    place.mkdir()
    (place / "a.md").write_text("# Leave\n\n25 days a year")
    (place / "queries.csv").write_text(asked)
    return place


def told(reference: DatasetReference) -> str:
    [problem] = refusal(load, reference).problems
    return str(problem)


def test_a_row_without_an_id_is_named_by_its_line(tmp_path):
    path = folder(tmp_path / "d", "query,doc\nleave,a\ntravel,b\n")
    assert "queries.csv:3: names document 'b', which does not exist" in told(reference_of(path))
    (path / "queries.csv").write_text("id,query,doc\nx,leave,a\ny,travel,b\n")
    assert "queries.csv:3: query 'y' names document 'b', which does not exist" in told(reference_of(path))


GOOD = "query,doc\nleave,a\n"
ASKED = [["query", "doc"], ["leave", "a"]]
WORST: dict[str, tuple[dict[str, object], str, str]] = {
    "an empty table": ({"d/queries.csv": ""}, "d", "d/queries.csv: is empty (a header, then"),
    "a header alone": ({"d/queries.csv": "query,doc\n"}, "d", "has no row below its first one, query, doc"),
    "one row without a header": ({"d/queries.csv": "how much leave do I have,a\n"}, "d", "--no-header"),
    "words without a header": (
        {"d/queries.csv": "how much leave do I have,a\n" * 3}, "d",
        'not a header: "how much leave do I have", "a", as at 1 more place (write one above it: query,document'),
    "numbers without a header": ({"d/queries.csv": "1,a\n2,a\n"}, "d", "the first row is not a header"),
    "a damaged table alone": ({"asked.parquet": b"PAR1 cut"}, "asked.parquet", "cannot be read as Parquet"),
    "a document that is misspelt": ({"d/queries.csv": "query,doc\nleave,b\n"}, "d", ":2: names document 'b'"),
    "no document at all": ({"d/queries.csv": "query,url\nleave,x\ntax,y\n"}, "d", "'url': no value is the id"),
    "grades in words": ({"d/queries.csv": "query,doc,rating\nleave,a,high\n"}, "d", 'grade "high" is not a whole'),
    "fractions": ({"d/queries.csv": "query,doc,rating\nleave,a,0.5\n"}, "d", 'grade "0.5" is not a whole number'),
    "nothing relevant": ({"d/queries.csv": "query,doc,rating\nleave,a,0\n"}, "d", "no query has a relevant document"),
    "grades under another word": (
        {"d/queries.csv": "query,doc,stars\nleave,a,2\ntax,a,0\n"}, "d", "'stars' could hold grades (0, 2)"),
    "clicks beside documents": ({"d/queries.csv": "query,doc,clicks\nleave,a,2\n"}, "d", "'clicks' could hold grades"),
    "two grades of a pair": (
        {"d/queries.csv": "query,doc,rating\nleave,a,2\nleave,a,1\n"}, "d", ":3: the query and document 'a'"),
    "a cell too many": ({"d/queries.csv": "query,doc\nleave,a,b\n"}, "d", "queries.csv:2: 3 columns (the header has 2"),
    "an open quote": (
        {"d/queries.csv": 'query,doc\n"leave,a\n'}, "d",
        "queries.csv:2: cannot be read as a table: unexpected end of data (put every cell with a quote in quotes"),
    "UTF-16": ({"d/queries.csv": GOOD.encode("utf-16")}, "d", "queries.csv:1: is not UTF-8 but UTF-16"),
    "Latin 1": ({"d/queries.csv": b"query,doc\ncaf\xe9,a\n"}, "d", "queries.csv:2: is not UTF-8 (byte 0xe9"),
    "a column twice": ({"d/queries.csv": "query,doc,doc\nleave,a,a\n"}, "d", "the column 'doc' occurs twice"),
    "a blank query": ({"d/queries.csv": "query,doc\n,a\n"}, "d", "queries.csv:2: a judged query is blank"),
    "two tables of queries": ({"d/queries.csv": GOOD, "d/queries.tsv": GOOD}, "d", "queries.tsv is there as well"),
    "JSON that is cut": ({"d/queries.jsonl": '{"query": "leave", "doc"'}, "d", "queries.jsonl:1: is not JSON"),
    "a number": ({"d/queries.jsonl": "3\n"}, "d", "queries.jsonl:1: is not a JSON object"),
    "two lists in an object": ({"d/questions.json": '{"a": [{}], "b": [{}]}'}, "d", "nor an object with one such list"),
    "CSV called JSON Lines": ({"d/queries.jsonl": GOOD}, "d", "it looks like a table (CSV)"),
    "CSV called Excel": ({"d/questions.xlsx": GOOD, "x": lambda: book(A=ASKED)}, "d", "is not a workbook that can be"),
    "several sheets": ({"d/questions.xlsx": lambda: book(May=ASKED, June=ASKED)}, "d", "has the sheets 'May', 'June'"),
    "an empty workbook": ({"d/questions.xlsx": lambda: book(May=[])}, "d", "holds no sheet with a value (fill one in)"),
    "a sheet that begins further down": (
        {"d/questions.xlsx": lambda: book(A=[[""], ["query", "doc"], ["leave", "b"]])}, "d", "questions.xlsx:3: names"),
    "sheets of other names": (
        {"all.xlsx": lambda: book(May=ASKED, June=ASKED)}, "all.xlsx", "none of them is called queries"),
    "no such sheet": ({"d/log.xlsx": lambda: book(May=ASKED)}, "d --queries log.xlsx#Mai", "has no sheet 'Mai'"),
    "CSV called Parquet": ({"d/queries.parquet": GOOD}, "d", "cannot be read as Parquet"),
    "CSV called Arrow": ({"d/queries.arrow": GOOD}, "d", "cannot be read as Arrow"),
    "a database": ({"log.csv": GOOD}, "log.csv --documents sqlite:///no.db?table=t", "sqlite: databases are retired"),
    "a database alone": ({"log.csv": GOOD}, "postgresql://ann:word@db/help", "postgresql: databases are retired"),
    "an empty file": ({"log.csv": ""}, "log.csv", "log.csv: is empty"),
    "a table alone": ({"log.csv": GOOD}, "log.csv", "is a table that names no documents"),
    "no such documents": ({"log.csv": GOOD}, "log.csv --documents dd", "dd: no such file (did you mean 'd'"),
    "any file": ({"log.bin": "x"}, "log.bin", "is a file that no reader takes (say what it is: format = "),
    "a tar": ({"d.tar.gz": "x"}, "d.tar.gz", "is an archive of a kind that is not read: only zip is"),
    "a zip that is cut": ({"d.zip": b"PK\3\4 cut"}, "d.zip", "is not a zip archive that can be read"),
    "splits": ({f"s/{name}-00000-of-00001.parquet": "" for name in ("dev", "test")}, "s", "has the splits dev, test"),
    "configurations": (
        {f"s/{name}/dev-00000-of-00001.parquet": "" for name in ("de", "en")}, "s", "has the configurations de, en"),
    "no such format": ({"d/queries.csv": GOOD}, "d --format tabels", "did you mean 'tables'"),
    "no such kind of column": ({"d/queries.csv": GOOD}, "d --columns qurey=query", "did you mean 'query'"),
    "no such title": (
        {"d/queries.csv": GOOD, "t.csv": "id,text\na,25 days\n"}, "d --documents t.csv --columns title=head",
        "t.csv: no row has a column 'head' (known: id, text)"),
    "no such reference answer": (
        {"d/queries.csv": GOOD}, "d --columns reference=answer", "d/queries.csv: no row has a column 'answer'"),
    "no such column": ({"d/queries.csv": GOOD}, "d --columns grade=stars", "there is no column 'stars'"),
    "an export without documents": (
        {"t.jsonl": '{"user_input": "x", "reference_contexts": ["y"]}'}, "t.jsonl", "names no documents"),
    "a bulk request without ids": (
        {"d/documents.ndjson": '{"index": {"_index": "h"}}\n{"text": "x"}\n', "d/queries.csv": GOOD}, "d",
        "documents.ndjson:2: '_id' is missing"),
}  # fmt: skip


@pytest.mark.parametrize("variant", WORST)
def test_the_worst_of_files_get_one_sentence(variant, tmp_path, monkeypatch, capsys):
    files, words, expected = WORST[variant]
    monkeypatch.chdir(tmp_path)
    for name, content in {"d/a.md": "# Leave\n\n25 days", **files}.items():
        path, raw = Path(name), content() if callable(content) else content
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(raw if isinstance(raw, bytes) else str(raw).encode())
    said = ends(capsys, 2, "init", *words.split()).err
    assert said.count("\n") == said.count("error: ") == 1
    assert expected in said


def test_the_extra_that_is_missing_is_named_where_nothing_can_be_read(tmp_path, monkeypatch):
    for room in (corpus, markdown_folder):
        monkeypatch.setattr(room, "installed", lambda: False)
    path = folder(tmp_path / "d", "query\nleave\n")
    (path / "a.md").rename(path / "a.pdf")
    assert 'or the extra "documents"' in told(reference_of(path))


def test_power_counts_the_queries_that_are_judged(tmp_path):
    path = folder(tmp_path / "d", "id,query\n" + "".join(f"q{n},question {n}\n" for n in range(6)))
    labels_small.write(path / "judgments.jsonl", [labels_small.judgment(f"q{n}", "a", grade=1) for n in range(3)])
    assert check(path).capacity.units == 3
    (path / "judgments.jsonl").unlink()
    assert check(path).capacity.units == 6


CONTENTS = {
    'name = "e"\ndataset = "d"\n\n[[retrievers]]\nkind = "bm25"\n': "an experiment file (TOML)",
    "# what\n[dataset]\n": "an experiment file (TOML)",
    "when,query\n" + "2026,a question of words\n" * 30: "a table (CSV)",
    "<!doctype html>\n<p>text</p>\n": "a web page, or XML",
}


@pytest.mark.parametrize("content", CONTENTS)
def test_a_file_of_another_kind_is_called_so_once(tmp_path, content):
    path = tmp_path / "file"
    path.write_text(content)
    assert [problem.what for problem in refusal(read_judgments, [path]).problems] == [
        f"is not JSON Lines: it looks like {CONTENTS[content]}"
    ]
    assert [problem.what for problem in refusal(read_qrels, path).problems] == [
        f"holds no TREC qrels: it looks like {CONTENTS[content]}"
    ]


def test_json_is_no_trec_file(tmp_path):
    path = tmp_path / "file"
    path.write_text('{"query_id": "q", "document_id": "d"}\n')
    with pytest.raises(InputError, match="it looks like JSON"):
        read_qrels(path)


def test_a_first_line_that_is_cut_hides_no_other_problem(tmp_path):
    seen = Findings()
    path = tmp_path / "file"
    path.write_text('{"a": \n{"a": 1}\n{"b"\n')
    assert [row for _, row in read_jsonl(path, seen)] == [{"a": 1}]
    assert len(seen.problems) == 2


def test_a_pool_holds_no_judgments(tmp_path):
    path = tmp_path / "my pool.jsonl"
    path.write_text(json.dumps({"pool": 1, "digest": "x", "drawn": {}}) + "\n" + '{"query_id": "q"}\n' * 30)
    [problem] = refusal(read_judgments, [path]).problems
    assert (problem.what, problem.remedy) == (
        "is a pool: what is to be judged, and nothing that was", f"judge it first: harness judge '{path}'"
    )  # fmt: skip
