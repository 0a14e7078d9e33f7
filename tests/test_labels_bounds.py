"""Bounds under unjudged documents of measures that are no sums over the ranks, against every outcome of the judging."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.evaluation.unjudged import QueryRankings, bounds_of, linear_form, mean_bounds, scale_of, top_k_of
from harness.measures import parse, score
from harness.stats.unjudged_bounds import TwoLists, average_precision_bounds, first_hit_bounds, recall_bounds

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


@pytest.mark.parametrize("name", ["RR@4", "Success@4", "R@4", "AP@4"])
@settings(max_examples=25, deadline=None)
@given(a=RANKINGS, b=RANKINGS, judged=st.dictionaries(st.sampled_from(CORPUS), st.integers(0, 1), min_size=3))
def test_no_outcome_lies_outside_and_the_bounds_are_reached(name, a, b, judged):
    bounds = bounds_of(parse(name), 4, 1, len(CORPUS))
    alone = [one for (one,) in values(name, judged, a)]
    mean = bounds(QueryRankings(a, (), judged, judged))
    assert mean.low == pytest.approx(min(alone)) and mean.high == pytest.approx(max(alone))
    apart = [x - y for x, y in values(name, judged, a, b)]
    both = bounds(QueryRankings(a, b, judged, judged))
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
@settings(max_examples=25, deadline=None)
@given(
    asked=st.lists(
        st.tuples(RANKINGS, RANKINGS, st.dictionaries(st.sampled_from(CORPUS), st.integers(-1, 3))), max_size=6
    ),
    cells=st.sampled_from([1, 40, 1 << 22]),
)
def test_all_queries_at_once_have_the_bounds_that_they_have_one_by_one(name, asked, cells):
    measure = parse(name)
    cutoff = measure.cutoff or 4
    bounds, linear = bounds_of(measure, cutoff, 3, len(CORPUS)), linear_form(measure, cutoff, 3)
    firsts, seconds, known = ([row[place] for row in asked] for place in range(3))
    # What was chosen for its effect is known, and in no ideal.
    grades = [dict(list(judged.items())[:2]) for judged in known]
    cut = [[ids[:cutoff] for ids in lists] for lists in (firsts, seconds, [()] * len(asked))]
    scales = np.array([scale_of(measure, linear, judged, cutoff) for judged in grades])
    numbers = {}
    a, b, empty = (top_k_of(lists, known, linear, numbers) for lists in cut)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("harness.evaluation.unjudged.CELLS", cells)
        for second, lists in ((b, cut[1]), (empty, cut[2])):
            each = [bounds(QueryRankings(*query)) for query in zip(cut[0], lists, known, grades, strict=True)]
            both = mean_bounds(a, second, linear, scales)
            n = max(1, len(asked))
            assert both == (math.fsum(one.low for one in each) / n, math.fsum(one.high for one in each) / n)


GRADED = st.dictionaries(st.sampled_from(CORPUS), st.integers(0, 2), min_size=4)


@pytest.mark.parametrize("name", ["nDCG@3", "nDCG(dcg='exp-log2')@3", "nDCG", "DCG@3", "P@2", "RBP(p=0.5)@3"])
@settings(max_examples=25, deadline=None)
@given(a=RANKINGS, b=RANKINGS, judged=GRADED)
def test_a_difference_keeps_within_the_means_and_no_completion_lies_outside(name, a, b, judged):
    """A query counts at most 1, for the ideal of what is judged so far: in the means and in their difference."""
    measure = parse(name)
    cutoff = measure.cutoff or 4
    a, b = a[:cutoff], b[:cutoff]
    bounds, linear = bounds_of(measure, cutoff, 2, len(CORPUS)), linear_form(measure, cutoff, 2)
    scale = scale_of(measure, linear, judged, cutoff)
    of_a, of_b, both = (bounds(QueryRankings(*lists, judged, judged)) for lists in ((a, ()), (b, ()), (a, b)))
    assert both.low >= of_a.low - of_b.high - 1e-9 and both.high <= of_a.high - of_b.low + 1e-9
    rest = [document for document in dict.fromkeys([*a, *b]) if document not in judged]
    for grades in product((0, 1, 2), repeat=len(rest)):
        known = {**judged, **dict(zip(rest, grades, strict=True))}
        sums = (sum(w * linear.gain(known[d]) for w, d in zip(linear.discounts, ids, strict=False)) for ids in (a, b))
        first, second = (min(one * scale, linear.largest) for one in sums)
        assert of_a.low - 1e-9 <= first <= of_a.high + 1e-9
        assert both.low - 1e-9 <= first - second <= both.high + 1e-9
