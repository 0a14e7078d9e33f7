"""Reference answers and claims: in data sets, measured, and in the files that keep what judges said."""

from __future__ import annotations

import csv
import json
import math

import pytest

from harness import records
from harness.answers.judging import THRESHOLD, Inquiry, LexicalJudge, held
from harness.dataset import DatasetReference, load, reference_from_json
from harness.measures import Claimed, parse, score, score_run
from harness.records import readings
from harness.records.readings import By, ClaimPassage, Readings
from retrievers.errors import InputError
from retrievers.types import Claim, Reference
from tests.support.small import refusal

FEE = Claimed(
    ("monthly", "in advance", "half for students"),
    {"a": (True, False, False), "b": (False, False, False), "c": (True, True, False), "d": (False, None, False)},
)


@pytest.mark.parametrize(
    ("name", "ranking", "value"),
    [
        ("ClaimRecall@1", "bac", 0), ("ClaimRecall@2", "bac", 1 / 3), ("ClaimRecall@3", "bac", 2 / 3),
        ("ClaimRecall", "bac", 2 / 3), ("ClaimRecall@3", "", 0),
        ("ClaimPrecision@3", "bac", 2 / 3), ("ClaimPrecision@3", "", math.nan),
        ("ContextPrecision(by='claims')@3", "bac", (1 / 2 + 2 / 3) / 2), ("ContextPrecision(by='claims')@1", "b", 0),
        # A missing verdict is not a no: of d, "in advance" has none, and x was never judged.
        ("ClaimRecall@1", "d", math.nan), ("ClaimRecall@2", "dc", 2 / 3), ("ClaimRecall@2", "ax", math.nan),
        ("ClaimPrecision@1", "d", math.nan), ("ContextPrecision(by='claims')@2", "da", math.nan),
        ("ContextPrecision(by='claims')@2", "ad", 1),  # either verdict makes it 1
    ],
)  # fmt: skip
def test_measures_by_claims(name: str, ranking: str, value: float) -> None:
    found = score([parse(name)], {"q": {}}, {"q": [*ranking]}, claims={"q": FEE}).values[0, 0]
    assert found == pytest.approx(value, abs=1e-15, nan_ok=True)


def test_a_query_without_claims_is_undefined_and_the_mean_is_of_the_others() -> None:
    found = score([parse("ClaimRecall@1")], {"q": {"a": 1}, "r": {"a": 1}}, {"q": ["a"], "r": ["a"]}, claims={"q": FEE})
    assert found.values[0, 0] == 1 / 3 and math.isnan(found.values[0, 1])
    assert found.means() == {parse("ClaimRecall@1"): 1 / 3}


def test_labels_alone_are_refused() -> None:
    with pytest.raises(InputError, match="claims of reference answers"):
        score([parse("ClaimRecall@5")], {"q": {"a": 1}}, {"q": ["a"]})
    with pytest.raises(InputError, match="claims of reference answers"):
        score_run([parse("ContextPrecision(by='claims')@5")], {"q": {"a": 1}}, [("q", {"a": 1.0})])
    with pytest.raises(InputError, match="no other parameter"):
        parse("ContextPrecision(by='claims', rel=2)@5")
    assert str(parse("ContextPrecision(by='ids')@5")) == "ContextPrecision@5"


def test_the_lexical_judge_counts_distinct_tokens() -> None:
    passage = "Guests rate the cleanliness of the room, the breakfast and the staff."
    claims = {
        "guests rate the cleanliness of their room": "entailed",  # 6 of 7
        "guests rate the pool and the room": "entailed",  # 5 of 6
        "guests rate the lobby and the pool": "neutral",
        "…": None,
    }  # 4 of 6
    judge, pairs = LexicalJudge(), [ClaimPassage(claim, passage) for claim in claims]
    assert list(dict(judge.verdicts(pairs)).values()) == list(claims.values())
    assert dict(LexicalJudge(threshold=0.6).verdicts(pairs))[2] == "entailed"
    helps = judge.helps([Inquiry("rate the staff", passage), Inquiry("price of parking", passage)])
    assert dict(helps) == {0: True, 1: False}
    assert list(judge.relevance([])) == list(judge.questions([])) == []
    japanese = ClaimPassage("宿泊客が部屋の清潔さを評価する", "部屋の清潔さを宿泊客が評価する。")
    assert dict(judge.verdicts([japanese])) == {0: "entailed"}
    with pytest.raises(InputError, match="threshold"):
        LexicalJudge(threshold=0)


