"""Columns as spreadsheets and search logs have them.

A column that looks like labels is used and reported, or refused by its name.
"""

import csv
import importlib.util
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from harness.console.check_text import check_lines
from harness.console.dataset_arguments import (
    DatasetOptions,
    dataset_reference,
    parse_column_names,
)
from harness.console.init_text import new_experiment_lines
from harness.dataset import DatasetReference, load_dataset, parse_reference
from harness.dataset.columns import Columns
from harness.dataset.placed_row import PlacedRow
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import declared_columns
from harness.dataset.row import Row
from harness.dataset.source import SourceLocation
from harness.experiment import load as load_experiment
from harness.init.write_experiment import write_experiment
from harness.preflight.check import check_target
from retrievers.errors import InputError
from retrievers.types import Document
from tests.support.small import refusal, told

LOCATION_COLUMNS = ("file", "path", "url", "source")
DOCUMENT_COLUMNS = (
    "doc",
    "document",
    "docid",
    "doc_id",
    "Doc ID",
    "passage_id",
    "expected_doc_ids",
    "relevant_documents",
    "clicked_doc_id",
    "reference_contexts",
    "positive",
)
GRADE_COLUMNS = (
    "grade",
    "rating",
    "relevance",
    "rel",
    "label",
    "judgment",
    "gain",
)
Rows = list[list[object]]
ROWS: Rows = [["leave", "a", 2], ["leave", "b", 0], ["travel", "b", 1]]
"""Queries, documents and grades."""
ROWS_BY_GRADE = {0: 1, 1: 1, 2: 1}
LABEL_FILES = {
    "tables": ("queries.csv", "query"),
    "markdown": ("questions.csv", "question"),
    "one table": ("asked.csv", "query"),
    "labels": ("labels.csv", "query_id"),
}
"""Shape of a data set -> the table with the labels, and its first column."""


