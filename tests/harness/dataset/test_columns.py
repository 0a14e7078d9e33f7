"""Columns as spreadsheets and search logs have them: what looks like a label is used and told, or refused by name."""

import csv
import importlib.util
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from harness.console.dataset_arguments import parse_column_names
from harness.dataset import DatasetReference, load_dataset, parse_reference
from harness.experiment import load as load_experiment
from harness.init.write_experiment import write_experiment
from harness.preflight.check import check_target
from retrievers.errors import InputError
from tests.support.small import refusal, told

DOCUMENTS = (
    "doc",
    "document",
    "docid",
    "doc_id",
    "Doc ID",
    "file",
    "path",
    "url",
    "source",
    "passage_id",
    "expected_doc_ids",
    "relevant_documents",
    "clicked_doc_id",
    "reference_contexts",
    "positive",
)
GRADES = ("grade", "rating", "relevance", "rel", "score", "label", "judgment", "gain")
ROWS: list[list[object]] = [["leave", "a", 2], ["leave", "b", 0], ["travel", "b", 1]]
"""Queries, documents and grades."""
ALL = {0: 1, 1: 1, 2: 1}
"""Grade -> how many of the rows have it."""


@pytest.fixture(autouse=True)
def without_the_model(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.chdir(tmp_path)


def table(path: Path, header: list[str], rows: list[list[object]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def texts(folder: Path, names: str = "abc") -> Path:
    folder.mkdir()
    for name in names:
        (folder / f"{name}.md").write_text(f"# {name}\n\nthe text of {name}")
    return folder


QUERIES = {
    "tables": ("queries.csv", "query"),
    "markdown": ("questions.csv", "question"),
    "one table": ("asked.csv", "query"),
    "labels": ("labels.csv", "query_id"),
}
"""Shape of a data set -> the table with the labels, and its first column."""


def laid(
    folder: Path,
    header: list[str],
    rows: list[list[object]] = ROWS,
    shape: str = "tables",
) -> DatasetReference:
    if shape in ("markdown", "one table"):
        texts(folder)
    else:
        folder.mkdir()
        table(
            folder / "documents.csv",
            ["id", "text"],
            [[name, f"text {name}"] for name in "abc"],
        )
    if shape == "labels":
        table(
            folder / "queries.csv",
            ["query_id", "query"],
            [["leave", "how much"], ["travel", "by train"]],
        )
    file, first = QUERIES[shape]
    table(folder / file, [first, *header], rows)
    one_table = DatasetReference(
        folder, queries=("asked.csv",), documents=".", format="tables"
    )
    return one_table if shape == "one table" else parse_reference(folder)


def grades(reference: DatasetReference) -> Counter[int]:
    found = load_dataset(reference).labels.values()
    return Counter(
        grade
        for one in found
        for grade in (one.grades or dict.fromkeys(one.documents, 1)).values()
    )


@pytest.mark.parametrize("shape", QUERIES)
@pytest.mark.parametrize(
    ("word", "grade"),
    [*((word, "rating") for word in DOCUMENTS), *(("docid", word) for word in GRADES)],
)
def test_a_column_of_documents_is_used_with_its_grades(tmp_path, shape, word, grade):
    assert grades(laid(tmp_path / "d", [word, grade], shape=shape)) == ALL


@pytest.mark.parametrize("word", [*DOCUMENTS, *GRADES])
def test_labels_that_stand_twice_are_refused_and_kept_as_a_field_where_that_is_said(
    tmp_path, word
):
    reference = laid(tmp_path / "d", ["doc_id", "grade"], shape="labels")
    table(
        tmp_path / "d" / "queries.csv",
        ["query_id", "query", word],
        [["leave", "x", "a"], ["travel", "y", "b"]],
    )
    try:
        kept = load_dataset(reference)
    except InputError as error:
        assert f"queries.csv: {word!r} could hold " in str(error)
        of_labels = {"label_document": "doc_id", "grade": "grade"}
        kept = load_dataset(
            DatasetReference(reference.path, columns={"fields": word, **of_labels})
        )
    assert [query.fields[word] for query in kept.queries] == ["a", "b"]


TWO: list[list[object]] = [["leave", "a"], ["travel", "b"]]
WEB: list[list[object]] = [["leave", "web"], ["travel", "app"], ["tax", "web"]]
CLICKS: list[list[object]] = [
    ["leave", "a"],
    ["leave", "a"],
    ["leave", "b"],
    ["travel", "a"],
]
DECLARED = [
    (
        ["docid", "bewertung"],
        ROWS,
        {},
        "'bewertung' could hold grades (0, 1, 2), and is not used",
    ),
    (["docid", "bewertung"], ROWS, {"grade": "bewertung"}, ALL),
    (["docid", "bewertung"], ROWS, {"fields": "bewertung"}, {1: 3}),
    (
        ["docid", "clicks"],
        ROWS,
        {},
        "'clicks' could hold grades (0, 1, 2), and is not used (say so: columns = { grade",
    ),
    (["gold"], TWO, {}, {1: 2}),
    (["gold"], TWO, {"label_document": "gold"}, {1: 2}),
    (["gold"], TWO, {"fields": "gold"}, {}),
    (
        ["source"],
        WEB,
        {},
        "Column 'source': no value is the id of a document. Found 'web', 'app'; ids look like 'a'",
    ),
    (["source"], WEB, {"fields": "source"}, {}),
    (["clicked_doc_id"], CLICKS, {}, {1: 3}),
    (
        ["clicked_doc_id", "clicks"],
        [[*row, 2] for row in CLICKS],
        {"grade": "clicks"},
        {4: 1, 2: 2},
    ),
]


@pytest.mark.parametrize(("header", "rows", "columns", "expected"), DECLARED)
def test_what_nobody_can_know_is_asked_about_and_declared(
    tmp_path, header, rows, columns, expected
):
    reference = DatasetReference(
        laid(tmp_path / "d", header, rows).path, columns=columns
    )
    if isinstance(expected, str):
        with pytest.raises(InputError, match=re.escape(expected)) as caught:
            load_dataset(reference)
        assert len(caught.value.problems) == 1
    else:
        assert grades(reference) == expected


def test_rows_of_one_query_may_repeat_its_id_and_text_beside_each_document(tmp_path):
    rows, path = [["x", *row] for row in ROWS], texts(tmp_path / "d")
    table(path / "queries.csv", ["query_id", "query", "docid", "rating"], rows[:2])
    assert load_dataset(parse_reference(path)).labels["x"].grades == {"a": 2, "b": 0}
    table(path / "queries.csv", ["query_id", "query", "docid", "rating"], rows)
    assert "query id 'x' occurs twice" in str(
        refusal(load_dataset, parse_reference(path))
    )


@pytest.mark.parametrize("cell", ['["a", "b"]', "a|b", "a; b", "a\nb"])
@pytest.mark.parametrize("word", ["doc", "doc_id", "relevant_documents"])
def test_a_cell_may_list_documents(tmp_path, word, cell):
    assert load_dataset(laid(tmp_path / "d", [word], [["leave", cell]])).labels[
        "q0"
    ].relevant == ("a", "b")
    graded = load_dataset(
        laid(tmp_path / "e", [word, "rating"], [["leave", cell, 0], ["leave", "c", 1]])
    )
    assert graded.labels["q0"].grades == {"a": 0, "b": 0, "c": 1}


# Search logs


def log(path: Path, text: str, name: str = "queries.csv") -> Path:
    (texts(path, "a") / name).write_text(text, encoding="utf-8")
    return path


LOGS = [
    *(
        f'timestamp,user_id,{name}\n2026-09-01,u1,"zwei, drei"\n'
        for name in (
            "search_term",
            "Search Term",
            "Query",
            "QUESTION",
            "keyword",
            "Keywords",
            "q",
        )
    ),
    "\nNr;query;Anzahl\n1;zwei, drei;4\n",
    "n\tquery\n1\tzwei, drei\n",
    "n|query\n1|zwei, drei\n",
    '"a;b;c",query\n1,"zwei, drei"\n',
    'query\n"zwei, drei"\n',
    "\ufeff;query\n;zwei, drei\n",
]


@pytest.mark.parametrize("text", LOGS)
def test_the_column_of_queries_and_what_stands_between_cells_are_seen_from_the_header(
    tmp_path, text
):
    (query,) = load_dataset(parse_reference(log(tmp_path / "d", text))).queries
    assert query.text == "zwei, drei"


def test_a_column_that_is_missing_is_told_once_a_file_and_declared(tmp_path, capsys):
    path = log(tmp_path / "d", "when,suchbegriff\n" + "2026,urlaub\n" * 30)
    [problem] = refusal(load_dataset, parse_reference(path)).problems
    assert (
        "queries.csv:2: 'text' is missing, as at 29 more places (there are: when, suchbegriff; say"
        in str(problem)
    )
    assert str(problem).endswith("""columns = { query = "…" } (--columns 'query=…'))""")
    told(capsys, "init", "d", "--columns", "query=suchbegriff")
    assert load_experiment("d.toml").experiment.dataset.columns == {
        "query": "suchbegriff"
    }
    assert {
        query.text for query in load_dataset(load_experiment("d.toml").dataset).queries
    } == {"urlaub"}


@pytest.mark.parametrize("written", [["query"], ["query="], ["query=a", "query=b"]])
def test_columns_that_name_nothing_are_refused(written):
    with pytest.raises(
        InputError, match=r"--columns: .*KIND=NAME, such as query=search_term"
    ):
        parse_column_names(written)


def test_repeated_and_blank_rows_are_counted_and_the_same_questions_asked(tmp_path):
    path = log(
        tmp_path / "d", "user,query\n1,leave\n2,leave\n3,\n4,  \n5,\n6,Leave\n7,leave\n"
    )
    found = load_dataset(parse_reference(path))
    assert [query.text for query in found.queries] == ["leave", "Leave"]
    assert (
        found.data_quality["repeated-row"] == ("q0", "q0")
        and len(found.data_quality["blank-query"]) == 3
    )
    lines = list(check_target(path).lines())
    assert "rows that repeat an earlier query: searched once (2): q0, q0" in lines
    assert any(
        line.startswith("queries without text: not searched (3): q1, ")
        for line in lines
    )
    said = write_experiment(path).lines()
    assert (
        "rows of queries that are not used: 2 that repeat an earlier one, 3 blank"
        in said
    )


# `init` and `check` say what every column of a table was taken for

MAPPING = """asked/questions.csv: 3 rows
  question -> the query's text
  doc      -> the relevant document (matched 3 of 3, 1 by file name)
  rating   -> its grade (0: 1, 1: 1, 2: 1)
  asked_on -> kept as a field of the query
"""


@pytest.fixture
def handbook(tmp_path):
    """Two documents, and a table that asks of them in another folder."""
    (tmp_path / "asked").mkdir()
    rows = [
        ["how much leave", "a", 2, "2026-01-02"],
        ["how much leave", "b", 0, ""],
        ["by train", "b.md", 1, ""],
    ]
    table(
        tmp_path / "asked" / "questions.csv",
        ["question", "doc", "rating", "asked_on"],
        rows,
    )
    return texts(tmp_path / "handbook", "ab")


def test_init_and_check_take_the_same_options_and_print_the_same_mapping(
    capsys, handbook
):
    (handbook / "c.txt").write_text("the text of c")
    (handbook / "logo.png").write_text("")
    words = ["asked/questions.csv", "--documents", "handbook"]
    for command in ("init", "check"):
        said = told(capsys, command, *words)
        assert MAPPING in said
        assert "3 of 4 files are read; 1 is not (.png 1)\n" in said
        assert "\nhandbook: 2 Markdown files, 1 text -> 3 documents\n" in said
    mapping = "# asked/questions.csv: question -> query, doc -> label_document, rating -> grade, asked_on -> fields\n"
    assert mapping in Path("questions.toml").read_text()
    found = load_experiment("questions.toml").dataset
    assert load_dataset(found).labels["q0"].grades == {"a": 2, "b": 0}
    assert MAPPING in told(capsys, "check", "questions.toml")
    columns = json.loads(
        told(capsys, "check", *words, "--columns", "fields=rating", "--json")
    )["columns"]
    assert columns["asked/questions.csv"]["rating"] == "fields"
    assert "unknown format 'tabels'" in told(
        capsys, "check", *words, "--format", "tabels", code=2
    )


def test_few_labels_of_what_is_not_there_are_left_out_and_named(capsys, handbook):
    rows: list[list[object]] = [
        ["to the moon", "c", 1],
        *([f"question {n}", "ab"[n % 2], 1] for n in range(20)),
    ]
    log_, header, beside = (
        Path("log.csv"),
        ["question", "doc", "rating"],
        ["--documents", "handbook"],
    )
    table(log_, header, rows)
    said = told(capsys, "init", "log.csv", *beside)
    assert (
        "  doc      -> the relevant document (matched 20 of 21; not found: 'c')\n"
        in said
    )
    assert '1 label of what is not there: left out by dangling = "drop"' in said
    said = told(capsys, "check", "log.toml")
    assert "(matched 20 of 21; not found: 'c')" in said
    assert (
        "labels of documents that do not exist: dropped (1): log.csv:2 c\n" in said
    )  # its query has no id
    said = told(capsys, "check", "log.csv", *beside, code=2)
    assert (
        "names document 'c', which does not exist" in said
        and "(--dangling drop)" in said
    )
    assert "dropped (1)" in told(
        capsys, "check", "log.csv", *beside, "--dangling", "drop"
    )
    table(log_, header, rows[:6])  # one of six is more than one in ten
    assert "names document 'c', which does not exist" in told(
        capsys, "init", "log.csv", *beside, code=2
    )


@pytest.mark.parametrize("declared", ["stars=grade", "grade=stars"])
def test_a_column_is_declared_in_either_order_and_a_name_stays_in_its_comment(
    capsys, handbook, declared
):
    table(
        Path("log.csv"),
        ["question", "doc", "stars", 'a\nname = "x"'],
        [["leave", "a", 2, 5], ["leave", "b", 0, 5]],
    )
    said = told(
        capsys, "init", "log.csv", "--documents", "handbook", "--columns", declared
    )
    assert re.search(r"stars +-> its grade", said)
    assert (
        'doc -> label_document, stars -> grade, a name = "x" -> fields\n'
        in Path("log.toml").read_text()
    )
    assert load_experiment("log.toml").experiment.name == "log"
