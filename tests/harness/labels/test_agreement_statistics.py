"""Coefficients of agreement: known answers, other people's programs, and limits."""

import math

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.stats.kappa import (
    bootstrap_agreement,
    cohen_kappa,
    coincidence_table,
    confusion_table,
    krippendorff_alpha,
)

NAN = math.nan
# Example C of Krippendorff (2011): 4 observers, 12 units.
KRIPPENDORFF = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]
GRADES = [0, 1, 2, 3]
LEVELS = ("nominal", "ordinal", "interval")


def test_alpha_of_the_published_example():
    categories = [1, 2, 3, 4, 5]
    table = coincidence_table(KRIPPENDORFF, categories)
    alphas = [krippendorff_alpha(table, categories, level) for level in LEVELS]
    assert alphas == pytest.approx((0.743421, 0.815388, 0.849107), abs=5e-7)


def alpha_of(ratings, level):
    return krippendorff_alpha(coincidence_table(ratings, GRADES), GRADES, level)


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(
        st.tuples(*[st.sampled_from([*GRADES, NAN])] * 3), min_size=4, max_size=30
    )
)
def test_alpha_agrees_with_the_package(level, rows):
    ratings = np.array(rows, dtype=float).T
    used = ratings[:, (~np.isnan(ratings)).sum(axis=0) > 1]
    assume(len(np.unique(used[~np.isnan(used)])) > 1)
    theirs = krippendorff.alpha(ratings, level_of_measurement=level)
    assert alpha_of(ratings, level) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "rows",
    [[(2, 2, NAN), (2, 2, 2)], [(0, NAN, NAN), (NAN, 1, NAN)]],
    ids=["one grade", "nothing is graded twice"],
)
def test_without_two_grades_that_can_be_compared_alpha_is_undefined(level, rows):
    assert math.isnan(alpha_of(np.array(rows, dtype=float).T, level))


@pytest.mark.parametrize(
    ("categories", "weights"), [(None, None), (GRADES, "quadratic")]
)
@settings(max_examples=60, deadline=None)
@given(
    pairs=st.lists(
        st.tuples(st.sampled_from(GRADES), st.sampled_from(GRADES)),
        min_size=2,
        max_size=40,
    ).filter(lambda pairs: len(set(sum(pairs, ()))) > 1)
)
def test_kappa_agrees_with_statsmodels(categories, weights, pairs):
    from statsmodels.stats import inter_rater

    table = confusion_table(*zip(*pairs, strict=True), GRADES)
    theirs = inter_rater.cohens_kappa(table, wt=weights, return_results=False)
    assert cohen_kappa(table, categories) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("categories", [None, GRADES])
def test_kappa_of_one_grade_is_undefined(categories):
    table = confusion_table((2, 2, 2), (2, 2, 2), GRADES)
    assert math.isnan(cohen_kappa(table, categories))


def test_the_interval_resamples_queries_not_pairs_and_needs_ten():
    same = np.diag([6.0, 4.0])
    different = np.array([[2.0, 4.0], [3.0, 1.0]])
    clustered = np.stack([same] * 8 + [different] * 8)
    estimate = bootstrap_agreement(cohen_kappa, clustered)
    assert estimate.low < estimate.value < estimate.high
    assert estimate == bootstrap_agreement(cohen_kappa, clustered)
    # If the same pairs are spread evenly, only the interval is narrower.
    even = bootstrap_agreement(cohen_kappa, np.stack([(same + different) / 2] * 16))
    assert even.value == pytest.approx(estimate.value)
    assert even.high - even.low < 1e-9 < estimate.high - estimate.low
    nine = bootstrap_agreement(cohen_kappa, clustered[3:12])
    ten = bootstrap_agreement(cohen_kappa, clustered[3:13])
    assert math.isnan(nine.low) and math.isnan(nine.high) and 0 < nine.value < 1
    assert ten.low < ten.value < ten.high
