"""The best of many configurations, tested by max-T."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from harness.stats.differences import (
    SCORE_TOLERANCE,
    Floats,
    ScoreTable,
    index_of_highest,
)
from harness.stats.draws import draw_flipped_sums, enumerate_flipped_sums
from harness.stats.intervals import mean
from harness.stats.units import Units

CROSS_FITTING_FOLDS = 5
"""Of the queries, for cross-fitting."""


def cross_fitted_mean(
    scores: ScoreTable, ids: Sequence[str], units: Units, *, seed: int = 0
) -> float | None:
    """Estimate the mean, on new queries, of what has the highest mean on these: cross-fitted, never tested.

    The queries fall into five parts by SHA-256 of (seed, id); clusters stay whole, by the id of their first query. The
    retriever with the highest mean over four parts is measured on the fifth; the estimate is the mean over all queries.
    None where all queries fall into one part.

    Args:
        scores: retriever -> (n,) scores of one measure.
        ids: (n,) the queries.
        units: clusters and weights of the queries.
        seed: of the parts.
    """
    first: dict[int, str] = {}
    for unit, query in zip(units.members.tolist(), ids, strict=True):
        first[unit] = min(query, first.get(unit, query))
    part = np.array([_part(seed, first[unit]) for unit in units.members.tolist()])
    table = np.column_stack(list(scores.values()))
    weights = np.ones(len(ids)) if units.weights is None else units.weights
    if not np.ptp(part):
        return None
    left_out = np.zeros(len(ids))
    for one in np.unique(part):
        held = part == one
        chosen = index_of_highest(weights[~held] @ table[~held] / weights[~held].sum())
        left_out[held] = table[held, chosen]
    return mean(left_out, units.weights)


def _part(seed: int, query: str) -> int:
    return (
        int.from_bytes(hashlib.sha256(f"{seed}/parts/{query}".encode()).digest(), "big")
        % CROSS_FITTING_FOLDS
    )


MAX_ENUMERATED_ROWS = 16
"""Units with a difference, up to which all their sign patterns are tried."""
MAX_PAIR_STATISTICS = 1 << 23
"""Statistics of pairs held at once; it moves no result."""


class MaxTResult(NamedTuple):
    """What the best of many configurations is worth against the default."""

    best: int
    """Its column: that of the highest mean."""
    p_value: float
    """One-sided, against the null hypothesis that no configuration has a higher mean than the default."""
    gain: float
    """Its mean difference on the queries that chose it."""
    low: float | None
    """Lower bound of its true gain, whichever column had been chosen; None where all its differences are equal."""
    method: str
    """"enumerated" (exact) or "draws"."""


def max_t_test(
    differences: Floats, units: Units, *, alpha: float = 0.05, seed: int = 0
) -> MaxTResult:
    """Test the configuration of the highest mean against the default, as one of all that were tried.

    T of a column is its sum over the root of its sum of squares; the signs of whole rows are flipped, shared by all
    columns, and p is the share of flips whose largest T is at least that of the best column (Westfall & Young 1993;
    Chernozhukov, Chetverikov & Kato 2013). Up to 16 units that differ, all patterns; beyond, 100,000 seeded draws, and
    p = (count + 1) / (draws + 1).

    Args:
        differences: (n, m) configurations - default, query by query.
        units: clusters and weights of the queries.
        alpha: the bound has confidence 1 - alpha/2; a claim is made where p is at most alpha/2.
        seed: of the draws.

    >>> from harness.stats.units import single_units
    >>> rows = [(1, 3, 2), (2, 1, 3), (0, 2, -1), (3, 4, 1), (1, -1, 2), (2, 3, 0), (-1, 2, 1), (1, 0, 3)]
    >>> found = max_t_test(np.array(rows) / 10, single_units(8))  # counted by hand over all 256 patterns: 10 of them
    >>> found.best, found.p_value * 256, found.method
    (1, 10.0, 'enumerated')
    """
    totals = units.totals.sum()
    sums = units.sums(differences)
    slack = SCORE_TOLERANCE * max(1.0, float(np.abs(differences).max()))
    gains = sums.sum(axis=0) / totals
    gains = np.where(np.abs(gains) <= slack, 0.0, gains)
    best = index_of_highest(gains)
    sums = np.where(np.abs(sums) <= slack, 0.0, sums)
    sizes = np.sqrt((sums**2).sum(axis=0))
    wide = np.where(sizes > 0, sizes, 1.0)
    observed = sums[:, best].sum() / wide[best] - 1e-9
    method = "enumerated" if _differing(sums) <= MAX_ENUMERATED_ROWS else "draws"
    more = 1 if method == "draws" else 0
    largest = np.concatenate([some.max(axis=1) for some in _flips(sums / wide, seed)])
    p_value = (np.count_nonzero(largest >= observed) + more) / (len(largest) + more)
    return MaxTResult(
        best,
        float(p_value),
        float(gains[best]),
        _lower(differences, units, best, (alpha, seed)),
        method,
    )


def _lower(
    differences: Floats, units: Units, best: int, how: tuple[float, int]
) -> float | None:
    """The mean of the best column less c standard errors, c from the largest studentised, centred column of all.

    Each flip is studentised by its own standard error, that of `standard_error`: by the observed one, c would be too
    small, most with few queries or unequal weights.
    """
    alpha, seed = how
    shares = (units.totals / units.totals.sum())[:, None]
    means = units.sums(differences).sum(axis=0) / units.totals.sum()
    slack = SCORE_TOLERANCE * max(1.0, float(np.abs(differences).max()))
    centred = units.sums(differences - means) / units.totals.sum()
    known = np.abs(centred).max(axis=0) * len(units) > slack
    if float(shares.max()) > 1 - SCORE_TOLERANCE or not known[best]:
        return None
    centred, seen = centred[:, known], 1 / (1 - shares) ** 2
    squares, more, largest = (
        (seen * centred**2).sum(axis=0),
        (seen * shares**2).sum(),
        [],
    )
    alike, cross = (
        float(np.ptp(shares)) == 0,
        seen * shares,
    )  # one product does for units of equal weight
    for some in _flips(
        centred if alike else np.hstack([centred, cross * centred]), seed
    ):
        sums, crossed = (some, some * cross[0]) if alike else np.hsplit(some, 2)
        errors = np.maximum(
            squares - 2 * sums * crossed + sums**2 * more, SCORE_TOLERANCE * squares
        )
        largest.append((sums / np.sqrt(errors)).max(axis=1))
    c = float(
        np.quantile(np.concatenate(largest), 1 - alpha / 2, method="inverted_cdf")
    )
    return float(means[best] - c * np.sqrt(squares[known[:best].sum()]))


def max_t_pairs(
    values: Floats, units: Units, best: int, *, alpha: float = 0.05, seed: int = 0
) -> list[bool]:
    """Say which configurations are told from one of them, by the max-T test over all pairs of configurations.

    The chosen one is chosen by the data, so that its pairs are corrected over all pairs: two-sided, single step.

    Args:
        values: (n, m) scores of the configurations.
        units: clusters and weights of the queries.
        best: the column of the chosen one.
        alpha: level over all pairs.
        seed: of the draws.

    >>> from harness.stats.units import single_units
    >>> a = np.linspace(0.1, 0.9, 9)
    >>> max_t_pairs(np.column_stack([a, a - 0.05, a[::-1]]), single_units(9), 0)
    [False, True, False]
    """
    pairs = np.array(
        list(combinations(range(values.shape[1]), 2)), dtype=np.intp
    ).reshape(-1, 2)
    if not len(pairs):
        return [False]
    sums = units.sums(values - values.mean(axis=1, keepdims=True))
    slack = SCORE_TOLERANCE * max(1.0, float(np.abs(values).max()))
    squares = sums.T @ sums
    wide = np.sqrt(
        np.maximum(
            np.diag(squares)[:, None] + np.diag(squares)[None, :] - 2 * squares, 0.0
        )
    )
    known = wide[pairs[:, 0], pairs[:, 1]] > slack * np.sqrt(len(sums))
    first, second = pairs[known].T
    sizes, largest = wide[first, second], []
    for some in _flips(sums, seed):
        step = max(1, MAX_PAIR_STATISTICS // max(1, len(first)))
        for start in range(0, len(some), step):
            part = some[start : start + step]
            gaps = (
                np.abs(part[:, first] - part[:, second]) / sizes
                if len(first)
                else np.zeros((len(part), 1))
            )
            largest.append(gaps.max(axis=1))
    drawn = np.sort(np.concatenate(largest))
    more = 0 if _differing(sums) <= MAX_ENUMERATED_ROWS else 1
    total = sums.sum(axis=0)

    def apart(other: int) -> bool:
        size = wide[best, other]
        if size <= slack * np.sqrt(len(sums)):
            return False
        beyond = len(drawn) - int(
            np.searchsorted(drawn, abs(total[best] - total[other]) / size - 1e-9)
        )
        return (beyond + more) / (len(drawn) + more) <= alpha

    return [other != best and apart(other) for other in range(values.shape[1])]


def _differing(sums: Floats) -> int:
    """Units with a difference: patterns of few of them are all tried."""
    return int(np.abs(sums).any(axis=1).sum())


def _flips(sums: Floats, seed: int) -> Iterator[Floats]:
    """Yield the sums of the columns under flips of whole rows: all patterns of few rows, else seeded draws."""
    if _differing(sums) > MAX_ENUMERATED_ROWS:
        yield from draw_flipped_sums(sums, seed)
    else:
        yield enumerate_flipped_sums(sums[np.abs(sums).any(axis=1)])
