"""How often a test finds a true difference: by simulation, and in closed form for many queries."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from harness.stats.differences import Floats, Integers, differences
from harness.stats.draws import generator
from harness.stats.populations import Population
from harness.stats.settings import Test
from harness.stats.signed_rank import Zeros

SIMULATIONS = 2_000
BLOCK = 1 << 19
"""Random numbers in memory at once."""
COUNTED = 10
"""Non-zero values up to which a simulated test tries all sign patterns; beyond, the tail is Edgeworth's."""


class Criterion(NamedTuple):
    """A test, and the level that it has to reach."""

    test: Test
    level: float
    """Two-sided: alpha / rows of the family."""
    zeros: Zeros = "wilcox"
    seed: int = 0


def simulated_power(truth: Population, n: int, asked: Criterion) -> float:
    """Return the share of 2,000 seeded samples of n that would be called "better", the truth's mean being above 0.

    As for a verdict the deciding test and that of the mean both have to reject, and ranks and mean to be above 0:
    alone, the signed-rank test "finds" skewed differences whose mean is 0.
    """
    return sum(shown for shown, _ in _samples(truth, n, asked)) / SIMULATIONS


def has_power(truth: Population, n: int, asked: Criterion, power: float) -> bool:
    """Return whether `simulated_power` is at least this power; no sample is drawn that cannot change the answer."""
    shown = missed = 0
    for better, drawn in _samples(truth, n, asked):
        shown, missed = shown + better, missed + drawn - better
        if shown / SIMULATIONS >= power:
            return True
        if (SIMULATIONS - missed) / SIMULATIONS < power:
            break
    return False


