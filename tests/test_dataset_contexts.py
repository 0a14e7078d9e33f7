"""Exports of evaluation tools: reference contexts find documents by id or by text; what does not is counted."""

from pathlib import Path

from harness.dataset import DatasetReference, load
from tests import layouts

CONTEXT = "Cars drive on  roads,"
"""The beginning of a document, with other white space and case."""


def documents(folder: Path) -> None:
    layouts.jsonl(folder / "docs.jsonl", layouts.corpus())


def test_ragas_by_text_by_id_and_without_a_match(tmp_path):
    documents(tmp_path)
    samples = [
        {"user_input": "wheels?", "reference_contexts": [CONTEXT], "synthesizer_name": "single_hop"},
        {"user_input": "swim?", "reference_contexts": [layouts.DOCUMENTS["fish"], "nowhere at all"]},
        {"user_input": "green?", "reference_context_ids": ["pear", "boat"], "reference_contexts": ["not looked at"]},
    ]
    layouts.jsonl(tmp_path / "testset.jsonl", samples)
    found = load(DatasetReference(tmp_path / "testset.jsonl", documents="docs.jsonl"))
    assert found.format == "ragas"
    assert {query: labels.grades for query, labels in found.labels.items()} == {
        "q0": {"car": 1}, "q1": {"fish": 1}, "q2": {"pear": 1, "boat": 1},
    }  # fmt: skip
    assert found.ledger["unmatched-context"] == ("q1: nowhere at all",)
    assert found.queries[0].fields == {"synthesizer_name": "single_hop"}


def test_langsmith_with_keys_of_its_own(tmp_path):
    documents(tmp_path)
    examples = [
        {"id": "e1", "inputs": {"ask": "wheels?", "k": 5}, "outputs": {"gold": {"ids": ["car"]}},
         "metadata": {"split": "base", "language": "en"}},
    ]  # fmt: skip
    layouts.jsonl(tmp_path / "examples.jsonl", examples)
    columns = {"query": "inputs.ask", "relevant": "outputs.gold.ids"}
    found = load(DatasetReference(tmp_path / "examples.jsonl", documents="docs.jsonl", columns=columns))
    assert found.format == "langsmith"
    assert found.labels["e1"].grades == {"car": 1}
    assert found.queries[0].text == "wheels?"
    assert found.queries[0].fields == {"split": "base", "language": "en"}


def test_a_document_that_is_the_context_comes_before_one_that_holds_it(tmp_path):
    rows = [
        {"_id": "long", "text": "so: cars drive on roads, and more"},
        {"_id": "same", "text": "Cars drive on roads,"},
    ]
    layouts.jsonl(tmp_path / "docs.jsonl", rows)
    layouts.jsonl(tmp_path / "t.jsonl", [{"user_input": "wheels?", "reference_contexts": [CONTEXT]}])
    found = load(DatasetReference(tmp_path / "t.jsonl", documents="docs.jsonl"))
    assert found.labels["q0"].grades == {"same": 1}
