"""Files of answers, what is asked about them, and where claims were lost."""

import json

import pytest

from harness import records
from harness.answers.answer_measures import questions_of, score_answers
from harness.answers.cases import FATES, Case, judge_answers, pairs_of, shares, trace
from harness.answers.judging import LexicalJudge, Questions
from harness.answers.systems import Answer, Context, read_systems
from harness.answers.work import judged
from harness.evaluation.scores import Scores
from retrievers.errors import InputError
from retrievers.types import Claim, Query, Reference

FEE = Query(
    "q1", "How is the fee paid?", reference=Reference(
        ("The fee is monthly. It is paid in advance.",),
        (Claim("The fee is monthly."), Claim("It is paid in advance."), Claim("Students pay half.", vital=False)),
    ),
)  # fmt: skip
BARE = Query("q2", "Who may join?", reference=Reference(("Anybody over sixteen may join.",)))
CONTEXTS = [
    {"id": "c1", "text": "The fee is monthly. Students pay half of it."},
    {"id": "c2", "text": "The pool opens at nine."},
]
GOOD = {
    "query_id": "q1", "response": "The fee is monthly [1]. The pool opens at nine [2]. It costs a fortune.",
    "contexts": CONTEXTS,
}  # fmt: skip


def answers(tmp_path, **systems):
    for name, rows in systems.items():
        text = "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return tmp_path


def read(tmp_path, **systems):
    return read_systems(answers(tmp_path, **systems), {"q1", "q2"})


def test_answers_are_read_by_system_and_a_missing_one_is_empty(tmp_path) -> None:
    (tmp_path / "verdicts.jsonl").write_text("", encoding="utf-8")
    a, b = read(tmp_path, a=[GOOD], b=[{"query_id": "q2", "response": "", "contexts": ["bare text"]}])
    assert (a.name, b.name) == ("a", "b")
    assert a.answer("q1").contexts == (Context("c1", CONTEXTS[0]["text"]), Context("c2", CONTEXTS[1]["text"]))
    assert a.answer("q2") == Answer() and b.answer("q2").contexts == (Context("1", "bare text"),)
    assert "[1]" in GOOD["response"] and "[" not in a.answer("q1").response


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("nonsense\n", "JSON"),
        ("[]\n", "object"),
        ({**GOOD, "answer": "x"}, "unknown key 'answer'"),
        ({**GOOD, "query_id": "q9"}, "not a query of the data set"),
        ({**GOOD, "response": None}, "response: None"),
        ({**GOOD, "contexts": "c1"}, "contexts: 'c1': should be a list"),
        ({**GOOD, "contexts": [{"id": "c1"}]}, r"contexts\[0\].text: is missing"),
        ({**GOOD, "contexts": [CONTEXTS[0], CONTEXTS[0]]}, "same id"),
    ],
)
def test_a_wrong_line_is_named_with_its_place(tmp_path, row, what) -> None:
    with pytest.raises(InputError, match=what) as error:
        read(tmp_path, a=[{"query_id": "q2", "response": "x"}, row])
    assert "a.jsonl:2" in str(error.value)


def test_what_is_no_folder_of_answers_is_refused(tmp_path) -> None:
    with pytest.raises(InputError, match="not a folder"):
        read_systems(tmp_path / "absent", {"q1"})
    with pytest.raises(InputError, match="no answers"):
        read_systems(tmp_path, {"q1"})
    with pytest.raises(InputError, match="twice"):
        read(tmp_path, a=[GOOD, GOOD])
    with pytest.raises(InputError, match="not a valid system name"):
        read_systems(answers(tmp_path, **{"my system!": [GOOD]}), {"q1"})


