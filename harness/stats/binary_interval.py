"""The interval of a difference of 0/1 scores."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.differences import Floats
from harness.stats.intervals import NOT_ESTIMABLE, Interval

BISECTIONS = 60
"""Halvings of a range of 2: the end is found to the last digit."""
MAX_PATTERNS = 2_000_000
"""Pairs of counts that are summed in full."""
TIE_SLACK = 1e-12
"""Float noise of a count that is a whole number."""
WINDOW_DEVIATIONS = 9.0
"""Standard deviations of a binomial beyond which its mass is below 1e-17."""


class PairCounts(NamedTuple):
    """How two retrievers did on the same queries, by a measure of 0 and 1."""

    won: int
    lost: int
    tied: int

    @property
    def swapped(self) -> PairCounts:
        """The same counts seen from the other retriever."""
        return PairCounts(self.lost, self.won, self.tied)


def binary_interval(counts: PairCounts, alpha: float = 0.05) -> Interval:
    """Return the closed hull of the shifts that the sign flips do not reject.

    For a shift s the differences less s are flipped, and s is rejected if the two-sided
    p is at most alpha. Exact by the three counts: with i of the won, j of the lost and k
    of the tied queries flipped, a flip is as extreme as the observed signs if
    i - j <= s (i + j + k). At 0 this is McNemar's test: 0 is in the interval exactly if
    that test does not reject.

    >>> [round(end, 4) for end in binary_interval(PairCounts(12, 3, 35))[:2]]
    [0.0385, 0.3333]
    """
    n = sum(counts)
    if n < 2 or max(counts) == n:
        return NOT_ESTIMABLE
    difference = (counts.won - counts.lost) / n
    low = _lower_end(counts, difference, alpha)
    high = -_lower_end(counts.swapped, -difference, alpha)
    if mcnemar_p(counts) > alpha:
        low = min(low, 0.0)
        high = max(high, 0.0)
    return Interval(_without_noise(low), _without_noise(high), "sign flips")


def _without_noise(end: float) -> float:
    return 0.0 if abs(end) < TIE_SLACK else end


def mcnemar_p(counts: PairCounts) -> float:
    """Return the p of McNemar's exact test: a sign test of the untied queries."""
    untied = counts.won + counts.lost
    smaller = min(counts.won, counts.lost)
    return min(1.0, 2 * float(special.bdtr(smaller, untied, 0.5))) if untied else 1.0


def _lower_end(counts: PairCounts, difference: float, alpha: float) -> float:
    """Return the lowest shift that is not rejected.

    The chance rises with the shift, so that the end is found by halving.
    """
    tail = partial(_tail, counts)
    low = -1.0
    high = difference
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if 2 * tail(middle) > alpha:
            high = middle
        else:
            low = middle
    return high


def _tail(counts: PairCounts, shift: float) -> float:
    """Return the chance of a flip with i - j <= shift (i + j + k)."""
    won, won_chances = _binomial(counts.won)
    lost, lost_chances = _binomial(counts.lost)
    # i (1 - shift) - j (1 + shift) <= shift k
    weights = won[:, None] * (1 - shift) - lost[None, :] * (1 + shift)
    if abs(shift) <= 1e-15:
        within = (weights <= TIE_SLACK).astype(np.float64)
    elif shift > 0:
        # k of at least weights / shift
        needed = np.ceil(weights / shift - TIE_SLACK)
        within = special.bdtrc(needed - 1, counts.tied, 0.5)
        within = np.where(needed <= 0, 1.0, np.where(needed > counts.tied, 0.0, within))
    else:
        # k of at most weights / shift
        allowed = np.floor(weights / shift + TIE_SLACK)
        within = special.bdtr(np.clip(allowed, 0, counts.tied), counts.tied, 0.5)
        within = np.where(allowed < 0, 0.0, within)
    chance = float(won_chances @ within @ lost_chances)
    return max(chance, math.ldexp(1.0, -sum(counts)))


def _binomial(n: int) -> tuple[Floats, Floats]:
    """Return the counts of n fair coins that have mass, with their chances."""
    low = 0
    high = n
    if n * n > MAX_PATTERNS:
        reach = WINDOW_DEVIATIONS * math.sqrt(n) / 2
        low = max(0, math.floor(n / 2 - reach))
        high = min(n, math.ceil(n / 2 + reach))
    numbers = np.arange(low, high + 1, dtype=np.float64)
    log_chances = (
        special.gammaln(n + 1)
        - special.gammaln(numbers + 1)
        - special.gammaln(n - numbers + 1)
        - n * math.log(2)
    )
    return numbers, np.exp(log_chances)
