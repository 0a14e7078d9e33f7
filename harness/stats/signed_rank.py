"""The exact Wilcoxon signed-rank test."""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from harness.stats.differences import Floats, Integers, PairedDifferences

EXACT_LIMIT = 500
"""Non-zero differences up to which every sign pattern is counted."""
SMALLEST = sys.float_info.min
"""No p-value is given below this (2.2e-308): a p of 0 would claim the impossible."""
FEW_SUMS = 22
"""Logarithm of the sums, of all sizes but the commonest, up to which differences of few sizes are counted."""
NEAR_CENTRE = 1e-3
"""Standard deviations from the centre below which the saddlepoint's formula is 0/0."""


@dataclass(frozen=True, slots=True)
class SignedRank:
    """What the signed-rank test found."""

    w_plus: float
    """Rank sum of the queries where a is ahead; ranks grow with the size of the difference."""
    w_minus: float
    """Rank sum of the queries where b is ahead."""
    statistic: float
    """The smaller of the two rank sums."""
    p_value: float
    """Chance of such a rank sum if every sign were a coin's toss; 1 where no query differs."""
    p_minimum: float
    """The smallest p that this many non-zero differences can give."""
    zeros: int
    """Differences that the test dropped: equal scores."""
    effect_size: float | None
    """Matched-pairs rank-biserial correlation, (w_plus - w_minus) / (w_plus + w_minus); None if no query differs."""
    method: str
    """"exact", or "saddlepoint" beyond 500 non-zero differences of more than a few sizes."""


def signed_rank(pairs: PairedDifferences) -> SignedRank:
    """Test whether paired differences are distributed symmetrically about zero, conditional on their magnitudes.

    Equal scores are dropped before ranking (Wilcoxon 1945). Every sign pattern of the non-zero differences is equally
    likely; ties have mid-ranks; the rank sums of all patterns are counted, with a relative error of p below 1e-9 (all
    terms of all sums are positive). Beyond 500 non-zero differences of more than a few sizes
    `saddlepoint_tail`, within 1e-3 of the count (1e-2 where four to ten sizes are equally frequent).

    >>> from harness.stats.differences import paired_differences
    >>> result = signed_rank(paired_differences(np.array([0.9, 0.8, 0.7, 0.6, 0.5]), np.array([0.8, 0.6, 0.4, 0.2, 0.5])))
    >>> result.w_plus, result.zeros, result.p_value, result.p_minimum
    (10.0, 1, 0.125, 0.125)
    """
    ranks, plus, minus = _rank_sums(pairs)
    n = len(ranks)
    tail, method = _tail_for(ranks)
    p, floor = (
        (min(1.0, 2 * tail(ranks, min(plus, minus))), math.ldexp(1.0, 1 - n))
        if n
        else (1.0, 1.0)
    )
    return SignedRank(
        w_plus=plus / 2,
        w_minus=minus / 2,
        statistic=min(plus, minus) / 2,
        p_value=max(p, floor, SMALLEST),
        p_minimum=max(floor, SMALLEST),
        zeros=len(pairs.groups) - n,
        effect_size=effect_size(pairs),
        method=method,
    )


def effect_size(pairs: PairedDifferences) -> float | None:
    """Return the matched-pairs rank-biserial correlation (Kerby 2014) without a test; None where no query differs.

    >>> from harness.stats.differences import paired_differences
    >>> effect_size(paired_differences(np.array([0.9, 0.8, 0.5]), np.array([0.8, 0.6, 0.8])))
    0.0
    """
    _, plus, minus = _rank_sums(pairs)
    return (plus - minus) / (plus + minus) if plus + minus else None


def _rank_sums(pairs: PairedDifferences) -> tuple[Integers, int, int]:
    """The doubled ranks, and their sums where a is ahead and where b is."""
    ranks = doubled_ranks(pairs.groups)
    plus = int(ranks[pairs.groups[pairs.groups != 0] > 0].sum())
    return ranks, plus, int(ranks.sum()) - plus


def doubled_ranks(groups: Integers) -> Integers:
    """Return twice the mid-rank of each non-zero difference, in the order of the queries: whole numbers.

    >>> doubled_ranks(np.array([0, 1, -1, 2])).tolist()
    [3, 3, 6]
    """
    sizes = np.abs(groups)
    members = np.bincount(sizes)
    members[0] = 0
    before = np.cumsum(members) - members
    doubled: Integers = (2 * before + members + 1)[sizes[groups != 0]]
    return doubled


