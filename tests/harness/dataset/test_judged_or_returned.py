"""What people judged and what a system returned, in the shapes of many tools."""

import json
import math
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import harness
from harness.dataset import (
    DatasetReference,
    load_dataset,
    read_returned_documents,
)
from harness.dataset.label_lists import read_label_list
from harness.dataset.labels import Labels
from harness.dataset.merge_lists import merge_lists
from harness.dataset.reference import declared_columns
from harness.notebook.document_values import grades_in_memory
from retrievers.types import Reference
from tests.support.layouts import jsonl
from tests.support.small import ends, refusal

DOCUMENTS = {"d1": "the cat sat", "d2": "dogs bark", "d3": "birds fly"}
QUERIES = ("where did the cat sit", "who barks")


def asked(folder: Path, rows, **more) -> DatasetReference:
    """A reference to rows of queries beside three documents."""
    jsonl(
        folder / "corpus.jsonl",
        [{"_id": id_, "text": text} for id_, text in DOCUMENTS.items()],
    )
    jsonl(folder / "asked.jsonl", rows)
    return DatasetReference(
        folder / "asked.jsonl", documents=str(folder / "corpus.jsonl"), **more
    )


def two(**cells) -> list[dict]:
    """Two queries with the same cells."""
    return [{"query": query, **cells} for query in QUERIES]


TRACES = {
    "LangSmith's runs": {
        "id": "a",
        "run_type": "retriever",
        "inputs": {"query": "cat"},
        "outputs": {"doc_ids": ["d2", "d3"]},
    },
    "LangSmith's experiments": {
        "inputs": {"question": "cat"},
        "outputs": {"doc_ids": ["d2"]},
        "reference_outputs": {"doc_ids": ["d1"]},
    },
    "Langfuse's traces": {
        "id": "a",
        "traceId": "t",
        "input": {"query": "cat"},
        "output": {"contexts": ["dogs bark"]},
        "latency": 1.2,
    },
    "Phoenix's spans": {
        "context.span_id": "s",
        "input": {"query": "cat"},
        "output": {"document_ids": ["d2"]},
    },
}


@pytest.mark.parametrize("row", TRACES.values(), ids=TRACES)
def test_a_trace_of_a_tool_has_no_labels(row, tmp_path):
    message = str(refusal(load_dataset, asked(tmp_path, [row])))
    assert "may be what a system returned" in message
    assert "--columns " in message


def test_a_trace_may_be_declared_as_labels_or_without_any(tmp_path):
    row = TRACES["LangSmith's runs"]
    labels = declared_columns({"label_document": "outputs.doc_ids"})
    dataset = load_dataset(asked(tmp_path, [row], columns=labels))
    assert dataset.labels["a"].relevant == ("d2", "d3")
    fields = declared_columns({"fields": "outputs"})
    assert not load_dataset(asked(tmp_path, [row], columns=fields)).labels


def test_a_trace_becomes_a_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    asked(tmp_path, [TRACES["LangSmith's experiments"] | {"id": "a"}])
    columns = "run=outputs.doc_ids"
    init = ("init", "asked.jsonl", "--documents", "corpus.jsonl", "--columns", columns)
    ends(capsys, 0, *init)
    assert Path("asked.trec").read_text().splitlines()[0].startswith("a Q0 d2 1 ")


