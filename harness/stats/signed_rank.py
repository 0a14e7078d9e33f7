"""The exact Wilcoxon signed-rank test."""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from harness.stats.differences import Integers, PairedDifferences
from harness.stats.rank_sum_tails import grouped_tail, lower_tail, saddlepoint_tail

EXACT_LIMIT = 500
"""Non-zero differences up to which every sign pattern is counted."""
SMALLEST = sys.float_info.min
"""The smallest p-value that is reported (2.2e-308): a p of 0 would be impossible."""
FEW_SUMS = 22
"""Binary logarithm of the number of sums up to which few magnitudes are counted.

The sums are those of all magnitudes but the commonest.
"""


@dataclass(frozen=True, slots=True)
class SignedRank:
    """The result of the signed-rank test."""

    w_plus: float
    """Rank sum of the queries where a is ahead; larger differences rank higher."""
    w_minus: float
    """Rank sum of the queries where b is ahead."""
    statistic: float
    """The smaller of the two rank sums."""
    p_value: float
    """Chance of such a rank sum if every sign were random; 1 if no query differs."""
    p_minimum: float
    """The smallest p that this many non-zero differences can give."""
    zeros: int
    """Equal scores, which the test drops."""
    effect_size: float | None
    """Matched-pairs rank-biserial correlation; None if no query differs.

    (w_plus - w_minus) / (w_plus + w_minus).
    """
    method: str
    """How the p was computed: "exact" or "saddlepoint".

    The latter beyond 500 non-zero differences of more than a few sizes.
    """


class RankSums(NamedTuple):
    """The doubled ranks of the non-zero differences, with their sums."""

    ranks: Integers
    """(n,)"""
    plus: int
    """Sum of the doubled ranks of differences where a is ahead."""
    minus: int
    """Sum of the doubled ranks of differences where b is ahead."""


class TailMethod(NamedTuple):
    """A way to compute the lower tail of a rank sum."""

    lower_tail: Callable[[Integers, int], float]
    label: str


def signed_rank(differences: PairedDifferences) -> SignedRank:
    """Test whether paired differences are distributed symmetrically about zero.

    The test is conditional on their magnitudes. Equal scores are dropped before ranking
    (Wilcoxon 1945). Every sign pattern of the non-zero differences is equally likely;
    ties have mid-ranks; the rank sums of all patterns are counted, with a relative
    error of p below 1e-9 (all terms of all sums are positive). Beyond 500 non-zero
    differences they are counted only if there are few distinct magnitudes; else
    `saddlepoint_tail` is, down to p = 1e-12, within 1e-3 of the exact p (1e-2 where
    four to ten magnitudes are equally frequent).

    >>> from harness.stats.differences import paired_differences
    >>> a = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    >>> b = np.array([0.8, 0.6, 0.4, 0.2, 0.5])
    >>> result = signed_rank(paired_differences(a, b))
    >>> result.w_plus, result.zeros, result.p_value, result.p_minimum
    (10.0, 1, 0.125, 0.125)
    """
    ranks, plus, minus = _rank_sums(differences)
    n = len(ranks)
    method = _choose_method(ranks)
    p_value = 1.0
    p_minimum = 1.0
    if n:
        p_value = min(1.0, 2 * method.lower_tail(ranks, min(plus, minus)))
        p_minimum = math.ldexp(1.0, 1 - n)
    return SignedRank(
        w_plus=plus / 2,
        w_minus=minus / 2,
        statistic=min(plus, minus) / 2,
        p_value=max(p_value, p_minimum, SMALLEST),
        p_minimum=max(p_minimum, SMALLEST),
        zeros=len(differences.groups) - n,
        effect_size=effect_size(differences),
        method=method.label,
    )


def effect_size(differences: PairedDifferences) -> float | None:
    """Return the matched-pairs rank-biserial correlation (Kerby 2014) without a test.

    None if no query differs.

    >>> from harness.stats.differences import paired_differences
    >>> a, b = np.array([0.9, 0.8, 0.5]), np.array([0.8, 0.6, 0.8])
    >>> effect_size(paired_differences(a, b))
    0.0
    """
    _, plus, minus = _rank_sums(differences)
    if not plus + minus:
        return None
    return (plus - minus) / (plus + minus)


def _rank_sums(differences: PairedDifferences) -> RankSums:
    ranks = doubled_ranks(differences.groups)
    signs = differences.groups[differences.groups != 0]
    plus = int(ranks[signs > 0].sum())
    return RankSums(ranks, plus, int(ranks.sum()) - plus)


def doubled_ranks(groups: Integers) -> Integers:
    """Return twice the mid-rank of each non-zero difference, which is a whole number.

    They are in the order of the queries.

    >>> doubled_ranks(np.array([0, 1, -1, 2])).tolist()
    [3, 3, 6]
    """
    group_numbers = np.abs(groups)
    members = np.bincount(group_numbers)
    members[0] = 0
    before = np.cumsum(members) - members
    group_ranks = 2 * before + members + 1
    doubled: Integers = group_ranks[group_numbers[groups != 0]]
    return doubled


def _choose_method(ranks: Integers) -> TailMethod:
    """Return how to compute the tail of these ranks."""
    if len(ranks) <= EXACT_LIMIT:
        return TailMethod(lower_tail, "exact")
    members = np.sort(np.unique(ranks, return_counts=True)[1])
    # Sums of few sizes leave gaps, which no smooth formula knows: up to 11 % of p for
    # two sizes and 501 differences.
    if float(np.log2(members[:-1] + 1.0).sum()) <= FEW_SUMS:
        return TailMethod(grouped_tail, "exact")
    return TailMethod(saddlepoint_tail, "saddlepoint")
