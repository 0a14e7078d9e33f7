"""What so many queries can find, and how many a difference worth finding needs: one model, and its uncertainty.

The model: the differences scatter with a standard deviation that is known only as well as so many of them tell it, and
are tested by a two-sided t-test at the smallest level of the family, with power 0.80. Nothing is planned from the
observed mean difference.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from scipy import special

from harness.stats.differences import Differences
from harness.stats.intervals import deviation

POWER = 0.80
FEWEST = 10
"""Non-zero differences below which nothing is said of power."""
CONFIDENCE = 0.80
"""Of the interval of the true standard deviation."""
MOST = 1_000_000
"""Queries beyond which no number is given."""


class PowerRange(NamedTuple):
    """A figure at both ends of the interval of the true standard deviation."""

    low: float
    high: float


class QueryRange(NamedTuple):
    """Numbers of queries (clusters, where declared) at both ends of the interval of the true standard deviation."""

    low: int | None
    """None: more than 1,000,000."""
    high: int | None


def t_power(effect: float, n: int, alpha: float) -> float:
    """Return the power of the two-sided paired t-test, from the noncentral t distribution.

    Args:
        effect: the true mean difference divided by the differences' standard deviation.
        n: pairs, 2 or more.
        alpha: two-sided level.

    >>> round(t_power(0.5, 34, 0.05), 4)
    0.8078
    """
    edge = float(special.stdtrit(n - 1, 1 - alpha / 2))
    centre = effect * math.sqrt(n)
    wrong_side = float(special.nctdtr(n - 1, centre, -edge))  # scipy gives NaN where it is below 1e-6
    return float(1 - special.nctdtr(n - 1, centre, edge)) + (0.0 if math.isnan(wrong_side) else wrong_side)


def queries_for(effect: float, alpha: float = 0.05) -> int | None:
    """Return the smallest number of pairs with power 0.80; None where it is above 1,000,000.

    Args:
        effect: the true mean difference divided by the differences' standard deviation; > 0.
        alpha: two-sided level.

    Raises:
        ValueError: the effect is not above 0.

    >>> queries_for(0.5), queries_for(0.2)
    (34, 199)
    """
    if not effect > 0:
        raise ValueError(f"the effect {effect} is not above 0")
    low, high = 1, 2
    while t_power(effect, high, alpha) < POWER:
        low, high = high, 2 * high
        if low >= MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if t_power(effect, middle, alpha) >= POWER else (middle, high)
    return high if high <= MOST else None


def detectable_effect(n: int, alpha: float = 0.05) -> float:
    """Return the smallest mean difference, in standard deviations, that n pairs find with power 0.80; n >= 2.

    >>> round(detectable_effect(34), 3)
    0.495
    """
    top = 1.0
    while t_power(top, n, alpha) < POWER:
        top *= 2
    low, high = 0.0, top
    while high - low > 1e-9 * high:  # scipy.optimize needs fewer steps, and longer to be imported than all of these
        middle = (low + high) / 2
        low, high = (middle, high) if t_power(middle, n, alpha) < POWER else (low, middle)
    return high


def deviation_range(pairs: Differences) -> PowerRange | None:
    """Return the 80 % interval of the true standard deviation (chi-square, n - 1 degrees of freedom).

    None below ten non-zero differences, and where all are equal: then nothing is said of power.

    Args:
        pairs: the observed differences; of clusters' means, where clusters are declared.
    """
    if pairs.wins + pairs.losses < FEWEST or pairs.constant:
        return None
    n = len(pairs.values)
    spread, tail = deviation(pairs.values) * math.sqrt(n - 1), (1 - CONFIDENCE) / 2
    low, high = (spread / math.sqrt(float(special.chdtri(n - 1, p))) for p in (tail, 1 - tail))
    return PowerRange(low, high)


def detectable(pairs: Differences, alpha: float) -> PowerRange | None:
    """Return the smallest true mean difference that these queries find with power 0.80, in points of the measure.

    Args:
        pairs: as for `deviation_range`, which says when there is none.
        alpha: two-sided level, divided by the rows of the family.
    """
    spread = deviation_range(pairs)
    if spread is None:
        return None
    effect = detectable_effect(len(pairs.values), alpha)
    return PowerRange(effect * spread.low, effect * spread.high)


def queries_needed(pairs: Differences, difference: float, alpha: float) -> QueryRange | None:
    """Return how many queries find a true mean difference with power 0.80.

    Args:
        pairs: as for `deviation_range`, which says when there is none; their mean is not used.
        difference: what must not be missed; > 0, in points of the measure.
        alpha: two-sided level, divided by the rows of the family.
    """
    spread = deviation_range(pairs)
    if spread is None:
        return None
    return QueryRange(queries_for(difference / spread.low, alpha), queries_for(difference / spread.high, alpha))