@pytest.fixture(autouse=True)
def without_the_model(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.chdir(tmp_path)


def write_table(path: Path, header: list[str], rows: Rows) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def write_texts(folder: Path, names: str = "abc") -> Path:
    folder.mkdir()
    for name in names:
        (folder / f"{name}.md").write_text(f"# {name}\n\nthe text of {name}")
    return folder


def write_data_set(
    folder: Path, header: list[str], rows: Rows = ROWS, shape: str = "tables"
) -> DatasetReference:
    if shape in ("markdown", "one table"):
        write_texts(folder)
    else:
        folder.mkdir()
        documents: Rows = [["a", "text a"], ["b", "text b"], ["c", "text c"]]
        write_table(folder / "documents.csv", ["id", "text"], documents)
    if shape == "labels":
        queries: Rows = [["leave", "how much"], ["travel", "by train"]]
        write_table(folder / "queries.csv", ["query_id", "query"], queries)
    file_name, first_column = LABEL_FILES[shape]
    write_table(folder / file_name, [first_column, *header], rows)
    if shape == "one table":
        return DatasetReference(
            folder, queries=("asked.csv",), documents=".", format="tables"
        )
    return parse_reference(folder)


def count_grades(reference: DatasetReference) -> Counter[int]:
    counts = Counter[int]()
    for labels in load_dataset(reference).labels.values():
        grades = labels.grades or dict.fromkeys(labels.documents, 1)
        counts.update(grades.values())
    return counts


@pytest.mark.parametrize("shape", LABEL_FILES)
@pytest.mark.parametrize("column", [*DOCUMENT_COLUMNS, *LOCATION_COLUMNS])
def test_a_column_of_documents_is_used(tmp_path, shape, column):
    reference = write_data_set(tmp_path / "d", [column, "rating"], shape=shape)

    assert count_grades(reference) == ROWS_BY_GRADE


@pytest.mark.parametrize("shape", LABEL_FILES)
@pytest.mark.parametrize("column", GRADE_COLUMNS)
def test_a_column_of_grades_is_used(tmp_path, shape, column):
    reference = write_data_set(tmp_path / "d", ["docid", column], shape=shape)

    assert count_grades(reference) == ROWS_BY_GRADE


def write_queries_with_column(folder: Path, column: str) -> DatasetReference:
    """Write labels in a table of their own, and a further column of the queries."""
    reference = write_data_set(folder, ["doc_id", "grade"], shape="labels")
    rows: Rows = [["leave", "x", "a"], ["travel", "y", "b"]]
    write_table(folder / "queries.csv", ["query_id", "query", column], rows)
    return reference


@pytest.mark.parametrize("column", [*DOCUMENT_COLUMNS, *GRADE_COLUMNS])
def test_a_second_column_of_labels_is_refused(tmp_path, column):
    reference = write_queries_with_column(tmp_path / "d", column)

    message = str(refusal(load_dataset, reference))

    assert f"queries.csv: {column!r} could hold " in message


@pytest.mark.parametrize("column", [*DOCUMENT_COLUMNS, *GRADE_COLUMNS])
def test_a_second_column_of_labels_can_be_declared_as_a_field(tmp_path, column):
    reference = write_queries_with_column(tmp_path / "d", column)
    columns = {"fields": column, "label_document": "doc_id", "grade": "grade"}

    dataset = load_dataset(
        DatasetReference(reference.path, columns=declared_columns(columns))
    )

    assert [query.fields[column] for query in dataset.queries] == ["a", "b"]


@pytest.mark.parametrize("column", LOCATION_COLUMNS)
def test_a_location_is_a_field_if_labels_are_in_another_table(tmp_path, column):
    reference = write_queries_with_column(tmp_path / "d", column)

    dataset = load_dataset(reference)

    assert [query.fields[column] for query in dataset.queries] == ["a", "b"]


def test_answers_beside_a_table_of_labels_may_be_declared(tmp_path):
    queries = write_queries_with_column(tmp_path / "d", "answer")
    columns = declared_columns({"reference": "answer"})

    dataset = load_dataset(replace(queries, columns=columns))

    answers = [query.reference.answers for query in dataset.queries]
    assert answers == [("a",), ("b",)]


TWO_ROWS: Rows = [["leave", "a"], ["travel", "b"]]
WEB_ROWS: Rows = [["leave", "web"], ["travel", "app"], ["tax", "web"]]
CLICKED_ROWS: Rows = [["leave", "a"], ["leave", "a"], ["leave", "b"], ["travel", "a"]]
CLICK_COUNT_ROWS: Rows = [
    ["leave", "a", 2],
    ["leave", "a", 2],
    ["leave", "b", 2],
    ["travel", "a", 2],
]


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        pytest.param(
            ["gold", "bewertung"],
            ROWS,
            "'bewertung' could hold grades (0, 1, 2), and is not used",
            id="numbers that may be grades",
        ),
        pytest.param(
            ["gold", "clicks"],
            ROWS,
            "'clicks' could hold grades (0, 1, 2), and is not used "
            "(say so: columns = { grade",
            id="clicks",
        ),
    ],
)
def test_a_column_that_may_hold_labels_is_refused(tmp_path, header, rows, message):
    reference = write_data_set(tmp_path / "d", header, rows)

    with pytest.raises(InputError, match=re.escape(message)) as caught:
        load_dataset(reference)

    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(
    ("header", "rows", "columns", "rows_by_grade"),
    [
        pytest.param(
            ["docid", "bewertung"],
            ROWS,
            {"grade": "bewertung"},
            ROWS_BY_GRADE,
            id="grades",
        ),
        pytest.param(
            ["gold", "bewertung"],
            ROWS,
            {"fields": "bewertung"},
            {1: 3},
            id="numbers that are a field",
        ),
        pytest.param(["gold"], TWO_ROWS, {}, {1: 2}, id="gold, found by its name"),
        pytest.param(
            ["gold"], TWO_ROWS, {"label_document": "gold"}, {1: 2}, id="gold, declared"
        ),
        pytest.param(
            ["gold"], TWO_ROWS, {"fields": "gold"}, {}, id="gold that is a field"
        ),
        pytest.param(["source"], WEB_ROWS, {}, {}, id="source that names no document"),
        pytest.param(
            ["clicked_doc_id"], CLICKED_ROWS, {}, {1: 3}, id="clicked documents"
        ),
        pytest.param(
            ["clicked_doc_id", "clicks"],
            CLICK_COUNT_ROWS,
            {"grade": "clicks"},
            {4: 1, 2: 2},
            id="clicks are added up",
        ),
    ],
)
def test_a_column_is_used_as_it_is_declared(
    tmp_path, header, rows, columns, rows_by_grade
):
    path = write_data_set(tmp_path / "d", header, rows).path

    assert (
        count_grades(DatasetReference(path, columns=declared_columns(columns)))
        == rows_by_grade
    )


