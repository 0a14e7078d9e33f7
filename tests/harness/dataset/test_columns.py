"""Columns as spreadsheets and search logs have them: what looks like a label is used, or refused by name."""

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from harness.console.shared_options import columns_of
from harness.dataset import DatasetReference, load, reference_of
from harness.experiment import init
from harness.experiment import load as load_experiment
from harness.experiment.init import write_experiment
from harness.running.check import check
from retrievers.errors import InputError
from tests.support.small import ended, refusal

DOCUMENTS = ("doc", "document", "docid", "doc_id", "Doc ID", "file", "path", "url", "source", "passage_id",
             "expected_doc_ids", "relevant_documents", "clicked_doc_id", "reference_contexts", "positive")  # fmt: skip
GRADES = ("grade", "rating", "relevance", "rel", "score", "label", "judgment", "gain", "clicks")
ROWS = [("leave", "a", 2), ("leave", "b", 0), ("travel", "b", 1)]
"""Queries, documents and grades: four documents and queries with a grade each."""


def table(path: Path, header: list[str], rows: list[list[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def texts(folder: Path) -> Path:
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nthe text of {name}")
    return folder


def markdown(folder: Path, header: list[str], rows: list[list[object]]) -> DatasetReference:
    table(texts(folder) / "questions.csv", ["question", *header], rows)
    return reference_of(folder)


def tables(folder: Path, header: list[str], rows: list[list[object]]) -> DatasetReference:
    folder.mkdir()
    table(folder / "documents.csv", ["id", "text"], [[name, f"text {name}"] for name in "abc"])
    table(folder / "queries.csv", ["query", *header], rows)
    return reference_of(folder)


def one_table(folder: Path, header: list[str], rows: list[list[object]]) -> DatasetReference:
    table(texts(folder) / "asked.csv", ["query", *header], rows)
    return DatasetReference(folder, queries=("asked.csv",), documents=".", format="tables")


def with_labels(folder: Path, header: list[str], rows: list[list[object]]) -> DatasetReference:
    """The labels in a table of their own, whose queries are named by id."""
    folder.mkdir()
    table(folder / "documents.csv", ["id", "text"], [[name, f"text {name}"] for name in "abc"])
    table(folder / "queries.csv", ["query_id", "query"], [["leave", "how much"], ["travel", "by train"]])
    table(folder / "labels.csv", ["query_id", *header], rows)
    return reference_of(folder)


def grades(reference: DatasetReference) -> Counter[int]:
    found = load(reference).labels.values()
    return Counter(grade for one in found for grade in (one.grades or dict.fromkeys(one.documents, 1)).values())


@pytest.mark.parametrize("word", DOCUMENTS)
def test_a_column_of_documents_is_used_with_its_grades(tmp_path, word):
    assert grades(markdown(tmp_path / "d", [word, "rating"], [list(row) for row in ROWS])) == {0: 1, 1: 1, 2: 1}


@pytest.mark.parametrize("shape", [tables, one_table, with_labels])
@pytest.mark.parametrize("word", ["docid", "relevant_documents", "reference_contexts"])
def test_so_it_is_in_every_place_of_a_table(tmp_path, shape, word):
    assert grades(shape(tmp_path / "d", [word, "rating"], [list(row) for row in ROWS])) == {0: 1, 1: 1, 2: 1}


@pytest.mark.parametrize("word", GRADES)
def test_a_column_of_grades_is_used_or_refused(tmp_path, word):
    reference = markdown(tmp_path / "d", ["docid", word], [list(row) for row in ROWS])
    try:
        assert grades(reference) == {0: 1, 1: 1, 2: 1}
    except InputError as error:
        assert word == "clicks", error
        assert (
            """'clicks' could hold grades (0, 1, 2), and is not used (say so: columns = { grade = "clicks" }"""
            in str(error)
        )


@pytest.mark.parametrize("word", [*DOCUMENTS, *GRADES])
def test_labels_that_stand_twice_are_refused_and_kept_as_a_field_where_that_is_said(tmp_path, word):
    reference = with_labels(tmp_path / "d", ["doc_id", "grade"], [list(row) for row in ROWS])
    table(tmp_path / "d" / "queries.csv", ["query_id", "query", word], [["leave", "x", "a"], ["travel", "y", "b"]])
    try:
        kept = load(reference)
    except InputError as error:
        assert f"queries.csv: {word!r} could hold " in str(error)
        of_labels = {"label_document": "doc_id", "grade": "grade"}
        kept = load(DatasetReference(reference.path, columns={"fields": word, **of_labels}))
    assert [query.fields[word] for query in kept.queries] == ["a", "b"]


def test_labels_in_a_table_beside_queries_of_json_are_used_or_refused(tmp_path):
    folder = texts(tmp_path / "d")
    table(folder / "labels.csv", ["query_id", "doc", "rating"], [["x", "a", 2], ["x", "b", 0]])
    (folder / "queries.json").write_text(json.dumps([{"id": "x", "query": "how much"}]))
    assert grades(reference_of(folder)) == {0: 1, 2: 1}
    (folder / "queries.json").write_text(json.dumps([{"id": "x", "query": "how much", "relevant_documents": ["a"]}]))
    with pytest.raises(InputError, match="'relevant_documents' could hold the relevant documents, and is not used"):
        load(reference_of(folder))


def test_rows_of_one_query_may_repeat_its_id_and_text_beside_each_document(tmp_path):
    rows = [["x", *row] for row in ROWS]
    path = texts(tmp_path / "d")
    table(path / "queries.csv", ["query_id", "query", "docid", "rating"], rows[:2])
    assert load(reference_of(path)).labels["x"].grades == {"a": 2, "b": 0}
    table(path / "queries.csv", ["query_id", "query", "docid", "rating"], rows)
    with pytest.raises(InputError, match="query id 'x' occurs twice"):
        load(reference_of(path))


def test_grades_under_a_word_that_nobody_knows_are_asked_about(tmp_path):
    reference = tables(tmp_path / "d", ["docid", "bewertung"], [list(row) for row in ROWS])
    with pytest.raises(InputError, match=r"'bewertung' could hold grades \(0, 1, 2\), and is not used"):
        load(reference)
    assert grades(DatasetReference(reference.path, columns={"grade": "bewertung"})) == {0: 1, 1: 1, 2: 1}
    assert grades(DatasetReference(reference.path, columns={"fields": "bewertung"})) == {1: 3}


def test_documents_under_a_word_that_nobody_knows_are_used_and_it_is_said(tmp_path):
    reference = tables(tmp_path / "d", ["gold"], [["leave", "a"], ["travel", "b"]])
    found = load(reference)
    assert (grades(reference), found.found_columns) == ({1: 2}, {"label_document": "gold"})
    assert found.ledger["found-labels"] == ("gold",)
    assert grades(DatasetReference(reference.path, columns={"label_document": "gold"})) == {1: 2}
    assert not load(DatasetReference(reference.path, columns={"fields": "gold"})).labels


def test_a_column_that_names_no_document_is_one_message(tmp_path):
    reference = tables(tmp_path / "d", ["source"], [["leave", "web"], ["travel", "app"], ["tax", "web"]])
    [problem] = refusal(load, reference).problems
    assert "Column 'source': no value is the id of a document. Found 'web', 'app'; ids look like 'a'" in problem.what
    assert not load(DatasetReference(reference.path, columns={"fields": "source"})).labels


@pytest.mark.parametrize("cell", ['["a", "b"]', "a|b", "a; b", "a\nb"])
@pytest.mark.parametrize("word", ["doc", "doc_id", "relevant_documents"])
def test_a_cell_may_list_documents(tmp_path, word, cell):
    found = load(tables(tmp_path / "d", [word], [["leave", cell]]))
    assert found.labels["q0"].relevant == ("a", "b")
    graded = load(tables(tmp_path / "e", [word, "rating"], [["leave", cell, 0], ["leave", "c", 1]]))
    assert graded.labels["q0"].grades == {"a": 0, "b": 0, "c": 1}


@pytest.mark.parametrize(("ids", "label"), [("a", "a.md"), ("a.pdf", "a"), ("a.md", "a"), ("a", "a.PDF")])
def test_the_suffix_of_a_file_may_be_too_much_or_lacking(tmp_path, ids, label):
    reference = tables(tmp_path / "d", ["file"], [["leave", label]])
    table(tmp_path / "d" / "documents.csv", ["id", "text"], [[ids, "text"], ["b.md", "text"], ["b.pdf", "more"]])
    assert load(reference).labels["q0"].relevant == (ids,)
    table(tmp_path / "d" / "queries.csv", ["query", "file"], [["leave", label], ["travel", "b"]])
    with pytest.raises(InputError, match="names document 'b', which does not exist"):
        load(reference)  # which of the two is meant, nobody can say


def test_pairs_without_a_grade_that_stand_twice_are_one_and_clicks_are_added_where_they_are_grades(tmp_path):
    rows = [["leave", "a"], ["leave", "a"], ["leave", "b"], ["travel", "a"]]
    found = load(tables(tmp_path / "d", ["clicked_doc_id"], rows))
    assert found.labels["q0"].grades == {"a": 1, "b": 1}
    assert found.ledger["repeated-label"] == ("q0 a",)
    counted = tables(tmp_path / "e", ["clicked_doc_id", "clicks"], [[*row, 2] for row in rows])
    found = load(DatasetReference(counted.path, columns={"grade": "clicks"}))
    assert (found.labels["q0"].grades, found.labels["q1"].grades) == ({"a": 4, "b": 2}, {"a": 2})


@pytest.fixture(autouse=True)
def without_the_model(monkeypatch, tmp_path):
    monkeypatch.setattr(init.importlib.util, "find_spec", lambda name: None)
    monkeypatch.chdir(tmp_path)


def folder(path: Path, log: str, name: str = "queries.csv") -> Path:
    path.mkdir()
    (path / "a.md").write_text("# Leave\n\n25 days a year")
    (path / name).write_text(log, encoding="utf-8")
    return path


def asked(path: Path, **columns: str) -> list[str]:
    return [query.text for query in load(DatasetReference(path, columns=columns)).queries]


@pytest.mark.parametrize("name", ["search_term", "Search Term", "Query", "QUESTION", "keyword", "Keywords", "q"])
def test_the_column_of_queries_is_known_by_its_usual_names(tmp_path, name):
    path = folder(tmp_path / "d", f"timestamp,user_id,{name}\n2026-09-01,u1,how much leave\n")
    assert asked(path) == ["how much leave"]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("Nr;query;Anzahl", "1;zwei, drei;4"),
        ("n\tquery", "1\tzwei, drei"),
        ("n|query", "1|zwei, drei"),
        ('"a;b;c",query', '1,"zwei, drei"'),
        ("query", '"zwei, drei"'),
        ("\ufeff;query", ";zwei, drei"),
    ],
)
def test_what_stands_between_the_cells_is_seen_from_the_header(tmp_path, header, row):
    assert asked(folder(tmp_path / "d", f"\n{header}\n{row}\n")) == ["zwei, drei"]


def test_a_column_that_is_missing_is_told_once_a_file(tmp_path):
    path = folder(tmp_path / "d", "when,suchbegriff\n" + "2026,urlaub\n" * 30)
    [problem] = refusal(load, reference_of(path)).problems
    assert "queries.csv:2: 'text' is missing, as at 29 more places (there are: when, suchbegriff; say which: " in str(
        problem
    )
    assert str(problem).endswith("""columns = { query = "…" } (--columns 'query=…'))""")
    assert problem.stands_for == 30


def test_init_is_told_what_a_column_is_called(tmp_path, capsys):
    folder(tmp_path / "d", "when,suchbegriff\n2026,urlaub\n")
    assert ended("init", "d", "--columns", "query=suchbegriff") == 0, capsys.readouterr().err
    assert load_experiment("d.toml").experiment.dataset.columns == {"query": "suchbegriff"}
    assert asked(tmp_path / "d", query="suchbegriff") == ["urlaub"]


@pytest.mark.parametrize("written", [["query"], ["query="], ["query=a", "query=b"]])
def test_columns_that_name_nothing_are_refused(written):
    with pytest.raises(InputError, match=r"--columns: .*KIND=NAME, such as query=search_term"):
        columns_of(written)


def test_without_questions_the_files_that_are_not_read_are_told_with_a_command_that_can_be_copied(tmp_path):
    path = folder(tmp_path / "Hilfe Artikel", "when,query\n", "search-log.csv")
    said = str(refusal(write_experiment, path))
    assert "1 of 2 files are read; 1 is not (.csv 1)" in said
    assert "a search log or another table is named queries.csv" in said
    assert said.endswith(f"then: harness init '{path}'")


def test_repeated_and_blank_rows_are_counted_and_the_same_questions_asked(tmp_path):
    path = folder(tmp_path / "d", "user,query\n1,leave\n2,leave\n3,\n4,  \n5,\n6,Leave\n7,leave\n")
    found = load(reference_of(path))
    assert [query.text for query in found.queries] == ["leave", "Leave"]
    assert found.ledger["repeated-row"] == ("q0", "q0")
    assert len(found.ledger["blank-query"]) == 3
    lines = list(check(path).lines())
    assert "rows that repeat an earlier query: searched once (2): q0, q0" in lines
    assert any(line.startswith("queries without text: not searched (3): q1, ") for line in lines)
    said = list(write_experiment(path).lines())
    assert "rows of queries that are not used: 2 that repeat an earlier one, 3 blank" in said
