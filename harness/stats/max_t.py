"""The best of many configurations, tested by max-T."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.stats.differences import (
    SCORE_TOLERANCE,
    Floats,
    ScoreTable,
    index_of_highest,
)
from harness.stats.draws import draw_flipped_sums, enumerate_flipped_sums
from harness.stats.units import Units

Pairs = npt.NDArray[np.intp]

CROSS_FITTING_FOLDS = 5
"""Parts of the queries for cross-fitting."""
MAX_ENUMERATED_ROWS = 16
"""Units with a difference, up to which all their sign patterns are tried."""
MAX_PAIR_STATISTICS = 1 << 23
"""Statistics of pairs in memory at once; it changes no result."""
STATISTIC_TOLERANCE = 1e-9
"""Float noise of a statistic, within which a flip equals the observed one."""


def cross_fitted_scores(
    scores: ScoreTable, ids: Sequence[str], units: Units, *, seed: int = 0
) -> Floats | None:
    """Return each query's score by the retriever that is best on the other queries.

    It is cross-fitted, and never tested; its mean estimates, on new queries, the mean
    of the retriever that is best on these. The queries are split into five parts by
    SHA-256 of (seed, id); clusters stay whole, by the first of their ids. The retriever
    with the highest mean over four parts is measured on the fifth. None if all queries
    are in one part.

    Args:
        scores: retriever -> (n,) scores of one measure.
        ids: (n,) the queries.
        units: clusters and weights of the queries.
        seed: of the parts.
    """
    unit_numbers = units.members.tolist()
    first_ids: dict[int, str] = {}
    for unit, query_id in zip(unit_numbers, ids, strict=True):
        first_ids[unit] = min(query_id, first_ids.get(unit, query_id))
    folds = np.array([_fold(seed, first_ids[unit]) for unit in unit_numbers])
    table = np.column_stack(list(scores.values()))
    weights = np.ones(len(ids)) if units.weights is None else units.weights
    if not np.ptp(folds):
        return None
    held_out_scores = np.zeros(len(ids))
    for fold in np.unique(folds):
        is_test = folds == fold
        train_weights = weights[~is_test]
        means = train_weights @ table[~is_test] / train_weights.sum()
        held_out_scores[is_test] = table[is_test, index_of_highest(means)]
    return held_out_scores


def _fold(seed: int, query_id: str) -> int:
    digest = hashlib.sha256(f"{seed}/parts/{query_id}".encode()).digest()
    return int.from_bytes(digest, "big") % CROSS_FITTING_FOLDS


class MaxTResult(NamedTuple):
    """The gain of the best of many configurations over the default."""

    best: int
    """Its column: that of the highest mean."""
    p_value: float
    """One-sided, against the null hypothesis that no mean is above the default's."""
    gain: float
    """Its mean difference on the queries that chose it."""
    low: float | None
    """Lower bound of its true gain, whichever column had been chosen.

    None if all its differences are equal.
    """
    method: str
    """"enumerated" (exact) or "draws"."""


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
        alpha: the bound has confidence 1 - alpha/2; a claim needs p of at most alpha/2.
        seed: of the draws.

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
    return MaxTResult(
        best=best,
        p_value=_tail_share(np.sort(np.concatenate(maxima)), observed, sums),
        gain=float(gains[best]),
        low=_lower_bound(differences, units, best, alpha=alpha, seed=seed),
        method="enumerated" if is_enumerable(sums) else "draws",
    )


def _lower_bound(
    differences: Floats, units: Units, best: int, *, alpha: float, seed: int
) -> float | None:
    """Return the lower bound of the best column's true gain.

    It is the mean less c standard errors; c is a quantile of the largest studentised,
    centred column of all.
    """
    weight = units.totals.sum()
    shares = (units.totals / weight)[:, None]
    means = units.sums(differences).sum(axis=0) / weight
    slack = SCORE_TOLERANCE * max(1.0, float(np.abs(differences).max()))
    deviations = units.sums(differences - means) / weight
    varies = np.abs(deviations).max(axis=0) * len(units) > slack
    if float(shares.max()) > 1 - SCORE_TOLERANCE or not varies[best]:
        return None
    deviations = deviations[:, varies]
    squares = (_leverages(shares) * deviations**2).sum(axis=0)
    maxima = _studentised_maxima(deviations, shares, seed)
    c = float(np.quantile(maxima, 1 - alpha / 2, method="inverted_cdf"))
    return float(means[best] - c * np.sqrt(squares[varies[:best].sum()]))


def _studentised_maxima(deviations: Floats, shares: Floats, seed: int) -> Floats:
    """Return the largest studentised column of each flip.

    Each flip is studentised by its own standard error, that of `standard_error`: by the
    observed one, c would be too small, above all with few queries or unequal weights.

    Args:
        deviations: (units, k) deviations from the columns' means.
        shares: (units, 1) shares of the weight.
        seed: of the draws.
    """
    leverages = _leverages(shares)
    squares = (leverages * deviations**2).sum(axis=0)
    share_squares = (leverages * shares**2).sum()
    cross = leverages * shares
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
        variances = squares - 2 * sums * cross_sums + sums**2 * share_squares
        variances = np.maximum(variances, SCORE_TOLERANCE * squares)
        maxima.append((sums / np.sqrt(variances)).max(axis=1))
    return np.concatenate(maxima)


