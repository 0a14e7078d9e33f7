"""The interval of a difference of 0/1 scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.differences import Floats, Integers
from harness.stats.intervals import NOT_ESTIMABLE, Interval

MAX_SORTED_SHIFTS = 3_000
"""Shifts that are sorted to find an end; while there are more, they are halved."""
MAX_FULL_COUNT = 60
"""Largest number of coins whose counts are summed in full."""
TIE_SLACK = 1e-12
"""Float noise of a count that is a whole number."""
LEVEL_SLACK = 1e-12
"""Float noise of a chance that equals the level, as a share of it."""
WINDOW_DEVIATIONS = 7.7
"""Standard deviations of a binomial beyond which its mass is below 1e-14."""


class PairCounts(NamedTuple):
    """How often one of two sides won on the same queries, lost, or tied."""

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
    <= s (i + j + k), for a shift below the difference; above it, won and lost are
    swapped. At 0 this is McNemar's test: 0 is in the interval exactly if that
    test does not reject. Not estimable below two queries, or if all are won, all are
    lost, or all are tied.

    >>> [round(end, 4) for end in binary_interval(PairCounts(12, 3, 35))[:2]]
    [0.0385, 0.3333]
    """
    n = sum(counts)
    if n < 2 or max(counts) == n:
        return NOT_ESTIMABLE
    difference = (counts.won - counts.lost) / n
    low = _lower_end(counts, difference, alpha)
    # 0.0 - x, since -x can be -0.0, which would be printed.
    high = 0.0 - _lower_end(counts.swapped, -difference, alpha)
    # Where the chance is near the level, its float noise must not decide.
    if mcnemar_p(counts) > alpha:
        low = min(low, 0.0)
        high = max(high, 0.0)
    return Interval(low, high, "sign flips")


def mcnemar_p(counts: PairCounts) -> float:
    """Return the p of McNemar's exact test: a sign test of the untied queries."""
    untied = counts.won + counts.lost
    smaller = min(counts.won, counts.lost)
    return min(1.0, 2 * float(special.bdtr(smaller, untied, 0.5))) if untied else 1.0


def _lower_end(counts: PairCounts, difference: float, alpha: float) -> float:
    """Return the lowest shift that is not rejected: -1 if none from there on is.

    The chance of a flip with i - j <= s (i + j + k) rises with s, and only at the
    shifts (i - j) / (i + j + k), one of which is the end.
    """
    flips = _untied_flips(counts)
    ties = _tied_flips(counts.tied)
    bracket = _Bracket(
        flips=flips,
        ties=ties,
        low=-1.0,
        high=difference,
        fitting_low=_fitting_ties(flips, ties, -1.0),
        fitting_high=_fitting_ties(flips, ties, difference),
    )
    level = alpha / 2 * (1 + LEVEL_SLACK)
    if bracket.chance(bracket.fitting_low) > level:
        return bracket.low
    if bracket.chance(bracket.fitting_high) <= level:
        return bracket.high
    # Ties join in another order on each side of 0 (`first_shift_above`).
    if bracket.low < 0 < bracket.high:
        bracket.cut(0.0, level)
    middle = bracket.middle
    while bracket.shifts > MAX_SORTED_SHIFTS and bracket.low < middle < bracket.high:
        bracket.cut(middle, level)
        middle = bracket.middle
    return bracket.first_shift_above(level)


class TiedFlips(NamedTuple):
    """How many tied queries are flipped: a number k from `fewest` to `most`."""

    fewest: int
    most: int
    chances: Floats
    """(m,), symmetric."""
    cumulated: Floats
    """(m + 1,): the sum of no chance, of the first, of the first two and so on."""


class UntiedFlips(NamedTuple):
    """How many won and lost queries are flipped, in every combination."""

    won: Floats
    """(c,): i."""
    lost: Floats
    """(c,): j."""
    chances: Floats
    """(c,)"""


def _fitting_ties(flips: UntiedFlips, ties: TiedFlips, shift: float) -> Integers:
    """Return how many numbers k are as extreme as the shift allows: (c,).

    Those are the largest ones above a shift of zero, and the smallest below.
    """
    # i (1 - shift) - j (1 + shift) <= shift k
    bounds = flips.won * (1 - shift) - flips.lost * (1 + shift)
    possible = len(ties.chances)
    if shift > 0:
        fitting = ties.most + 1 - np.ceil(bounds / shift - TIE_SLACK)
    elif shift < 0:
        fitting = np.floor(bounds / shift + TIE_SLACK) + 1 - ties.fewest
    else:
        fitting = np.where(bounds <= 0, possible, 0)
    limited: Integers = np.clip(fitting, 0, possible).astype(np.int64)
    return limited