def test_a_run_that_is_there_is_not_written_over(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    asked(tmp_path, two(top=["d3"]))
    Path("asked.trec").write_text("mine")
    init = ("init", "asked.jsonl", "--documents", "corpus.jsonl", "--columns=run=top")
    assert "asked.trec: is there already (remove it" in ends(capsys, 2, *init).err
    assert Path("asked.trec").read_text() == "mine"
    Path("asked.trec").unlink()
    ends(capsys, 0, *init, "--output", "new/asked.toml")
    assert Path("new/asked.trec").is_file()


def test_a_grade_that_is_no_number_is_called_so(tmp_path):
    labels = [{"document_id": "d1", "grade": float("nan")}]
    message = str(refusal(load_dataset, asked(tmp_path, two(relevant=labels))))
    assert "grade nan of document 'd1' is not a whole number" in message


def test_a_cell_that_python_cannot_evaluate_is_a_text(tmp_path):
    rows = two(relevant=["d1"], reference="{['unhashable']}")
    dataset = load_dataset(asked(tmp_path, rows))
    assert [query.reference.answers for query in dataset.queries] == [
        ("{['unhashable']}",)
    ] * 2
    message = str(refusal(load_dataset, asked(tmp_path, two(relevant="{['d1']}"))))
    assert "relevant documents cannot be read: \"{['d1']}\"" in message


def test_a_query_that_nobody_signed_has_no_labeller(tmp_path):
    (tmp_path / "a.md").write_text("text")
    row = {"query": "what", "relevant_documents": ["a"], "labelled_by": None}
    (tmp_path / "queries.json").write_text(json.dumps([row]))
    assert load_dataset(tmp_path).labels["q0"].labelled_by == ""


def test_a_query_of_two_columns_may_lack_one_of_them(tmp_path):
    rows = [
        {"title": title, "body": body, "doc_id": document, "grade": 1, "top": [top]}
        for title, body, document, top in (
            ("cat", "", "d1", "d2"),
            ("dog", None, "d2", "d3"),
            ("bird", "flies?", "d3", "d1"),
        )
    ]
    columns = declared_columns({"query": "title,body", "fields": "top"})
    reference = asked(tmp_path, rows, columns=columns)
    dataset = load_dataset(reference)
    relevant = [dataset.labels[query.id].relevant for query in dataset.queries]
    assert relevant == [("d1",), ("d2",), ("d3",)]
    assert [query.text for query in dataset.queries] == ["cat", "dog", "bird\nflies?"]
    returned = read_returned_documents(reference, dataset, "top")
    assert returned == {"q0": ["d2"], "q1": ["d3"], "q2": ["d1"]}


TABLE = "what,d1,d2;d1\n"
BY_NUMBER = {"query": "1", "label_document": "2", "fields": "3"}


@pytest.mark.parametrize(
    ("name", "table", "column", "options"),
    [
        (
            "queries.json",
            json.dumps(
                {"rows": [{"query": "what", "relevant": ["d1"], "top": ["d2", "d1"]}]}
            ),
            "top",
            {"columns": declared_columns({"fields": "top"})},
        ),
        (
            "queries.csv",
            TABLE,
            "3",
            {"columns": declared_columns(BY_NUMBER), "header": False},
        ),
        (
            "d.zip",
            f"query,relevant,top\n{TABLE}",
            "top",
            {"columns": declared_columns({"fields": "top"})},
        ),
    ],
)
def test_returned_documents_are_read_from_any_table(
    tmp_path, name, table, column, options
):
    texts = "".join(
        f"{json.dumps({'_id': id_, 'text': text})}\n" for id_, text in DOCUMENTS.items()
    )
    path = tmp_path
    if name.endswith(".zip"):
        path = tmp_path / name
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("documents.jsonl", texts)
            archive.writestr("queries.csv", table)
    else:
        (tmp_path / "documents.jsonl").write_text(texts)
        (tmp_path / name).write_text(table)
    reference = DatasetReference(path, **options)
    returned = read_returned_documents(reference, load_dataset(reference), column)
    assert returned == {"q0": ["d2", "d1"]}


def test_returned_documents_are_split_as_labels_are(tmp_path):
    for name in ("leave", "pay"):
        (tmp_path / "hr").mkdir(exist_ok=True)
        (tmp_path / "hr" / f"{name}.md").write_text(name)
    cells = {"relevant": "pay.md, leave.md", "top": "leave.md, pay.md"}
    jsonl(tmp_path / "queries.jsonl", two(**cells))
    columns = declared_columns({"fields": "top"})
    reference = DatasetReference(tmp_path, columns=columns)
    dataset = load_dataset(reference)
    assert dataset.labels["q0"].ranked == ("hr/pay", "hr/leave")
    returned = read_returned_documents(reference, dataset, "top")
    assert returned["q0"] == ["leave.md", "pay.md"]


def test_returned_documents_are_named_by_a_field_if_labels_are(tmp_path):
    addresses = {id_: f"http://x/{id_}" for id_ in DOCUMENTS}
    texts = [
        {"_id": id_, "text": id_, "url": address} for id_, address in addresses.items()
    ]
    jsonl(tmp_path / "corpus.jsonl", texts)
    top = [addresses["d3"], "d2", addresses["d1"], "nowhere"]
    jsonl(tmp_path / "queries.jsonl", two(relevant=[addresses["d1"]], top=top))
    columns = declared_columns({"fields": "top"})
    reference = DatasetReference(tmp_path, columns=columns, match=("url",))
    returned = read_returned_documents(reference, load_dataset(reference), "top")
    assert returned["q0"] == ["d3", "d2", "d1", "nowhere"]


@pytest.mark.parametrize(
    "words", [("yes", "no"), ("relevant", "not relevant"), ("👍", "👎"), ("Up", "down")]
)
def test_words_that_may_be_grades_are_read_if_they_are_declared(tmp_path, words):
    right, wrong = words
    rows = [
        {"query": "what", "doc_id": "d1", "verdict": right},
        {"query": "what", "doc_id": "d2", "verdict": wrong},
    ]
    declared = {"label": "doc_id"}
    reference = asked(tmp_path, rows, columns=declared_columns(declared))
    assert "'verdict' could hold grades" in str(refusal(load_dataset, reference))
    columns = declared_columns({**declared, "grade": "verdict"})
    dataset = load_dataset(asked(tmp_path, rows, columns=columns))
    assert dataset.labels["q0"].grades == {"d1": 1, "d2": 0}
    qrels = [[row["doc_id"], row["verdict"]] for row in rows]
    assert read_label_list(dict(qrels), set().__contains__).grades == {"d1": 1, "d2": 0}


def test_a_prompt_that_all_conversations_have_does_not_join_them(tmp_path):
    rows = []
    for subject in ("cats", "dogs"):
        texts = ("You are kind.", f"{subject}?", "Yes.", "why?")
        roles = ("system", "user", "assistant", "user")
        said = zip(roles, texts, strict=True)
        messages = [{"role": role, "content": text} for role, text in said]
        rows.append({"messages": messages, "relevant": ["d1"]})
    first, second = load_dataset(asked(tmp_path, rows)).queries
    assert first.history == ("cats?", "Yes.")
    assert first.fields["turn"] == "2"
    assert first.fields["conversation"] != second.fields["conversation"]


@pytest.mark.parametrize("blank", [None, "", " "])
def test_a_row_whose_document_and_grade_are_blank_has_no_label(tmp_path, blank):
    rows = [row | {"relevant_document": "d1", "grade": 2} for row in two()]
    rows[1] |= {"relevant_document": blank, "grade": blank}
    dataset = load_dataset(asked(tmp_path, rows))
    assert [*dataset.labels] == ["q0"]


@pytest.mark.parametrize(
    "row",
    [
        '{"query": "what", "relevant": "d1", EMPTY}',
        "- query: what\n  relevant: d1\n  EMPTY",
    ],
)
def test_what_pandas_and_yaml_write_for_nothing_is_nothing(tmp_path, row):
    jsonl(tmp_path / "documents.jsonl", [{"id": "d1", "text": "a"}])
    kinds = ("reference", "history", "claims")
    empty = ", ".join(f'"{kind}": NaN' for kind in kinds)
    name = "queries.jsonl"
    if row.startswith("-"):
        empty = "\n  ".join(f"{kind}: null" for kind in kinds)
        name = "queries.yaml"
    (tmp_path / name).write_text(row.replace("EMPTY", empty) + "\n")
    [query] = load_dataset(tmp_path).queries
    assert (query.reference, query.history) == (Reference(), ())


@pytest.mark.parametrize("cells", [{"id": None}, {"query": None}])
def test_a_query_that_cannot_be_read_is_one_problem(tmp_path, cells):
    rows = [row | {"id": n} for n, row in enumerate(two(relevant=["d1"]))]
    rows[1] |= cells
    [problem] = refusal(load_dataset, asked(tmp_path, rows)).problems
    assert problem.occurrences == 1


def test_labellers_name_documents_by_their_files(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.md").write_text(name)
    row = {"id": "q", "query": "what"}
    lists = {"ann": ["a.md", "b.md"], "ben": ["b"]}
    for person, documents in lists.items():
        labelled = row | {"labelled_by": person, "relevant_documents": documents}
        (tmp_path / f"{person}.json").write_text(json.dumps([labelled]))
    reference = DatasetReference(tmp_path, queries=("ann.json", "ben.json"))
    [labels] = load_dataset(reference).labels.values()
    grades = {"ann": {"a": 2, "b": 1}, "ben": {"b": 1}}
    assert labels.grades_by_labeller == grades


def test_a_document_that_a_labeller_lists_twice_has_its_better_rank():
    lists = {"ann": ("d1", "d1", "d2"), "ben": ("d1",)}
    grades = merge_lists(lists).grades_by_labeller
    assert grades == {"ann": {"d1": 3, "d2": 1}, "ben": {"d1": 1}}


def test_a_run_has_the_ids_that_queries_have_in_the_data_set(tmp_path):
    """A column of whole numbers with a gap is one of floats in pandas."""
    rows = [row | {"id": float(n)} for n, row in enumerate(two(top=["d3"]), 7)]
    columns = declared_columns({"fields": "top"})
    reference = asked(tmp_path, rows, columns=columns)
    dataset = load_dataset(reference)
    returned = read_returned_documents(reference, dataset, "top")
    assert [*returned] == [query.id for query in dataset.queries] == ["7", "8"]


@pytest.mark.parametrize(
    "hits",
    [
        {"d3": 0.9, "d1": 0.2},
        {"d1": 0.2, "d3": 0.9},
        [["d1", 0.2], ["d3", 0.9]],
        [["d1", 0.2], ["d3", 0.9], ["d3", 0.1]],
        [{"id": "d1", "score": 0.2}, {"id": "d3", "score": 0.9}],
        [{"id": "d1", "rank": 2}, {"id": "d3", "rank": 1}],
        [{"id": "d1", "bm25_score": 2.5}, {"id": "d3", "bm25_score": 9.5}],
        [{"id": "d1", "searchRank": 2}, {"id": "d3", "searchRank": 1}],
        [{"id": "d1", "cosine_distance": 0.9}, {"id": "d3", "cosine_distance": 0.1}],
        {"d1": 1, "d2": math.nan, "d3": 2},
        [["d1", 1], ["d2", math.nan], ["d3", 2]],
        {"d1": 1, "d2": 10**400, "d3": 2},
        [
            {"id": "d1", "rank": "NaN", "score": 1},
            {"id": "d2", "rank": "NaN", "score": 0},
            {"id": "d3", "rank": "NaN", "score": 2},
        ],
    ],
)
def test_scores_of_documents_are_asked_about_and_order_a_run(
    hits, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    message = str(refusal(load_dataset, asked(tmp_path, two(top=hits))))
    parts = 2 * len(hits)
    assert f"'top' ({parts} of {parts} parts) names documents" in message
    columns = ("--columns", "run=top")
    ends(capsys, 0, "init", "asked.jsonl", "--documents", "corpus.jsonl", *columns)
    lines = Path("asked.trec").read_text().splitlines()
    assert [line.split()[2] for line in lines[:2]] == ["d3", "d1"]


@pytest.mark.parametrize(
    ("key", "right", "wrong"),
    [
        ("is_relevant", True, False),
        ("query_relevance_label", 1, 0),
        ("expect_score", 1, 0),
        ("is_gold", True, False),
        ("relevance", True, False),
        ("is_relevant", "1", "0"),
        ("is_relevant", "yes", "no"),
    ],
)
def test_a_document_judged_wrong_is_not_relevant(key, right, wrong, tmp_path):
    judged = [{"document_id": "d1", key: right}, {"document_id": "d3", key: wrong}]
    dataset = load_dataset(asked(tmp_path, two(retrieval_ground_truth=judged)))
    assert dataset.labels["q0"].grades == {"d1": 1, "d3": 0}


@pytest.mark.parametrize(
    "more",
    [
        {"relevant_page": 12},
        {"supporting_sentence": 0},
        {"label_id": 7},
        {"gold_start": 120},
        {"num_ratings": 125},
        {"correct_count": 0},
        {"score_rank": 3},
    ],
    ids=lambda more: next(iter(more)),
)
def test_a_number_that_locates_or_counts_is_no_grade(more, tmp_path):
    listed = [{"id": "d1", **more}, {"id": "d2", **more}]
    dataset = load_dataset(asked(tmp_path, two(relevant_documents=listed)))
    assert dataset.labels["q0"].documents == ("d1", "d2")
    assert not dataset.labels["q0"].grades


@pytest.mark.parametrize(
    ("judgment", "problem"),
    [
        ({"relevance_percent": 87}, "'relevance_percent' is 87"),
        ({"is_relevant": "partly"}, "'partly'"),
    ],
)
def test_a_judgment_that_is_no_grade_is_refused(judgment, problem, tmp_path):
    listed = [{"id": "d1", **judgment}]
    rows = two(relevant_documents=listed)
    assert problem in str(refusal(load_dataset, asked(tmp_path, rows)))


def test_a_flag_counts_before_the_score_of_a_system(tmp_path):
    listed = [
        {"id": "d1", "relevant": False, "score": 0.5},
        {"id": "d3", "relevant": True, "score": 0.4},
    ]
    dataset = load_dataset(asked(tmp_path, two(relevant_documents=listed)))
    assert dataset.labels["q0"].grades == {"d1": 0, "d3": 1}


def test_pairs_with_flags_are_grades(tmp_path):
    pairs = [["d1", True], ["d3", False]]
    dataset = load_dataset(asked(tmp_path, two(gold_ids=pairs)))
    assert dataset.labels["q0"].grades == {"d1": 1, "d3": 0}


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param([["d1", 1], ["d1", 0]], id="pairs"),
        pytest.param(
            [{"id": "d1", "grade": 2}, {"id": "d1", "grade": 0}], id="objects"
        ),
        pytest.param(
            [{"id": "d1", "grade": 2, "spans": ["cat"]}, {"id": "d1", "grade": 0}],
            id="objects-with-spans",
        ),
    ],
)
def test_a_document_with_two_grades_is_refused(tmp_path, listed):
    rows = two(gold_ids=listed)
    message = str(refusal(load_dataset, asked(tmp_path, rows)))
    assert "grades a document twice" in message


def test_an_object_that_is_listed_twice_with_one_grade_counts_once(tmp_path):
    listed = [{"id": "d1", "grade": 2}, {"id": "d1", "grade": 2}]
    dataset = load_dataset(asked(tmp_path, two(gold_ids=listed)))
    assert dataset.labels["q0"].grades == {"d1": 2}


@pytest.mark.parametrize("id_", ["3", 3])
def test_an_object_alone_names_a_document_by_a_number(id_):
    labels = read_label_list({"id": id_, "grade": 2}, {"3"}.__contains__)
    assert isinstance(labels, Labels)
    assert labels.grades == {"3": 2}


def test_documents_may_be_called_as_keys_are():
    labels = read_label_list({"id": 1, "grade": 2}, {"id", "grade"}.__contains__)
    assert isinstance(labels, Labels)
    assert labels.grades == {"id": 1, "grade": 2}


def test_pairs_of_a_document_and_its_grade_are_grades(tmp_path):
    dataset = load_dataset(asked(tmp_path, two(gold_ids=[["d1", 2], ["d3", 0]])))
    assert dataset.labels["q0"].grades == {"d1": 2, "d3": 0}


@pytest.mark.parametrize("cell", ["['d1' 'd3']", "['d1'\n 'd3']"])
def test_an_array_as_numpy_writes_it_is_a_list(cell, tmp_path):
    dataset = load_dataset(asked(tmp_path, two(gold_ids=cell)))
    assert dataset.labels["q0"].relevant == ("d1", "d3")


@pytest.mark.parametrize("grades", [[1, 0], "[1, 0]"])
def test_grades_beside_a_list_are_asked_about_and_read(grades, tmp_path):
    rows = two(gold_ids=["d1", "d3"], scores=grades)
    message = str(refusal(load_dataset, asked(tmp_path, rows)))
    assert "'scores' could hold grades (0, 1)" in message
    declared = declared_columns({"relevant": "gold_ids", "grade": "scores"})
    dataset = load_dataset(asked(tmp_path, rows, columns=declared))
    assert dataset.labels["q0"].grades == {"d1": 1, "d3": 0}


@pytest.mark.parametrize("relevant", [[1, 0], [True, False], ["true", "False"]])
def test_relevant_beside_a_document_is_its_grade(relevant, tmp_path):
    rows = [
        {"query": QUERIES[0], "doc_id": document, "relevant": flag}
        for document, flag in zip(("d1", "d3"), relevant, strict=True)
    ]
    dataset = load_dataset(asked(tmp_path, rows))
    assert dataset.labels["q0"].grades == {"d1": 1, "d3": 0}


FLAGS = {
    "is_relevant": [True, False],
    "correct": ["yes", "no"],
    "thumbs": [1, -1],
    "feedback": ["up", "down"],
    "annotation": ["Relevant", "Not relevant"],
    "usefulness": [2, 0],
}
RETURNED = {
    "rank": [1, 2],
    "cosine_similarity": [0.5, 0.2],
    "system": ["bm25", "bm25"],
}
PROBLEMS = {
    **dict.fromkeys(FLAGS, "could hold grades"),
    **dict.fromkeys(RETURNED, "looks like what a system returned"),
}


def labels_table(column: str) -> pd.DataFrame:
    """Two labels with one more column."""
    cells = {**FLAGS, **RETURNED}[column]
    return pd.DataFrame({"query_id": "q1", "doc_id": ["d1", "d3"], column: cells})


@pytest.mark.parametrize("column", PROBLEMS)
@pytest.mark.parametrize("road", ["file", "frame"])
def test_a_column_that_judges_or_orders_labels_is_asked_about(column, road, tmp_path):
    table = labels_table(column)
    if road == "frame":
        message = str(refusal(grades_in_memory, table))
    else:
        asked(tmp_path, [{"_id": "q1", "query": QUERIES[0]}])
        table.to_csv(tmp_path / "labels.csv", index=False)
        (tmp_path / "asked.jsonl").rename(tmp_path / "queries.jsonl")
        message = str(refusal(load_dataset, DatasetReference(tmp_path)))
    assert f"'{column}'" in message
    assert PROBLEMS[column] in message


@pytest.mark.parametrize("flag", ["relevant", "relevance", "rating"])
def test_a_frame_of_labels_has_its_grades_or_flags(flag):
    table = pd.DataFrame(
        {"query_id": "q1", "doc_id": ["d1", "d3"], flag: [True, False]}
    )
    assert grades_in_memory(table) == {"q1": {"d1": 1, "d3": 0}}


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("typo", ("yes", "no")),
        ("multi_hop", ("yes", "no")),
        ("sentiment", ("negative", "positive")),
    ],
)
def test_fields_of_queries_are_no_grades(field, words, tmp_path):
    rows = [
        {"query": query, "gold_id": "d1", field: word}
        for query, word in zip(QUERIES, words, strict=True)
    ]
    labels = load_dataset(asked(tmp_path, rows)).labels
    assert [labels[query].relevant for query in labels] == [("d1",), ("d1",)]


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        (["d1", "d3"], "ranked"),
        (("d1", "d3"), "ranked"),
        (np.array(["d1", "d3"]), "ranked"),
        ({"d1", "d3"}, "grades"),  # which has no order
    ],
    ids=["list", "tuple", "array", "set"],
)
def test_cells_of_frames_may_hold_several_documents(cell, kind):
    queries = pd.DataFrame(
        {"query": QUERIES, "gold_ids": [cell, cell], "excluded_ids": [{"d2"}, {"d2"}]}
    )
    results = harness.evaluate(DOCUMENTS, queries, None, {"bm25": "bm25"})
    lines = (results.folder / "labels.jsonl").read_text().splitlines()
    row = json.loads(lines[0])
    assert sorted(row[kind]) == ["d1", "d3"]
    assert row["excluded"] == ["d2"]