def _leverages(shares: Floats) -> Floats:
    """Return the factors of squared deviations in `standard_error`."""
    return np.asarray(1 / (1 - shares) ** 2)


class MaxTFamily(NamedTuple):
    """The tests of a family of column sums."""

    single_p_values: list[float]
    """Two-sided, of each column alone."""
    p_values: list[float]
    """Two-sided, corrected over all columns."""
    quantile: float | None
    """The largest |T| that a share `alpha` of the flips exceeds.

    None if no column varies.
    """


def max_t_family_tests(
    differences: Floats, *, alpha: float = 0.05, seed: int = 0
) -> MaxTFamily:
    """Test column sums, two-sided, as one family.

    T of a column is its sum over the root of its sum of squares. The signs of whole
    rows are flipped, shared by all columns; p is the share of flips whose largest |T|
    is at least that of the column.

    Args:
        differences: (units, m).
        alpha: the share of the flips that exceed the quantile.
        seed: of the draws.

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
    rising = np.sort(np.concatenate(maxima))
    extra = _observed_patterns(scaled)
    single_p_values = np.ones(differences.shape[1])
    single_p_values[varies] = (single_counts + extra) / (len(rising) + extra)
    p_values = np.ones(differences.shape[1])
    p_values[varies] = [_tail_share(rising, reached, scaled) for reached in observed]
    quantile = float(np.quantile(rising, 1 - alpha, method="inverted_cdf"))
    return MaxTFamily(single_p_values.tolist(), p_values.tolist(), quantile)


def max_t_pairs(
    scores: Floats, units: Units, best: int, *, alpha: float = 0.05, seed: int = 0
) -> list[bool]:
    """Return which configurations differ from one of them, by max-T over all pairs.

    The data choose the configuration, so that its pairs are corrected over all pairs:
    two-sided, single step.

    Args:
        scores: (n, m) scores of the configurations.
        units: clusters and weights of the queries.
        best: the column of the chosen one.
        alpha: level over all pairs.
        seed: of the draws.

    >>> from harness.stats.units import single_units
    >>> a = np.linspace(0.1, 0.9, 9)
    >>> max_t_pairs(np.column_stack([a, a - 0.05, a[::-1]]), single_units(9), 0)
    [False, True, False]
    """
    m = scores.shape[1]
    pairs = np.array(list(combinations(range(m), 2)), dtype=np.intp).reshape(-1, 2)
    if not len(pairs):
        return [False]
    sums = units.sums(scores - scores.mean(axis=1, keepdims=True))
    slack = SCORE_TOLERANCE * max(1.0, float(np.abs(scores).max()))
    root_slack = slack * np.sqrt(len(sums))
    roots = _root_squares_of_pairs(sums)
    varies = roots[pairs[:, 0], pairs[:, 1]] > root_slack
    maxima = np.sort(_pair_maxima(sums, pairs[varies], roots, seed))
    totals = sums.sum(axis=0)
    differs: list[bool] = []
    for column in range(m):
        root = roots[best, column]
        if column == best or root <= root_slack:
            differs.append(False)
            continue
        observed = abs(totals[best] - totals[column]) / root - STATISTIC_TOLERANCE
        differs.append(_tail_share(maxima, observed, sums) <= alpha)
    return differs


def _root_squares_of_pairs(sums: Floats) -> Floats:
    """Return the root of the sum of squared differences of each two columns: (m, m)."""
    products = sums.T @ sums
    squares = np.diag(products)
    pair_squares = squares[:, None] + squares[None, :] - 2 * products
    return np.asarray(np.sqrt(np.maximum(pair_squares, 0.0)))


def _pair_maxima(sums: Floats, pairs: Pairs, roots: Floats, seed: int) -> Floats:
    """Return the largest statistic over the pairs, for each flip."""
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


def _tail_share(rising_maxima: Floats, observed: float, sums: Floats) -> float:
    """Return the share of flips that reach the observed statistic."""
    observed_pattern = _observed_patterns(sums)
    flips = len(rising_maxima)
    as_extreme = flips - int(np.searchsorted(rising_maxima, observed))
    return (as_extreme + observed_pattern) / (flips + observed_pattern)


def _observed_patterns(sums: Floats) -> int:
    """Return how many patterns the observed signs add: of draws, they are one more."""
    return 0 if is_enumerable(sums) else 1


def is_enumerable(sums: Floats) -> bool:
    """Whether so few units differ that all their sign patterns are tried."""
    return int(np.abs(sums).any(axis=1).sum()) <= MAX_ENUMERATED_ROWS


def _flipped_sums(sums: Floats, seed: int) -> Iterator[Floats]:
    """Yield the sums of the columns under flips of whole rows.

    All patterns if few rows differ, else seeded draws.
    """
    if is_enumerable(sums):
        yield enumerate_flipped_sums(sums[np.abs(sums).any(axis=1)])
    else:
        yield from draw_flipped_sums(sums, seed)
