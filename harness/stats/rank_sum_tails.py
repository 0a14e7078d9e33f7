"""The chance of a small rank sum."""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.differences import Floats, Integers

NEAR_CENTRE = 1e-3
"""Standard deviations from the centre below which the saddlepoint's formula is 0/0."""


def lower_tail(ranks: Integers, low: int) -> float:
    """Return the share of the 2^n subsets of `ranks` whose sum is at most `low`.

    The ranks (whole numbers) are split into two halves, and each half's subset sums are
    counted. The tail adds, for each sum of the first half, the sums of the second half
    that keep the total at most `low`.

    >>> lower_tail(np.array([1, 2, 3]), 2), lower_tail(np.array([1, 2, 3]), 4)
    (0.375, 0.75)
    """
    if low < 0:
        return 0.0
    total = int(ranks.sum())
    if 2 * low >= total:
        return 1.0 - lower_tail(ranks, total - low - 1)
    unit = int(np.gcd.reduce(ranks))
    rising = np.sort(ranks) // unit
    limit = low // unit
    # Counts of n ranks reach 2^(n/2): halving the exponent keeps their products below
    # 2^1000 for up to 2,000 ranks, and all of them above 0.
    first_shift = len(rising[::2]) // 2
    second_shift = len(rising[1::2]) // 2
    first = np.ldexp(subset_sums(rising[::2], limit), -first_shift)
    second = np.ldexp(subset_sums(rising[1::2], limit), -second_shift)
    limits_of_second = np.minimum(limit - np.arange(len(first)), len(second) - 1)
    # No product of vectors: from 10,000 sums on its last digits would depend on the
    # number of cores, and its threads take more time than they save.
    patterns = float((first * np.cumsum(second)[limits_of_second]).sum())
    return math.ldexp(patterns, first_shift + second_shift - len(ranks))