@pytest.mark.parametrize("name", ["ignore_ids", "skip_docs", "exclude_urls"])
def test_documents_to_leave_out_have_many_names(name, tmp_path):
    dataset = load_dataset(asked(tmp_path, two(gold_ids=["d1"], **{name: ["d3"]})))
    assert [query.excluded for query in dataset.queries] == [("d3",), ("d3",)]


@pytest.mark.parametrize("name", ["ignore", "blocked_ids", "without"])
def test_documents_perhaps_to_leave_out_are_asked_about(name, tmp_path):
    rows = two(gold_ids=["d1"], **{name: ["d3"]})
    message = str(refusal(load_dataset, asked(tmp_path, rows)))
    assert f"--columns exclude={name}" in message


def test_reference_answers_that_are_ids_are_asked_about(tmp_path):
    message = str(refusal(load_dataset, asked(tmp_path, two(reference=["d1"]))))
    assert "'reference' names documents, and is read as reference answers" in message
    answers = two(reference="on the mat")
    assert not load_dataset(asked(tmp_path, answers)).labels


def test_flags_by_document_are_grades(tmp_path):
    rows = two(qrels={"d1": True, "d3": False})
    assert load_dataset(asked(tmp_path, rows)).labels["q0"].grades == {"d1": 1, "d3": 0}