LABELLED_QUERY_HEADER = ["query_id", "query", "docid", "rating"]


def test_rows_of_one_query_repeat_its_id_and_text_beside_each_document(tmp_path):
    folder = write_texts(tmp_path / "d")
    rows: Rows = [["x", "leave", "a", 2], ["x", "leave", "b", 0]]
    write_table(folder / "queries.csv", LABELLED_QUERY_HEADER, rows)

    dataset = load_dataset(parse_reference(folder))

    assert dataset.labels["x"].grades == {"a": 2, "b": 0}


def test_rows_of_one_query_with_other_texts_are_refused(tmp_path):
    folder = write_texts(tmp_path / "d")
    rows: Rows = [
        ["x", "leave", "a", 2],
        ["x", "leave", "b", 0],
        ["x", "travel", "b", 1],
    ]
    write_table(folder / "queries.csv", LABELLED_QUERY_HEADER, rows)

    message = str(refusal(load_dataset, parse_reference(folder)))

    assert "query id 'x' occurs twice" in message


@pytest.mark.parametrize("cell", ['["a", "b"]', "a|b", "a; b", "a\nb"])
@pytest.mark.parametrize("column", ["gold", "gold_ids", "relevant_documents"])
def test_a_cell_may_list_documents(tmp_path, column, cell):
    reference = write_data_set(tmp_path / "d", [column], [["leave", cell]])

    assert load_dataset(reference).labels["q0"].relevant == ("a", "b")


@pytest.mark.parametrize("cell", ['["a", "b"]', "a|b", "a; b", "a\nb"])
@pytest.mark.parametrize("column", ["doc", "doc_id", "relevant_documents"])
def test_listed_documents_have_the_grade_of_their_row(tmp_path, column, cell):
    rows: Rows = [["leave", cell, 0], ["leave", "c", 1]]
    reference = write_data_set(tmp_path / "d", [column, "rating"], rows)

    assert load_dataset(reference).labels["q0"].grades == {"a": 0, "b": 0, "c": 1}


# Search logs


def write_log(folder: Path, text: str, name: str = "queries.csv") -> Path:
    (write_texts(folder, "a") / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "column",
    [
        "search_term",
        "Search Term",
        "Query",
        "QUESTION",
        "keyword",
        "Keywords",
        "q",
    ],
)
def test_a_column_of_queries_is_recognised_by_its_name(tmp_path, column):
    text = f'timestamp,user_id,{column}\n2026-09-01,u1,"zwei, drei"\n'
    folder = write_log(tmp_path / "d", text)

    (query,) = load_dataset(parse_reference(folder)).queries

    assert query.text == "zwei, drei"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\nNr;query;Anzahl\n1;zwei, drei;4\n", id="semicolons"),
        pytest.param("n\tquery\n1\tzwei, drei\n", id="tabs"),
        pytest.param("n|query\n1|zwei, drei\n", id="bars"),
        pytest.param('"a;b;c",query\n1,"zwei, drei"\n', id="quoted semicolons"),
        pytest.param('query\n"zwei, drei"\n', id="one column"),
        pytest.param("\ufeff;query\n;zwei, drei\n", id="byte order mark"),
    ],
)
def test_the_delimiter_is_detected_in_the_header(tmp_path, text):
    folder = write_log(tmp_path / "d", text)

    (query,) = load_dataset(parse_reference(folder)).queries

    assert query.text == "zwei, drei"


