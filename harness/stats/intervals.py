"""How far a mean may be from the truth."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from harness.stats.differences import SLACK, Differences, Floats
from harness.stats.draws import generator
from harness.stats.settings import Settings

RESAMPLES = 10_000
BLOCK = 1 << 22
"""Counts turned into floats at once; it bounds the memory and moves no result."""

Counts = npt.NDArray[np.uint8]


class Interval(NamedTuple):
    """A confidence interval; `method` is "t", "wilson", "bca", "hodges-lehmann" or "not estimable"."""

    low: float
    high: float
    method: str


def mean(values: Floats) -> float:
    """Return the mean, its sum rounded once (`math.fsum`): the order of the queries cannot move it."""
    return math.fsum(values) / len(values)


def mean_interval(values: Floats, level: float = 0.95, *, binary: bool = False) -> Interval:
    """Return Wilson's interval for a measure that can only be 0 or 1, else Student's t.

    Args:
        values: (n,).
        level: confidence.
        binary: whether the measure allows nothing but 0 and 1. Values that merely happen to be 0 and 1 do not
            tell: the mean of a measure that goes up to 2 is not bounded by 1.
    """
    if binary:
        return wilson(int(values.sum()), len(values), level)
    return student(values, level)


def student(values: Floats, level: float = 0.95) -> Interval:
    """Return Student's t interval of a mean; the mean itself, "not estimable", where all values are equal.

    >>> student(np.array([0.5])).method
    'not estimable'
    """
    n, centre = len(values), mean(values)
    if np.ptp(values) <= SLACK * max(1.0, float(np.abs(values).max())):
        return Interval(centre, centre, "not estimable")
    half = float(special.stdtrit(n - 1, (1 + level) / 2)) * deviation(values) / math.sqrt(n)
    return Interval(centre - half, centre + half, "t")


def deviation(values: Floats) -> float:
    """Return the standard deviation with n - 1, from exactly rounded sums; n >= 2."""
    centre = mean(values)
    return math.sqrt(math.fsum((values - centre) ** 2) / (len(values) - 1))


def wilson(successes: int, n: int, level: float = 0.95) -> Interval:
    """Return Wilson's (1927) score interval of a proportion.

    >>> [round(x, 4) for x in wilson(9, 10)[:2]]
    [0.5958, 0.9821]
    """
    z = float(special.ndtri((1 + level) / 2))
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return Interval(low, high, "wilson")


def mean_difference_interval(pairs: Differences, settings: Settings) -> Interval:
    """Return the interval of a mean difference: Student's t, or BCa where the settings ask for it."""
    if settings.interval == "bca":
        return bca(pairs.values, resample_counts(len(pairs.values), settings.seed), settings.level)
    return student(pairs.values, settings.level)


@lru_cache(maxsize=1)
def resample_counts(n: int, seed: int, resamples: int = RESAMPLES) -> Counts:
    """Return how often each of n queries stands in each bootstrap resample: (resamples, n), rows sum to n."""
    rng = generator(seed, "bootstrap", n)
    # One byte a count: twenty of one query among n are as good as impossible, 256 are.
    counts = np.empty((resamples, n), dtype=np.uint8)
    for row in counts:
        row[:] = np.bincount(rng.integers(n, size=n), minlength=n)
    counts.setflags(write=False)
    return counts


def resampled_means(values: Floats, counts: Counts) -> Floats:
    """Return the means of (n,) or (n, k) values over each resample: (resamples,) or (resamples, k)."""
    rows = max(1, BLOCK // len(values))
    parts = [counts[i : i + rows].astype(np.float64) @ values for i in range(0, len(counts), rows)]
    means: Floats = np.concatenate(parts) / len(values)
    return means


def bca(values: Floats, counts: Counts, level: float = 0.95) -> Interval:
    """Return the bias-corrected and accelerated bootstrap interval of a mean (Efron 1987).

    Percentiles are taken with linear interpolation; "not estimable" where all values are equal.

    Args:
        values: (n,).
        counts: (resamples, n) from `resample_counts`, shared by all measures and pairs.
        level: confidence.
    """
    centre = mean(values)
    slack = SLACK * max(1.0, float(np.abs(values).max()))
    if np.ptp(values) <= slack:
        return Interval(centre, centre, "not estimable")
    shifts = resampled_means(values - centre, counts)
    below = np.count_nonzero(shifts < -slack) + np.count_nonzero(np.abs(shifts) <= slack) / 2
    bias = float(special.ndtri(below / len(shifts)))
    spread = values - centre
    # The jackknife's skewness: leaving one value out moves the mean by -spread / (n - 1).
    acceleration = float(np.sum(spread**3) / (6 * np.sum(spread**2) ** 1.5))
    z = bias + special.ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    low, high = np.quantile(shifts, special.ndtr(bias + z / (1 - acceleration * z))) + centre
    return Interval(float(low), float(high), "bca")
