"""Ids and labels as people have them, by kind and on every route.

The ids are the same everywhere, and no labels are overlooked.
"""

import gzip
import json
import unicodedata
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import harness
from harness.dataset import DatasetReference, load_dataset
from harness.dataset.reference import declared_columns
from harness.notebook.document_values import grades_in_memory, run_in_memory
from retrievers.errors import BackendError, InputError
from retrievers.external import match_hit_ids
from retrievers.files.trec_files import read_qrels, read_run
from retrievers.function import Function
from retrievers.ids import KnownDocuments, document_id
from retrievers.meter import Meter
from retrievers.options.user_code import NamedObject
from retrievers.saved_run import SavedRun
from retrievers.types import Query, ranked
from tests.support.layouts import book, jsonl
from tests.support.small import ends, refusal


def documents_in(folder: Path, *ids: str) -> Path:
    """A folder of documents."""
    for id_ in ids:
        path = folder / f"{id_}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Title of {id_}\n\nthe text of {id_}")
    return folder


def grades_of(folder: Path, **more) -> dict[str, list[str]]:
    """Query -> relevant documents."""
    dataset = load_dataset(DatasetReference(folder, **more))
    return {query: sorted(labels.relevant) for query, labels in dataset.labels.items()}


def in_files(raw_id, folder: Path) -> str:
    """The id of a document, and of the label that names it."""
    jsonl(folder / "documents.jsonl", [{"_id": raw_id, "text": "one"}])
    jsonl(folder / "asked.jsonl", [{"query": "what", "relevant": [raw_id]}])
    dataset = load_dataset(
        DatasetReference(folder, documents="documents.jsonl", queries=("asked.jsonl",))
    )
    (document,) = dataset.documents()
    assert dataset.labels["q0"].relevant == (document.id,)
    return document.id


def by_saved_run(raw_id, folder: Path) -> str:
    jsonl(folder / "run.jsonl", [{"query_id": "q", "doc_id": raw_id, "score": 1.0}])
    return (
        SavedRun(path=str(folder / "run.jsonl"))
        .search([Query("q", "")], 1, Meter())[0]
        .doc_ids[0]
    )


def by_function(raw_id, folder: Path) -> str:
    call = NamedObject(
        "object:f", lambda queries, depth: [[(raw_id, 1.0)] for _ in queries]
    )
    return Function(call=call).search([Query("q", "")], 1, Meter())[0].doc_ids[0]


def frame(raw_id) -> pd.DataFrame:
    return pd.DataFrame(
        {"query_id": ["q"], "doc_id": [raw_id], "relevance": [1], "score": [1.0]}
    )


ROADS = {
    "data set": in_files,
    "saved run": by_saved_run,
    "function": by_function,
    "qrels dict": lambda raw_id, _: next(
        iter(grades_in_memory({"q": {raw_id: 1}})["q"])
    ),
    "qrels list": lambda raw_id, _: next(iter(grades_in_memory({"q": [raw_id]})["q"])),
    "qrels frame": lambda raw_id, _: next(iter(grades_in_memory(frame(raw_id))["q"])),
    "run dict": lambda raw_id, _: next(
        iter(run_in_memory({"q": {raw_id: 1.0}}, "r")["q"])
    ),
    "run list": lambda raw_id, _: next(iter(run_in_memory({"q": [raw_id]}, "r")["q"])),
    "run frame": lambda raw_id, _: next(iter(run_in_memory(frame(raw_id), "r")["q"])),
}
SAME = [
    (7, "7"),
    (7.0, "7"),
    ("007", "007"),
    ("7.0", "7.0"),
    (unicodedata.normalize("NFD", "café"), "café"),
]
"""What is written -> the id."""


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize(("raw_id", "id_"), SAME)
def test_an_id_is_the_same_on_every_road(road, raw_id, id_, tmp_path):
    assert document_id(raw_id) == ROADS[road](raw_id, tmp_path) == id_


TEXTS_OF_IDS = [(raw_id, id_) for raw_id, id_ in SAME if isinstance(raw_id, str)]


@pytest.mark.parametrize(("raw_id", "id_"), TEXTS_OF_IDS)
def test_an_id_is_the_same_in_trec_files(raw_id, id_, tmp_path):
    (tmp_path / "qrels").write_text(f"q 0 {raw_id} 1\n", encoding="utf-8")
    (tmp_path / "run").write_text(f"q Q0 {raw_id} 1 0.5 x\n", encoding="utf-8")
    assert [*read_qrels(tmp_path / "qrels")["q"]] == [id_]
    assert [*read_run(tmp_path / "run")["q"]] == [id_]


@pytest.mark.parametrize(
    ("road", "error", "message"),
    [
        ("saved run", InputError, "has no query, document or score"),
        ("function", BackendError, "an id is a text or a whole number"),
        ("qrels dict", InputError, "an id is a text or a whole number"),
        ("qrels frame", InputError, "an id is a text or a whole number"),
        ("run dict", InputError, "an id is a text or a whole number"),
        ("run frame", InputError, "an id is a text or a whole number"),
    ],
)
@pytest.mark.parametrize("raw_id", [True, 0.5, float("nan")])
def test_what_is_no_id_is_refused(road, error, message, raw_id, tmp_path):
    with pytest.raises(error, match=message):
        ROADS[road](raw_id, tmp_path)


