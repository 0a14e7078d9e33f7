"""Bounds under unjudged documents of measures that are no sums over the ranks, against every outcome of judging."""

import math
import tracemalloc
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.evaluation.unjudged import QueryRankings, bounds_of, linear_form
from harness.measures import parse, score
from harness.stats.intervals import mean
from harness.stats.unjudged_bounds import (
    TwoLists,
    average_precision_bounds,
    first_hit_bounds,
    ideals_of,
    mean_bounds,
    recall_bounds,
    top_k_of,
)

CORPUS = tuple("abcdefg")
RANKINGS = st.permutations(CORPUS).flatmap(lambda ids: st.integers(0, 4).map(lambda k: tuple(ids[:k])))


def outcomes(judged):
    """Every way in which the unjudged documents of the corpus may turn out."""
    rest = [document for document in CORPUS if document not in judged]
    for grades in product((0, 1), repeat=len(rest)):
        yield {**judged, **dict(zip(rest, grades, strict=True))}


def values(name, judged, *rankings):
    """The values of rankings under every outcome."""
    for outcome in outcomes(judged):
        yield [float(score([parse(name)], {"q": outcome}, {"q": list(ranking)}).values[0, 0]) for ranking in rankings]


@pytest.mark.parametrize("name", ["RR@4", "Success@4", "R@4", "AP@4", "RR(rel=2)@4", "R(rel=2)@4", "AP(rel=2)@4"])
@settings(max_examples=15, deadline=None)
@given(a=RANKINGS, b=RANKINGS, judged=st.dictionaries(st.sampled_from(CORPUS), st.integers(0, 1), min_size=3))
def test_no_outcome_lies_outside_and_the_bounds_are_reached(name, a, b, judged):
    bounds = bounds_of(parse(name), 4, 1, len(CORPUS))
    alone = [one for (one,) in values(name, judged, a)]
    one = bounds(QueryRankings(a, (), judged))
    assert one.low == pytest.approx(min(alone)) and one.high == pytest.approx(max(alone))
    apart = [x - y for x, y in values(name, judged, a, b)]
    both = bounds(QueryRankings(a, b, judged))
    if name == "AP@4":
        assert both.low <= min(apart) + 1e-12 and both.high >= max(apart) - 1e-12
    else:
        assert both.low == pytest.approx(min(apart)) and both.high == pytest.approx(max(apart))


def test_bounds_meet_where_the_whole_corpus_is_judged():
    judged = {"a": True, "b": False, "c": True, "d": False}
    lists = TwoLists(["a", "b"], ["c", "d"], judged, 4)
    for bounds in (first_hit_bounds(lists, [1.0, 0.5]), recall_bounds(lists), average_precision_bounds(lists)):
        assert bounds.low == bounds.high == 0


@pytest.mark.parametrize("name", ["F1@5", "Bpref", "ERR@5", "nDCG(groups='first')@5"])
def test_other_measures_have_none(name):
    assert bounds_of(parse(name), 5, 1, 10) is None


@pytest.mark.parametrize("name", ["nDCG@4", "nDCG(dcg='exp-log2')@3", "nDCG", "DCG@4", "P@2", "RBP(p=0.5)@4"])
@settings(max_examples=15, deadline=None)
@given(
    asked=st.lists(
        st.tuples(RANKINGS, RANKINGS, st.dictionaries(st.sampled_from(CORPUS), st.integers(-1, 3))), max_size=6
    ),
    cells=st.sampled_from([1, 40, 1 << 22]),
)
def test_all_queries_at_once_have_the_bounds_that_they_have_one_by_one(name, asked, cells):
    measure = parse(name)
    cutoff = measure.cutoff or 4
    bounds, linear = bounds_of(measure, cutoff, 3, len(CORPUS)), linear_form(measure, cutoff, 3, len(CORPUS))
    firsts, seconds, known = ([row[place] for row in asked] for place in range(3))
    cut = [[ids[:cutoff] for ids in lists] for lists in (firsts, seconds, [()] * len(asked))]
    ideals = ideals_of(linear, known, len(CORPUS))
    numbers = {}
    a, b, empty = (top_k_of(lists, known, linear, numbers) for lists in cut)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("harness.stats.unjudged_bounds.CELLS", cells)
        for second, lists in ((b, cut[1]), (empty, cut[2])):
            each = [bounds(QueryRankings(*query)) for query in zip(cut[0], lists, known, strict=True)]
            for weights in (None, np.arange(1.0, 1 + len(asked))):
                both = mean_bounds(a, second, linear, ideals, weights)
                assert both == (tuple(mean(ends, weights) for ends in np.array(each).T) if asked else (0.0, 0.0))


GRADED = st.dictionaries(st.sampled_from(CORPUS), st.integers(0, 2), min_size=4)


