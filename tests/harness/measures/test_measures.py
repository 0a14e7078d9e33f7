"""Names of measures, and the properties of every measure."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.measures import (
    measure_ranking,
    measure_rankings,
    measure_run,
    parse_measure,
    parse_measure_list,
    value_span,
)
from harness.measures.measure import CLAIM_MEASURES, SPAN_MEASURE
from harness.measures.measure import measure as own_measure
from harness.measures.score import MeasureValues
from harness.measures.sensitivity import grades_by_rule, winners_by_rule
from harness.measures.table import (
    MEASURES,
    is_binary,
    needs_claims,
    needs_passages,
)
from retrievers.errors import InputError
from tests.support.small import refusal

DOCUMENTS = tuple("abcdefghij")
NAMES = [
    "P@3",
    "R@3",
    "Rcap@3",
    "F1@3",
    "Success@3",
    "RR",
    "RR@3",
    "AP",
    "AP@3",
    "Rprec",
    "SetP",
    "SetR@4",
    "SetF",
    "SetAP",
    "CG@3",
    "CG(dcg='exp-log2')",
    "DCG@3",
    "DCG(dcg='exp-log2')",
    "nDCG",
    "nDCG@3",
    "nDCG(dcg='exp-log2')@3",
    "nDCG(ideal='retrieved')@3",
    "nDCG(dcg='exp-log2', ideal='retrieved-all')@3",
    "ERR",
    "ERR@3",
    "RBP(p=0.8)",
    "RBP(p=0.8, residual=True)",
    "RBP(p=0.5, rel=2)@3",
    "Bpref",
    "Judged@3",
    "ContextPrecision@3",
    "IDContextPrecision",
    "IDContextRecall@3",
    "P(rel=2)@5",
    "AP(rel=3)",
]
"""Every measure by grades, whole or at a cutoff, with its options."""
IDEAL_IS_ONE = [
    "Rcap@3",
    "Success@3",
    "RR",
    "AP",
    "Rprec",
    "nDCG",
    "nDCG@3",
    "nDCG(dcg='exp-log2')@3",
    "nDCG(ideal='retrieved')@3",
    "nDCG(ideal='retrieved-all')@3",
    "ContextPrecision@3",
    "Bpref",
    "IDContextRecall",
    "SetR",
]

judged = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-1, 4))
ranking = st.lists(st.sampled_from(DOCUMENTS), unique=True)


SPELT = {
    "ndcg@10": "nDCG@10",
    " NDCG @ 10 ": "nDCG@10",
    "nDCG@00010": "nDCG@10",
    "nDCG(dcg='log2', ideal='judged')@10": "nDCG@10",
    "ndcg(IDEAL='Retrieved-All')": "nDCG(ideal='retrieved-all')",
    "nDCG(ideal='retrieved',dcg='exp-log2')@10": (
        "nDCG(dcg='exp-log2', ideal='retrieved')@10"
    ),
    "map": "AP",
    "MRR@5": "RR@5",
    "recall@10": "R@10",
    "Precision(rel=2)@5": "P(rel=2)@5",
    "P": "SetP",
    "f1": "SetF",
    "hit@5": "Success@5",
    "HitRate@5": "Success@5",
    "hit_rate@5": "Success@5",
    "p(rel=2)@5": "P(rel=2)@5",
    "P(rel=1)@5": "P@5",
    "r(rel=2)": "SetR(rel=2)",
    "rbp": "RBP(p=0.8)",
    "RBP(p=0.95)@10": "RBP(p=0.95)@10",
    "RBP(residual=True)": "RBP(p=0.8, residual=True)",
    "bpref": "Bpref",
    "judged@10": "Judged@10",
    "contextprecision@5": "ContextPrecision@5",
    "context_precision@5": "ContextPrecision@5",
    "set_P": "SetP",
    "R_prec": "Rprec",
    "idcontextrecall": "IDContextRecall",
    "P(groups='AutoRAG')@4": "P(groups='autorag')@4",
}


@pytest.mark.parametrize(("text", "canonical"), SPELT.items())
def test_any_case_is_read_and_one_name_is_written(text: str, canonical: str) -> None:
    measure = parse_measure(text)
    again = parse_measure(canonical)
    assert str(measure) == canonical
    assert measure == again
    assert hash(measure) == hash(again)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndgc@10", "there is no measure 'ndgc' (did you mean 'nDCG'?)"),
        ("ndcg_cut_10", "there is no measure 'ndcg_cut_10' (here it is 'nDCG')"),
        ("P_10", "there is no measure 'P_10' (here it is 'P')"),
        ("ndcg_at_10", "there is no measure 'ndcg_at_10' (here it is 'nDCG')"),
        (f"P(rel={'-' * 100_000}1)@5", "cannot read"),
        ("P(rle=2)@5", "P has no parameter 'rle' (did you mean 'rel'?)"),
        ("Judged(rel=2)@5", "Judged has no parameter 'rel' (it takes none)"),
        ("nDCG(dcg='exp-log')@5", "dcg cannot be 'exp-log' (did you mean 'exp-log2'?)"),
        ("P(rel=0)@5", "rel cannot be 0 (it is a whole number from 1)"),
        ("RBP(p=1.5)", "p cannot be 1.5 (it is a number between 0 and 1)"),
        ("RBP(residual='yes')", "residual cannot be 'yes' (it is True or False)"),
        ("P@0", "a cutoff is at least 1"),
        ("Rcap", "Rcap needs a cutoff (for example Rcap@10)"),
        ("Bpref(rel=2)@10", "Bpref takes no cutoff (write Bpref(rel=2))"),
        ("P(groups='first', rel=2)@5", "groups goes with no other parameter"),
        ("P(rel=2, rel=3)@5", "cannot read (rel=2, rel=3)"),
        ("P(rel={[]: 1})@5", "cannot read (rel={[]: 1})"),
        ("P(**{'rel': 2})@5", "has no parameter 'none'"),
        ("P(rel=__import__('os').getpid())@5", "cannot read"),
        ("", "this is not a measure"),
        ("nDCG@-1", "this is not a measure"),
    ],
)
def test_a_wrong_name_says_what_is_wrong_and_what_to_do(
    text: str, message: str
) -> None:
    error = refusal(parse_measure, text)
    assert str(error).startswith(f"measure {text!r}: ")
    assert message in str(error)


@pytest.mark.parametrize(
    ("name", "filled"),
    [
        ("nDCG@10", "nDCG(dcg='exp-log2', ideal='retrieved')@10"),
        ("P@10", "P@10"),
        ("nDCG(dcg='log2')@10", "nDCG(ideal='retrieved')@10"),
        ("nDCG(dcg='log2', ideal='judged')@10", "nDCG@10"),
        ("DCG@10", "DCG(dcg='exp-log2')@10"),
        ("nDCG(groups='first')@10", "nDCG(groups='first')@10"),
    ],
)
def test_an_experiment_fills_in_only_what_the_name_leaves_open(
    name: str, filled: str
) -> None:
    assert str(parse_measure(name, gain="exponential", ideal="retrieved")) == filled
    assert str(parse_measure("CG@10", gain="linear")) == "CG@10"


def test_several_names_once_each_with_all_their_problems() -> None:
    expected = (
        parse_measure("AP"),
        parse_measure("RBP(p=0.9)@5"),
        parse_measure("RBP(p=0.9, residual=True)@5"),
    )
    assert parse_measure_list(["AP", "rbp(p=0.9)@5", "MAP"]) == expected
    error = refusal(parse_measure_list, ["APP", "nDCG@10", "P@0"])
    assert [problem.where for problem in error.problems] == [
        "measure 'APP'",
        "measure 'P@0'",
    ]


LABELLED = [
    name
    for name, row in MEASURES.items()
    if row.cutoff != "never" and name not in {*CLAIM_MEASURES, SPAN_MEASURE}
]


def values(
    names: list[str], judged: dict[str, int], ranking: list[str]
) -> dict[str, float]:
    scores = measure_rankings(
        [parse_measure(name) for name in names], {"q": judged}, {"q": ranking}
    )
    return dict(zip(names, scores.values[:, 0].tolist(), strict=True))


def test_every_measure_by_grades_alone_is_tried() -> None:
    by_others = {needs_claims, needs_passages}
    by_grades = {name for name, row in MEASURES.items() if row.compute not in by_others}
    tried = {parse_measure(text).name for text in NAMES}
    assert by_grades - tried == {"Abstain"}  # of queries that nothing answers


@settings(max_examples=80, deadline=None)
@given(judged, ranking)
def test_every_value_is_within_its_range(
    judged: dict[str, int], ranking: list[str]
) -> None:
    scores = values(NAMES, judged, ranking)
    assert {text: score for text, score in scores.items() if score < 0} == {}
    bounded = [text for text in NAMES if MEASURES[parse_measure(text).name].bounded]
    assert [text for text in bounded if scores[text] > 1 + 1e-12] == []


@settings(max_examples=40, deadline=None)
@given(judged, ranking)
def test_where_nothing_is_relevant_every_measure_of_relevance_is_0(
    judged: dict[str, int], ranking: list[str]
) -> None:
    irrelevant = {doc_id: min(grade, 0) for doc_id, grade in judged.items()}
    others = ("Judged", "RBP(p=0.8, residual")
    of_relevance = [text for text in NAMES if not text.startswith(others)]
    assert set(values(of_relevance, irrelevant, ranking).values()) == {0}


@pytest.mark.parametrize("cutoff", [1, 3])
@pytest.mark.parametrize("name", LABELLED)
def test_a_measure_is_0_or_1_exactly_if_its_row_says_so(name: str, cutoff: int) -> None:
    random = np.random.default_rng(5)
    judgments: dict[str, dict[str, int]] = {}
    for query in range(50):
        documents = random.permutation(DOCUMENTS)[:6]
        judgments[str(query)] = {d: int(random.integers(0, 4)) for d in documents}
    rankings = {str(q): random.permutation(DOCUMENTS)[:5].tolist() for q in range(50)}
    measure = parse_measure(f"{name}@{cutoff}")
    scores = measure_rankings([measure], judgments, rankings).values
    has_only_0_and_1 = set(scores.ravel().tolist()) <= {0.0, 1.0}
    assert is_binary(measure) == has_only_0_and_1


@pytest.mark.parametrize(
    ("name", "span"),
    [
        ("P@5", 1),
        ("nDCG", 1),
        ("ERR", 1),
        ("RBP", 1),
        ("CG@5", 4),
        ("DCG(dcg='exp-log2')@1", 7),
        ("DCG", pytest.approx(3 + 1 / math.log2(3))),
    ],
)
def test_the_span_of_a_measure_is_from_its_least_to_its_largest_value(
    name: str, span: float
) -> None:
    judgments = {"q1": {"a": 3, "b": 1, "c": -1}, "q2": {"a": 1}}
    assert value_span(parse_measure(name), judgments) == span


def test_the_span_of_a_sum_is_0_without_labels() -> None:
    assert value_span(parse_measure("DCG"), {"q": {}}) == 0


@settings(deadline=None, max_examples=40)
@given(judged.filter(lambda j: any(grade > 0 for grade in j.values())))
def test_the_ideal_ranking_scores_one(judged: dict[str, int]) -> None:
    best_first = sorted(judged, key=lambda d: -judged[d])
    scores = values(IDEAL_IS_ONE, judged, best_first)
    assert scores == pytest.approx(dict.fromkeys(IDEAL_IS_ONE, 1), abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(judged, ranking), max_size=8))
def test_a_query_scores_the_same_alone_and_among_others(
    pairs: list[tuple[dict[str, int], list[str]]],
) -> None:
    """Padding, batches and neighbours change nothing but the G of ERR."""
    measures = [parse_measure(name) for name in NAMES if not name.startswith("ERR")]
    judgments = {str(i): judged for i, (judged, _) in enumerate(pairs)}
    rankings = {str(i): ranking for i, (_, ranking) in enumerate(pairs)}
    together = measure_rankings(measures, judgments, rankings)
    for i, query_id in enumerate(together.query_ids):
        alone = measure_rankings(
            measures, {query_id: judgments[query_id]}, {query_id: rankings[query_id]}
        )
        assert np.array_equal(together.values[:, i], alone.values[:, 0])


def test_portions_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    judgments: dict[str, dict[str, int]] = {}
    for query in range(30):
        documents = random.permutation(40)[:query]
        judgments[str(query)] = {f"d{d}": int(d) % 4 for d in documents}
    run: dict[str, dict[str, float]] = {}
    for query in range(25):
        documents = random.permutation(60)[: 2 * query]
        run[str(query)] = {f"d{d}": float(d % 7) for d in documents}
    measures = [parse_measure(name) for name in NAMES]
    expected = measure_run(measures, judgments, run)
    monkeypatch.setattr("harness.measures.score.MAX_BATCH_CELLS", 50)
    assert np.array_equal(measure_run(measures, judgments, run).values, expected.values)


@pytest.fixture
def three_queries() -> MeasureValues:
    """Scores of a hit, of an empty ranking, and of a query without both."""
    judgments = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {}}
    measures = parse_measure_list(["P@5", "nDCG", "RBP"])
    return measure_rankings(measures, judgments, {"q1": ["a"], "q2": []})


@pytest.mark.parametrize(
    ("measure", "scores"),
    # One hit of five; the residual of RBP is 0.8 after one place, and 1 before it.
    [("P@5", [0.2, 0, 0]), ("RBP(residual=True)", [0.8, 1, 1]), ("nDCG", [1, 0, 0])],
)
def test_missing_and_empty_rankings_score_as_empty_lists(
    three_queries: MeasureValues, measure: str, scores: list[float]
) -> None:
    assert three_queries.query_ids == ("q1", "q2", "q3")
    assert three_queries.values_of(parse_measure(measure)).tolist() == scores


def test_missing_and_empty_rankings_count_in_means(
    three_queries: MeasureValues,
) -> None:
    assert three_queries.means()[parse_measure("nDCG")] == 1 / 3


def test_scores_of_some_queries_keep_their_order(three_queries: MeasureValues) -> None:
    assert three_queries.for_queries({"q3", "q1"}).query_ids == ("q1", "q3")


def test_nobody_changes_scores(three_queries: MeasureValues) -> None:
    assert not three_queries.values.flags.writeable


def test_no_queries_have_no_mean() -> None:
    average_precision = parse_measure("AP")
    scores = measure_rankings([average_precision], {}, {})
    assert math.isnan(scores.means()[average_precision])


def test_err_counts_grades_against_the_largest_of_all_queries() -> None:
    scores = measure_rankings(
        [parse_measure("ERR@1")],
        {"q1": {"a": 1}, "q2": {"b": 3}},
        {"q1": ["a"], "q2": ["b"]},
    )
    assert scores.largest_grade == 3
    # (2^1 - 1) / 2^3 and (2^3 - 1) / 2^3.
    assert scores.values.tolist() == [[1 / 8, 7 / 8]]


@pytest.mark.parametrize(
    ("name", "grade", "run", "message"),
    [
        ("AP", 1, ["a", "b", "a"], "query 'q': document 'a' is ranked twice"),
        ("nDCG(dcg='exp-log2')", 31, [], "exponential gain of grade 31"),
        ("AP", 1, {"a": math.nan}, "not a finite number"),
        ("AP(groups='first')", 1, [], "no AND/OR groups"),
        ("IoU@1", 1, {"a": 1.0}, "needs passages"),
        ("own.x", 1, {"a": 1.0}, "is a function of ranked documents"),
    ],
)
def test_what_cannot_be_scored_is_refused(
    name: str, grade: int, run: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        score = measure_rankings if isinstance(run, list) else measure_run
        score([parse_measure(name)], {"q": {"a": grade}}, {"q": run})


@pytest.mark.parametrize(
    ("name", "judged", "hits", "expected"),
    [
        ("ERR", {"a": 2**31 - 1, "b": 5}, "a", 1),  # large grades stay finite
        ("nDCG", {"a": 2**31 - 1, "b": 5}, "ab", 1),
        # Moffat & Zobel: with every document judged and depth d, the residual is p^d.
        ("RBP(p=0.5)", {"a": 1, "b": 0, "c": 1}, "abc", 0.5 + 0.125),
        ("RBP(p=0.5, residual=True)", {"a": 1, "b": 0, "c": 1}, "abc", 0.125),
        ("RBP(p=0.5, residual=True)@2", {"a": 1, "b": 0, "c": 1}, "a?c", 0.25 + 0.25),
    ],
)
def test_values_by_hand(
    name: str, judged: dict[str, int], hits: str, expected: float
) -> None:
    assert measure_ranking(name, judged, list(hits)) == expected


def test_the_winner_that_a_gain_makes() -> None:
    """Two good documents win by linear gain, the best alone by exponential gain."""
    rules = grades_by_rule({"q": ["a", "b", "c", "d"]})
    answers = {"alone": {"q": ["a", "z"]}, "both": {"q": ["b", "c"]}}
    # Rankings of a large result do not all fit into memory: each is read once.
    rows = winners_by_rule(parse_measure("nDCG@2"), rules, answers)
    for row in rows:
        scores_by_retriever = {
            name: measure_rankings([row.measure], rules[row.rule], of)
            for name, of in answers.items()
        }
        assert row.means == {
            name: scores.means()[row.measure]
            for name, scores in scores_by_retriever.items()
        }
    assert [(row.rule, str(row.measure), row.winners, row.changed) for row in rows] == [
        ("linear", "nDCG@2", ("both",), False),
        ("linear", "nDCG(dcg='exp-log2')@2", ("alone",), True),
        ("binary", "nDCG@2", ("both",), False),
        ("binary", "nDCG(dcg='exp-log2')@2", ("both",), False),
        ("reciprocal", "nDCG@2", ("alone",), True),
    ]


ALIKE = {name: {"q": ["a"]} for name in "xy"}
"""Two retrievers with the same ranking."""


def test_retrievers_alike_win_together_under_every_rule() -> None:
    rows = winners_by_rule(
        parse_measure("P@2"), grades_by_rule({"q": ["a"]}, first="binary"), ALIKE
    )
    assert [(row.rule, row.winners) for row in rows] == [
        (r, ("x", "y")) for r in ("binary", "linear", "reciprocal")
    ]


def test_means_that_make_a_winner_are_weighted() -> None:
    """By 3 for a query with a hit, and by 1 for one without."""
    (weighted,) = winners_by_rule(
        parse_measure("P@1"),
        {"": {"q": {"a": 1}, "r": {"b": 1}}},
        ALIKE,
        {"q": 3.0, "r": 1.0},
    )
    assert weighted.means == {"x": 0.75, "y": 0.75}


@pytest.mark.parametrize(
    "name", [name for name in NAMES if "@" in name and "retrieved-all" not in name]
)
@settings(deadline=None, max_examples=10)
@given(judged=judged, ranking=ranking)
def test_a_measure_looks_no_deeper_than_its_cutoff(
    name: str, judged: dict[str, int], ranking: list[str]
) -> None:
    """The report rescoring with other grades keeps no more than these hits."""
    measure = parse_measure(name)
    full = measure_rankings([measure], {"q": judged}, {"q": ranking})
    top = ranking[: measure.cutoff]
    head = measure_rankings([measure], {"q": judged}, {"q": top})
    assert head.values.tolist() == full.values.tolist()


def test_the_documentation_names_every_measure() -> None:
    text = (Path(__file__).parents[3] / "docs" / "measures.md").read_text(
        encoding="utf-8"
    )
    assert [name for name in MEASURES if not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.parametrize("span", [(0, 1, 2), 1, "ab", (None, 1), (1, 0)])
def test_a_range_that_is_not_two_numbers_is_refused(span: Any) -> None:
    with pytest.raises(InputError, match="is not a range"):
        own_measure("x", lambda *_: 1.0, span)