IDS = ("hr/leave", "hr/pay", "it/vpn")
NAMED = [
    [f"{id_}.md" for id_ in IDS],
    [f"documents/{id_}.pdf" for id_ in IDS],
    ["leave.md", "pay.md", "vpn"],
    [f"title  of {id_}" for id_ in IDS],
    [id_.replace("/", "\\") for id_ in IDS],
]


@pytest.mark.parametrize("names", NAMED)
def test_labels_and_hits_are_matched_by_the_same_rules(names, tmp_path):
    jsonl(
        documents_in(tmp_path, *IDS) / "queries.jsonl",
        [{"query": f"q {n}", "relevant": [n]} for n in names],
    )
    assert grades_of(tmp_path) == {
        f"q{number}": [id_] for number, id_ in enumerate(IDS)
    }
    known_documents = KnownDocuments()
    meter = Meter()
    for id_ in IDS:
        known_documents.add(id_, f"Title of {id_}")
    (ranking,) = match_hit_ids([ranked(names, [3, 2, 1])], known_documents, meter)
    assert ranking.doc_ids == IDS
    assert len(meter.notes()["matched-hit"]) == 3


@pytest.mark.parametrize(
    ("ids", "spelling"),
    [
        ({"hr/leave", "it/leave"}, "leave.md"),
        ({"pkg.load"}, "pkg.save"),
        ({"hr/leave", "it/leave"}, "it/pay"),
    ],
)
def test_a_name_of_two_documents_or_of_none_is_not_matched(ids, spelling):
    assert KnownDocuments(ids).match([spelling]) == {}


def test_of_two_names_for_one_document_none_is_matched():
    """Which of the two it is, nobody can say."""
    assert KnownDocuments({"rest"}).match(["hr/rest", "it/rest"]) == {}