def test_marks_are_no_words_of_an_answer_but_where_citations_are_listed(tmp_path) -> None:
    listed = {**GOOD, "citations": [{"sentence": "Monthly.", "contexts": ["c2"]}]}
    bare = {"query_id": "q1", "response": "See [1]."}
    given = {name: [row] for name, row in (("a", GOOD), ("b", listed), ("c", bare))}
    a, b, c = (system.answer("q1").response for system in read(tmp_path, **given))
    assert "[1]" not in a
    assert (b, c) == (GOOD["response"], bare["response"])


def judged_by_words(tmp_path, **systems):
    found = read(tmp_path, **systems)
    readings = judge_answers(tmp_path, LexicalJudge(), [FEE, BARE], found)
    return found, readings


def test_every_measure_of_an_answer_by_hand(tmp_path) -> None:
    """The response makes three claims: one right and retrieved, one wrong from an irrelevant context, one from nowhere.

    Of the reference's three claims the contexts hold the first and the third, the response the first.
    """
    systems, readings = judged_by_words(tmp_path, a=[GOOD])
    scores = score_answers([FEE, BARE], systems, readings, "13a", {})
    assert scores.ids == ("q1", "q2")
    found = {name: of["a"].tolist() for name, of in scores.values.items()}
    expected = {
        "precision": 1 / 3, "recall": 1 / 3, "f1": 1 / 3, "claim_recall": 2 / 3, "context_precision": 1 / 2,
        "context_utilization": 1 / 2, "noise_sensitivity_in_relevant": 0, "noise_sensitivity_in_irrelevant": 1 / 3,
        "hallucination": 1 / 3, "self_knowledge": 0, "faithfulness": 2 / 3,
    }  # fmt: skip
    for name, value in expected.items():
        assert found[f"ragchecker.{name}"][0] == pytest.approx(value), name
    assert found["ragas.faithfulness"][0] == pytest.approx(2 / 3)
    assert found["ragas.context_recall"][0] == pytest.approx(2 / 3)
    assert found["ragas.context_precision"][0] == pytest.approx(1 / (1 + 1e-10))
    assert found["ragas.context_utilization"][0] == pytest.approx(2 / (2 + 1e-10))
    assert found["ExactMatch"] == [0, 0]
    assert "ragas.answer_relevancy" not in found and "ragas.context_relevance" not in found  # words give no ratings


def test_a_query_that_was_not_answered_counts_as_an_empty_answer(tmp_path) -> None:
    systems, readings = judged_by_words(tmp_path, a=[GOOD])
    scores = score_answers([FEE, BARE], systems, readings, "13a", {})
    unanswered = {name: of["a"][1] for name, of in scores.values.items()}
    for name in ("BLEU", "ROUGE-L", "TokenF1", "ragchecker.recall", "ragchecker.claim_recall"):
        assert unanswered[name] == 0, name
    for name in ("ragchecker.precision", "ragchecker.hallucination", "ragas.faithfulness"):
        assert unanswered[name] != unanswered[name], name  # undefined, not 0 and not 1
    assert scores.undefined()["ragchecker.hallucination"] == {"a": 1}
    rows = [row for row in scores.rows() if row.measure == "ragchecker.hallucination"]
    assert [row.value for row in rows] == [pytest.approx(1 / 3), None]


def test_claims_once_verdicts_once(tmp_path) -> None:
    systems, readings = judged_by_words(tmp_path, a=[GOOD])
    files = {name: (tmp_path / f"{name}.jsonl").read_bytes() for name in ("claims", "verdicts", "opinions")}
    again = judge_answers(tmp_path, LexicalJudge(), [FEE, BARE], systems)
    assert {name: (tmp_path / f"{name}.jsonl").read_bytes() for name in files} == files
    assert again.verdicts == readings.verdicts
    texts = [json.loads(line)["text"] for line in files["claims"].decode().splitlines()]
    assert len(texts) == len(set(texts)) == 3  # the reference of q1 by people, the response, the reference of q2
    pairs = [(row["claim"], row["passage"]) for row in map(json.loads, files["verdicts"].decode().splitlines())]
    assert len(pairs) == len(set(pairs)) == len(set(pairs_of(Case(FEE, systems[0].answer("q1"), readings))))