def test_verdicts_are_kept_by_judge_and_read_back(tmp_path) -> None:
    judge, other = By("lexical 0.8"), By("nli x", "abc")
    one, two = ClaimPassage("a claim", "a passage\u2028with a separator"), ClaimPassage("未読", "文")
    records.readings.append_verdicts(tmp_path, judge, {one: "entailed", two: None})
    records.readings.append_verdicts(tmp_path, other, {one: "contradicted"})
    records.readings.append_claims(tmp_path, judge, {"A text.": ["one", "two"], "unreadable": None})
    records.readings.append_opinions(tmp_path, judge, "helps", {("c", "t"): True})
    found = records.readings.read_readings(tmp_path, judge)
    assert (found.word(*one), found.truth(*one), found.word(*two)) == ("entailed", True, None)
    assert found.claims == {"A text.": ("one", "two"), "unreadable": None}
    assert found.opinion("helps", "c", "t") is True and found.opinion("helps", "t", "c") is None
    assert records.readings.read_readings(tmp_path, other).word(*one) == "contradicted"
    assert records.readings.read_readings(tmp_path / "absent", judge) == Readings()


def test_a_line_that_broke_off_is_mended_and_a_wrong_one_is_named(tmp_path) -> None:
    judge = By("lexical 0.8")
    records.readings.append_verdicts(tmp_path, judge, {ClaimPassage("c", "t"): "neutral"})
    file = tmp_path / readings.VERDICTS
    file.write_text(file.read_text() + '{"claim": "half a li', encoding="utf-8")
    records.readings.append_verdicts(tmp_path, judge, {ClaimPassage("d", "t"): "entailed"})
    assert len(file.read_text().splitlines()) == 2
    assert records.readings.read_readings(tmp_path, judge).word("d", "t") == "entailed"
    row = json.loads(file.read_text().splitlines()[0])
    file.write_text("nonsense\n[]\n" + json.dumps({**row, "verdict": "maybe"}) + "\n", encoding="utf-8")
    error = refusal(records.readings.read_readings, tmp_path, judge)
    assert [problem.where[-2:] for problem in error.problems] == [":1", ":2", ":3"]


@pytest.mark.parametrize("claims", ["One claim.", [1], {"a": 1}, ["one", None]])
def test_claims_that_are_no_list_of_texts_are_named(tmp_path, claims) -> None:
    """A text in their place would be read as its letters, a claim each."""
    row = {"text": "A text.", "claims": claims, "judge": "lexical 0.8", "prompt": ""}
    (tmp_path / readings.CLAIMS).write_text(json.dumps(row) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"claims\.jsonl:1: .*not a list of texts"):
        records.readings.read_readings(tmp_path, By("lexical 0.8"))


WHOLE = {"reference": "A monthly fee, paid in advance.", "claims": ["monthly", {"text": "in advance", "vital": False}]}
READ = Reference((WHOLE["reference"],), (Claim("monthly"), Claim("in advance", vital=False)))


def folder(tmp_path, row):
    (tmp_path / "d1.md").write_text("# Fees\nThe fee is monthly.", encoding="utf-8")
    asked = {"id": "q", "query": "fees", "relevant_documents": ["d1"], **row}
    (tmp_path / "queries.json").write_text(json.dumps([asked]), encoding="utf-8")
    return DatasetReference(tmp_path)


def test_queries_json_carries_references_and_claims(tmp_path) -> None:
    dataset = load(folder(tmp_path, WHOLE))
    assert dataset.queries[0].reference == READ
    bare = load(folder(tmp_path, {}))
    assert bare.queries[0].reference == Reference() and bare.digest != dataset.digest
    several = load(folder(tmp_path, {"reference": ["one", "two"]}))
    assert several.queries[0].reference.answers == ("one", "two")


@pytest.mark.parametrize("answer", [{"reference": WHOLE["reference"]}, {"claims": ["monthly"]}, WHOLE])
def test_a_reference_or_claims_alone_stand_beside_labelled_queries(tmp_path, answer) -> None:
    reference = folder(tmp_path, {})
    (labelled,) = json.loads((tmp_path / "queries.json").read_text(encoding="utf-8"))
    rows = [labelled, {"id": "q2", "query": "how is it paid", **answer}]
    (tmp_path / "queries.json").write_text(json.dumps(rows), encoding="utf-8")
    dataset = load(reference)
    assert [query.id for query in dataset.queries] == ["q", "q2"] and set(dataset.labels) == {"q"}
    rows.append({"id": "q3", "query": "neither label nor answer"})
    (tmp_path / "queries.json").write_text(json.dumps(rows), encoding="utf-8")
    assert load(reference).ledger["unjudged-query"] == ("q3",)


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
    (beir / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "fees", **WHOLE}) + "\n")
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


def test_labels_jsonl_keeps_them(tmp_path) -> None:
    dataset = load(folder(tmp_path, WHOLE))
    records.write_evidence(tmp_path, dataset, [])
    (row,) = map(json.loads, (tmp_path / "labels.jsonl").read_text(encoding="utf-8").splitlines())
    assert reference_from_json(row) == READ


@pytest.mark.parametrize(("language", "seen"), [("en", 134), ("ja", 111)])
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
