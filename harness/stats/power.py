"""What so many queries can show, and how many would be needed. All of it for the signed-rank test."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.differences import Differences, Floats, Integers
from harness.stats.draws import generator
from harness.stats.intervals import mean
from harness.stats.signed_rank import Zeros, subset_sums

POWER = 0.80
SIMULATIONS = 2_000
RESAMPLES = 200
MOST = 10_000
FEWEST = 10
"""Non-zero differences below which nothing is foretold."""
COUNTED = 50
"""Non-zero differences up to which a simulated test is exact; beyond, its critical value is the normal one."""


class Detectable(NamedTuple):
    """The smallest true mean difference that would be found four times in five."""

    difference: float | None
    """In points of the measure; None: even if every difference had the same sign, the test would miss it."""
    theta: float | None
    """The chance of a positive sign behind it."""


class Needed(NamedTuple):
    """How many queries would show the observed difference four times in five; None: more than 10,000."""

    low: int | None
    """10 % point over resamples of the queries."""
    high: int | None
    """90 % point."""
    best_guess: int | None


def minimum_detectable(pairs: Differences, *, level: float, zeros: Zeros = "wilcox", seed: int = 0) -> Detectable:
    """Return the minimum detectable mean difference at this many queries, by the model "sign tilt".

    Zeros and magnitudes are resampled from the observed ones; each non-zero difference is positive with
    probability theta, and 1/2 is the null hypothesis; the mean difference is (2 theta - 1) x mean |d|. The
    answer is the smallest one with a power of at least 0.80 over 2,000 seeded simulations.

    Args:
        pairs: the observed differences.
        level: two-sided level of the test: alpha / rows of the family.
        zeros: as in `signed_rank`.
        seed: of the simulations.
    """
    n = len(pairs.groups)
    rng = generator(seed, "sign tilt", n)
    sizes = np.abs(pairs.groups)
    drawn = sizes[rng.integers(n, size=(SIMULATIONS, n))]
    ranks = _doubled_ranks(drawn, zeros)
    limits = np.array([_critical(row[row > 0], level) for row in ranks])
    chances = rng.random((SIMULATIONS, n))

    def power(theta: float) -> float:
        against = np.where(chances >= theta, ranks, 0).sum(axis=1)
        return float(np.mean(against <= limits))

    if power(1.0) < POWER:
        return Detectable(None, None)
    low, high = 0.5, 1.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return Detectable((2 * high - 1) * mean(np.abs(pairs.values)), high)


def _doubled_ranks(sizes: Integers, zeros: Zeros) -> Integers:
    """Return twice the mid-ranks of the non-zero sizes within each row, 0 for zeros."""
    rows = len(sizes)
    width = int(sizes.max()) + 1
    flat = sizes + width * np.arange(rows)[:, None]
    members = np.bincount(flat.ravel(), minlength=rows * width).reshape(rows, width)
    if zeros == "wilcox":
        members[:, 0] = 0
    before = np.cumsum(members, axis=1) - members
    ranks = np.take_along_axis(2 * before + members + 1, sizes, axis=1)
    return np.where(sizes == 0, 0, ranks)


def _critical(ranks: Integers, level: float) -> int:
    """Return the largest rank sum against a that a two-sided test at `level` rejects; -1 where none is."""
    if not len(ranks):
        return -1
    if len(ranks) <= COUNTED:
        tail = np.cumsum(subset_sums(np.sort(ranks), int(ranks.sum()) // 2))
        return int(np.searchsorted(np.ldexp(tail, 1 - len(ranks)), level * (1 + 1e-12), side="right")) - 1
    spread = math.sqrt(float(ranks @ ranks))
    return math.floor(float(ranks.sum()) / 2 - 1 + float(special.ndtri(level / 2)) * spread / 2)


def queries_needed(pairs: Differences, *, level: float, zeros: Zeros = "wilcox", seed: int = 0) -> Needed | None:
    """Return how many queries like these would show the observed difference; None below 10 non-zero ones.

    The smallest N of the grid 1.25^i, at most 10,000, at which the signed-rank test on N resampled differences
    has a power of at least 0.80 (normal, with the exact mean and the leading variance of the rank sum under
    resampling). The interval is what 200 seeded resamples of the queries themselves say: quote it first.

    Args:
        pairs: the observed differences.
        level: two-sided level of the test: alpha / rows of the family.
        zeros: as in `signed_rank`.
        seed: of the resamples.
    """
    if pairs.wins + pairs.losses < FEWEST:
        return None
    n = len(pairs.groups)
    rng = generator(seed, "queries needed", n)
    resampled = [_smallest(pairs.groups[rng.integers(n, size=n)], level, zeros) for _ in range(RESAMPLES)]
    low, high = np.quantile(resampled, [0.1, 0.9], method="inverted_cdf").tolist()
    best_guess = _smallest(pairs.groups, level, zeros)
    return Needed(*(None if math.isinf(x) else int(x) for x in (low, high, best_guess)))


def grid() -> Integers:
    """Return the numbers of queries that are tried: 1.25^i rounded up, at most 10,000."""
    steps = np.arange(math.floor(math.log(MOST, 1.25)) + 1)
    return np.unique(np.ceil(np.round(1.25**steps, 9))).astype(np.int64)


def _smallest(groups: Integers, level: float, zeros: Zeros) -> float:
    """Return the smallest N of the grid with enough power, infinity where none has."""
    sizes = grid()
    enough = np.flatnonzero(resampling_power(groups, sizes, level, zeros) >= POWER)
    return float(sizes[enough[0]]) if len(enough) else math.inf


def resampling_power(groups: Integers, sizes: Integers, level: float, zeros: Zeros = "wilcox") -> Floats:
    """Return the power of the two-sided signed-rank test on N differences drawn from the observed ones.

    V = W+ - W- is a sum over pairs of draws; its mean is exact, its variance that of its projection on single
    draws (Hoeffding 1948), its spread under the null hypothesis that of the expected ranks.

    Args:
        groups: (n,) signed tie groups (`Differences.groups`).
        sizes: the numbers N of queries.
        level: two-sided level.
        zeros: as in `signed_rank`.
    """
    n = len(groups)
    magnitudes = np.abs(groups)
    share = np.bincount(magnitudes) / n
    tilt = np.bincount(magnitudes, weights=np.sign(groups)) / n
    ranked = np.where(np.arange(len(share)) > 0, 1.0, 0.0)
    if zeros == "wilcox":
        share, tilt, ranked = share[1:], tilt[1:], ranked[1:]
    others = sizes[:, None] - 1.0
    rank = (1 + others * (np.cumsum(share) - share / 2)) * ranked
    # One more draw of a group lifts the ranks of all larger differences by 1, of its equals by 1/2.
    lift = others * (tilt[::-1].cumsum()[::-1] - tilt / 2)
    centre = sizes * (tilt * rank).sum(axis=1)
    edge = 1 - float(special.ndtri(level / 2)) * np.sqrt(sizes * (share * rank**2).sum(axis=1))
    first = (tilt * rank + share * lift).sum(axis=1)
    second = (share * (rank**2 + lift**2) + 2 * tilt * rank * lift).sum(axis=1)
    spread = np.sqrt(np.maximum(sizes * (second - first**2), 1e-12))
    power: Floats = special.ndtr((centre - edge) / spread) + special.ndtr((-centre - edge) / spread)
    return power


def sakai_queries(effect: float, *, alpha: float = 0.05, power: float = POWER) -> int:
    """Return the queries that a paired t-test needs, in Sakai's (2016) closed form; for planning before any run.

    Args:
        effect: smallest mean difference worth finding, divided by the differences' standard deviation; > 0.
        alpha: two-sided level.
        power: chance of finding it.

    >>> sakai_queries(0.5)
    34
    """
    if not effect > 0:
        raise ValueError(f"the effect {effect} is not above 0")
    z, reach = float(special.ndtri(1 - alpha / 2)), float(special.ndtri(power))
    return math.ceil(((z + reach) / effect) ** 2 + z * z / 2)