@pytest.mark.parametrize(
    ("label", "relevant"),
    [
        ({"expected": ["a"]}, ["a"]),
        ({"goldenIds": "a; b"}, ["a", "b"]),
        ({"gold": "a"}, ["a"]),
        ({"Expected document(s)": ["a.md"]}, ["a"]),
        ({"gold": [{"fqname": "a"}]}, ["a"]),
        ({"truth": [{"id": "a", "grade": 2}, {"id": "b", "grade": 0}]}, ["a"]),
        ({"expected": [{"doc": {"ref": "a"}, "why": "so"}]}, ["a"]),
        ({"goldSources": [{"metadata": {"source": "docs/a.md"}}]}, ["a"]),
        ({"groundTruth": {"a": 1}}, ["a"]),
    ],
)
def test_labels_are_found_by_the_name_of_their_column(
    label, relevant, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    jsonl(
        documents_in(tmp_path / "d", "a", "b") / "queries.jsonl",
        [{"question": f"{n}?", **label} for n in range(3)],
    )
    assert [*grades_of(Path("d")).values()] == [relevant] * 3
    output = ends(capsys, 0, "init", "d").out
    assert (
        f"column '{next(iter(label))}" in output and "is read as the labels" in output
    )
    assert "without labels" not in output
    ends(capsys, 0, "check", "d.toml")


@pytest.mark.parametrize(
    "row",
    [
        {"one": ["a"], "two": ["b"]},
        {"retrieved": ["a"]},
        {"hard_negatives": ["a", "b"]},
        {"sources": ["a"]},
        {"citations": ["a.md", "b"]},
        {"top_k_ids": "a; b"},
        {"bm25_top": ["a"]},
        {"candidates": ["b", "a"]},
        {"query_response_objects_ids": ["a"]},
        {"contexts": ["a", "b"]},
        {"doc_ids": ["a"]},
        {"evidence": [{"doc": {"ref": "a"}}], "why": "so"},
        {"hits": [{"id": "a", "score": 3}]},
        {"sollte": ["a"]},
    ],
)
def test_what_may_be_labels_is_asked_about_with_the_option_to_add(row, tmp_path):
    jsonl(
        documents_in(tmp_path, "a", "b") / "queries.jsonl",
        [{"question": f"{n}?", **row} for n in range(3)],
    )
    name = {"evidence": "evidence.doc"}.get(next(iter(row)), next(iter(row)))
    with pytest.raises(InputError, match="--columns (relevant|contexts)=" + name):
        load_dataset(DatasetReference(tmp_path))
    assert len(grades_of(tmp_path, columns=declared_columns({"relevant": name}))) == 3


LOGS = [
    "query,doc_id,rank,score\nleave,a,1,2\nleave,b,2,1\n",
    "query_id,query,doc_id,rank,score\nq1,leave,a,1,2\nq1,leave,b,2,1\n",
    "query_id,query,passage_id,passage,generated_answer\nq1,leave,a,text,25 days\n",
    "query,document,document_position,document_score\nleave,a,1,0\npay,b,1,1\n",
    "query,url,distance\nleave,a,0.1\npay,b,0.5\n",
    "query,doc,score\nleave,a,1\npay,b,0\n",
]
"""What a system returned, with its ranks, scores or answers."""


def log_in(folder: Path, log: str) -> None:
    """A folder with documents and a log of a system, as CSV."""
    (documents_in(folder, "a", "b") / "queries.csv").write_text(log)


@pytest.mark.parametrize("log", LOGS)
def test_what_a_system_returned_is_no_label(log, tmp_path):
    log_in(tmp_path, log)
    message = str(refusal(load_dataset, DatasetReference(tmp_path)))
    assert "--columns label_document=" in message
    assert "looks like what a system returned" in message
    assert 'kind = "run"' in message


@pytest.mark.parametrize("command", [["init", "d"], ["check", "d"]])
def test_what_a_system_returned_is_asked_about_by_each_command(
    command, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    log_in(tmp_path / "d", LOGS[0])
    output = ends(capsys, 2, *command).err
    assert "'doc_id' (2 of 2 parts) names documents" in output
    assert not Path("d.toml").exists()


@pytest.mark.parametrize("kind", ["frame", "list", "dict"])
def test_what_a_system_returned_is_no_label_in_memory(kind):
    rows = [
        {"query": "red", "sources": ["a"], "rank": 1},
        {"query": "green", "sources": ["b"], "rank": 1},
    ]
    queries = {
        "frame": pd.DataFrame(rows),
        "list": rows,
        "dict": {"x": rows[0], "y": rows[1]},
    }[kind]
    given = {**GIVEN, "queries": queries, "qrels": None}
    message = str(refusal(harness.evaluate, **given))
    assert "'sources' (2 of 2 parts) names documents" in message
    assert 'columns={"relevant": "sources"}' in message


@pytest.mark.parametrize("grade", ["relevance", "label", "rating"])
def test_a_document_beside_its_grade_is_a_label(grade, tmp_path):
    log_in(tmp_path, f"query,doc_id,rank,score,{grade}\nleave,a,1,9,1\nleave,b,2,8,0\n")
    dataset = load_dataset(DatasetReference(tmp_path))
    assert dataset.labels["q0"].grades == {"a": 1, "b": 0}


def test_a_score_is_a_grade_in_a_table_of_labels(tmp_path):
    log_in(tmp_path, "query_id,query\nq1,leave\n")
    labels = "query_id,doc_id,score\nq1,a,2\nq1,b,0\n"
    (tmp_path / "labels.csv").write_text(labels)
    dataset = load_dataset(DatasetReference(tmp_path))
    assert dataset.labels["q1"].grades == {"a": 2, "b": 0}


CONTEXTS = [
    {"question": "how much", "contexts": ["25 days"], "answer": "25"},
    {"query": "how much", "passage": "25 days", "generated_answer": "25"},
    {"query": "how much", "context": "25 days"},
    {"query": "how much", "context": "25 days", "answer": "25", "rank": 1},
    {"question": "how much", "context": "25 days", "response": "25"},
]


@pytest.mark.parametrize("row", CONTEXTS)
def test_texts_that_a_system_may_have_returned_are_asked_about(row, tmp_path):
    jsonl(tmp_path / "log.jsonl", [row])
    reference = DatasetReference(tmp_path / "log.jsonl")
    column = next(name for name in row if name[:4] in ("cont", "pass"))
    message = str(refusal(load_dataset, reference))
    assert f"--columns contexts={column}" in message
    declared = replace(reference, columns=declared_columns({"contexts": column}))
    assert load_dataset(declared).labels["q0"].relevant == ("p0",)


@pytest.mark.parametrize(
    "row",
    [
        {"question": "how much", "contexts": ["25 days"], "ground_truth": "25"},
        {"question": "how much", "context": "25 days", "answers": ["25"]},
        {"question": "how much", "passage": "25 days", "relevance": 1},
    ],
)
def test_contexts_of_known_tools_are_labels(row, tmp_path):
    jsonl(tmp_path / "set.jsonl", [row])
    dataset = load_dataset(DatasetReference(tmp_path / "set.jsonl"))
    assert dataset.labels["q0"].relevant == ("p0",)


TURNS = ["D8:6", "D9:17", "D9:1", "D4:4", "a b", "x;y"]
"""Ids of documents, two of them with separators."""


@pytest.mark.parametrize(
    ("labels", "documents"),
    [
        (["D8:6; D9:17", "D9:1 D4:4"], ("D8:6", "D9:17", "D9:1", "D4:4")),
        (["D8:6, D9:17"], ("D8:6", "D9:17")),
        (["D8:6|D9:17", "D4:4"], ("D8:6", "D9:17", "D4:4")),
        (["a b", "x;y"], ("a b", "x;y")),
        ("D9:1 D4:4", ("D9:1", "D4:4")),
        ("D8:6; D9:1 D4:4", ("D8:6", "D9:1", "D4:4")),
    ],
)
def test_an_element_of_a_list_may_hold_several_ids(labels, documents, tmp_path):
    jsonl(tmp_path / "documents.jsonl", [{"id": i, "text": "t " + i} for i in TURNS])
    jsonl(tmp_path / "queries.jsonl", [{"query": "what", "relevant": labels}])
    dataset = load_dataset(DatasetReference(tmp_path))
    assert dataset.labels["q0"].relevant == documents
    assert "dangling-document" not in dataset.data_quality


def test_a_query_that_loses_all_its_labels_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [{"query": f"q {n}", "relevant": ["a", "b"]} for n in range(10)]
    rows += [{"query": "lost", "relevant": ["policy-09; policy-10"]}]
    documents_in(tmp_path / "d", "a", "b", "policy-01")
    jsonl(tmp_path / "d" / "queries.jsonl", rows)
    dataset = load_dataset(DatasetReference(Path("d"), drop_dangling=True))
    place = "d/queries.jsonl:11: 'policy-09; policy-10'"
    (note,) = dataset.data_quality["lost-query"]
    assert note.startswith(place)
    output = ends(capsys, 0, "check", "d", "--dangling", "drop").out
    assert "queries all of whose labels name no document (1)" in output
    assert place in output
    assert f"a query loses all its labels: {place}" in ends(capsys, 0, "init", "d").out


RIGHT, WRONG, OTHER = "25 days of leave", "the train leaves", "a meal costs 9"
MARKED = [
    {"query": "q", "pos": [RIGHT], "neg": [WRONG, OTHER]},
    {"question": "q", "context": RIGHT, "hard_negatives": [WRONG, OTHER]},
    {"anchor": "q", "positive": RIGHT, "negative_1": WRONG, "negative_2": OTHER},
    {
        "query": "q",
        "positive_passages": [{"docid": "7", "title": "t", "text": RIGHT}],
        "negative_passages": [
            {"docid": "8", "title": "t", "text": WRONG},
            {"docid": "9", "title": "t", "text": OTHER},
        ],
    },
    {
        "question": "q",
        "answers": ["25"],
        "positive_ctxs": [{"title": "t", "text": RIGHT, "score": 1000}],
        "hard_negative_ctxs": [{"title": "t", "text": WRONG}],
        "negative_ctxs": [{"title": "t", "text": OTHER}],
    },
    {
        "question": "q",
        "answer": "25",
        "paragraphs": [
            {"title": "t", "paragraph_text": WRONG, "is_supporting": False},
            {"title": "t", "paragraph_text": RIGHT, "is_supporting": True},
            {"title": "t", "paragraph_text": OTHER, "is_supporting": False},
        ],
    },
    {
        "query": "q",
        "passages": {
            "is_selected": [0, 1, 0],
            "passage_text": [OTHER, RIGHT, WRONG],
            "url": ["x", "y", "z"],
        },
    },
]


@pytest.mark.parametrize("row", MARKED, ids=lambda row: " ".join(row))
def test_wrong_texts_are_documents_and_right_ones_are_labels(row, tmp_path):
    jsonl(tmp_path / "set.jsonl", [row])
    dataset = load_dataset(DatasetReference(tmp_path / "set.jsonl"))
    texts = {document.id: document.text for document in dataset.documents()}
    assert sorted(texts.values()) == [RIGHT, OTHER, WRONG]
    (relevant,) = dataset.labels["q0"].relevant
    assert texts[relevant] == RIGHT
    assert "positive" not in dataset.queries[0].fields


def test_a_key_that_may_mean_text_or_id_is_the_text(tmp_path):
    texts = [
        {"document": RIGHT, "is_relevant": 1},
        {"document": WRONG, "is_relevant": 0},
    ]
    jsonl(tmp_path / "set.jsonl", [{"query": "q", "passages": texts}])
    dataset = load_dataset(DatasetReference(tmp_path / "set.jsonl"))
    assert [document.id for document in dataset.documents()] == ["p0", "p1"]


def test_a_declared_flag_says_which_texts_are_right(tmp_path):
    texts = [{"text": RIGHT, "helps": 1}, {"text": WRONG, "helps": 0}]
    jsonl(tmp_path / "set.jsonl", [{"query": "q", "shown": texts}])
    columns = {"relevant": "shown.helps"}
    dataset = load_dataset(
        DatasetReference(tmp_path / "set.jsonl", columns=declared_columns(columns))
    )
    assert (dataset.document_count, dataset.labels["q0"].relevant) == (2, ("p0",))


def test_right_texts_on_several_rows_of_one_query_are_all_labels(tmp_path):
    rows = [
        {"anchor": "q", "positive": RIGHT, "negative": WRONG},
        {"anchor": "q", "positive": OTHER, "negative": WRONG},
    ]
    jsonl(tmp_path / "set.jsonl", rows)
    dataset = load_dataset(DatasetReference(tmp_path / "set.jsonl"))
    assert dataset.document_count == 3
    assert dataset.labels["q0"].relevant == ("p0", "p2")


def test_pairs_of_a_query_and_a_passage_have_their_grades(tmp_path):
    rows = [
        {"query": "q", "passage": RIGHT, "label": 1},
        {"query": "q", "passage": WRONG, "label": 0},
    ]
    jsonl(tmp_path / "set.jsonl", rows)
    dataset = load_dataset(DatasetReference(tmp_path / "set.jsonl"))
    assert dataset.labels["q0"].grades == {"p0": 1, "p1": 0}
    assert dataset.document_count == 2


def test_two_columns_of_text_are_two_lines(tmp_path):
    rows = [{"id": "a", "question": "How much?", "answer": "25 days", "note": ""}]
    jsonl(tmp_path / "documents.jsonl", rows)
    jsonl(tmp_path / "queries.jsonl", [{"query": "leave", "gold": ["a"]}])
    columns = {"text": "question,note,answer"}
    dataset = load_dataset(
        DatasetReference(tmp_path, columns=declared_columns(columns))
    )
    (document,) = dataset.documents()
    assert document.text == "How much?\n25 days"


@pytest.mark.parametrize("page", ["page", "evidence_pages", "page_no"])
def test_pages_beside_files_are_asked_about(page, tmp_path):
    log_in(tmp_path, f"query,gold_file,{page}\nleave,a.md,3\npay,b.md,7\n")
    message = str(refusal(load_dataset, DatasetReference(tmp_path)))
    assert (
        f"'{page}' is not used, so that every page of 'gold_file' is relevant"
        in message
    )
    assert (
        f"--columns label_document=gold_file,{page} --match gold_file,{page}" in message
    )
    reference = DatasetReference(tmp_path, columns=declared_columns({"fields": page}))
    assert load_dataset(reference).labels["q0"].relevant == ("a",)


@pytest.mark.parametrize("columns", [{}, {"relevant": "gold"}])
def test_a_row_without_the_key_of_labels_is_a_query_without_labels(columns, tmp_path):
    rows = [{"query": f"q {n}", "gold": ["a"]} for n in range(2)] + [{"query": "new"}]
    jsonl(documents_in(tmp_path, "a") / "queries.jsonl", rows)
    dataset = load_dataset(
        DatasetReference(tmp_path, columns=declared_columns(columns))
    )
    assert dataset.data_quality["unjudged-query"] == ("q2",)
    assert len(dataset.queries) == 2


@pytest.mark.parametrize("column", ["gold", "doc_id,relevance"])
def test_a_blank_label_beside_a_query_without_an_answer(column, tmp_path):
    comma = "," * column.count(",")
    one = ",1" if comma else ""
    table = f"query,{column},answerable\nleave,a{one},yes\nnone,{comma},no\n"
    (documents_in(tmp_path, "a") / "queries.csv").write_text(table)
    dataset = load_dataset(DatasetReference(tmp_path))
    assert dataset.labels["q0"].relevant == ("a",)
    assert dataset.data_quality["unanswerable-query"] == ("q1",)


def test_blank_labels_are_counted_in_one_sentence(tmp_path):
    log_in(tmp_path, "query,gold\nleave,a\n" + "pay,\n" * 3)
    (problem,) = refusal(
        load_dataset,
        DatasetReference(
            tmp_path, columns=declared_columns({"label_document": "gold"})
        ),
    ).problems
    assert "queries.csv:3: no document is given; also in 2 others" in str(problem)


def test_a_table_alone_in_a_folder_is_read_as_the_file(tmp_path):
    row = {"question": "q", "contexts": [RIGHT], "ground_truth": "25"}
    jsonl(tmp_path / "testset.jsonl", [row])
    by_file = load_dataset(DatasetReference(tmp_path / "testset.jsonl"))
    assert load_dataset(DatasetReference(tmp_path)).digest == by_file.digest


@pytest.mark.parametrize("name", ["./docs.csv", "docs.csv", "docs.csv.gz"])
def test_documents_beside_one_table_are_found(name, tmp_path):
    content = b"id,text\na,one\nb,two\n"
    if name.endswith(".gz"):
        content = gzip.compress(content)
    (tmp_path / name).write_bytes(content)
    (tmp_path / "log.csv").write_text("query,gold\nleave,a\n")
    reference = DatasetReference(tmp_path / "log.csv", documents=name)
    assert load_dataset(reference).document_count == 2


@pytest.mark.parametrize(
    ("rows", "column"),
    [
        ("query,gold,sources\nleave,a,b|a\npay,b,b\n", "sources"),
        ("query,gold,doc_id,rank\nleave,a,a,2\nleave,a,b,1\npay,b,b,1\n", "doc_id"),
    ],
)
def test_what_a_system_returned_becomes_a_run(
    rows, column, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    log_in(tmp_path / "d", rows)
    ends(capsys, 0, "init", "d", "--columns", f"run={column}")
    run = {query: list(hits) for query, hits in read_run("d.trec").items()}
    assert run == {"q0": ["b", "a"], "q1": ["b"]}
    text = Path("d.toml").read_text()
    assert 'kind = "run"' in text and 'path = "d.trec"' in text
    ends(capsys, 0, "check", "d.toml")


EVENTS = "query_id,query,object_id,action_name\nq,leave,a,view\nq,leave,b,click\n"


def events_in(folder):
    """A reference to a folder with events of two kinds, whose objects are labels."""
    log_in(folder, EVENTS)
    return DatasetReference(folder, columns=declared_columns({"label": "object_id"}))


def test_events_of_several_kinds_are_asked_about(tmp_path):
    log_in(tmp_path, EVENTS)
    message = str(refusal(load_dataset, DatasetReference(tmp_path)))
    assert "'object_id' (2 of 2 parts) names documents" in message
    assert "'action_name' has 'view' (1), 'click' (1)" in message


def test_the_kind_of_events_that_are_labels_is_asked_for(tmp_path):
    message = str(refusal(load_dataset, events_in(tmp_path)))
    assert "'action_name' has 'view' (1), 'click' (1)" in message
    assert "--where action_name=click" in message


@pytest.mark.parametrize(
    ("kinds", "relevant"), [(("click",), ("b",)), (("click", "view"), ("a", "b"))]
)
def test_events_of_a_declared_kind_are_labels(kinds, relevant, tmp_path):
    declared = replace(events_in(tmp_path), where={"action_name": kinds})
    (labels,) = load_dataset(declared).labels.values()
    assert labels.relevant == relevant


def test_a_column_that_chooses_labels_is_not_asked_about(tmp_path):
    documents_in(tmp_path, "a", "b")
    jsonl(tmp_path / "queries.jsonl", [{"_id": "q", "query": "leave"}])
    rows = [
        {"query_id": "q", "doc_id": id_, "clicked": id_ == "a"} for id_ in ("a", "b")
    ]
    jsonl(tmp_path / "qrels.jsonl", rows)
    declared = DatasetReference(tmp_path, where={"clicked": ("True",)})
    assert load_dataset(declared).labels["q"].relevant == ("a",)


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ({"action_name": ("clik",)}, "no row has action_name = 'clik'"),
        ({"action": ("click",)}, "no row has a column 'action'"),
    ],
)
def test_a_kind_of_events_that_no_row_has_is_refused(where, sentence, tmp_path):
    declared = replace(events_in(tmp_path), where=where)
    assert sentence in str(refusal(load_dataset, declared))


RATINGS = [
    {"_index": "i", "_id": "a", "rating": 3},
    {"_index": "i", "_id": "b", "rating": 0},
]
QUEPID = [
    {
        "query": "red",
        "ratings": [
            {"docId": "a", "rating": "3.000"},
            {"docId": "b", "rating": "0.000"},
        ],
    }
]
QRELS = "# who judged\nq0 0 a 1\nq0 0 b 0\n"
FORMS = [
    {
        "queries.json": {
            "requests": [
                {
                    "id": "q0",
                    "request": {"query": {"match": {"text": "x"}}},
                    "ratings": RATINGS,
                }
            ]
        }
    },
    {"queries.json": {"name": "x", "judgmentRatings": QUEPID}},
    {"queries.yaml": "- question: what\n  relevant:\n    - a\n"},
    {"queries.csv": "sep=;\nquestion;relevant\nwhat;a\n"},
    {"queries.csv": "\ufeffsep=\t\nquestion\texpected\nwhat\ta\n"},
    {"queries.jsonl": '{"question": "what", "relevant": [{"id": "a", "grade": 2}]}'},
    {
        "topics.txt": "<top>\n<num> Number: q0\n<title> what\n</top>\n",
        "qrels.txt": QRELS,
    },
    {"topics.tsv": "q0\twhat\n", "qrels.txt": QRELS},
    {"queries.jsonl": '{"_id": "q0", "text": "what"}\n', "qrels.txt": QRELS},
]


@pytest.mark.parametrize("files", FORMS)
def test_forms_of_labels_beside_documents(files, tmp_path):
    for name, content in files.items():
        (documents_in(tmp_path, "a", "b") / name).write_text(
            content if isinstance(content, str) else json.dumps(content)
        )
    assert grades_of(tmp_path) == {"q0": ["a"]}
    assert load_dataset(DatasetReference(tmp_path)).document_count == 2


def test_one_cause_is_one_error(tmp_path):
    rows = [{"question": f"{n}?", "relevant": [f"documents/x{n}"]} for n in range(28)]
    rows.append({"question": "again?", "relevant": ["documents/x0"]})
    jsonl(documents_in(tmp_path / "d", "a", "b") / "queries.jsonl", rows)
    with pytest.raises(InputError, match="29 labels begin with 'documents/'") as raised:
        load_dataset(DatasetReference(tmp_path / "d"))
    assert len(raised.value.problems) == 1


def test_a_text_that_stands_for_a_query_to_come_is_named(tmp_path):
    table = "question,gold\nTODO,a\nTODO,b\nTODO,c\nwhat,a\n"
    (documents_in(tmp_path, "a", "b", "c") / "queries.csv").write_text(table)
    quality = load_dataset(DatasetReference(tmp_path)).data_quality
    assert quality["placeholder-query"] == ("'TODO' on 3 rows",)


# Python


DOCUMENTS = {"a": "a red apple", "b": "a green pear", "c": "blue"}
GIVEN = {
    "documents": DOCUMENTS,
    "queries": ["red", "green"],
    "qrels": [["a"], ["b"]],
    "retrievers": {"bm25": "bm25"},
}


def test_lists_of_labels_belong_to_the_queries_in_their_order():
    results = harness.evaluate(**{**GIVEN, "queries": {"x": "red", "y": "green"}})
    assert results.queries["y"].labels.relevant == ("b",)


def test_fewer_lists_of_labels_than_queries_are_refused():
    message = str(refusal(harness.evaluate, **{**GIVEN, "qrels": [["a"]]}))
    assert "1 lists of labels for 2 queries" in message


def described_documents():
    """Documents whose texts are in a column that no name tells."""
    rows = {"id": list(DOCUMENTS), "description": list(DOCUMENTS.values())}
    return pd.DataFrame(rows)


def test_a_column_that_no_name_tells_is_asked_for():
    with pytest.raises(InputError, match=r'say which: columns=\{"text": "…"\}\)'):
        harness.evaluate(**{**GIVEN, "documents": described_documents()})


def test_results_of_declared_columns_print_as_in_the_terminal():
    arguments = {**GIVEN, "documents": described_documents()}
    results = harness.evaluate(**arguments, columns={"text": "description"})
    assert "evaluation · nDCG@10 · 2 queries" in str(results)
    assert "Results" not in str(results)


def test_qrels_take_a_file_of_rows_as_runs_do(tmp_path):
    jsonl(tmp_path / "qrels.jsonl", [{"query_id": 1, "doc_id": 7.0, "relevance": 2}])
    assert grades_in_memory(tmp_path / "qrels.jsonl") == {"1": {"7": 2}}


def test_qrels_take_any_iterable_of_ids():
    assert grades_in_memory({"1": iter(["7"])}) == {"1": {"7": 1}}


def test_several_ids_in_a_cell_are_one_error():
    message = r"1 row with several ids, such as .*frame.explode\('doc_id'\)"
    with pytest.raises(InputError, match=message):
        run_in_memory(frame(["a", "b"]), "runs['x']")


def test_a_score_that_is_no_number_is_named_with_its_document():
    message = r"runs\['x'\]\['q'\]: nan is not a score of document 'a'"
    with pytest.raises(InputError, match=message):
        run_in_memory({"q": {"a": float("nan")}}, "runs['x']")


# The command line


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Qrels; a right run by file names, a wrong one, and one of unknown documents."""
    monkeypatch.chdir(tmp_path)
    Path("qrels").write_text("q 0 hr/leave 1\nq 0 hr/pay 0\n")
    Path("a.run").write_text("q Q0 hr/leave.md 1 2 x\nq Q0 hr/pay.md 2 1 x\n")
    Path("b.run").write_text("q Q0 hr/pay 1 2 x\nq Q0 hr/leave 2 1 x\n")
    Path("c.run").write_text("q Q0 other 1 2 x\n")


def test_a_run_in_the_place_of_qrels_is_told_apart(runs, capsys):
    refused = ends(capsys, 2, "score", "a.run", "qrels").err
    assert "is a run, not qrels (give the qrels first" in refused


def test_the_ids_of_a_run_are_matched_by_file_name(runs, capsys):
    scored = ends(capsys, 0, "score", "qrels", "a.run", "-m", "RR")
    assert "ids matched: 2 by file name" in scored.err
    assert "1.0000" in scored.out


def test_a_run_without_a_judged_hit_is_refused(runs, capsys):
    refused = ends(capsys, 2, "score", "qrels", "c.run").err
    assert "no hit is judged in any query: ids look like 'other'" in refused


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["score", "qrels", "a.run"], "1.0000"),
        (["compare", "qrels", "a.run", "b.run"], "? b  0.500"),
    ],
)
def test_beside_a_run_without_a_judged_hit_the_others_are_scored(
    runs, words, printed, capsys
):
    several = ends(capsys, 3, *words, "c.run", "-m", "RR")
    assert printed in several.out
    assert "c.run: no hit is judged in any query" in several.err


def test_a_comparison_of_runs_has_a_page(runs, capsys):
    words = ["compare", "qrels", "a.run", "b.run", "-m", "RR"]
    ends(capsys, 0, *words, "--report", "page.html")
    assert "RR" in Path("page.html").read_text(encoding="utf-8")


TOPICS = (
    "<topics>\n<topic>\n<number>1</number>\n<query>what</query></topic>\n"
    "<topic><number>2</number><title>who</title></topic></topics>",
    "<topics><topic number='1'><title>what</title></topic>"
    "<topic number='2'><title>who</title></topic></topics>",
)


@pytest.mark.parametrize("topics", TOPICS)
def test_topics_in_xml_are_read(topics, tmp_path):
    folder = documents_in(tmp_path, "a", "b")
    (folder / "topics.xml").write_text(topics)
    (folder / "qrels.txt").write_text("1 0 a 1\n2 0 b 1\n")
    assert grades_of(folder) == {"1": ["a"], "2": ["b"]}


def test_a_merged_cell_holds_for_the_rows_that_it_spans(tmp_path):
    pytest.importorskip("python_calamine")
    workbook = pytest.importorskip("openpyxl").Workbook()
    folder = documents_in(tmp_path, "a", "b", "c")
    for row in (["query", "gold_id"], ["what", "a"], [None, "b"], ["who", "c"]):
        workbook.active.append(row)
    workbook.active.merge_cells("A2:A3")
    workbook.save(folder / "queries.xlsx")
    assert grades_of(folder) == {"q0": ["a", "b"], "q1": ["c"]}


@pytest.fixture
def workbook_folder(tmp_path):
    """A document, and a workbook of two sheets with queries."""
    rows = [["query", "gold_id"], ["what", "a"]]
    folder = documents_in(tmp_path, "a")
    (folder / "golden.xlsx").write_bytes(book(March=rows, April=rows))
    return folder


def test_a_sheet_is_a_data_set(workbook_folder):
    assert grades_of(workbook_folder / "golden.xlsx#March") == {"q0": ["a"]}


@pytest.mark.parametrize(
    ("file", "options"),
    [("golden.xlsx#Nope", {}), ("", {"queries": ("golden.xlsx#Nope",)})],
    ids=["as a data set", "as queries"],
)
def test_a_wrong_sheet_lists_the_sheets(workbook_folder, file, options):
    reference = DatasetReference(workbook_folder / file, **options)
    message = str(refusal(load_dataset, reference))
    assert "no sheet 'Nope'" in message
    assert "'March', 'April'" in message


BULK = '{"index": {"_id": "a"}}\n{"content": "one text"}\n'
SEARCH_HITS = {"hits": [{"_id": "a", "_source": {"content": "one text"}}]}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("dump.ndjson", BULK),
        ("hits.json", json.dumps({"took": 1, "hits": SEARCH_HITS})),
    ],
)
def test_dumps_of_elasticsearch_are_documents(name, content, tmp_path):
    (tmp_path / name).write_text(content)
    (tmp_path / "queries.csv").write_text("query,gold_id\nwhat,a\n")
    assert grades_of(tmp_path, documents=name) == {"q0": ["a"]}


@pytest.mark.parametrize("name", ["golden.csv", "testset.csv", "eval/golden.csv"])
@pytest.mark.parametrize("documents", ["docs/a.md", "a.md", "documents.csv"])
@pytest.mark.parametrize("command", ["init", "check"])
def test_a_table_of_queries_under_another_name_is_named_with_its_option(
    tmp_path, monkeypatch, capsys, name, documents, command
):
    monkeypatch.chdir(tmp_path)
    texts = {documents: "# leave" if documents.endswith("md") else "id,text\na,leave\n"}
    for path, text in {**texts, name: "question,gold_id\nhow long,a\n"}.items():
        file = tmp_path / "d" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    printed = ends(capsys, 2, command, "d")
    assert f"--queries {name}" in printed.err
    ends(capsys, 0, command, "d", "--queries", name)


def test_events_are_recognised_by_their_values_whatever_their_column_is_called(
    tmp_path,
):
    table = "query,clicked_doc_id,kind\nleave,a,click\nleave,b,view\n"
    documents_in(tmp_path, "ab")
    log_in(tmp_path, table)
    message = str(refusal(load_dataset, DatasetReference(tmp_path)))
    assert "'kind' has 'click' (1), 'view' (1)" in message
    assert "--where kind=click" in message


@pytest.mark.parametrize("order", ["rank", "position", "distance", "score,rank"])
def test_a_table_of_labels_with_what_orders_a_ranking_is_asked_about(tmp_path, order):
    documents_in(tmp_path, "a", "b")
    jsonl(tmp_path / "queries.jsonl", [{"_id": "q", "query": "leave"}])
    numbers = ",".join("1" for _ in order.split(","))
    rows = f"query_id,doc_id,{order}\nq,a,{numbers}\nq,b,{numbers}\n"
    (tmp_path / "labels.csv").write_text(rows)
    message = str(refusal(load_dataset, DatasetReference(tmp_path)))
    assert "looks like what a system returned" in message
    assert "--columns run=doc_id" in message
    declared = declared_columns({"label_document": "doc_id"})
    assert set(grades_of(tmp_path, columns=declared)["q"]) == {"a", "b"}
    assert set(grades_of(tmp_path, labels="labels.csv")["q"]) == {"a", "b"}
    assert not grades_of(tmp_path, columns=declared_columns({"fields": "doc_id"}))
