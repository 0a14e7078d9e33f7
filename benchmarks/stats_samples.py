"""What the program makes of samples of differences; used by stats.py."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from importlib import import_module

import numpy as np
from scipy import special, stats

from harness.stats.differences import Floats, PairedDifferences, paired_differences
from harness.stats.intervals import Interval
from harness.stats.rank_sum_tails import subset_sums
from harness.stats.sign_flip import Contrast, sign_flip
from harness.stats.signed_rank import doubled_ranks, signed_rank
from harness.stats.units import Units

ALPHA = 0.05
BATCH = 1_000
"""Experiments at a time, for the sake of memory."""


@contextlib.contextmanager
def changed(module: str, **values: object) -> Iterator[None]:
    """Set names of a module of the statistics for a while."""
    part = import_module(f"harness.stats.{module}")
    before = {name: getattr(part, name) for name in values}
    for name, value in values.items():
        setattr(part, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(part, name, value)


def observed(row: Floats) -> PairedDifferences:
    """Differences as the statistics want them."""
    return paired_differences(row, np.zeros(len(row)))


def claims(table: Floats, units: Units) -> Floats:
    """Which samples (rows) are called different."""
    columns = np.column_stack(
        [*(units.sums(row) for row in table), np.zeros(len(units))]
    )
    flips = sign_flip(
        columns, [Contrast(place, len(table)) for place in range(len(table))]
    )
    return np.array([flip.two_sided for flip in flips]) <= ALPHA


def rank_p(table: Floats) -> Floats:
    """The p of the signed-rank test for each row: by Edgeworth's expansion."""
    sizes = np.round(np.abs(table), 9)
    zeros = (sizes == 0).sum(axis=1, keepdims=True)
    ranks = np.where(sizes > 0, 2 * (stats.rankdata(sizes, axis=1) - zeros), 0.0)
    return flip_p(np.sign(table) * ranks, 2.0)


def covers(interval: Interval, truth: float = 0.0) -> bool:
    """Whether an interval holds the truth; one that cannot be estimated does not."""
    low, high, _ = interval
    return low is not None and high is not None and low <= truth <= high


COUNTED = 10
"""Non-zero values up to which all sign patterns are tried; beyond, the tail is
Edgeworth's.
"""


def flip_p(values: Floats, step: float = 0.0) -> Floats:
    """Return the two-sided p of each row's sum under all flips of its signs.

    Up to ten non-zero values by enumeration; beyond by Edgeworth's expansion with the
    variance and the kurtosis of the flips, and half a step of continuity. At 11 and
    more values the error of a p below 0.2 is less than 0.01.

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
        largest = np.take_along_axis(
            values[few], np.argsort(-np.abs(values[few]), axis=1)[:, :COUNTED], axis=1
        )
        reached = np.abs(largest @ _patterns(largest.shape[1]))
        p[few] = (
            reached >= sums[few, None] - 1e-9 * np.maximum(1.0, sums[few, None])
        ).mean(axis=1)
    return p


def _patterns(n: int) -> Floats:
    """Half of the flips of n signs: the other half gives the same sums with the other
    sign.
    """
    bits = (np.arange(2 ** (n - 1))[None, :] >> np.arange(n)[:, None]) & 1
    signs: Floats = (1 - 2 * bits).astype(np.float64)
    return signs


def swapped(n: int, steps: int, experiments: int) -> tuple[float, float]:
    """How often the exact test rejects where scores, multiples of 1/steps, are swapped
    at random; the attainable level.

    tests/harness/stats/test_signed_rank.py checks both.
    """
    rng = np.random.default_rng([n, steps])
    rejected, levels = 0, 0.0
    for _ in range(experiments):
        better = np.round(np.clip(rng.random(n) + 0.2, 0, 1) * steps) / steps
        worse = np.round(rng.random(n) * steps) / steps
        swap = rng.random(n) < 0.5
        a, b = np.where(swap, worse, better), np.where(swap, better, worse)
        rejected += signed_rank(paired_differences(a, b)).p_value <= ALPHA
        levels += attainable(a, b)
    return rejected / experiments, levels / experiments


def attainable(a: Floats, b: Floats) -> float:
    """The largest level of at most 5 % that the exact test can have with these
    magnitudes.
    """
    ranks = np.sort(doubled_ranks(paired_differences(a, b).groups))
    tail = np.ldexp(
        np.cumsum(subset_sums(ranks, int(ranks.sum()) // 2)), 1 - len(ranks)
    )
    return float(max(tail[tail <= ALPHA * (1 + 1e-12)], default=0.0))
