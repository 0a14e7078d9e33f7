"""What is written in a layout is read back as it was, whatever the texts and ids hold."""

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.dataset import Dataset, DatasetReference, load, trec
from harness.dataset.source import id_problem
from tests import layouts

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1, max_size=30)
IDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=8).filter(
    lambda id_: id_.strip() == id_ and not id_problem(id_)
)
GRADES = st.integers(-3, 9)


@st.composite
def collections(draw: st.DrawFn) -> tuple[dict[str, str], dict[str, str], dict[str, dict[str, int]]]:
    """Documents, queries, and grades of which at least one is positive."""
    documents = draw(st.dictionaries(IDS, TEXTS, min_size=1, max_size=5))
    asked = draw(st.dictionaries(IDS, TEXTS.filter(str.strip), min_size=1, max_size=4))
    judged = {id_: draw(st.dictionaries(st.sampled_from(sorted(documents)), GRADES, min_size=1)) for id_ in asked}
    first = next(iter(judged))
    judged[first][next(iter(documents))] = 1
    return documents, asked, judged


def rows(texts: dict[str, str]) -> layouts.Rows:
    return [{"id": id_, "text": text} for id_, text in texts.items()]


def judgments(grades: dict[str, dict[str, int]]) -> layouts.Rows:
    return [{"query-id": q, "corpus-id": d, "score": g} for q, judged in grades.items() for d, g in judged.items()]


def same(found: Dataset, documents: dict[str, str], asked: dict[str, str], grades: dict[str, dict[str, int]]) -> None:
    assert {document.id: document.text for document in found.documents()} == documents
    assert {query.id: query.text for query in found.judged} == asked
    assert {query: labels.grades for query, labels in found.labels.items()} == grades


@settings(max_examples=25, deadline=None)
@given(collections())
def test_tables(collection):
    documents, asked, grades = collection
    for suffix in ("csv", "tsv", "jsonl", "parquet"):
        write = {"csv": layouts.table, "tsv": lambda path, rows: layouts.table(path, rows, delimiter="\t"),
                 "jsonl": layouts.jsonl, "parquet": layouts.parquet}[suffix]  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder) / f"documents.{suffix}", rows(documents))
            write(Path(folder) / f"queries.{suffix}", rows(asked))
            write(Path(folder) / f"qrels.{suffix}", judgments(grades))
            same(load(DatasetReference(Path(folder), format="tables")), *collection)


@settings(max_examples=25, deadline=None)
@given(collections())
def test_one_json_file(collection):
    documents, asked, grades = collection
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "set.json"
        path.write_text(json.dumps({"queries": asked, "corpus": documents, "qrels": grades}))
        same(load(DatasetReference(path, format="embench")), *collection)


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(IDS, st.dictionaries(IDS, GRADES, min_size=1), min_size=1))
def test_qrels(judged):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "qrels.trec"
        trec.write_qrels(path, judged)
        assert trec.read_qrels(path) == judged
