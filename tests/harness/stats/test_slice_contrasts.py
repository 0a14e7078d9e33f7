"""Slices against the other queries."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from harness.stats.max_t import max_t_family_tests
from harness.stats.slice_contrasts import side_weights, slice_contrasts
from harness.stats.units import cluster_units, single_units

N = 60
DIFFERENCES = np.random.default_rng(7).normal(size=N) * 0.3
MASKS = np.column_stack([np.arange(N) < 15, np.arange(N) % 2 == 0])


def test_the_means_are_those_of_both_sides() -> None:
    [first, second] = slice_contrasts(DIFFERENCES, MASKS, single_units(N))
    assert first.inside == pytest.approx(DIFFERENCES[:15].mean())
    assert first.outside == pytest.approx(DIFFERENCES[15:].mean())
    assert second.gap == pytest.approx(
        DIFFERENCES[::2].mean() - DIFFERENCES[1::2].mean()
    )


def welch(column: int) -> Any:
    """SciPy's test of one slice against the other queries."""
    mask = MASKS[:, column]
    return stats.ttest_ind(DIFFERENCES[mask], DIFFERENCES[~mask], equal_var=False)


@pytest.mark.parametrize("column", [0, 1])
def test_the_statistic_is_welchs(column: int) -> None:
    contrast = slice_contrasts(DIFFERENCES, MASKS, single_units(N))[column]
    assert contrast.statistic == pytest.approx(welch(column).statistic)


def welch_size(inside: Any, outside: Any, axis: int) -> Any:
    """The size of Welch's statistic."""
    test = stats.ttest_ind(inside, outside, axis=axis, equal_var=False)
    return np.abs(test.statistic)


def test_p_of_one_slice_is_that_of_all_ways_to_choose_it() -> None:
    """SciPy enumerates the 5,005 choices of 6 queries of 15; we draw 20,000."""
    few = DIFFERENCES[:15]
    exact = stats.permutation_test(
        (few[:6], few[6:]), welch_size, alternative="greater"
    )
    [contrast] = slice_contrasts(few, np.arange(15)[:, None] < [[6]], single_units(15))
    assert contrast.p_adjusted == pytest.approx(exact.pvalue, abs=0.01)


def test_the_interval_is_so_many_of_welchs_standard_errors_for_all_slices() -> None:
    contrasts = slice_contrasts(DIFFERENCES, MASKS, single_units(N))
    factors: list[float] = []
    for contrast in contrasts:
        error = contrast.gap / contrast.statistic
        factors.append((contrast.high - contrast.gap) / error)
        assert contrast.gap - contrast.low == pytest.approx(
            contrast.high - contrast.gap
        )
    assert factors[0] == pytest.approx(factors[1])
    # Two slices that hardly overlap more than by chance: nearly Bonferroni's for two.
    bonferroni = stats.t.ppf(1 - 0.05 / 4, welch(0).df)
    assert factors[0] == pytest.approx(bonferroni, rel=0.03)


def test_the_interval_of_clusters_is_welchs_at_the_level_of_the_family() -> None:
    # Every query is a cluster: SciPy's interval at the level of the flips' quantile.
    units = cluster_units([str(i) for i in range(N)])
    [contrast, _] = slice_contrasts(DIFFERENCES, MASKS, units)
    centred = (DIFFERENCES - DIFFERENCES.mean())[:, None]
    quantile = max_t_family_tests(side_weights(MASKS, units) * centred).quantile
    interval = welch(0).confidence_interval(1 - 2 * stats.norm.sf(quantile))
    assert (contrast.low, contrast.high) == pytest.approx((interval.low, interval.high))


def test_the_other_queries_are_the_same_slice_upside_down() -> None:
    here = slice_contrasts(DIFFERENCES, MASKS, single_units(N))
    there = slice_contrasts(DIFFERENCES, ~MASKS, single_units(N))
    for contrast, opposite in zip(here, there, strict=True):
        assert opposite.gap == pytest.approx(-contrast.gap)
        assert opposite.p_adjusted == contrast.p_adjusted


def test_a_constant_for_all_queries_changes_nothing() -> None:
    here = slice_contrasts(DIFFERENCES, MASKS, single_units(N))
    shifted = slice_contrasts(DIFFERENCES + 0.5, MASKS, single_units(N))
    assert [c.p_adjusted for c in here] == [c.p_adjusted for c in shifted]


def test_a_query_with_weight_two_is_like_two_in_a_cluster() -> None:
    """The sums that are flipped are the same, and so are the means and p."""
    weights = np.where(np.arange(N) % 3 == 0, 2.0, 1.0)
    weighted = slice_contrasts(DIFFERENCES, MASKS, single_units(N, weights))
    rows = np.repeat(np.arange(N), weights.astype(int))
    clusters = cluster_units([str(row) for row in rows])
    repeated = slice_contrasts(DIFFERENCES[rows], MASKS[rows], clusters)
    for one, two in zip(weighted, repeated, strict=True):
        assert one.gap == pytest.approx(two.gap)
        assert one.p_adjusted == two.p_adjusted


def test_a_slice_of_one_cluster_shows_nothing() -> None:
    clusters = cluster_units(["c"] * 15 + [str(i) for i in range(45)])
    differences = np.where(MASKS[:, 0], 0.8, DIFFERENCES)
    [contrast, _] = slice_contrasts(differences, MASKS, clusters)
    assert contrast.p_adjusted > 0.05
    assert contrast.low is None


def test_equal_differences_show_nothing() -> None:
    [contrast, _] = slice_contrasts(np.full(N, 0.1), MASKS, single_units(N))
    assert (contrast.p_adjusted, contrast.low) == (1.0, None)


@pytest.mark.parametrize("column", [0, 1])
def test_the_explained_share_is_that_of_an_analysis_of_variance(column: int) -> None:
    """Eta squared is the squared correlation with the slice."""
    contrast = slice_contrasts(DIFFERENCES, MASKS, single_units(N))[column]
    correlation = stats.pearsonr(DIFFERENCES, MASKS[:, column]).statistic
    assert contrast.explained == pytest.approx(correlation**2)
