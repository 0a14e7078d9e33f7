"""Reference answers and claims in data sets: every format that has a place for them, and the shipped ones."""

import csv
import json

import pytest

from harness import records
from harness.answers.judging import THRESHOLD, held
from harness.dataset import DatasetReference, load, reference_from_json
from retrievers.errors import InputError
from retrievers.types import Claim, Reference

FEE = {"reference": "A monthly fee, paid in advance.", "claims": ["monthly", {"text": "in advance", "vital": False}]}
READ = Reference((FEE["reference"],), (Claim("monthly"), Claim("in advance", vital=False)))


def folder(tmp_path, row):
    (tmp_path / "d1.md").write_text("# Fees\nThe fee is monthly.", encoding="utf-8")
    asked = {"id": "q", "query": "fees", "relevant_documents": ["d1"], **row}
    (tmp_path / "queries.json").write_text(json.dumps([asked]), encoding="utf-8")
    return DatasetReference(tmp_path)


def test_queries_json_carries_references_and_claims(tmp_path) -> None:
    dataset = load(folder(tmp_path, FEE))
    assert dataset.queries[0].reference == READ
    bare = load(folder(tmp_path, {}))
    assert bare.queries[0].reference == Reference() and bare.digest != dataset.digest
    several = load(folder(tmp_path, {"reference": ["one", "two"]}))
    assert several.queries[0].reference.answers == ("one", "two")


@pytest.mark.parametrize("answer", [{"reference": FEE["reference"]}, {"claims": ["monthly"]}, FEE])
def test_a_reference_or_claims_alone_stand_beside_labelled_queries(tmp_path, answer) -> None:
    reference = folder(tmp_path, {})
    (labelled,) = json.loads((tmp_path / "queries.json").read_text(encoding="utf-8"))
    rows = [labelled, {"id": "q2", "query": "how is it paid", **answer}]
    (tmp_path / "queries.json").write_text(json.dumps(rows), encoding="utf-8")
    dataset = load(reference)
    assert [query.id for query in dataset.queries] == ["q", "q2"] and set(dataset.labels) == {"q"}
    rows.append({"id": "q3", "query": "neither label nor answer"})
    (tmp_path / "queries.json").write_text(json.dumps(rows), encoding="utf-8")
    with pytest.raises(InputError, match="'relevant_documents' is missing"):
        load(reference)


@pytest.mark.parametrize(
    ("row", "key"),
    [
        ({"reference": 7}, "reference"),
        ({"reference": ["", "x"]}, "reference"),
        ({"claims": {"a": 1}}, "claims"),
        ({"claims": ["x", 3]}, "claims"),
        ({"claims": [{"text": "x", "vital": "yes"}]}, "claims"),
        ({"claims": [{"text": "x", "important": True}]}, "claims"),
    ],
)
def test_what_is_no_reference_is_named(tmp_path, row, key) -> None:
    with pytest.raises(InputError, match=key) as error:
        load(folder(tmp_path, row))
    assert "queries.json[0]" in str(error.value)


def test_rows_of_beir_and_of_tables_carry_them_too(tmp_path) -> None:
    beir = tmp_path / "beir"
    (beir / "qrels").mkdir(parents=True)
    (beir / "corpus.jsonl").write_text('{"_id": "d1", "text": "The fee is monthly."}\n')
    (beir / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "fees", **FEE}) + "\n")
    (beir / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td1\t1\n")
    (query,) = load(DatasetReference(beir)).queries
    assert query.reference == READ and "reference" not in query.fields
    table = tmp_path / "table"
    table.mkdir()
    (table / "documents.csv").write_text("id,text\nd1,The fee is monthly.\n")
    with (table / "queries.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["query_id", "query", "relevant_documents", "reference", "claims"])
        rows.writerow(["q", "fees", "d1", "A fee.", "monthly\nin advance"])
        rows.writerow(["r", "fees again", "d1", "", json.dumps(["monthly"])])
    first, second = load(DatasetReference(table)).queries
    assert first.reference == Reference(("A fee.",), (Claim("monthly"), Claim("in advance")))
    assert second.reference == Reference((), (Claim("monthly"),))


def test_a_test_set_of_ragas_brings_its_reference(tmp_path) -> None:
    row = {"user_input": "fees", "reference_contexts": ["The fee is monthly."], "reference": "A fee."}
    (tmp_path / "testset.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "documents.jsonl").write_text('{"id": "d1", "text": "The fee is monthly."}\n')
    (query,) = load(DatasetReference(tmp_path / "testset.jsonl", documents="documents.jsonl")).queries
    assert query.reference == Reference(("A fee.",))


def test_labels_jsonl_keeps_them(tmp_path) -> None:
    dataset = load(folder(tmp_path, FEE))
    records.write_evidence(tmp_path, dataset, [])
    (row,) = map(json.loads, (tmp_path / "labels.jsonl").read_text(encoding="utf-8").splitlines())
    assert reference_from_json(row) == READ


@pytest.mark.parametrize(("language", "seen"), [("en", 134), ("ja", 112)])
def test_the_shipped_claims_are_as_the_readme_counts_them(project, language, seen) -> None:
    queries = ("queries.json", "queries-extended.json")
    dataset = load(DatasetReference(project / "datasets" / f"survey-templates-{language}", queries=queries))
    with_claims = [query for query in dataset.queries if query.reference.claims]
    assert len(with_claims) == 44 and all(query.reference.answers for query in with_claims)
    assert sum(len(query.reference.claims) for query in with_claims) == 148
    assert sum(not claim.vital for query in with_claims for claim in query.reference.claims) == 13
    texts = {document.id: document.content for document in dataset.documents()}
    stand = [
        any((held(claim.text, texts[doc]) or 0) >= THRESHOLD for doc in dataset.labels[query.id].documents)
        for query in with_claims
        for claim in query.reference.claims
    ]
    assert sum(stand) == seen


def test_both_languages_have_the_same_claims_in_number_and_weight(project) -> None:
    def weights(language):
        where = DatasetReference(
            project / "datasets" / f"survey-templates-{language}", queries=("queries.json", "queries-extended.json")
        )
        return {query.id: [claim.vital for claim in query.reference.claims] for query in load(where).queries}

    assert weights("en") == weights("ja")