@dataclass
class _Bracket:
    """The shifts between one that is rejected and one that is not."""

    flips: UntiedFlips
    """The flips whose fitting ties differ between `low` and `high`."""
    ties: TiedFlips
    low: float
    high: float
    fitting_low: Integers
    """(c,)"""
    fitting_high: Integers
    """(c,)"""
    settled: float = 0.0
    """The chance of flips that are as extreme at both or at neither."""

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2

    @property
    def shifts(self) -> int:
        """Number of shifts above `low` and up to `high` at which a flip joins."""
        return int((self.fitting_high - self.fitting_low).sum())

    def chance(self, fitting: Integers) -> float:
        """Return the chance of a flip that is as extreme, by its fitting ties."""
        # No product of vectors, whose last digits depend on the number of cores.
        return self.settled + float(
            (self.flips.chances * self.ties.cumulated[fitting]).sum()
        )

    def cut(self, shift: float, level: float) -> None:
        """Keep the part in which the chance rises above the level."""
        fitting = _fitting_ties(self.flips, self.ties, shift)
        if self.chance(fitting) > level:
            self.high = shift
            self.fitting_high = fitting
        else:
            self.low = shift
            self.fitting_low = fitting
        is_open = self.fitting_low < self.fitting_high
        settled_chances = self.ties.cumulated[self.fitting_low[~is_open]]
        self.settled += float((self.flips.chances[~is_open] * settled_chances).sum())
        self.flips = UntiedFlips(*(column[is_open] for column in self.flips))
        self.fitting_low = self.fitting_low[is_open]
        self.fitting_high = self.fitting_high[is_open]

    def first_shift_above(self, level: float) -> float:
        """Return the first shift at which the chance is above the level."""
        joining = self.fitting_high - self.fitting_low
        rows = np.repeat(np.arange(len(joining)), joining)
        steps = np.arange(len(rows)) - np.repeat(np.cumsum(joining) - joining, joining)
        steps += self.fitting_low[rows]
        tied = self.ties.most - steps if self.high > 0 else self.ties.fewest + steps
        won = self.flips.won[rows]
        lost = self.flips.lost[rows]
        shifts = (won - lost) / (won + lost + tied)
        order = np.argsort(shifts, kind="stable")
        chances = (self.flips.chances[rows] * self.ties.chances[steps])[order]
        reached = self.chance(self.fitting_low) + np.cumsum(chances)
        index = int(np.searchsorted(reached, level, side="right"))
        return float(shifts[order][index]) if index < len(order) else self.high


def _untied_flips(counts: PairCounts) -> UntiedFlips:
    won = _binomial(counts.won)
    lost = _binomial(counts.lost)
    return UntiedFlips(
        np.repeat(won.numbers, len(lost.numbers)),
        np.tile(lost.numbers, len(won.numbers)),
        np.outer(won.chances, lost.chances).ravel(),
    )


def _tied_flips(tied: int) -> TiedFlips:
    numbers, chances = _binomial(tied)
    cumulated = np.concatenate([[0.0], np.cumsum(chances)])
    return TiedFlips(int(numbers[0]), int(numbers[-1]), chances, cumulated)


class Binomial(NamedTuple):
    """The counts of fair coins that have mass, with their chances."""

    numbers: Floats
    chances: Floats


def _binomial(n: int) -> Binomial:
    low = 0
    high = n
    if n > MAX_FULL_COUNT:
        half_width = WINDOW_DEVIATIONS * math.sqrt(n) / 2
        low = max(0, math.floor(n / 2 - half_width))
        high = min(n, math.ceil(n / 2 + half_width))
    numbers = np.arange(low, high + 1, dtype=np.float64)
    log_chances = (
        special.gammaln(n + 1)
        - special.gammaln(numbers + 1)
        - special.gammaln(n - numbers + 1)
        - n * math.log(2)
    )
    return Binomial(numbers, np.exp(log_chances))
