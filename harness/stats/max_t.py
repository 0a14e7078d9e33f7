"""Max-T: tests by the largest of many statistics.

`max_t_test` tests the best of many configurations against one default,
`max_t_family_tests` each of many columns, `max_t_differs_from` a chosen configuration
against each other. The signs of whole rows are flipped, for all columns alike, so that
columns that go together count as little more than one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.stats.differences import (
    SCORE_TOLERANCE,
    Floats,
    index_of_highest,
)
from harness.stats.draws import (
    MAX_ENUMERATED_UNITS,
    draw_flipped_sums,
    enumerate_flipped_sums,
)
from harness.stats.units import Units

Pairs = npt.NDArray[np.intp]

MAX_PAIR_STATISTICS = 1 << 23
"""Statistics of pairs in memory at once; it changes no result."""
STATISTIC_TOLERANCE = 1e-9
"""Float noise of a statistic, within which a flip equals the observed one."""


class MaxTResult(NamedTuple):
    """The gain of the best of many configurations over the default."""

    best: int
    """The column of the best configuration, which has the highest mean."""
    p_value: float
    """One-sided p against the null hypothesis that no mean is above the default's."""
    gain: float
    """The mean of best - default, on the same queries that chose the best."""
    low: float | None
    """Lower bound of the true gain; it is valid although the data chose the column.

    None if its mean difference is the same in all units, or one unit has as good as all
    of the weight.
    """
    method: str
    """How `p_value` was computed: "enumerated" (exact) or "draws".

    `low` may be from draws although `p_value` is exact: it flips the deviations from
    the mean, which even units without a difference have.
    """


def max_t_test(
    differences: Floats, units: Units, *, alpha: float = 0.05, seed: int = 0
) -> MaxTResult:
    """Test the configuration with the highest mean, as one of all that were tried.

    T of a column is its sum over the root of its sum of squares; the signs of whole
    rows are flipped, shared by all columns, and p is the share of flips whose largest T
    is at least that of the best column (Westfall & Young 1993; Chernozhukov,
    Chetverikov & Kato 2013). Up to 16 units that differ, all patterns; beyond, 100,000
    seeded draws, and p = (count + 1) / (draws + 1).

    Args:
        differences: (n, m) configurations - default, query by query.
        units: clusters and weights of the queries.
        alpha: of two sides, of which this is one: the bound has confidence 1 - alpha/2,
            and a claim needs p of at most alpha/2.
        seed: of the drawn signs.

    Counted by hand over all 256 patterns, 10 of them are as extreme:

    >>> from harness.stats.units import single_units
    >>> rows = [(1, 3, 2), (2, 1, 3), (0, 2, -1), (3, 4, 1)]
    >>> rows += [(1, -1, 2), (2, 3, 0), (-1, 2, 1), (1, 0, 3)]
    >>> result = max_t_test(np.array(rows) / 10, single_units(8))
    >>> result.best, result.p_value * 256, result.method
    (1, 10.0, 'enumerated')
    """
    slack = SCORE_TOLERANCE * max(1.0, float(np.abs(differences).max()))
    sums = units.sums(differences)
    gains = sums.sum(axis=0) / units.totals.sum()
    gains = np.where(np.abs(gains) <= slack, 0.0, gains)
    best = index_of_highest(gains)
    sums = np.where(np.abs(sums) <= slack, 0.0, sums)
    roots = np.sqrt((sums**2).sum(axis=0))
    roots = np.where(roots > 0, roots, 1.0)
    observed = sums[:, best].sum() / roots[best] - STATISTIC_TOLERANCE
    maxima = [flips.max(axis=1) for flips in _flipped_sums(sums / roots, seed)]
    rising_maxima = np.sort(np.concatenate(maxima))
    return MaxTResult(
        best=best,
        p_value=_tail_share(rising_maxima, observed, _extra_patterns(sums)),
        gain=float(gains[best]),
        low=_lower_bound(differences, units, best, alpha=alpha, seed=seed),
        method="enumerated" if _is_enumerable(sums) else "draws",
    )


def _lower_bound(
    differences: Floats, units: Units, best: int, *, alpha: float, seed: int
) -> float | None:
    """Return the lower bound of the best column's true gain.

    It is the mean less c standard errors. c is the (1 - alpha/2) quantile, over sign
    flips, of the largest studentised, centred column.

    `standard_error` multiplies the variance of n units by (n - 1) / n. Here that is
    left out of the error and of the studentised columns: in their product it cancels.

    Returns:
        The bound; None if one unit has as good as all of the weight, or the best
        column's mean difference is the same in all units.
    """
    weight = units.totals.sum()
    shares = (units.totals / weight)[:, None]
    means = units.sums(differences).sum(axis=0) / weight
    slack = SCORE_TOLERANCE * max(1.0, float(np.abs(differences).max()))
    deviations = units.sums(differences - means) / weight
    # Deviations are divided by the whole weight; times the number of units they are as
    # large as scores, of whose float noise `slack` is the limit.
    varies = np.abs(deviations).max(axis=0) * len(units) > slack
    if float(shares.max()) > 1 - SCORE_TOLERANCE or not varies[best]:
        return None
    deviations = deviations[:, varies]
    squares = (_deviation_factors(shares) * deviations**2).sum(axis=0)
    maxima = _studentised_maxima(deviations, shares, seed)
    c = float(np.quantile(maxima, 1 - alpha / 2, method="inverted_cdf"))
    best_among_varying = int(varies[:best].sum())
    return float(means[best] - c * np.sqrt(squares[best_among_varying]))


