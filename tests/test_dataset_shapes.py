"""Shapes of data that teams have: one command each, with as many labels of each grade as the files have."""

import csv
import itertools
import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from harness.dataset import DatasetReference, load, reference_of
from harness.experiment import init
from harness.experiment import load as load_experiment
from harness.experiment.init import write_experiment
from retrievers.errors import InputError

TEXTS = {"d1": "Twenty-five days of leave a year.", "d2": "Trains are booked by the office.", "d3": "Lunch is at noon."}
ASKED = {"qa": "how much leave", "qb": "by train"}
GRADES = {("qa", "d1"): 2, ("qa", "d3"): 0, ("qb", "d2"): 1}
SUFFIXES = ("json", "jsonl", "csv", "parquet")


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    monkeypatch.setattr(init.importlib.util, "find_spec", lambda name: None)
    monkeypatch.chdir(tmp_path)


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    elif path.suffix == ".parquet":
        table = pytest.importorskip("pyarrow").Table.from_pylist(rows)
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return path


def counts(given: Path | DatasetReference) -> Counter[int]:
    """The grades of the data set of the experiment that one command writes."""
    dataset = load(load_experiment(write_experiment(given, Path("made.toml")).path).dataset)
    Path("made.toml").unlink()
    assert len({document.content for document in dataset.documents()}) == dataset.count
    found = dataset.labels.values()
    return Counter(grade for one in found for grade in (one.grades or dict.fromkeys(one.documents, 1)).values())


@pytest.mark.parametrize(("documents", "queries"), [*itertools.product(SUFFIXES, SUFFIXES)])
def test_tables_of_documents_and_queries_in_any_mixture(documents, queries):
    write(Path(f"d/documents.{documents}"), [{"id": id_, "text": text} for id_, text in TEXTS.items()])
    rows = [{"query": ASKED[query], "doc": doc, "rating": grade} for (query, doc), grade in GRADES.items()]
    write(Path(f"d/queries.{queries}"), rows)
    assert counts(Path("d")) == Counter(GRADES.values())


@pytest.mark.parametrize("second", ["documents.jsonl", "queries.json"])
def test_two_files_of_one_part_are_refused(second):
    write(Path("d/documents.csv"), [{"id": id_, "text": text} for id_, text in TEXTS.items()])
    write(Path("d/queries.csv"), [{"query": "how much leave", "doc": "d1"}])
    write(Path("d") / second, [{"id": "x", "text": "y", "query": "z"}])
    with pytest.raises(InputError, match="is there as well: which of the two is meant, nobody can say"):
        write_experiment(Path("d"))


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "json", "parquet"])
def test_a_table_of_questions_answers_and_contexts(suffix):
    rows = [
        {"question": "how much leave", "answer": "25 days", "context": TEXTS["d1"], "topic": "hr"},
        {"question": "how much leave", "answer": "25 days", "context": TEXTS["d3"], "topic": "hr"},
        {"question": "by train", "answer": "the office", "context": TEXTS["d2"], "topic": "travel"},
        {"question": "who books", "answer": "the office", "context": TEXTS["d2"], "topic": "travel"},
    ]
    path = write(Path(f"qa.{suffix}"), rows)
    assert counts(path) == {1: len(rows)}
    found = load(reference_of(path))
    assert (found.format, found.count, len(found.queries)) == ("quoted", 3, 3)
    assert (found.queries[0].reference.answers, found.queries[0].fields) == (("25 days",), {"topic": "hr"})
    graded = write(Path(f"graded.{suffix}"), [{**row, "rating": number % 3} for number, row in enumerate(rows)])
    assert counts(graded) == {0: 2, 1: 1, 2: 1}


def test_contexts_may_be_a_list():
    path = write(Path("qa.jsonl"), [{"question": "what", "contexts": [TEXTS["d1"], TEXTS["d2"]]}])
    assert counts(path) == {1: 2}


def test_a_row_without_a_question_or_with_a_grade_that_is_none_is_refused():
    rows = [{"question": None, "context": "x"}, {"question": "y", "context": "x", "rating": "high"}]
    with pytest.raises(InputError) as told:
        load(reference_of(write(Path("qa.jsonl"), [{"question": "a", "context": "b", "rating": 1}, *rows])))
    assert [problem.where for problem in told.value.problems] == ["qa.jsonl:2", "qa.jsonl:3"]


