"""Files of answers, what is asked about them, and where claims were lost."""

import json

import numpy as np
import pytest

from harness.answers.ask_judge import ask_judge
from harness.answers.case import Case
from harness.answers.claim_fates import CLAIM_FATES, fate_shares, trace_claims
from harness.answers.judge import GeneratedQuestions
from harness.answers.local_judges import LexicalJudge
from harness.answers.score import relevancy_texts, score_answers
from harness.answers.systems import Answer, Context, read_systems
from harness.records.judge_readings import JudgeReadings, short_digest
from harness.scoring.scores import Scores
from retrievers.errors import InputError
from retrievers.types import Claim, Query, Reference
from tests.support.small import refusal

CLAIMS = (
    Claim("The fee is monthly."),
    Claim("It is paid in advance."),
    Claim("Students pay half.", vital=False),
)
FEE = Query(
    "q1",
    "How is the fee paid?",
    reference=Reference(("The fee is monthly. It is paid in advance.",), CLAIMS),
)
BARE = Query(
    "q2", "Who may join?", reference=Reference(("Anybody over sixteen may join.",))
)
CONTEXTS = [
    {"id": "c1", "text": "The fee is monthly. Students pay half of it."},
    {"id": "c2", "text": "The pool opens at nine."},
]
GOOD = {
    "query_id": "q1",
    "response": "The fee is monthly [1]. The pool opens at nine [2]. It costs a fortune.",
    "contexts": CONTEXTS,
}
"""Three claims: one right and retrieved, one wrong from an irrelevant context, one from nowhere. Of the reference's
three claims the contexts hold the first and the third, the response the first."""