def subset_sums(ranks: Integers, low: int) -> Floats:
    """Count the subsets of `ranks` by their sum, for the sums 0 … min(low, sum).

    Args:
        ranks: ascending, at most 250.
        low: the largest sum.

    >>> subset_sums(np.array([1, 2, 3]), 4).tolist()
    [1.0, 1.0, 1.0, 2.0, 1.0]
    """
    total = int(ranks.sum())
    last = min(total, low)
    if 2 * last > total:
        # A subset and its complement make the counts symmetric: half is enough.
        lower = subset_sums(ranks, total // 2)
        upper = lower[total - last : total - total // 2][::-1]
        return np.concatenate([lower, upper])
    counts = np.zeros(last + 1)
    counts[0] = 1.0
    return with_subsets(counts, ranks)


def with_subsets(counts: Floats, ranks: Integers) -> Floats:
    """Return the counts of subsets by their sum, after further ranks were added.

    Args:
        counts: how many subsets have the sums 0, 1, 2 and so on.
        ranks: the further ranks, ascending.

    >>> with_subsets(np.array([1.0, 1.0, 0.0, 0.0]), np.array([2])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    last = len(counts) - 1
    largest_sum = int(np.flatnonzero(counts)[-1])
    fitting, members_of_rank = np.unique(ranks[ranks <= last], return_counts=True)
    # Sums below a rank get nothing added: zeros, which stand before the first sum.
    zeros = int(fitting.max(initial=0))
    current = np.concatenate([np.zeros(zeros), counts])
    following = current.copy()
    for rank, members in zip(fitting.tolist(), members_of_rank.tolist(), strict=True):
        largest_sum = min(largest_sum + members * rank, last)
        stop = zeros + largest_sum + 1
        sums = current[zeros:stop]
        lower_sums = current[zeros - rank : stop - rank]
        next_sums = following[zeros:stop]
        next_lower_sums = following[zeros - rank : stop - rank]
        for _ in range(members):
            np.add(sums, lower_sums, out=next_sums)
            sums, next_sums = next_sums, sums
            lower_sums, next_lower_sums = next_lower_sums, lower_sums
        if members % 2:  # the newest sums are in `following`
            current, following = following, current
    return current[zeros:]


class SumDistribution(NamedTuple):
    """The possible sums of a group of ranks, with their chances."""

    sums: Floats
    chances: Floats


def grouped_tail(ranks: Integers, low: int) -> float:
    """Return `lower_tail` of ranks that have few different values.

    How many of each value are in a subset is binomial. The values are split into two
    groups with about as many sums each; the tail adds, for each sum of one group, the
    chances of the other group's sums that keep the total at most `low`.

    >>> ranks = np.array([1, 2, 2, 3])
    >>> math.isclose(grouped_tail(ranks, 3), lower_tail(ranks, 3), rel_tol=1e-12)
    True
    """
    sizes, members = np.unique(ranks, return_counts=True)
    smaller = SumDistribution(np.zeros(1), np.ones(1))
    larger = SumDistribution(np.zeros(1), np.ones(1))
    for index in np.argsort(-members, kind="stable").tolist():
        extended = _with_tied_ranks(smaller, int(sizes[index]), int(members[index]))
        if len(extended.sums) <= len(larger.sums):
            smaller = extended
        else:
            smaller, larger = larger, extended
    order = np.argsort(smaller.sums, kind="stable")
    cumulated = np.concatenate([[0.0], np.cumsum(smaller.chances[order])])
    fitting = np.searchsorted(smaller.sums[order], low - larger.sums, side="right")
    return float((larger.chances * cumulated[fitting]).sum())


def _with_tied_ranks(
    distribution: SumDistribution, rank: int, n: int
) -> SumDistribution:
    """Return the distribution of the sums after n equal ranks were added."""
    k = np.arange(n + 1)
    log_chances = (
        special.gammaln(n + 1)
        - special.gammaln(k + 1)
        - special.gammaln(n - k + 1)
        - n * math.log(2)
    )
    chances = np.multiply.outer(distribution.chances, np.exp(log_chances))
    sums = np.add.outer(distribution.sums, k * rank)
    return SumDistribution(sums.ravel(), chances.ravel())


def saddlepoint_tail(ranks: Integers, low: int) -> float:
    """Return the saddlepoint approximation of `lower_tail`.

    Lugannani & Rice's formula for lattices with the second continuity correction
    (Daniels 1987, section 6). Given the magnitudes, the rank sum is a sum of
    independent r x (0 or 1), which includes ties and dropped zeros.

    >>> ranks = np.arange(1, 101)
    >>> round(saddlepoint_tail(ranks, 1500) / lower_tail(ranks, 1500), 3)
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
    t = _lattice_saddlepoint(r, edge)
    cumulant = float(np.logaddexp(0, t * r).sum())
    exponent = t * edge - cumulant + len(r) * math.log(2)
    w = math.sqrt(2 * max(0.0, exponent))
    if w < NEAR_CENTRE:  # both reciprocals grow beyond bounds, and the sum is normal
        return float(special.ndtr(-2 * (edge - r.sum() / 2) / math.sqrt(float(r @ r))))
    inclusion = special.expit(t * r)
    deviation = math.sqrt(float((r * r) @ (inclusion * (1 - inclusion))))
    density = math.exp(-w * w / 2) / math.sqrt(2 * math.pi)
    correction = 1 / (2 * math.sinh(t / 2) * deviation) - 1 / w
    return float(special.ndtr(-w)) + density * correction


def _lattice_saddlepoint(r: Floats, edge: float) -> float:
    """Return the t at which the mean of the tilted rank sum is the edge."""

    def excess(t: float) -> float:
        return float(r @ special.expit(t * r)) - edge

    top = 1.0 / r.max()
    while excess(top) < 0:
        top *= 2
    from scipy import optimize  # takes a second; needed only beyond 500 differences

    t: float = optimize.brentq(excess, 0.0, top, xtol=1e-300, rtol=1e-14)
    return t