def test_a_second_column_of_labels_is_not_said_to_name_nothing(tmp_path):
    rows = two(gold_ids=["d1"], expected_ids=["d3"])
    message = str(refusal(load_dataset, asked(tmp_path, rows)))
    assert "'expected_ids' could hold the relevant documents" in message


def test_right_texts_beside_given_documents_are_asked_about(tmp_path):
    rows = two(pos=["the cat sat"], neg=["birds fly"])
    message = str(refusal(load_dataset, asked(tmp_path, rows)))
    assert "--columns contexts=pos" in message
    declared = declared_columns({"contexts": "pos"})
    dataset = load_dataset(asked(tmp_path, rows, columns=declared))
    assert dataset.labels["q0"].relevant == ("d1",)


def test_a_missing_label_is_named_as_a_blank_one(tmp_path):
    rows = [{"query": QUERIES[0], "gold_id": None}, {"query": "x", "gold_id": "d1"}]
    message = str(refusal(load_dataset, asked(tmp_path, rows)))
    assert "no document is given" in message


PAIRS = {
    "sentence1": "how to reset a password",
    "sentence2": "click forgot password",
    "label": 1,
}
PREFERENCES = {
    "prompt": "how to reset a password",
    "chosen": "click forgot password",
    "rejected": "cats are nice",
}


