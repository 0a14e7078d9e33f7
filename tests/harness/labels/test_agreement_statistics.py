"""Coefficients of agreement: known answers, other people's programs, and limits."""

import math

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
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


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(*[st.sampled_from([*GRADES, NAN])] * 3), min_size=4, max_size=30)
)
def test_alpha_agrees_with_the_package(rows):
    ratings = np.array(rows, dtype=float).T
    used = ratings[:, (~np.isnan(ratings)).sum(axis=0) > 1]
    for level in LEVELS:
        ours = krippendorff_alpha(coincidence_table(ratings, GRADES), GRADES, level)
        if len(np.unique(used[~np.isnan(used)])) < 2:
            assert math.isnan(ours)
        else:
            assert ours == pytest.approx(
                krippendorff.alpha(ratings, level_of_measurement=level), abs=1e-12
            )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(GRADES), st.sampled_from(GRADES)),
        min_size=2,
        max_size=40,
    )
)
def test_kappa_agrees_with_statsmodels(pairs):
    from statsmodels.stats import inter_rater

    table = confusion_table(*zip(*pairs, strict=True), GRADES)
    for categories, theirs in ((None, None), (GRADES, "quadratic")):
        ours = cohen_kappa(table, categories)
        if len(set(sum(pairs, ()))) == 1:
            assert math.isnan(ours)
        else:
            assert ours == pytest.approx(
                inter_rater.cohens_kappa(table, wt=theirs, return_results=False),
                abs=1e-12,
            )


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
