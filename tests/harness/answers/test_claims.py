"""Reference answers and claims: in data sets, measured, and in the files that keep what judges said."""

from __future__ import annotations

import json
import math

import pytest

from harness import records
from harness.answers.judge import Inquiry
from harness.answers.local_judges import LexicalJudge
from harness.dataset import DatasetReference, load_dataset, reference_from_json
from harness.measures import QueryClaims, measure_rankings, measure_run, parse_measure
from harness.records import judge_files
from harness.records.judge_readings import ClaimPassage, JudgeIdentity, JudgeReadings
from retrievers.errors import InputError
from retrievers.types import Claim, Reference
from tests.support import layouts
from tests.support.small import refusal

FEE = QueryClaims(
    ("monthly", "in advance", "half for students"),
    {
        "a": (True, False, False),
        "b": (False, False, False),
        "c": (True, True, False),
        "d": (False, None, False),
    },
)


@pytest.mark.parametrize(
    ("name", "ranking", "value"),
    [
        ("ClaimRecall@1", "bac", 0),
        ("ClaimRecall@2", "bac", 1 / 3),
        ("ClaimRecall@3", "bac", 2 / 3),
        ("ClaimRecall", "bac", 2 / 3),
        ("ClaimRecall@3", "", 0),
        ("ClaimPrecision@3", "bac", 2 / 3),
        ("ClaimPrecision@3", "", math.nan),
        ("ContextPrecision(by='claims')@3", "bac", (1 / 2 + 2 / 3) / 2),
        ("ContextPrecision(by='claims')@1", "b", 0),
        # A missing verdict is not a no: of d, "in advance" has none, and x was never judged.
        ("ClaimRecall@1", "d", math.nan),
        ("ClaimRecall@2", "dc", 2 / 3),
        ("ClaimRecall@2", "ax", math.nan),
        ("ClaimPrecision@1", "d", math.nan),
        ("ContextPrecision(by='claims')@2", "da", math.nan),
        ("ContextPrecision(by='claims')@2", "ad", 1),  # either verdict makes it 1
    ],
)
def test_measures_by_claims(name: str, ranking: str, value: float) -> None:
    score = measure_rankings(
        [parse_measure(name)], {"q": {}}, {"q": [*ranking]}, claims={"q": FEE}
    ).values[0, 0]
    assert score == pytest.approx(value, abs=1e-15, nan_ok=True)


def test_labels_alone_are_refused() -> None:
    assert "claims of reference" in str(
        refusal(
            measure_rankings,
            [parse_measure("ClaimRecall@5")],
            {"q": {"a": 1}},
            {"q": ["a"]},
        )
    )
    by_claims = [parse_measure("ContextPrecision(by='claims')@5")]
    assert "claims of reference" in str(
        refusal(measure_run, by_claims, {"q": {"a": 1}}, {"q": {"a": 1.0}})
    )
    assert "no other parameter" in str(
        refusal(parse_measure, "ContextPrecision(by='claims', rel=2)@5")
    )
    assert str(parse_measure("ContextPrecision(by='ids')@5")) == "ContextPrecision@5"


def test_the_lexical_judge_counts_distinct_tokens() -> None:
    passage = "Guests rate the cleanliness of the room, the breakfast and the staff."
    pairs = {
        ClaimPassage(
            "guests rate the pool and the room", passage
        ): "entailed",  # 5 of 6
        ClaimPassage(
            "guests rate the lobby and the pool", passage
        ): "neutral",  # 4 of 6
        ClaimPassage("…", passage): None,
        ClaimPassage(
            "宿泊客が部屋の清潔さを評価する", "部屋の清潔さを宿泊客が評価する。"
        ): "entailed",
    }
    judge = LexicalJudge()
    assert list(dict(judge.verdicts([*pairs])).values()) == [*pairs.values()]
    assert dict(LexicalJudge(threshold=0.6).verdicts([*pairs]))[1] == "entailed"
    helps = judge.helps(
        [Inquiry("rate the staff", passage), Inquiry("price of parking", passage)]
    )
    assert dict(helps) == {0: True, 1: False}
    assert list(judge.relevance([])) == list(judge.questions([])) == []
    assert "threshold" in str(refusal(LexicalJudge, threshold=0))


def test_verdicts_are_kept_by_judge_read_back_and_mended(tmp_path) -> None:
    judge, other = JudgeIdentity("lexical 0.8"), JudgeIdentity("nli x", "abc")
    entailed, unread = (
        ClaimPassage("a claim", "a passage\u2028with a separator"),
        ClaimPassage("未読", "文"),
    )
    judge_files.append_verdicts(tmp_path, judge, {entailed: "entailed", unread: None})
    judge_files.append_verdicts(tmp_path, other, {entailed: "contradicted"})
    judge_files.append_claims(
        tmp_path, judge, {"A text.": ["one", "two"], "unreadable": None}
    )
    judge_files.append_opinions(tmp_path, judge, "helps", {("c", "t"): True})
    readings = judge_files.read_readings(tmp_path, judge)
    assert (
        readings.verdict_word(*entailed),
        readings.is_entailed(*entailed),
        readings.verdict_word(*unread),
    ) == (
        "entailed",
        True,
        None,
    )
    assert readings.claims == {"A text.": ("one", "two"), "unreadable": None}
    assert (
        readings.opinion("helps", "c", "t") is True
        and readings.opinion("helps", "t", "c") is None
    )
    assert (
        judge_files.read_readings(tmp_path, other).verdict_word(*entailed)
        == "contradicted"
    )
    assert judge_files.read_readings(tmp_path / "absent", judge) == JudgeReadings()
    file = tmp_path / judge_files.VERDICTS_FILE
    with file.open("a", encoding="utf-8") as verdicts:
        verdicts.write('{"claim": "half a li')
    judge_files.append_verdicts(tmp_path, judge, {ClaimPassage("d", "t"): "entailed"})
    assert len(file.read_text(encoding="utf-8").split("\n")) == 5
    assert (
        judge_files.read_readings(tmp_path, judge).verdict_word("d", "t") == "entailed"
    )


