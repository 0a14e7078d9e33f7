"""Files of answers, their measures, and the fates of claims."""

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
    "response": (
        "The fee is monthly [1]. The pool opens at nine [2]. It costs a fortune."
    ),
    "contexts": CONTEXTS,
}
"""Three claims: right and retrieved; wrong from an irrelevant context; from nowhere.

Of the reference's three claims the contexts have the first and the third, the response
has the first.
"""


def read(tmp_path, **systems):
    """The systems of a folder: rows as JSON, or lines as they are."""
    for name, rows in systems.items():
        lines = [
            row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    return read_systems(tmp_path, {"q1", "q2"})


def test_answers_are_read_by_system(tmp_path) -> None:
    (tmp_path / "verdicts.jsonl").write_text("", encoding="utf-8")
    texts = [{"query_id": "q2", "response": "", "contexts": ["bare text"]}]
    a, b = read(tmp_path, a=[GOOD], b=texts)
    assert (a.name, b.name) == ("a", "b")
    contexts = tuple(Context(context["id"], context["text"]) for context in CONTEXTS)
    assert a.answer("q1").contexts == contexts
    assert a.answer("q2") == Answer()
    assert b.answer("q2").contexts == (Context("1", "bare text"),)


def test_marks_of_citations_are_no_words(tmp_path) -> None:
    (system,) = read(tmp_path, a=[GOOD])
    assert "[" not in system.answer("q1").response


def test_marks_are_words_if_citations_are_listed(tmp_path) -> None:
    citations = [{"sentence": "Monthly.", "contexts": ["c2"]}]
    (system,) = read(tmp_path, a=[{**GOOD, "citations": citations}])
    assert system.answer("q1").response == GOOD["response"]


def test_a_mark_that_names_no_context_is_a_word(tmp_path) -> None:
    response = f"See [{'9' * 5000}]."
    (system,) = read(tmp_path, a=[{"query_id": "q1", "response": response}])
    assert system.answer("q1").response == response


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
    ids=[
        "no JSON",
        "nested too deep",
        "a repeated key",
        "an unknown key",
        "an unknown query",
        "no response",
        "no list of contexts",
        "contexts with the same id",
        "a repeated answer",
        "an invalid name",
    ],
)
def test_a_wrong_answer_is_refused_with_its_line(
    tmp_path, system, rows, message
) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, **{system: rows})


def test_a_folder_without_answers_is_refused(tmp_path) -> None:
    assert "no answers" in str(refusal(read_systems, tmp_path, {"q1"}))
    assert "not a folder" in str(refusal(read_systems, tmp_path / "absent", {"q1"}))


BY_HAND = {
    "ragchecker.precision": 1 / 3,
    "ragchecker.recall": 1 / 3,
    "ragchecker.f1": 1 / 3,
    "ragchecker.claim_recall": 2 / 3,
    "ragchecker.context_precision": 1 / 2,
    "ragchecker.context_utilization": 1 / 2,
    "ragchecker.noise_sensitivity_in_relevant": 0,
    "ragchecker.noise_sensitivity_in_irrelevant": 1 / 3,
    "ragchecker.hallucination": 1 / 3,
    "ragchecker.self_knowledge": 0,
    "ragchecker.faithfulness": 2 / 3,
    "ragas.faithfulness": 2 / 3,
    "ragas.context_recall": 2 / 3,
    "ragas.context_precision": 1 / (1 + 1e-10),
    "ragas.context_utilization": 2 / (2 + 1e-10),
    "ExactMatch": 0,
}


@pytest.fixture
def scores(tmp_path):
    """The scores of a system that answers only the first of two queries."""
    systems = read(tmp_path, a=[GOOD])
    readings = ask_judge(tmp_path, LexicalJudge(), [FEE, BARE], systems)
    return score_answers([FEE, BARE], systems, readings, "13a", vectors={})


@pytest.mark.parametrize(("measure", "expected"), BY_HAND.items())
def test_every_measure_of_an_answer_by_hand(scores, measure, expected) -> None:
    assert scores.ids == ("q1", "q2")
    assert scores.values[measure]["a"][0] == pytest.approx(expected)


@pytest.mark.parametrize(
    "measure", ["ragas.answer_relevancy", "ragas.context_relevance"]
)
def test_a_judge_without_ratings_leaves_measures_out(scores, measure) -> None:
    assert measure not in scores.values


@pytest.mark.parametrize(
    "measure",
    ["BLEU", "ROUGE-L", "TokenF1", "ragchecker.recall", "ragchecker.claim_recall"],
)
def test_a_missing_answer_scores_zero(scores, measure) -> None:
    assert scores.values[measure]["a"][1] == 0


@pytest.mark.parametrize(
    "measure",
    ["ragchecker.precision", "ragchecker.hallucination", "ragas.faithfulness"],
)
def test_a_share_of_the_claims_of_a_missing_answer_is_undefined(
    scores, measure
) -> None:
    """It is neither 0 nor 1."""
    assert np.isnan(scores.values[measure]["a"][1])


def test_undefined_scores_are_counted_and_have_their_rows(scores) -> None:
    measure = "ragchecker.hallucination"
    assert scores.undefined_counts()[measure] == {"a": 1}
    rows = [row.value for row in scores.rows() if row.measure == measure]
    assert rows == [pytest.approx(1 / 3), None]


