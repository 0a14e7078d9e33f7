"""Slices against the other queries."""

import numpy as np
import pytest
from scipy import stats

from harness.stats.max_t import max_t_family_tests
from harness.stats.slice_contrasts import side_weights, slice_contrasts
from harness.stats.units import cluster_units, single_units

RNG = np.random.default_rng(7)
N = 60
DIFFERENCES = RNG.normal(size=N) * 0.3
MASKS = np.column_stack([np.arange(N) < 15, np.arange(N) % 2 == 0])


def test_the_means_are_those_of_both_sides() -> None:
    [first, second] = slice_contrasts(DIFFERENCES, MASKS, single_units(N))
    assert first.inside == pytest.approx(DIFFERENCES[:15].mean())
    assert first.outside == pytest.approx(DIFFERENCES[15:].mean())
    assert second.gap == pytest.approx(
        DIFFERENCES[::2].mean() - DIFFERENCES[1::2].mean()
    )


def test_the_interval_is_welchs_with_the_quantile_of_the_family() -> None:
    """SciPy's Welch interval at the level of the family's quantile."""
    [contrast, _] = slice_contrasts(DIFFERENCES, MASKS, single_units(N))
    sides = side_weights(MASKS, single_units(N))
    centred = (DIFFERENCES - DIFFERENCES.mean())[:, None]
    quantile = max_t_family_tests(sides * centred).quantile
    level = 1 - 2 * stats.norm.sf(quantile)
    welch = stats.ttest_ind(DIFFERENCES[:15], DIFFERENCES[15:], equal_var=False)
    interval = welch.confidence_interval(level)
    assert (contrast.low, contrast.high) == pytest.approx(interval)


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
