"""Intervals that hold at once, and those of 0/1 measures."""

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from scipy import stats

from harness.stats.binary_interval import PairCounts, binary_interval, mcnemar_p
from harness.stats.differences import ValueRange
from harness.stats.sign_flip import Contrast
from harness.stats.simultaneous import simultaneous_intervals, simultaneous_quantile
from harness.stats.units import cluster_units, single_units


def all_pairs(k: int) -> list[Contrast]:
    return [Contrast(a, b) for a in range(k) for b in range(a)]


@pytest.mark.parametrize("k", [4, 10, 20])
def test_the_quantile_of_all_pairs_of_normal_scores_is_nearly_tukeys(k: int) -> None:
    """That of the studentised range, over the square root of 2."""
    scores = np.random.default_rng(3).normal(size=(150, k))
    quantile = simultaneous_quantile(scores, single_units(150), all_pairs(k))
    tukey = stats.studentized_range.ppf(0.95, k, 149) / 2**0.5
    assert quantile == pytest.approx(tukey, rel=0.015)  # which is drawn


def test_the_quantile_of_a_single_pair_is_nearly_students() -> None:
    scores = np.random.default_rng(4).normal(size=(80, 2))
    quantile = simultaneous_quantile(scores, single_units(80), [Contrast(0, 1)])
    assert quantile == pytest.approx(stats.t.ppf(0.975, 79), rel=0.02)  # it is drawn


def test_an_interval_reaches_so_many_standard_errors_from_the_mean_difference() -> None:
    scores = np.random.default_rng(4).normal(size=(80, 3))
    pairs = all_pairs(3)
    intervals = simultaneous_intervals(scores, single_units(80), pairs, pairs)
    differences = np.column_stack([scores[:, a] - scores[:, b] for a, b in pairs])
    quantile = simultaneous_quantile(scores, single_units(80), pairs)
    reach = quantile * stats.sem(differences)
    mean = differences.mean(axis=0)
    assert [interval.low for interval in intervals] == pytest.approx(mean - reach)
    assert [interval.high for interval in intervals] == pytest.approx(mean + reach)


def test_an_interval_ends_where_the_differences_do() -> None:
    scores = np.array([[1.0, 0.0], [0.8, 0.6]])
    pair = [Contrast(0, 1)]
    (interval,) = simultaneous_intervals(
        scores, single_units(2), pair, pair, bounds=ValueRange(-1, 1)
    )
    (unbounded,) = simultaneous_intervals(scores, single_units(2), pair, pair)
    assert unbounded.high > 1
    assert interval.high == 1
    assert interval.low == max(-1, unbounded.low)


def test_another_retriever_does_not_move_the_draws() -> None:
    scores = np.random.default_rng(5).normal(size=(60, 3))
    first = simultaneous_quantile(scores, single_units(60), [Contrast(0, 1)])
    second = simultaneous_quantile(scores[:, :2], single_units(60), [Contrast(0, 1)])
    assert first == pytest.approx(second)


def test_nearly_equal_weights_have_the_quantile_of_equal_ones() -> None:
    """Units of equal weight have a formula of their own."""
    scores = np.random.default_rng(7).normal(size=(90, 5))
    weights = np.ones(90)
    equal = simultaneous_quantile(scores, single_units(90, weights), all_pairs(5))
    nearly = weights.copy()
    nearly[0] += 1e-12
    unequal = simultaneous_quantile(scores, single_units(90, nearly), all_pairs(5))
    assert unequal == pytest.approx(equal, rel=1e-9)


def test_a_retriever_that_is_there_twice_changes_no_quantile() -> None:
    scores = np.random.default_rng(8).normal(size=(90, 3))
    doubled = np.column_stack([scores, scores[:, 2]])
    alone = simultaneous_quantile(scores, single_units(90), all_pairs(3))
    twice = simultaneous_quantile(doubled, single_units(90), all_pairs(4))
    assert twice == pytest.approx(alone, rel=1e-12)