class Silent(LexicalJudge):
    """Its replies on the second context are unreadable."""

    def verdicts(self, pairs):
        for index, word in super().verdicts(pairs):
            is_second = pairs[index].text == CONTEXTS[1]["text"]
            yield index, None if is_second else word

    def questions(self, texts):
        generated = GeneratedQuestions(("Is it monthly?",) * 3, (False,) * 3)
        return iter([(index, generated) for index in range(len(texts))])


@pytest.fixture
def silent_readings(tmp_path):
    systems = read(tmp_path, a=[GOOD])
    return systems, ask_judge(tmp_path, Silent(), [FEE], systems)


def test_the_texts_of_answer_relevancy_are_queries_and_generated_questions(
    silent_readings,
) -> None:
    systems, readings = silent_readings
    texts = relevancy_texts([FEE], systems, readings)
    assert texts == [FEE.text, *["Is it monthly?"] * 3]


def test_an_unreadable_verdict_makes_only_measures_that_need_it_undefined(
    silent_readings,
) -> None:
    systems, readings = silent_readings
    vectors = {FEE.text: np.float32([1, 0]), "Is it monthly?": np.float32([1, 1])}
    scores = score_answers([FEE], systems, readings, "13a", vectors=vectors).values
    # Precision needs only the reference and the response.
    assert scores["ragchecker.precision"]["a"][0] == pytest.approx(1 / 3)
    assert "ragchecker.hallucination" not in scores
    assert "ragchecker.claim_recall" not in scores
    relevancy = scores["ragas.answer_relevancy"]["a"][0]
    assert relevancy == pytest.approx(0.5**0.5, abs=1e-6)


def test_an_unreadable_verdict_makes_the_fate_of_a_claim_unknown(
    silent_readings,
) -> None:
    (system,), readings = silent_readings
    traced = trace_claims(Case(FEE, system.answer("q1"), readings))
    fates = [claim.fate for claim in traced.claims]
    assert fates == ["answered", "unknown", "not used"]


@pytest.fixture
def traced(tmp_path):
    """System -> its answers to both queries, claim by claim."""
    no_idea = {"query_id": "q1", "response": "No idea.", "contexts": []}
    systems = read(tmp_path, a=[GOOD], b=[no_idea])
    readings = ask_judge(tmp_path, LexicalJudge(), [FEE, BARE], systems)
    traced_answers = {}
    for system in systems:
        traced_answers[system.name] = [
            trace_claims(Case(query, system.answer(query.id), readings))
            for query in (FEE, BARE)
        ]
    return traced_answers


def test_a_claim_is_lost_by_the_retriever_or_by_the_generator(traced) -> None:
    answer, _ = traced["a"]
    fates = [(claim.fate, claim.supporting_contexts) for claim in answer.claims]
    assert fates == [
        ("answered", ("c1",)),
        ("not retrieved", ()),
        ("not used", ("c1",)),
    ]
    support = dict(answer.response_claims)
    assert support["The pool opens at nine."] == "contexts"


def test_without_contexts_every_claim_is_lost_by_the_retriever(traced) -> None:
    answer, missing_answer = traced["b"]
    fates = {claim.fate for claim in (*answer.claims, *missing_answer.claims)}
    assert fates == {"not retrieved"}


def test_the_shares_of_fates_are_weighted_by_queries(traced) -> None:
    weighted = Scores(ids=(FEE.id, BARE.id), values={}, weights=(3, 1))
    shares = {share.fate: share for share in fate_shares(traced["a"], weighted)}
    assert tuple(shares) == CLAIM_FATES
    assert sum(share.mean for share in shares.values()) == pytest.approx(1)
    assert shares["not retrieved"].mean == pytest.approx((3 * 1 / 3 + 1) / 4)


def test_the_intervals_of_shares_stay_within_0_and_1(traced) -> None:
    """Two queries of which one decides: without bounds they would not."""
    weighted = Scores(ids=(FEE.id, BARE.id), values={}, weights=(3, 1))
    intervals = {
        share.fate: share.interval for share in fate_shares(traced["a"], weighted)
    }
    # No claim is contradicted or unknown: these shares are 0 on both.
    estimated = {
        fate for fate, interval in intervals.items() if interval.low is not None
    }
    assert estimated == {"answered", "not retrieved", "not used"}
    assert [
        fate
        for fate in estimated
        if not 0 <= intervals[fate].low < intervals[fate].high <= 1
    ] == []


def test_there_are_no_shares_without_answers() -> None:
    weighted = Scores(ids=(FEE.id, BARE.id), values={}, weights=(3, 1))
    assert fate_shares([], weighted) == []


def test_a_claim_may_be_contradicted() -> None:
    answer = Answer("The fee is yearly.", (Context("c1", "The fee is yearly."),))
    readings = JudgeReadings()
    readings.claims[answer.response] = (answer.response,)
    digest = short_digest(answer.response)
    readings.verdicts = {(CLAIMS[0].text, digest): "contradicted"}
    traced = trace_claims(Case(FEE, answer, readings))
    assert traced.claims[0].fate == "contradicted"