@pytest.mark.parametrize(
    ("row", "query", "passage", "documents"),
    [
        (PAIRS, "sentence1", "sentence2", 1),
        (PREFERENCES, "prompt", "chosen", 2),
    ],
)
def test_texts_beside_each_other_are_asked_about(
    row, query, passage, documents, tmp_path
):
    jsonl(tmp_path / "pairs.jsonl", [row])
    reference = DatasetReference(tmp_path / "pairs.jsonl")
    message = str(refusal(load_dataset, reference))
    assert f"(--columns query={query} --columns contexts={passage})" in message
    columns = declared_columns({"query": query, "contexts": passage})
    dataset = load_dataset(DatasetReference(tmp_path / "pairs.jsonl", columns=columns))
    assert dataset.document_count == documents
    assert dataset.labels["q0"].relevant == ("p0",)


TEXTS = [*DOCUMENTS.values()]
FLAGGED = {"is_selected": [1, 0], "passage_text": TEXTS[:2], "url": ["a", "b"]}
FLAGGED_ROWS = [
    {"is_supporting": is_right, "text": text, "url": text[:1]}
    for is_right, text in zip((True, False), TEXTS, strict=False)
]


@pytest.mark.parametrize(
    ("cells", "texts", "flag"),
    [
        ({"context": TEXTS[0]}, "context", ""),
        ({"passages": TEXTS[:1]}, "passages", ""),
        ({"notes": TEXTS[0].upper()}, "notes", ""),
        ({"passages": FLAGGED}, "passages.passage_text", "passages.is_selected"),
        ({"paragraphs": FLAGGED_ROWS}, "paragraphs.text", "paragraphs.is_supporting"),
    ],
)
def test_texts_of_given_documents_are_asked_about(tmp_path, cells, texts, flag):
    message = str(refusal(load_dataset, asked(tmp_path, two(**cells))))
    assert f"{texts!r} has the texts of documents" in message
    assert f"(--columns contexts={texts}" in message
    assert ("--columns grade=" in message) == bool(flag)
    declared = {"contexts": texts, **({"grade": flag} if flag else {})}
    reference = asked(tmp_path, two(**cells), columns=declared_columns(declared))
    labels = load_dataset(reference).labels["q0"]
    assert labels.grades == ({"d1": 1, "d2": 0} if flag else {"d1": 1})