class Silent(LexicalJudge):
    """Cannot be read on the second context."""

    def verdicts(self, pairs):
        for place, word in super().verdicts(pairs):
            yield place, None if pairs[place].text == CONTEXTS[1]["text"] else word

    def questions(self, texts):
        return iter([(place, Questions(("Is it monthly?",) * 3, (False,) * 3)) for place in range(len(texts))])


def test_an_unreadable_verdict_leaves_open_what_rests_on_it_and_nothing_else(tmp_path) -> None:
    systems = read(tmp_path, a=[GOOD])
    readings = judge_answers(tmp_path, Silent(), [FEE], systems)
    found = {name: of["a"][0] for name, of in score_answers([FEE], systems, readings, "13a", {}).values.items()}
    assert found["ragchecker.precision"] == pytest.approx(1 / 3)  # reference and response only
    assert "ragchecker.hallucination" not in found and "ragchecker.claim_recall" not in found
    fates = {one.claim: one.fate for one in trace(Case(FEE, systems[0].answer("q1"), readings)).claims}
    assert fates == {"The fee is monthly.": "answered", "It is paid in advance.": "unknown",
                     "Students pay half.": "not used"}  # fmt: skip

    class Wanted:
        queries, systems = (FEE,), ()

    Wanted.systems = tuple(systems)
    told = judged(Wanted, Silent(), readings)
    assert told.unreadable
    assert "undefined, never 0" in next(told.lines())
    assert questions_of([FEE], systems, readings) == [FEE.text, *["Is it monthly?"] * 3]
    vectors = {FEE.text: [1.0, 0.0], "Is it monthly?": [1.0, 1.0]}
    import numpy as np

    arrays = {text: np.array(vector, dtype=np.float32) for text, vector in vectors.items()}
    more = score_answers([FEE], systems, readings, "13a", arrays)
    assert more.values["ragas.answer_relevancy"]["a"][0] == pytest.approx(0.5**0.5, abs=1e-6)


def test_retriever_or_generator(tmp_path) -> None:
    systems, readings = judged_by_words(
        tmp_path, a=[GOOD], b=[{"query_id": "q1", "response": "No idea.", "contexts": []}]
    )
    traced = {s.name: [trace(Case(q, s.answer(q.id), readings)) for q in (FEE, BARE)] for s in systems}
    (first, _), (nothing, unanswered) = traced["a"], traced["b"]
    assert [one.fate for one in first.claims] == ["answered", "not retrieved", "not used"]
    assert [one.held_by for one in first.claims] == [("c1",), (), ("c1",)]
    assert dict(first.made)["The pool opens at nine."] == "contexts"
    assert {one.fate for one in (*nothing.claims, *unanswered.claims)} == {"not retrieved"}
    weighted = Scores(ids=(FEE.id, BARE.id), values={}, weights=(3, 1))
    found = {share.fate: share for share in shares(traced["a"], weighted)}
    assert tuple(found) == FATES and sum(share.mean for share in found.values()) == pytest.approx(1)
    assert found["not retrieved"].mean == pytest.approx((3 * 1 / 3 + 1) / 4)
    assert all(0 <= share.interval.low <= share.interval.high <= 1 for share in found.values() if share.interval.low)
    assert shares([], weighted) == []


def test_a_contradicted_claim_is_noise(tmp_path) -> None:
    answer = Answer("The fee is yearly.", (Context("c1", "The fee is yearly."),))
    readings = records.readings.Readings()
    claim = FEE.reference.claims[0].text
    readings.claims[answer.response] = ("The fee is yearly.",)
    readings.verdicts = {(claim, records.readings.digest_of(answer.response)): "contradicted"}
    assert trace(Case(FEE, answer, readings)).claims[0].fate == "contradicted"