MISSING_COLUMN_LOG = "when,suchbegriff\n" + "2026,urlaub\n" * 30


def test_a_missing_column_is_reported_once_a_file(tmp_path):
    path = write_log(tmp_path / "d", MISSING_COLUMN_LOG)

    [problem] = refusal(load_dataset, parse_reference(path)).problems

    assert (
        "queries.csv:2: 'query' is missing; also in 29 others "
        "(there are: when, suchbegriff; say"
    ) in str(problem)
    assert str(problem).endswith("""columns = { query = "…" } (--columns 'query=…'))""")


def test_init_writes_the_declared_column(tmp_path, capsys):
    write_log(tmp_path / "d", MISSING_COLUMN_LOG)

    told(capsys, "init", "d", "--columns", "query=suchbegriff")

    loaded = load_experiment("d.toml")
    assert loaded.experiment.dataset.columns == {"query": "suchbegriff"}
    queries = load_dataset(loaded.dataset).queries
    assert {query.text for query in queries} == {"urlaub"}


@pytest.mark.parametrize("arguments", [["query"], ["query="], ["query=a", "query=b"]])
def test_columns_that_name_nothing_are_refused(arguments):
    message = r"--columns: .*KIND=NAME, such as query=search_term"
    with pytest.raises(InputError, match=message):
        parse_column_names(arguments)


def test_columns_that_are_one_text_are_no_fields():
    cells = {"id": "d", "head": 2, "body": "x", "tongue": "de"}
    columns = Columns(declared_columns({"text": "head,body"}))
    row = PlacedRow(Row(SourceLocation(Path("d.json")), cells), columns, ReadProblems())

    assert row.document() == Document("d", "", "2\nx", {"tongue": "de"})


def test_a_title_that_is_no_text_is_told_by_its_column():
    cells = {"id": "d", "text": "x", "heading": ["a"]}
    columns = Columns(declared_columns({"title": "heading"}))
    problems = ReadProblems()
    row = PlacedRow(Row(SourceLocation(Path("d.json")), cells), columns, problems)

    assert row.document() is None
    assert "'heading' is not a string" in str(problems.problems[0])


def test_matched_fields_may_have_blanks_between_them():
    reference = dataset_reference("d", DatasetOptions(match="file, page,"))
    assert reference.match == ("file", "page")


REPEATED_LOG = "user,query\n1,leave\n2,leave\n3,\n4,  \n5,\n6,Leave\n7,leave\n"


def test_repeated_and_blank_rows_are_counted(tmp_path):
    path = write_log(tmp_path / "d", REPEATED_LOG)

    dataset = load_dataset(parse_reference(path))

    assert [query.text for query in dataset.queries] == ["leave", "Leave"]
    assert dataset.data_quality["repeated-row"] == ("q0", "q0")
    assert len(dataset.data_quality["blank-query"]) == 3


def test_check_reports_repeated_and_blank_rows(tmp_path):
    path = write_log(tmp_path / "d", REPEATED_LOG)

    lines = check_lines(check_target(path))

    assert "rows that repeat an earlier query: searched once (2): q0, q0" in lines
    blank = "queries without text: not searched (3): q1, "
    assert any(line.startswith(blank) for line in lines)


def test_init_reports_repeated_and_blank_rows(tmp_path):
    path = write_log(tmp_path / "d", REPEATED_LOG)

    lines = new_experiment_lines(write_experiment(path))

    assert (
        "rows of queries that are not used: 2 that repeat an earlier one, 3 blank"
        in lines
    )


# `init` and `check` print how every column of a table is read

