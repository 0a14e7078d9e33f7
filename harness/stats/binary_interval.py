"""The interval of a difference of 0/1 scores."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.differences import Floats
from harness.stats.intervals import NOT_ESTIMABLE, Interval
from harness.stats.signed_rank import SMALLEST

END_TOLERANCE = 1e-11
"""Width at which the search for an end stops."""
MAX_FULL_COUNT = 60
"""Largest number of coins whose counts are summed in full."""
BRACKET_DEVIATIONS = 6.0
"""Standard errors from the difference at which the search for an end begins."""
TIE_SLACK = 1e-12
"""Float noise of a count that is a whole number."""
WINDOW_DEVIATIONS = 7.7
"""Standard deviations of a binomial beyond which its mass is below 1e-14."""


class PairCounts(NamedTuple):
    """How two retrievers did on the same queries, by a measure of 0 and 1."""

    won: int
    lost: int
    tied: int

    @property
    def swapped(self) -> PairCounts:
        """The same counts seen from the other retriever."""
        return PairCounts(self.lost, self.won, self.tied)


@lru_cache(maxsize=4096)
def binary_interval(counts: PairCounts, alpha: float = 0.05) -> Interval:
    """Return the closed hull of the shifts that the sign flips do not reject.

    For a shift s the differences less s are flipped, and s is rejected if the two-sided
    p is at most alpha. Exact by the three counts: with i of the won, j of the lost and
    k of the tied queries flipped, a flip is as extreme as the observed signs if i - j
    <= s (i + j + k). At 0 this is McNemar's test: 0 is in the interval exactly if that
    test does not reject.

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
    return 0.0 if abs(end) <= 10 * END_TOLERANCE else end


def mcnemar_p(counts: PairCounts) -> float:
    """Return the p of McNemar's exact test: a sign test of the untied queries."""
    untied = counts.won + counts.lost
    smaller = min(counts.won, counts.lost)
    return min(1.0, 2 * float(special.bdtr(smaller, untied, 0.5))) if untied else 1.0


def _lower_end(counts: PairCounts, difference: float, alpha: float) -> float:
    """Return the lowest shift that is not rejected.

    The chance rises with the shift, so that the end is found by halving.
    """
    from scipy import optimize  # takes 0.1 s, for 0/1 measures alone

    tail = partial(_tail, counts)
    n = sum(counts)
    spread = math.sqrt(max(1 / n, (counts.won + counts.lost) / n - difference**2) / n)
    low = max(-1.0, difference - BRACKET_DEVIATIONS * spread)
    if 2 * tail(low) > alpha:
        low = -1.0
    level = math.log(alpha / 2)

    def log_excess(shift: float) -> float:
        return math.log(max(tail(shift), SMALLEST)) - level

    if log_excess(difference) <= 0:
        return difference
    if log_excess(low) >= 0:
        return low
    end = optimize.brentq(log_excess, low, difference, xtol=END_TOLERANCE)
    return float(end)


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
    if n > MAX_FULL_COUNT:
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