def read(tmp_path, **systems):
    for name, rows in systems.items():
        text = "".join(
            row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows
        )
        (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return read_systems(tmp_path, {"q1", "q2"})


def test_answers_are_read_by_system_and_marks_are_no_words_but_where_citations_are_listed(
    tmp_path,
) -> None:
    (tmp_path / "verdicts.jsonl").write_text("", encoding="utf-8")
    listed = {**GOOD, "citations": [{"sentence": "Monthly.", "contexts": ["c2"]}]}
    mark = f"See [{'9' * 5000}]."  # names no context
    bare = [
        {"query_id": "q1", "response": mark},
        {"query_id": "q2", "response": "", "contexts": ["bare text"]},
    ]
    a, b, c = read(tmp_path, a=[GOOD], b=[listed], c=bare)
    assert (a.name, b.name, c.name) == ("a", "b", "c")
    assert a.answer("q1").contexts == tuple(
        Context(context["id"], context["text"]) for context in CONTEXTS
    )
    assert a.answer("q2") == Answer() and c.answer("q2").contexts == (
        Context("1", "bare text"),
    )
    assert "[" not in a.answer("q1").response
    assert (b.answer("q1").response, c.answer("q1").response) == (
        GOOD["response"],
        mark,
    )


@pytest.mark.parametrize(
    ("system", "rows", "message"),
    [
        ("a", ["nonsense\n"], "a.jsonl:1: .*JSON"),
        ("a", ["[" * 100_000], "a.jsonl:1: is not JSON: it is nested too deep"),
        (
            "a",
            ['{"query_id": "q1", "response": "a", "response": "b"}'],
            "the key 'response' occurs twice",
        ),
        (
            "a",
            [{**GOOD, "contexts": [{**CONTEXTS[0], "txt": "z"}]}],
            r"contexts\[0\].txt: unknown key .*mean 'text'",
        ),
        ("a", [{**GOOD, "query_id": "q9"}], "a.jsonl:1: .*not a query of the data set"),
        ("a", [{**GOOD, "response": None}], "response: None"),
        ("a", [{**GOOD, "contexts": "c1"}], "contexts: 'c1': should be a list"),
        ("a", [{**GOOD, "contexts": [CONTEXTS[0], CONTEXTS[0]]}], "same id"),
        ("a", [GOOD, GOOD], "a.jsonl:2: .*twice"),
        ("my system!", [GOOD], "not a valid system name"),
    ],
)
def test_what_is_no_folder_of_answers_is_refused_with_its_place(
    tmp_path, system, rows, message
) -> None:
    assert "no answers" in str(refusal(read_systems, tmp_path, {"q1"}))
    assert "not a folder" in str(refusal(read_systems, tmp_path / "absent", {"q1"}))
    with pytest.raises(InputError, match=message):
        read(tmp_path, **{system: rows})


def test_every_measure_of_an_answer_by_hand_and_of_none(tmp_path) -> None:
    systems = read(tmp_path, a=[GOOD])
    scores = score_answers(
        [FEE, BARE],
        systems,
        ask_judge(tmp_path, LexicalJudge(), [FEE, BARE], systems),
        "13a",
        {},
    )
    assert scores.ids == ("q1", "q2")
    first_values = {
        name: by_system["a"].tolist() for name, by_system in scores.values.items()
    }
    ragchecker = {
        "precision": 1 / 3,
        "recall": 1 / 3,
        "f1": 1 / 3,
        "claim_recall": 2 / 3,
        "context_precision": 1 / 2,
        "context_utilization": 1 / 2,
        "noise_sensitivity_in_relevant": 0,
        "noise_sensitivity_in_irrelevant": 1 / 3,
        "hallucination": 1 / 3,
        "self_knowledge": 0,
        "faithfulness": 2 / 3,
    }
    ragas = {
        "faithfulness": 2 / 3,
        "context_recall": 2 / 3,
        "context_precision": 1 / (1 + 1e-10),
        "context_utilization": 2 / (2 + 1e-10),
    }
    expected_values = {
        f"ragchecker.{name}": value for name, value in ragchecker.items()
    }
    expected_values |= {f"ragas.{name}": value for name, value in ragas.items()} | {
        "ExactMatch": 0
    }
    assert {name: first_values[name][0] for name in expected_values} == pytest.approx(
        expected_values
    )
    assert (
        "ragas.answer_relevancy" not in first_values
        and "ragas.context_relevance" not in first_values
    )  # words give no ratings
    for name in (
        "BLEU",
        "ROUGE-L",
        "TokenF1",
        "ragchecker.recall",
        "ragchecker.claim_recall",
    ):
        assert first_values[name][1] == 0, name
    for name in (
        "ragchecker.precision",
        "ragchecker.hallucination",
        "ragas.faithfulness",
    ):
        assert np.isnan(first_values[name][1]), name  # undefined, not 0 and not 1
    assert scores.undefined_counts()["ragchecker.hallucination"] == {"a": 1}
    rows = [
        row.value for row in scores.rows() if row.measure == "ragchecker.hallucination"
    ]
    assert rows == [pytest.approx(1 / 3), None]


class Silent(LexicalJudge):
    """Cannot be read on the second context."""

    def verdicts(self, pairs):
        for index, word in super().verdicts(pairs):
            yield index, None if pairs[index].text == CONTEXTS[1]["text"] else word

    def questions(self, texts):
        return iter(
            [
                (index, GeneratedQuestions(("Is it monthly?",) * 3, (False,) * 3))
                for index in range(len(texts))
            ]
        )


def test_an_unreadable_verdict_leaves_open_what_rests_on_it_and_nothing_else(
    tmp_path,
) -> None:
    systems = read(tmp_path, a=[GOOD])
    readings = ask_judge(tmp_path, Silent(), [FEE], systems)
    assert relevancy_texts([FEE], systems, readings) == [
        FEE.text,
        *["Is it monthly?"] * 3,
    ]
    vectors = {FEE.text: np.float32([1, 0]), "Is it monthly?": np.float32([1, 1])}
    values = {
        name: by_system["a"][0]
        for name, by_system in score_answers(
            [FEE], systems, readings, "13a", vectors
        ).values.items()
    }
    assert values["ragchecker.precision"] == pytest.approx(
        1 / 3
    )  # reference and response only
    assert (
        "ragchecker.hallucination" not in values
        and "ragchecker.claim_recall" not in values
    )
    assert values["ragas.answer_relevancy"] == pytest.approx(0.5**0.5, abs=1e-6)
    fates = [
        claim.fate
        for claim in trace_claims(Case(FEE, systems[0].answer("q1"), readings)).claims
    ]
    assert fates == ["answered", "unknown", "not used"]


def test_retriever_or_generator(tmp_path) -> None:
    systems = read(
        tmp_path,
        a=[GOOD],
        b=[{"query_id": "q1", "response": "No idea.", "contexts": []}],
    )
    readings = ask_judge(tmp_path, LexicalJudge(), [FEE, BARE], systems)
    traced = {
        system.name: [
            trace_claims(Case(query, system.answer(query.id), readings))
            for query in (FEE, BARE)
        ]
        for system in systems
    }
    (first, _), (nothing, unanswered) = traced["a"], traced["b"]
    assert [(claim.fate, claim.supporting_contexts) for claim in first.claims] == [
        ("answered", ("c1",)),
        ("not retrieved", ()),
        ("not used", ("c1",)),
    ]
    assert dict(first.response_claims)["The pool opens at nine."] == "contexts"
    assert {claim.fate for claim in (*nothing.claims, *unanswered.claims)} == {
        "not retrieved"
    }
    weighted = Scores(ids=(FEE.id, BARE.id), values={}, weights=(3, 1))
    shares = {share.fate: share for share in fate_shares(traced["a"], weighted)}
    assert tuple(shares) == CLAIM_FATES and sum(
        share.mean for share in shares.values()
    ) == pytest.approx(1)
    assert shares["not retrieved"].mean == pytest.approx((3 * 1 / 3 + 1) / 4)
    assert all(
        0 <= share.interval.low <= share.interval.high <= 1
        for share in shares.values()
        if share.interval.low
    )
    assert fate_shares([], weighted) == []
    readings = JudgeReadings()
    answer = Answer("The fee is yearly.", (Context("c1", "The fee is yearly."),))
    readings.claims[answer.response] = (answer.response,)
    readings.verdicts = {
        (CLAIMS[0].text, short_digest(answer.response)): "contradicted"
    }
    assert trace_claims(Case(FEE, answer, readings)).claims[0].fate == "contradicted"