def test_squad():
    def asked(id_: str, text: str, **more: object) -> dict[str, object]:
        return {"id": id_, "question": text, "answers": [{"text": "25", "answer_start": 0}], **more}

    first = {"context": TEXTS["d1"], "qas": [asked("1", "how much leave"), asked("2", "who pays", is_impossible=True)]}
    second = {"context": TEXTS["d2"], "qas": [asked("3", "by train", is_impossible=False)]}
    article = {"title": "Hand_book", "paragraphs": [first, second, {"context": TEXTS["d3"], "qas": []}]}
    path = Path("dev-v2.0.json")
    path.write_text(json.dumps({"version": "v2.0", "data": [article]}))
    assert counts(path) == {1: 2, 0: 1}
    found = load(reference_of(path))
    assert (found.format, found.count) == ("squad", 3)
    assert found.labels["3"].grades == {"Hand_book#1": 1}
    assert found.queries[0].reference.answers == ("25",)
    second["qas"] = [{"question": "without an id"}]
    path.write_text(json.dumps({"data": [article]}))
    with pytest.raises(InputError, match="a question has no id or no text"):
        load(reference_of(path))


def test_ms_marco_without_headers():
    Path("d").mkdir()
    Path("d/collection.tsv").write_text("".join(f"{id_}\t{text}\n" for id_, text in TEXTS.items()))
    Path("d/queries.dev.tsv").write_text("".join(f"{id_}\t{text}\n" for id_, text in ASKED.items()))
    Path("d/qrels.dev.tsv").write_text("".join(f"{q}\t0\t{d}\t{grade}\n" for (q, d), grade in GRADES.items()))
    assert counts(Path("d")) == Counter(GRADES.values())
    assert load(reference_of("d")).format == "msmarco"
    shutil.copy("d/queries.dev.tsv", "d/queries.eval.tsv")
    shutil.copy("d/qrels.dev.tsv", "d/qrels.eval.tsv")
    with pytest.raises(InputError, match=r"has the splits dev, eval \(name one"):
        load(reference_of("d"))
    assert len(load(DatasetReference(Path("d"), split="eval")).queries) == 2
    Path("d/collection.tsv").write_text("d1\tx\td2\n")
    with pytest.raises(InputError, match=r"collection\.tsv:1: 3 columns \(expected 2"):
        load(DatasetReference(Path("d"), split="eval"))


def test_a_table_beside_a_folder_of_texts_is_named():
    write(Path("d/log.csv"), [{"query": ASKED[query], "file": f"{doc}.md"} for query, doc in GRADES])
    for id_, text in TEXTS.items():
        (Path("d") / f"{id_}.md").write_text(text)
    assert counts(DatasetReference(Path("d"), queries=("log.csv",))) == {1: 3}


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_click_log(suffix):
    write(Path("d/documents.csv"), [{"id": id_, "text": text} for id_, text in TEXTS.items()])
    rows = [{"query": "how much leave", "clicked_doc_id": doc, "user": n} for n, doc in enumerate(["d1", "d1", "d3"])]
    log = write(Path(f"d/log.{suffix}"), rows)
    given = DatasetReference(Path("d"), queries=(log.name,), columns={"fields": "user"})
    assert counts(given) == {1: 2}
    beside = DatasetReference(log, documents="documents.csv", columns={"fields": "user"})
    assert counts(beside) == {1: 2}


def test_llama_index_and_autorag_as_a_file_and_as_a_folder():
    whole = {"queries": ASKED, "corpus": TEXTS, "relevant_docs": {"qa": ["d1"], "qb": ["d2", "d3"]}}
    Path("l").mkdir()
    Path("l/any.json").write_text(json.dumps(whole))
    assert counts(Path("l")) == counts(Path("l/any.json")) == {1: 3}
    write(Path("a/corpus.parquet"), [{"doc_id": id_, "contents": text} for id_, text in TEXTS.items()])
    rows = [{"qid": "qa", "query": "how much leave", "retrieval_gt": [["d1"], ["d2", "d3"]]}]
    write(Path("a/qa.parquet"), rows)
    assert counts(Path("a")) == counts(Path("a/qa.parquet")) == {1: 3}
