"""Many configurations against one default: the max-T test by flips of whole rows, and bounds that hold for all."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from harness.stats.differences import SLACK, Floats, Units
from harness.stats.sign_flip import flipped_sums

ENUMERATED = 16
"""Units with a difference, up to which all their sign patterns are tried."""
TOLD, FEWEST_TOLD, STATISTICS = 10_000, 1_000, 10**8
"""Flips by which pairs are told apart, at most and at least; in between, so many statistics of pairs are drawn."""
PAIRS = 1 << 23
"""Statistics of pairs held at once; it moves no result."""


class MaxT(NamedTuple):
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


def max_t(differences: Floats, units: Units, *, alpha: float = 0.05, seed: int = 0) -> MaxT:
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

    >>> from harness.stats.differences import singles
    >>> rows = [(1, 3, 2), (2, 1, 3), (0, 2, -1), (3, 4, 1), (1, -1, 2), (2, 3, 0), (-1, 2, 1), (1, 0, 3)]
    >>> found = max_t(np.array(rows) / 10, singles(8))  # counted by hand over all 256 patterns: 10 of them
    >>> found.best, found.p_value * 256, found.method
    (1, 10.0, 'enumerated')
    """
    totals = units.totals.sum()
    sums = units.sums(differences)
    gains = sums.sum(axis=0) / totals
    best = int(np.argmax(gains))
    slack = SLACK * max(1.0, float(np.abs(differences).max()))
    sums = np.where(np.abs(sums) <= slack, 0.0, sums)
    sizes = np.sqrt((sums**2).sum(axis=0))
    wide = np.where(sizes > 0, sizes, 1.0)
    observed = sums[:, best].sum() / wide[best] - 1e-9
    method = "enumerated" if _differing(sums) <= ENUMERATED else "draws"
    more = 1 if method == "draws" else 0
    largest = np.concatenate([some.max(axis=1) for some in _flips(sums / wide, seed)])
    p_value = (np.count_nonzero(largest >= observed) + more) / (len(largest) + more)
    return MaxT(best, float(p_value), float(gains[best]), _lower(differences, units, best, (alpha, seed)), method)


def _lower(differences: Floats, units: Units, best: int, how: tuple[float, int]) -> float | None:
    """The mean of the best column less c standard errors, c from the largest studentised, centred column of all."""
    alpha, seed = how
    totals, count = units.totals.sum(), len(units)
    means = units.sums(differences).sum(axis=0) / totals
    centred = units.sums(differences - means)
    errors = np.sqrt((centred**2).sum(axis=0) * count / max(1, count - 1)) / totals
    slack = SLACK * max(1.0, float(np.abs(differences).max()))
    if errors[best] <= slack:
        return None
    known = errors > slack
    flips = _flips(centred[:, known] / (errors[known] * totals), seed)
    largest = np.concatenate([some.max(axis=1) for some in flips])
    c = float(np.quantile(largest, 1 - alpha / 2, method="inverted_cdf"))
    return float(means[best] - c * errors[best])


def told_apart(values: Floats, units: Units, best: int, *, alpha: float = 0.05, seed: int = 0) -> list[bool]:
    """Say which configurations are told from one of them, by the max-T test over all pairs of configurations.

    The chosen one is chosen by the data, so that its pairs are corrected over all pairs: two-sided, single step.

    Args:
        values: (n, m) scores of the configurations.
        units: clusters and weights of the queries.
        best: the column of the chosen one.
        alpha: level over all pairs.
        seed: of the draws.

    >>> from harness.stats.differences import singles
    >>> a = np.linspace(0.1, 0.9, 9)
    >>> told_apart(np.column_stack([a, a - 0.05, a[::-1]]), singles(9), 0)
    [False, True, False]
    """
    pairs = np.array(list(combinations(range(values.shape[1]), 2)), dtype=np.intp).reshape(-1, 2)
    if not len(pairs):
        return [False]
    sums = units.sums(values - values.mean(axis=1, keepdims=True))
    slack = SLACK * max(1.0, float(np.abs(values).max()))
    squares = sums.T @ sums
    wide = np.sqrt(np.maximum(np.diag(squares)[:, None] + np.diag(squares)[None, :] - 2 * squares, 0.0))
    known = wide[pairs[:, 0], pairs[:, 1]] > slack * np.sqrt(len(sums))
    first, second = pairs[known].T
    sizes, largest = wide[first, second], []
    draws = max(FEWEST_TOLD, min(TOLD, STATISTICS // len(pairs)))
    for some in _flips(sums, seed, draws):
        step = max(1, PAIRS // max(1, len(first)))
        for start in range(0, len(some), step):
            part = some[start : start + step]
            gaps = np.abs(part[:, first] - part[:, second]) / sizes if len(first) else np.zeros((len(part), 1))
            largest.append(gaps.max(axis=1))
    drawn = np.sort(np.concatenate(largest))
    more = 0 if _differing(sums) <= ENUMERATED else 1
    total = sums.sum(axis=0)
    apart = []
    for other in range(values.shape[1]):
        size = wide[best, other]
        if other == best or size <= slack * np.sqrt(len(sums)):
            apart.append(False)
            continue
        beyond = len(drawn) - int(np.searchsorted(drawn, abs(total[best] - total[other]) / size - 1e-9))
        apart.append((beyond + more) / (len(drawn) + more) <= alpha)
    return apart


def _differing(sums: Floats) -> int:
    """Units with a difference: patterns of few of them are all tried."""
    return int(np.abs(sums).any(axis=1).sum())


def _flips(sums: Floats, seed: int, draws: int | None = None) -> Iterator[Floats]:
    """Yield the sums of the columns under flips of whole rows: all patterns of few rows, else seeded draws."""
    if _differing(sums) > ENUMERATED:
        yield from flipped_sums(sums, seed, draws)
        return
    patterns = np.zeros((1, sums.shape[1]))
    for row in sums[np.abs(sums).any(axis=1)]:
        patterns = np.concatenate([patterns + row, patterns - row])
    yield patterns