def _studentised_maxima(deviations: Floats, shares: Floats, seed: int) -> Floats:
    """Return the largest studentised column of each flip.

    Each flip is divided by its own standard error. With the observed one the quantile
    would be too small, above all with few queries or unequal weights.

    Args:
        deviations: (units, k) deviations from the columns' means.
        shares: (units, 1) shares of the weight.
        seed: of the drawn signs.
    """
    factors = _deviation_factors(shares)
    squares = (factors * deviations**2).sum(axis=0)
    share_squares = (factors * shares**2).sum()
    cross = factors * shares
    has_equal_shares = float(np.ptp(shares)) == 0
    columns = deviations
    if not has_equal_shares:
        columns = np.hstack([deviations, cross * deviations])
    maxima: list[Floats] = []
    for flips in _flipped_sums(columns, seed):
        if has_equal_shares:  # one product is enough
            sums = flips
            cross_sums = flips * cross[0]
        else:
            sums, cross_sums = np.hsplit(flips, 2)
        # A flip s has the sum S = sum(s d), and its units deviate from it by
        # s d - share S. The variance, sum(factor (s d - share S)^2), multiplied out:
        variances = squares - 2 * sums * cross_sums + sums**2 * share_squares
        # The terms can cancel, up to float noise below 0: hence the floor.
        variances = np.maximum(variances, SCORE_TOLERANCE * squares)
        maxima.append((sums / np.sqrt(variances)).max(axis=1))
    return np.concatenate(maxima)


def _deviation_factors(shares: Floats) -> Floats:
    """Return the factors of the units' squared deviations, as in `standard_error`.

    A unit pulls the mean towards itself: 1 / (1 - share) makes its deviation one from
    the mean of the other units.
    """
    return np.asarray(1 / (1 - shares) ** 2)


class MaxTFamily(NamedTuple):
    """The tests of a family of column sums."""

    single_p_values: list[float]
    """The two-sided p of each column alone."""
    p_values: list[float]
    """The two-sided p of each column, corrected over all columns."""
    quantile: float | None
    """The 1 - `alpha` quantile, over sign flips, of the largest |T|.

    None if every column is 0.
    """


def max_t_family_tests(
    differences: Floats, *, alpha: float = 0.05, seed: int = 0
) -> MaxTFamily:
    """Test column sums, two-sided, as one family.

    T of a column is its sum over the root of its sum of squares. The signs of whole
    rows are flipped, shared by all columns; p is the share of flips whose largest |T|
    is at least that of the column.

    Args:
        differences: (units, m) the columns.
        alpha: at most this share of the flips exceeds the quantile.
        seed: of the drawn signs.

    >>> rows = np.tile([[0.3, 0.0], [0.2, 0.1]], (5, 1))
    >>> family = max_t_family_tests(rows)
    >>> [round(p, 3) for p in (*family.single_p_values, *family.p_values)]
    [0.002, 0.062, 0.002, 0.072]
    """
    slack = SCORE_TOLERANCE * max(1.0, float(np.abs(differences).max(initial=0.0)))
    sums = np.where(np.abs(differences) <= slack, 0.0, differences)
    roots = np.sqrt((sums**2).sum(axis=0))
    varies = roots > 0
    if not varies.any():
        ones = [1.0] * differences.shape[1]
        return MaxTFamily(ones, ones, None)
    scaled = sums[:, varies] / roots[varies]
    observed = np.abs(scaled.sum(axis=0)) - STATISTIC_TOLERANCE
    maxima: list[Floats] = []
    single_counts = np.zeros(len(observed))
    for flips in _flipped_sums(scaled, seed):
        statistics = np.abs(flips)
        maxima.append(statistics.max(axis=1))
        single_counts += (statistics >= observed).sum(axis=0)
    rising_maxima = np.sort(np.concatenate(maxima))
    extra = _extra_patterns(scaled)
    single_p_values = np.ones(differences.shape[1])
    single_p_values[varies] = (single_counts + extra) / (len(rising_maxima) + extra)
    p_values = np.ones(differences.shape[1])
    p_values[varies] = [
        _tail_share(rising_maxima, statistic, extra) for statistic in observed
    ]
    quantile = float(np.quantile(rising_maxima, 1 - alpha, method="inverted_cdf"))
    return MaxTFamily(single_p_values.tolist(), p_values.tolist(), quantile)