def test_clusters_are_the_units() -> None:
    scores = np.repeat(np.random.default_rng(6).normal(size=(40, 2)), 5, axis=0)
    clusters = [str(i // 5) for i in range(200)]
    pair = [Contrast(0, 1)]
    (by_cluster,) = simultaneous_intervals(scores, cluster_units(clusters), pair, pair)
    (by_query,) = simultaneous_intervals(scores, single_units(200), pair, pair)
    assert by_cluster.high - by_cluster.low > 2 * (by_query.high - by_query.low)


def lowest_shift_not_rejected(counts: PairCounts, alpha: float) -> float:
    """By all patterns: the lowest ratio whose chance is above alpha / 2."""
    won, lost, tied = counts
    chances: dict[Fraction, int] = {}
    for i in range(won + 1):
        for j in range(lost + 1):
            for k in range(tied + 1):
                flipped = i + j + k
                ratio = Fraction(i - j, flipped) if flipped else Fraction(-1)
                ways = comb(won, i) * comb(lost, j) * comb(tied, k)
                chances[ratio] = chances.get(ratio, 0) + ways
    total = 0
    for ratio in sorted(chances):
        total += chances[ratio]
        if 2 * total / 2 ** sum(counts) > alpha:
            return float(ratio)
    raise AssertionError


@pytest.mark.parametrize(
    "counts", [(12, 3, 9), (6, 0, 7), (8, 7, 5), (2, 9, 4), (1, 1, 14)]
)
def test_the_interval_of_a_binary_measure_inverts_the_sign_flips(
    counts: tuple[int, int, int],
) -> None:
    pair = PairCounts(*counts)
    interval = binary_interval(pair, 0.05)
    low = lowest_shift_not_rejected(pair, 0.05)
    high = -lowest_shift_not_rejected(pair.swapped, 0.05)
    assert (interval.low, interval.high) == (low, high)


@pytest.mark.parametrize(
    "counts", [(450, 459, 1091), (700, 100, 1200), (90, 40, 5000), (900, 850, 3)]
)
def test_of_many_queries_the_chance_passes_the_level_at_the_end(
    counts: tuple[int, int, int],
) -> None:
    won, lost, tied = counts
    j = np.arange(lost + 1)[:, None]
    k = np.arange(tied + 1)
    chances = np.outer(
        stats.binom.pmf(j[:, 0], lost, 0.5), stats.binom.pmf(k, tied, 0.5)
    )

    def chance(shift: float) -> float:
        most = np.floor((shift * (j + k) + j) / (1 - shift))
        return float((chances * stats.binom.cdf(most, won, 0.5)).sum())

    low = binary_interval(PairCounts(*counts), 0.05).low
    assert low is not None
    assert chance(low - 1e-12) <= 0.025 < chance(low + 1e-12)


@pytest.mark.parametrize("tied", [2, 10, 40])
def test_nearly_all_won_of_many_has_the_end_of_the_definition(tied: int) -> None:
    """At the first shift that is tried the chance is below the smallest float."""
    won = 2000 - tied
    flipped_ties = np.arange(tied + 1)

    def chance(shift: float) -> float:
        bound = np.floor(shift * flipped_ties / (1 - shift))
        tail = stats.binom.cdf(bound, won, 0.5)
        return float(stats.binom.pmf(flipped_ties, tied, 0.5) @ tail)

    low = binary_interval(PairCounts(won, 0, tied), 0.05).low
    assert low is not None
    assert chance(low - 1e-9) < 0.025 <= chance(low + 1e-9)


@pytest.mark.parametrize("won", [0, 12])
def test_where_all_differ_alike_a_binary_measure_has_no_interval(won: int) -> None:
    assert binary_interval(PairCounts(won, 12 - won, 0), 0.05).low is None


ALL_DIFFER = [(won, 0) for won in range(1, 12)]  # neither none nor all of twelve
SOME_TIE = list(product(range(13), (5, 40)))


@pytest.mark.parametrize(("won", "tied"), [*ALL_DIFFER, *SOME_TIE])
def test_it_never_contradicts_mcnemars_test(won: int, tied: int) -> None:
    counts = PairCounts(won, 12 - won, tied)
    interval = binary_interval(counts, 0.05)
    excludes_zero = not interval.low <= 0 <= interval.high
    assert excludes_zero == (mcnemar_p(counts) <= 0.05)


@pytest.mark.parametrize(("won", "lost", "tied"), [(3, 7, 0), (0, 3, 7), (5, 1, 2)])
def test_a_test_that_rejects_at_its_very_level_leaves_zero_outside(
    won: int, lost: int, tied: int
) -> None:
    counts = PairCounts(won, lost, tied)
    interval = binary_interval(counts, mcnemar_p(counts))
    assert not interval.low <= 0 <= interval.high


def test_a_pair_that_hardly_differs_leaves_the_quantile_of_the_others_finite() -> None:
    rng = np.random.default_rng(1)
    first = rng.random(60)
    nearly_first = first.copy()
    nearly_first[7] += 1e-8
    scores = np.column_stack([first, nearly_first, rng.random(60)])
    family = [Contrast(0, 1), Contrast(0, 2), Contrast(1, 2)]
    units = single_units(60)
    quantile = simultaneous_quantile(scores, units, family)
    alone = simultaneous_quantile(scores, units, family[1:])
    assert alone is not None and quantile is not None
    assert alone <= quantile < 10