def test_texts_without_spaces_are_asked_about_too(tmp_path):
    text = "一年に二十五日の有給休暇があります。"
    jsonl(tmp_path / "corpus.jsonl", [{"_id": "d1", "text": text}])
    jsonl(tmp_path / "asked.jsonl", [{"query": "有給休暇", "context": text}])
    reference = DatasetReference(
        tmp_path / "asked.jsonl", documents=str(tmp_path / "corpus.jsonl")
    )
    message = str(refusal(load_dataset, reference))
    assert "'context' has the texts of documents (1 of 1)" in message


def test_texts_of_given_documents_in_a_frame_are_asked_about():
    frame = pd.DataFrame(two(passages=FLAGGED))
    message = str(refusal(harness.evaluate, DOCUMENTS, frame, None, {"bm25": "bm25"}))
    assert '"grade": "passages.is_selected"}' in message
    assert "--columns" not in message


def test_long_cells_of_texts_are_compared(tmp_path):
    cells = {"passages": {"is_selected": [1], "text": TEXTS[:1], "page": ["x" * 9_000]}}
    message = str(refusal(load_dataset, asked(tmp_path, two(**cells))))
    assert "'passages.text' has the texts of documents" in message


def test_a_context_that_is_no_document_is_asked_about_unless_labels_are_elsewhere(
    tmp_path,
):
    message = str(refusal(load_dataset, asked(tmp_path, two(context="on page 7"))))
    assert "'context' could hold the relevant documents" in message
    assert "(--columns contexts=context)" in message
    rows = [{"_id": "q", "text": "cat", "context": "on page 7"}]
    jsonl(tmp_path / "queries.jsonl", rows)
    (tmp_path / "asked.jsonl").unlink()
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("q\td1\t1\n")
    assert load_dataset(tmp_path).labels["q"].relevant == ("d1",)


def test_an_empty_object_among_graded_documents_is_refused(tmp_path):
    rows = [{"query": "leave", "relevant": [{"id": "d1", "grade": 2}, {}]}]

    message = str(refusal(load_dataset, asked(tmp_path, rows)))

    assert "relevant documents cannot be read" in message