MAPPING = """asked/questions.csv: 3 rows
  question -> the query's text
  doc      -> the relevant document (matched 3 of 3, 1 by file name)
  rating   -> its grade (0: 1, 1: 1, 2: 1)
  asked_on -> kept as a field of the query
"""
HANDBOOK_ARGUMENTS = ["asked/questions.csv", "--documents", "handbook"]


@pytest.fixture
def handbook(tmp_path):
    """Two documents, and a table of queries in another folder."""
    (tmp_path / "asked").mkdir()
    write_table(
        tmp_path / "asked" / "questions.csv",
        ["question", "doc", "rating", "asked_on"],
        [
            ["how much leave", "a", 2, "2026-01-02"],
            ["how much leave", "b", 0, ""],
            ["by train", "b.md", 1, ""],
        ],
    )
    return write_texts(tmp_path / "handbook", "ab")


@pytest.mark.parametrize("command", ["init", "check"])
def test_init_and_check_print_the_mapping(capsys, handbook, command):
    (handbook / "c.txt").write_text("the text of c")
    (handbook / "logo.png").write_text("")

    output = told(capsys, command, *HANDBOOK_ARGUMENTS)

    assert MAPPING in output
    assert "3 of 4 files are read; 1 is not (.png 1)\n" in output
    assert "\nhandbook: 2 Markdown files, 1 text -> 3 documents\n" in output


def test_init_writes_the_mapping_as_a_comment(capsys, handbook):
    told(capsys, "init", *HANDBOOK_ARGUMENTS)

    comment = (
        "# asked/questions.csv: question -> query, doc -> label_document, "
        "rating -> grade, asked_on -> fields\n"
    )
    assert comment in Path("questions.toml").read_text()
    dataset = load_dataset(load_experiment("questions.toml").dataset)
    assert dataset.labels["q0"].grades == {"a": 2, "b": 0}
    assert MAPPING in told(capsys, "check", "questions.toml")


def test_check_prints_declared_columns_as_json(capsys, handbook):
    columns = ("label_document=doc", "fields=rating")
    options = ("--columns", columns[0], "--columns", columns[1], "--json")

    output = told(capsys, "check", *HANDBOOK_ARGUMENTS, *options)

    columns = json.loads(output)["columns"]
    assert columns["asked/questions.csv"]["rating"] == "fields"


def test_check_refuses_an_unknown_format(capsys, handbook):
    output = told(capsys, "check", *HANDBOOK_ARGUMENTS, "--format", "tabels", code=2)

    assert "unknown format 'tabels'" in output


LOG_HEADER = ["question", "doc", "rating"]
LOG_ARGUMENTS = ["log.csv", "--documents", "handbook"]


@pytest.fixture
def log_rows() -> Rows:
    """Twenty-one labels, of which the first names no document of the handbook."""
    rows: Rows = [["to the moon", "c", 1]]
    rows += [[f"question {n}", "ab"[n % 2], 1] for n in range(20)]
    return rows


def test_init_drops_a_few_labels_of_unknown_documents(capsys, handbook, log_rows):
    write_table(Path("log.csv"), LOG_HEADER, log_rows)

    output = told(capsys, "init", *LOG_ARGUMENTS)

    assert (
        "  doc      -> the relevant document (matched 20 of 21; not found: 'c')\n"
        in output
    )
    assert "1 label names a missing document or query and is skipped (" in output
    output = told(capsys, "check", "log.toml")
    assert "(matched 20 of 21; not found: 'c')" in output
    # The line is shown, since the query has no id.
    assert "labels of documents that do not exist: dropped (1): log.csv:2 c\n" in output


def test_check_refuses_labels_of_unknown_documents(capsys, handbook, log_rows):
    write_table(Path("log.csv"), LOG_HEADER, log_rows)

    output = told(capsys, "check", *LOG_ARGUMENTS, code=2)

    assert "names document 'c', which does not exist" in output
    assert "(--dangling drop)" in output