def max_t_differs_from(
    scores: Floats, units: Units, chosen: int, *, alpha: float = 0.05, seed: int = 0
) -> list[bool]:
    """Return whether each configuration differs from the chosen one.

    The data chose it, so its pairs are corrected over all pairs of configurations: by
    max-T, two-sided, single step.

    Args:
        scores: (n, m) scores of the configurations.
        units: clusters and weights of the queries.
        chosen: the column of the chosen configuration.
        alpha: level over all pairs.
        seed: of the drawn signs.

    >>> from harness.stats.units import single_units
    >>> a = np.linspace(0.1, 0.9, 9)
    >>> scores = np.column_stack([a, a - 0.05, a[::-1]])
    >>> max_t_differs_from(scores, single_units(9), chosen=0)
    [False, True, False]
    """
    m = scores.shape[1]
    if m < 2:
        return [False] * m
    pairs = np.array(list(combinations(range(m), 2)), dtype=np.intp)
    # The mean of a query cancels in every pair; without it, sums of squares are smaller
    # and lose fewer digits.
    sums = units.sums(scores - scores.mean(axis=1, keepdims=True))
    slack = SCORE_TOLERANCE * max(1.0, float(np.abs(scores).max()))
    # Float noise of equal scores is no difference: such units are not flipped.
    sums = np.where(np.abs(sums) <= slack, 0.0, sums)
    root_slack = slack * np.sqrt(len(sums))
    roots = _root_squares_of_pairs(sums)
    varies = roots[pairs[:, 0], pairs[:, 1]] > root_slack
    rising_maxima = np.sort(_pair_maxima(sums, pairs[varies], roots, seed))
    extra = _extra_patterns(sums)
    totals = sums.sum(axis=0)
    differs: list[bool] = []
    for column in range(m):
        root = roots[chosen, column]
        if column == chosen or root <= root_slack:
            differs.append(False)
            continue
        observed = abs(totals[chosen] - totals[column]) / root - STATISTIC_TOLERANCE
        differs.append(_tail_share(rising_maxima, observed, extra) <= alpha)
    return differs


def _root_squares_of_pairs(sums: Floats) -> Floats:
    """Return the root of the sum of squared differences of each two columns: (m, m)."""
    products = sums.T @ sums
    squares = np.diag(products)
    pair_squares = squares[:, None] + squares[None, :] - 2 * products
    return np.asarray(np.sqrt(np.maximum(pair_squares, 0.0)))


def _pair_maxima(sums: Floats, pairs: Pairs, roots: Floats, seed: int) -> Floats:
    """Return the largest statistic over the pairs, for each flip.

    Args:
        sums: (units, m) one column for each configuration.
        pairs: (p, 2) the columns of each pair.
        roots: (m, m) by which the difference of two columns is divided.
        seed: of the drawn signs.
    """
    first, second = pairs.T
    pair_roots = roots[first, second]
    block_rows = max(1, MAX_PAIR_STATISTICS // max(1, len(pairs)))
    maxima: list[Floats] = []
    for flips in _flipped_sums(sums, seed):
        if not len(pairs):
            maxima.append(np.zeros(len(flips)))
            continue
        for start in range(0, len(flips), block_rows):
            block = flips[start : start + block_rows]
            statistics = np.abs(block[:, first] - block[:, second]) / pair_roots
            maxima.append(statistics.max(axis=1))
    return np.concatenate(maxima)


def _tail_share(rising_maxima: Floats, observed: float, extra: int) -> float:
    """Return the share of flips that reach the observed statistic.

    Args:
        rising_maxima: the largest statistic of each flip, in ascending order.
        observed: the statistic.
        extra: `_extra_patterns`.
    """
    flips = len(rising_maxima)
    as_extreme = flips - int(np.searchsorted(rising_maxima, observed))
    return (as_extreme + extra) / (flips + extra)


def _extra_patterns(sums: Floats) -> int:
    """Return how many patterns count besides those that are tried.

    1 if signs are drawn: the observed ones count as one more draw. 0 if all patterns
    are tried: the observed one is among them.
    """
    return 0 if _is_enumerable(sums) else 1


def _is_enumerable(sums: Floats) -> bool:
    """Whether so few units differ that all their sign patterns are tried."""
    return int(np.abs(sums).any(axis=1).sum()) <= MAX_ENUMERATED_UNITS


def _flipped_sums(sums: Floats, seed: int) -> Iterator[Floats]:
    """Yield the sums of the columns under flips of whole rows.

    All patterns if few units differ, else seeded draws.
    """
    if _is_enumerable(sums):
        yield enumerate_flipped_sums(sums[np.abs(sums).any(axis=1)])
    else:
        yield from draw_flipped_sums(sums, seed)