def lower_tail(ranks: Integers, low: int) -> float:
    """Return the share of the 2^n subsets of `ranks` (whole numbers) whose sum is at most `low`.

    The ranks are dealt into two halves; each half's subset sums are counted, and the tail is the sum over the
    first half's sums of what the second half leaves room for.

    >>> lower_tail(np.array([1, 2, 3]), 2), lower_tail(np.array([1, 2, 3]), 4)
    (0.375, 0.75)
    """
    if low < 0:
        return 0.0
    total = int(ranks.sum())
    if 2 * low >= total:
        return 1.0 - lower_tail(ranks, total - low - 1)
    unit = int(np.gcd.reduce(ranks))
    ordered = np.sort(ranks) // unit
    low //= unit
    halves = ordered[::2], ordered[1::2]
    # Counts reach 2^(n/2): halving the exponent keeps their products below 2^1000 and all of them above 0.
    shifts = [len(half) // 2 for half in halves]
    first, second = (
        np.ldexp(subset_sums(half, low), -shift)
        for half, shift in zip(halves, shifts, strict=True)
    )
    room = np.minimum(low - np.arange(len(first)), len(second) - 1)
    patterns = float(first @ np.cumsum(second)[room])
    return math.ldexp(patterns, sum(shifts) - len(ranks))


def subset_sums(ranks: Integers, low: int) -> Floats:
    """Count the subsets of `ranks` (ascending, at most 250) by their sum, for the sums 0 … min(low, sum).

    >>> subset_sums(np.array([1, 2, 3]), 4).tolist()
    [1.0, 1.0, 1.0, 2.0, 1.0]
    """
    total = int(ranks.sum())
    last = min(total, low)
    if 2 * last > total:
        # A subset and its complement: the counts are symmetric, so that half of the columns will do.
        lower = subset_sums(ranks, total // 2)
        return np.concatenate([lower, lower[total - last : total - total // 2][::-1]])
    counts = np.zeros(last + 1)
    counts[0] = 1.0
    return with_subsets(counts, ranks)


def with_subsets(counts: Floats, ranks: Integers) -> Floats:
    """Count the same subsets with those of further ranks (ascending), for the same sums.

    >>> with_subsets(np.array([1.0, 1.0, 0.0, 0.0]), np.array([2])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    last, reach, other = len(counts) - 1, int(np.flatnonzero(counts)[-1]), counts.copy()
    for rank in ranks.tolist():
        if rank > last:
            break
        reach = min(reach + rank, last)
        np.add(
            counts[rank : reach + 1],
            counts[: reach + 1 - rank],
            out=other[rank : reach + 1],
        )
        other[:rank] = counts[:rank]
        counts, other = other, counts
    return counts


def _tail_for(ranks: Integers) -> tuple[Callable[[Integers, int], float], str]:
    """The way to the tail of these ranks, and its name."""
    if len(ranks) <= EXACT_LIMIT:
        return lower_tail, "exact"
    members = np.sort(np.unique(ranks, return_counts=True)[1])
    # Sums of few sizes leave gaps, which no smooth formula knows: up to 11 % of p for two sizes and 501 differences.
    if float(np.log2(members[:-1] + 1.0).sum()) <= FEW_SUMS:
        return grouped_tail, "exact"
    return saddlepoint_tail, "saddlepoint"


def grouped_tail(ranks: Integers, low: int) -> float:
    """Return `lower_tail` of ranks that have few different values: how many of each value is binomial.

    The values are dealt into two groups with about as many sums each; the tail is the sum over one group's sums of what
    the other leaves room for.

    >>> math.isclose(grouped_tail(np.array([1, 2, 2, 3]), 3), lower_tail(np.array([1, 2, 2, 3]), 3), rel_tol=1e-12)
    True
    """
    values, members = np.unique(ranks, return_counts=True)
    groups = [(np.zeros(1), np.ones(1)), (np.zeros(1), np.ones(1))]
    for one in np.argsort(-members, kind="stable").tolist():
        (sums, chances), other = sorted(groups, key=lambda group: len(group[0]))
        m, k = int(members[one]), np.arange(members[one] + 1)
        log = (
            special.gammaln(m + 1)
            - special.gammaln(k + 1)
            - special.gammaln(m - k + 1)
            - m * math.log(2)
        )
        added = (
            np.add.outer(sums, k * values[one]).ravel(),
            np.multiply.outer(chances, np.exp(log)).ravel(),
        )
        groups = [added, other]
    (few, weights), (sums, chances) = sorted(groups, key=lambda group: len(group[0]))
    order = np.argsort(few, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(weights[order])])
    return float(
        (chances * below[np.searchsorted(few[order], low - sums, side="right")]).sum()
    )


def saddlepoint_tail(ranks: Integers, low: int) -> float:
    """Return the saddlepoint approximation of `lower_tail`.

    Lugannani & Rice's formula for lattices with the second continuity correction (Daniels 1987, section 6). Given the
    magnitudes, the rank sum is a sum of independent r x (0 or 1): ties and dropped zeros are in it.

    >>> round(saddlepoint_tail(np.arange(1, 101), 1500) / lower_tail(np.arange(1, 101), 1500), 3)
    1.0
    """
    total = int(ranks.sum())
    if low < 0:
        return 0.0
    if 2 * low >= total:
        return 1.0 - saddlepoint_tail(ranks, total - low - 1)
    unit = int(np.gcd.reduce(ranks))
    r = (ranks // unit).astype(np.float64)
    # The sum is symmetric: at most `low` is as likely as at least total - low.
    edge = total // unit - low // unit - 0.5

    def slope(s: float) -> float:
        return float(r @ special.expit(s * r)) - edge

    top = 1.0 / r.max()
    while slope(top) < 0:
        top *= 2
    from scipy import optimize  # takes a second, and is needed from 500 differences on

    s: float = optimize.brentq(slope, 0.0, top, xtol=1e-300, rtol=1e-14)
    above = special.expit(s * r)
    spread = math.sqrt(float((r * r) @ (above * (1 - above))))
    w = math.sqrt(
        2
        * max(
            0.0, s * edge - float(np.logaddexp(0, s * r).sum()) + len(r) * math.log(2)
        )
    )
    if (
        w < NEAR_CENTRE
    ):  # both reciprocals grow beyond bounds there, and the sum is normal
        return float(special.ndtr(-2 * (edge - r.sum() / 2) / math.sqrt(float(r @ r))))
    density = math.exp(-w * w / 2) / math.sqrt(2 * math.pi)
    return float(special.ndtr(-w)) + density * (
        1 / (2 * math.sinh(s / 2) * spread) - 1 / w
    )