def test_check_drops_labels_of_unknown_documents_on_request(capsys, handbook, log_rows):
    write_table(Path("log.csv"), LOG_HEADER, log_rows)

    output = told(capsys, "check", *LOG_ARGUMENTS, "--dangling", "drop")

    assert "dropped (1)" in output


def test_init_refuses_to_lose_more_than_one_label_in_ten(capsys, handbook, log_rows):
    write_table(Path("log.csv"), LOG_HEADER, log_rows[:6])

    output = told(capsys, "init", *LOG_ARGUMENTS, code=2)

    assert "names document 'c', which does not exist" in output


@pytest.mark.parametrize("declared", ["stars=grade", "grade=stars"])
def test_a_column_is_declared_in_either_order(capsys, handbook, declared):
    header = ["question", "doc", "stars", 'a\nname = "x"']
    write_table(Path("log.csv"), header, [["leave", "a", 2, 5], ["leave", "b", 0, 5]])

    output = told(capsys, "init", *LOG_ARGUMENTS, "--columns", declared)

    assert re.search(r"stars +-> its grade", output)


def test_the_name_of_a_column_cannot_end_its_comment(capsys, handbook):
    header = ["question", "doc", "stars", 'a\nname = "x"']
    write_table(Path("log.csv"), header, [["leave", "a", 2, 5], ["leave", "b", 0, 5]])

    told(capsys, "init", *LOG_ARGUMENTS, "--columns", "grade=stars")

    assert (
        'doc -> label_document, stars -> grade, a name = "x" -> fields\n'
        in Path("log.toml").read_text()
    )
    assert load_experiment("log.toml").experiment.name == "log"


def test_init_writes_conditions_on_a_column_with_any_name(tmp_path):
    write_texts(tmp_path / "d")
    rows = [["leave", "a", "click"], ["travel", "b", "click"], ["pay", "c", "view"]]
    header = ["query", "document", 'Action "type"']
    write_table(tmp_path / "d" / "queries.csv", header, rows)
    where = {'Action "type"': ("click",)}
    columns = declared_columns({"label_document": "document"})
    reference = DatasetReference(tmp_path / "d", columns=columns, where=where)
    write_experiment(reference)
    assert load_experiment("d.toml").dataset.where == where


def test_the_index_that_pandas_writes_holds_no_grades(tmp_path):
    write_texts(tmp_path / "d")
    rows = [[0, "leave", "a", "mon"], [1, "travel", "b", "tue"]]
    write_table(tmp_path / "d" / "queries.csv", ["", "query", "document", "day"], rows)
    columns = declared_columns({"label_document": "document", "fields": "day"})
    dataset = load_dataset(DatasetReference(tmp_path / "d", columns=columns))
    assert [labels.grades for labels in dataset.labels.values()] == [{"a": 1}, {"b": 1}]


def test_repeated_queries_without_ids_are_numbered_beside_a_table_of_labels(tmp_path):
    write_texts(tmp_path / "d")
    (tmp_path / "d" / "queries.txt").write_text("leave\nleave\ntravel\n")
    labels = [["q0", "a", 1], ["q1", "a", 1], ["q2", "b", 1]]
    header = ["query_id", "document", "grade"]
    write_table(tmp_path / "d" / "labels.csv", header, labels)
    dataset = load_dataset(DatasetReference(tmp_path / "d"))
    assert [query.id for query in dataset.queries] == ["q0", "q1", "q2"]


def test_a_query_with_an_id_keeps_its_labels_beside_one_without(tmp_path):
    documents = '{"id": "a", "text": "one"}'
    (tmp_path / "documents.jsonl").write_text(documents)
    queries = [
        {"id": "x", "query": "first", "relevant": ["a"]},
        {"query": "second", "relevant": ["a"]},
    ]
    lines = "\n".join(map(json.dumps, queries))
    (tmp_path / "queries.jsonl").write_text(lines)

    labels = load_dataset(parse_reference(tmp_path)).labels

    assert [*labels] == ["x", "q0"]