BY = {"judge": "j", "prompt": ""}
ROW = {**BY, "claim": "c", "passage": "p", "verdict": None}
FAULTS = [
    *(
        (judge_files.VERDICTS_FILE, line, "verdicts.jsonl:2: is")
        for line in (
            b"nonsense",
            b"[]",
            b"\xff{}",
            b"[" * 100_000,
            b"9" * 5_000,
            b'{"round": 1e999}',
        )
    ),
    (
        judge_files.VERDICTS_FILE,
        json.dumps({**ROW, "verdict": "maybe"}).encode(),
        "verdicts.jsonl:2: ",
    ),
    # A text in the place of claims would be read as its letters, a claim each.
    *(
        (
            judge_files.CLAIMS_FILE,
            json.dumps({**BY, "text": "t", "claims": claims}).encode(),
            "not a list of texts",
        )
        for claims in ("One claim.", [1], {"a": 1}, ["one", None])
    ),
]


@pytest.mark.parametrize(("name", "line", "message"), FAULTS)
def test_a_reading_that_is_none_is_named_with_its_line(
    tmp_path, name, line, message
) -> None:
    good = {
        judge_files.VERDICTS_FILE: ROW,
        judge_files.CLAIMS_FILE: {**BY, "text": "a", "claims": ["a"]},
    }[name]
    good_line = json.dumps(good).encode()
    (tmp_path / name).write_bytes(
        b"%s\n%s\n"
        % (good_line, line.replace(b'{"round', good_line[:-1] + b', "round'))
    )
    error = refusal(judge_files.read_readings, tmp_path, JudgeIdentity("j", ""))
    assert message in str(error) and f"{name}:2: " in str(error)


WHOLE = {
    "reference": "A monthly fee, paid in advance.",
    "claims": ["monthly", {"text": "in advance", "vital": False}],
}
READ = Reference(
    (WHOLE["reference"],), (Claim("monthly"), Claim("in advance", vital=False))
)


def asked(folder, *rows):
    """A data set with labels of its first query."""
    (folder / "d1.md").write_text("# Fees\nThe fee is monthly.", encoding="utf-8")
    first = {"id": "q", "query": "fees", "relevant_documents": ["d1"]}
    rows = [
        {
            **(first if index == 0 else {"id": f"q{index}", "query": f"fee {index}"}),
            **row,
        }
        for index, row in enumerate(rows)
    ]
    (folder / "queries.json").write_text(json.dumps(rows), encoding="utf-8")
    return load_dataset(DatasetReference(folder))


def test_queries_carry_references_and_claims_into_labels_jsonl(tmp_path) -> None:
    assert asked(tmp_path, {"reference": ["one", "two"]}).queries[
        0
    ].reference.answers == ("one", "two")
    bare, dataset = asked(tmp_path, {}), asked(tmp_path, WHOLE)
    assert bare.queries[0].reference == Reference() and bare.digest != dataset.digest
    records.write_labels_and_documents(tmp_path, dataset, [])
    (row,) = map(
        json.loads, (tmp_path / "labels.jsonl").read_text(encoding="utf-8").splitlines()
    )
    assert dataset.queries[0].reference == reference_from_json(row) == READ


@pytest.mark.parametrize(
    "answer", [{"reference": WHOLE["reference"]}, {"claims": ["monthly"]}, WHOLE]
)
def test_a_reference_or_claims_alone_stand_beside_labelled_queries(
    tmp_path, answer
) -> None:
    dataset = asked(tmp_path, {}, answer, {})
    assert [query.id for query in dataset.queries] == ["q", "q1"] and set(
        dataset.labels
    ) == {"q"}
    assert dataset.data_quality["unjudged-query"] == ("q2",)


@pytest.mark.parametrize(
    "row",
    [
        {"reference": 7},
        {"reference": ["", "x"]},
        {"claims": {"a": 1}},
        {"claims": ["x", 3]},
        {"claims": [{"text": "x", "vital": "yes"}]},
        {"claims": [{"text": "x", "important": True}]},
    ],
)
def test_what_is_no_reference_is_named(tmp_path, row) -> None:
    with pytest.raises(InputError, match=rf"queries.json\[0\].*{next(iter(row))}"):
        asked(tmp_path, row)


def test_rows_of_beir_and_of_tables_carry_them_too(tmp_path) -> None:
    beir, table = layouts.beir(tmp_path / "beir"), tmp_path / "table"
    layouts.jsonl(
        beir / "queries.jsonl", [{**row, **WHOLE} for row in layouts.queries()]
    )
    query = load_dataset(DatasetReference(beir)).queries[0]
    assert query.reference == READ and "reference" not in query.fields
    layouts.table(
        table / "documents.csv", [{"id": "d1", "text": "The fee is monthly."}]
    )
    row = {
        "query_id": "q",
        "query": "fees",
        "relevant_documents": "d1",
        "reference": "A fee.",
        "claims": "a\nb",
    }
    layouts.table(
        table / "queries.csv",
        [
            row,
            {
                **row,
                "query_id": "r",
                "query": "more",
                "reference": "",
                "claims": json.dumps(["monthly"]),
            },
        ],
    )
    first, second = load_dataset(DatasetReference(table)).queries
    assert first.reference == Reference(("A fee.",), (Claim("a"), Claim("b")))
    assert second.reference == Reference((), (Claim("monthly"),))