def _samples(truth: Population, n: int, asked: Criterion) -> Iterator[tuple[int, int]]:
    """Draw the samples in blocks, and yield how many of a block are called "better", and how many these are."""
    stream, rows = generator(asked.seed, "power", n), max(1, min(SIMULATIONS // 8, BLOCK // n))
    groups = differences(truth.values, np.zeros(len(truth.values))).groups
    chances = np.cumsum(truth.weights)
    for start in range(0, SIMULATIONS, rows):  # a stream in blocks is the same stream
        drawn = stream.random((min(rows, SIMULATIONS - start), n))
        places = np.minimum(np.searchsorted(chances, drawn), len(chances) - 1)
        yield _rejections(truth.values[places], groups[places], asked), len(drawn)


def _rejections(values: Floats, groups: Integers, asked: Criterion) -> int:
    """How many of the samples, a row of values and tie groups each, are called "better"."""
    signs = np.sign(groups)
    ranks = signs * doubled_ranks_by_row(np.abs(groups), asked.zeros)
    p = flip_p(values)
    match asked.test:
        case "t":
            p = np.maximum(p, _t(values))
        case "sign":
            p = np.maximum(p, _sign(signs))
        case "wilcoxon":
            p = np.maximum(p, flip_p(ranks.astype(np.float64), step=2.0))
        case "randomization":
            pass
    ahead = (ranks.sum(axis=1) > 0) & (values.sum(axis=1) > 0)
    return int(np.count_nonzero((p <= asked.level * (1 + 1e-12)) & ahead))


def _sign(signs: Integers) -> Floats:
    wins, non_zero = (signs > 0).sum(axis=1), (signs != 0).sum(axis=1)
    fewer = np.minimum(wins, non_zero - wins).astype(np.float64)
    p: Floats = np.minimum(1.0, 2 * special.bdtr(fewer, non_zero, 0.5))
    return p


def _t(values: Floats) -> Floats:
    n = values.shape[1]
    spread = values.std(axis=1, ddof=1) if n > 1 else np.zeros(len(values))
    t = np.divide(values.mean(axis=1) * np.sqrt(n), spread, out=np.zeros(len(values)), where=spread > 1e-12)
    p: Floats = 2 * special.stdtr(max(1, n - 1), -np.abs(t))
    return p


def flip_p(values: Floats, step: float = 0.0) -> Floats:
    """Return the two-sided p of each row's sum under all flips of its signs.

    Up to ten non-zero values by enumeration; beyond by Edgeworth's expansion with the variance and the kurtosis of
    the flips, and half a step of continuity. At 11 and more values the error of a p below 0.2 is less than 0.01.

    Args:
        values: (rows, n), zeros included.
        step: between two possible sums; 0 where they are dense.
    """
    sums = np.abs(values.sum(axis=1))
    non_zero = np.count_nonzero(values, axis=1)
    squared = values**2
    squares = np.maximum(squared.sum(axis=1), 1e-100)
    spread = np.sqrt(squares)
    z = np.maximum(sums - step / 2, 0.0) / spread
    kurtosis = -2 * (squared**2).sum(axis=1) / squares**2
    density: Floats = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    tail = special.ndtr(-z) - density * kurtosis / 24 * (3 * z - z**3)
    p: Floats = np.clip(2 * tail, np.ldexp(1.0, 1 - np.minimum(non_zero, 1_000)), 1.0)
    few = non_zero <= COUNTED
    if few.any():
        largest = np.take_along_axis(values[few], np.argsort(-np.abs(values[few]), axis=1)[:, :COUNTED], axis=1)
        reached = np.abs(largest @ _patterns(largest.shape[1]))
        p[few] = (reached >= sums[few, None] - 1e-9 * np.maximum(1.0, sums[few, None])).mean(axis=1)
    return p


def _patterns(n: int) -> Floats:
    """Half of the flips of n signs: the other half gives the same sums with the other sign."""
    bits = (np.arange(2 ** (n - 1))[None, :] >> np.arange(n)[:, None]) & 1
    signs: Floats = (1 - 2 * bits).astype(np.float64)
    return signs


def doubled_ranks_by_row(sizes: Integers, zeros: Zeros) -> Integers:
    """Return twice the mid-ranks of the non-zero sizes (tie groups, whole numbers) within each row, 0 for zeros."""
    rows = len(sizes)
    width = int(sizes.max()) + 1
    flat = sizes + width * np.arange(rows)[:, None]
    members = np.bincount(flat.ravel(), minlength=rows * width).reshape(rows, width)
    if zeros == "wilcox":
        members[:, 0] = 0
    before = np.cumsum(members, axis=1) - members
    ranks = np.take_along_axis(2 * before + members + 1, sizes, axis=1)
    nonzero_ranks: Integers = np.where(sizes == 0, 0, ranks)
    return nonzero_ranks


def approximate_power(truth: Population, sizes: npt.ArrayLike, asked: Criterion) -> Floats:
    """Return the power at each number of queries, from normal moments; for a hundred queries and more.

    Of the two tests that both have to reject, the weaker one's.

    Args:
        truth: the differences with their chances.
        sizes: (m,) numbers of queries.
        asked: the test and its level.
    """
    counts = np.asarray(sizes, dtype=np.float64)
    reached = np.sqrt(counts) * truth.mean / max(truth.deviation, 1e-12)
    power: Floats = special.ndtr(reached + special.ndtri(asked.level / 2))
    return power if asked.test in ("t", "randomization") else np.minimum(power, _rank_power(truth, counts, asked))


def _rank_power(truth: Population, sizes: Floats, asked: Criterion) -> Floats:
    """Return the power of the signed-rank or the sign test.

    V = W+ - W- is a sum over pairs of draws; its mean is exact, its variance that of its projection on single
    draws (Hoeffding 1948), its spread under the null hypothesis that of the expected ranks.
    """
    groups = differences(truth.values, np.zeros(len(truth.values))).groups
    magnitudes = np.abs(groups)
    share = np.bincount(magnitudes, weights=truth.weights)
    tilt = np.bincount(magnitudes, weights=np.sign(groups) * truth.weights)
    ranked = np.where(np.arange(len(share)) > 0, 1.0, 0.0)
    if asked.zeros == "wilcox":
        share, tilt, ranked = share[1:], tilt[1:], ranked[1:]
    others = sizes[:, None] - 1.0
    if asked.test == "sign":
        others = 0.0 * others  # Every rank is 1.
    rank = (1 + others * (np.cumsum(share) - share / 2)) * ranked
    # One more draw of a group lifts the ranks of all larger differences by 1, of its equals by 1/2.
    lift = others * (tilt[::-1].cumsum()[::-1] - tilt / 2)
    centre = sizes * (tilt * rank).sum(axis=1)
    edge = 1 - float(special.ndtri(asked.level / 2)) * np.sqrt(sizes * (share * rank**2).sum(axis=1))
    first = (tilt * rank + share * lift).sum(axis=1)
    second = (share * (rank**2 + lift**2) + 2 * tilt * rank * lift).sum(axis=1)
    spread = np.sqrt(np.maximum(sizes * (second - first**2), 1e-12))
    power: Floats = special.ndtr((centre - edge) / spread)
    return power