@pytest.mark.parametrize("name", ["nDCG@3", "nDCG(dcg='exp-log2')@3", "nDCG", "DCG@3", "P@2", "RBP(p=0.5)@3"])
@settings(max_examples=15, deadline=None)
@given(a=RANKINGS, b=RANKINGS, judged=GRADED)
def test_no_completion_of_the_judgments_lies_outside(name, a, b, judged):
    """Documents that neither ranking shows may be relevant, too, and raise the ideal of nDCG."""
    measure = parse(name)
    cutoff = measure.cutoff or 4
    a, b = a[:cutoff], b[:cutoff]
    bounds = bounds_of(measure, cutoff, 2, len(CORPUS))
    of_a, both = bounds(QueryRankings(a, (), judged)), bounds(QueryRankings(a, b, judged))
    rest = [document for document in CORPUS if document not in judged]
    for grades in product((0, 1, 2), repeat=len(rest)):
        known = {**judged, **dict(zip(rest, grades, strict=True))}
        first, second = (score([measure], {"q": known}, {"q": list(ids)}).values[0, 0] for ids in (a, b))
        assert of_a.low - 1e-9 <= first <= of_a.high + 1e-9
        assert both.low - 1e-9 <= first - second <= both.high + 1e-9


LARGE = [f"d{number:02}" for number in range(40)]


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_what_is_called_decided_stays_so_whatever_is_judged_next(data):
    """The mean of three queries on a corpus of 40 documents, of which most are in neither ranking."""
    measure, cutoff = parse("nDCG@5"), 5
    bounds = bounds_of(measure, cutoff, 3, len(LARGE))
    asked = []
    for _ in range(3):
        a, b = (data.draw(st.permutations(LARGE[:12]))[:cutoff] for _ in range(2))
        asked.append(QueryRankings(a, b, data.draw(st.dictionaries(st.sampled_from(LARGE[:14]), st.integers(0, 3)))))
    low = math.fsum(bounds(query).low for query in asked) / 3
    high = math.fsum(bounds(query).high for query in asked) / 3
    for _ in range(5):
        drawn = np.random.default_rng(data.draw(st.integers(0, 1 << 32))).choice([0, 0, 3], (3, len(LARGE))).tolist()
        judged = {
            str(number): dict(zip(LARGE, grades, strict=True)) | query.known
            for number, (grades, query) in enumerate(zip(drawn, asked, strict=True))
        }
        a, b = (
            score([measure], judged, {str(number): list(query[side]) for number, query in enumerate(asked)}).values[0]
            for side in (0, 1)
        )
        assert low - 1e-9 <= math.fsum(a - b) / 3 <= high + 1e-9


def test_two_relevant_documents_that_neither_shows_turn_a_difference_that_the_ideal_so_far_calls_decided():
    """a leads by 0.0672 with every shown document judged; two judgments of others make it 0.0307 behind."""
    measure = parse("nDCG@3")
    bounds = bounds_of(measure, 3, 1, 10)
    queries = [
        QueryRankings(("x", "u", "v"), ("u", "x", "v"), {"x": 1, "u": 0, "v": 0}),
        QueryRankings(("u", "y", "z"), ("y", "z", "u"), {"x": 1, "y": 1, "z": 1, "u": 0}),
    ]
    # By hand: L = H = 1 - 0.630930 with I0 = 1 and Imax = 2.130930; then L = H = -0.5 with I0 = Imax = 2.130930.
    each = [bounds(query) for query in queries]
    assert each[0] == pytest.approx((0.173197, 0.369070), abs=1e-6)
    assert each[1] == pytest.approx((-0.234639, -0.234639), abs=1e-6)

    def apart(*more):
        judged = [{**query.known, **dict.fromkeys(more, 1)} for query in queries]
        return sum(
            float(np.subtract(*(score([measure], {"q": known}, {"q": list(ids)}).values[0, 0] for ids in query[:2])))
            for known, query in zip(judged, queries, strict=True)
        ) / 2  # fmt: skip

    assert apart() == pytest.approx(0.067216, abs=1e-6)
    assert apart("v1", "v2") == pytest.approx(sum(one.low for one in each) / 2, abs=1e-12)
    assert apart("v1", "v2") == pytest.approx(-0.030721, abs=1e-6)


def test_before_anything_is_relevant_a_query_may_become_anything():
    bounds = bounds_of(parse("nDCG@2"), 2, 1, 10)
    assert bounds(QueryRankings(("x", "u"), ("v", "w"), {})) == (-1.0, 1.0)
    assert bounds(QueryRankings(("x", "u"), ("u", "x"), {"x": 0, "u": 0})) == (0.0, 0.0)


def test_the_largest_grade_that_there_may_be_takes_no_memory():
    """A table of the gain of every grade up to it took 10 GB."""
    highest = 2**31 - 1
    tracemalloc.start()
    bounds = bounds_of(parse("nDCG@2"), 2, highest, 10)
    found = bounds(QueryRankings(("x", "u"), ("u", "x"), {"x": highest, "u": 0}))
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert found == pytest.approx((0.226294, 0.369070), abs=1e-6)
