"""How far a mean may be from the truth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from harness.stats.differences import SLACK, Differences, Floats
from harness.stats.draws import generator
from harness.stats.facts import Range
from harness.stats.settings import Settings
from harness.stats.units import Units, singles

RESAMPLES = 10_000
BLOCK = 1 << 22
"""Counts turned into floats at once; it bounds the memory and moves no result."""
KEPT = 1 << 28
"""Bytes of resamples that are kept from one measure to the next; more are drawn again, in blocks."""

ResampleCounts = npt.NDArray[np.uint8]


class Interval(NamedTuple):
    """A confidence interval; `method` is "t", "logit", "wilson", "bca" or "not estimable" (both ends None then)."""

    low: float | None
    high: float | None
    method: str


NONE = Interval(None, None, "not estimable")
"""All values equal, or a single one: nothing tells how far they scatter."""


def mean(values: Floats) -> float:
    """Return the mean, its sum rounded once (`math.fsum`): the order of the queries cannot move it."""
    return math.fsum(values) / len(values)


def mean_interval(
    values: Floats,
    level: float = 0.95,
    *,
    binary: bool = False,
    bounds: Range | None = None,
    units: Units | None = None,
) -> Interval:
    """Return Wilson's interval for a measure that can only be 0 or 1, else Student's t within the measure's range.

    Args:
        values: (n,).
        level: confidence.
        binary: whether the measure allows nothing but 0 and 1. Values that merely happen to be 0 and 1 do not
            tell: the mean of a measure that goes up to 2 is not bounded by 1.
        bounds: the measure's range, which the interval does not leave; None where it is not known.
        units: clusters of the queries, if any.
    """
    if binary and (units is None or not units.clustered):
        return wilson(int(values.sum()), len(values), level) if len(values) > 1 else NONE
    return student(values, level, bounds=bounds, units=units)


def student(
    values: Floats, level: float = 0.95, *, bounds: Range | None = None, units: Units | None = None
) -> Interval:
    """Return Student's t interval of a mean, "not estimable" where all values are equal.

    Where it would leave `bounds`, it is the t interval of the logit of the mean by the delta method, transformed
    back ("logit"). By clusters it has the cluster-robust standard error and clusters - 1 degrees of freedom.

    >>> student(np.array([0.5])).method
    'not estimable'
    >>> student(np.array([0.8, 0.9, 1.0, 1.0]), bounds=Range(0, 1)).method
    'logit'
    """
    error = standard_error(values, units)
    if error is None:
        return NONE
    centre, count = mean(values), len(values if units is None else units)
    reach = float(special.stdtrit(count - 1, (1 + level) / 2)) * error
    low, high = centre - reach, centre + reach
    if bounds is None or (bounds.low <= low and high <= bounds.high):
        return Interval(low, high, "t")
    share = (centre - bounds.low) / bounds.span
    if not 0 < share < 1:
        return NONE
    middle, wide = float(special.logit(share)), reach / bounds.span / (share * (1 - share))
    low, high = (bounds.low + bounds.span * float(special.expit(middle + side)) for side in (-wide, wide))
    return Interval(low, high, "logit")


def standard_error(values: Floats, units: Units | None = None) -> float | None:
    """Return the standard error of a mean, robust to clusters; None where all values, or cluster means, are equal.

    Its square is G / (G - 1) x the sum over the G clusters of (sum of the deviations within)^2 / n^2; with one query
    a cluster that is the usual one.
    """
    slack = SLACK * max(1.0, float(np.abs(values).max()))
    off = values - mean(values)
    sums, sizes = (off, np.ones(len(off))) if units is None else (units.sums(off), units.sizes)
    count = len(sums)
    if count < 2 or float(np.ptp(sums / sizes)) <= slack:
        return None
    return math.sqrt(count / (count - 1) * math.fsum(sums**2)) / len(values)


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


def mean_difference_interval(
    pairs: Differences, settings: Settings, *, span: float | None = None, units: Units | None = None
) -> Interval:
    """Return the interval of a mean difference: Student's t, or BCa where the settings ask for it.

    Args:
        pairs: the differences, (n,).
        settings: kind, confidence and seed.
        span: the measure's range: no difference of means is larger; None where it is not known.
        units: clusters of the queries, if any.
    """
    if settings.interval == "bca":
        grouped = singles(len(pairs.values)) if units is None else units
        return bca(pairs.values, resample_blocks(len(grouped), settings.seed), settings.level, grouped)
    return student(pairs.values, settings.level, bounds=None if span is None else Range(-span, span), units=units)


@lru_cache(maxsize=1)
def resample_counts(n: int, seed: int, resamples: int = RESAMPLES) -> ResampleCounts:
    """Return how often each of n queries stands in each bootstrap resample: (resamples, n), rows sum to n."""
    counts = _drawn(generator(seed, "bootstrap", n), n, resamples)
    counts.setflags(write=False)
    return counts


def resample_blocks(n: int, seed: int, resamples: int = RESAMPLES) -> Iterator[ResampleCounts]:
    """Yield the first rows of `resample_counts` in blocks: of many queries all of them would take gigabytes."""
    if n * RESAMPLES <= KEPT:
        yield resample_counts(n, seed)[:resamples]
        return
    rng, rows = generator(seed, "bootstrap", n), max(1, KEPT // 16 // n)
    for start in range(0, resamples, rows):
        yield _drawn(rng, n, min(rows, resamples - start))


def _drawn(rng: np.random.Generator, n: int, resamples: int) -> ResampleCounts:
    # One byte a count: twenty of one query among n are as good as impossible, 256 are.
    counts = np.empty((resamples, n), dtype=np.uint8)
    for row in counts:
        row[:] = np.bincount(rng.integers(n, size=n), minlength=n)
    return counts


def resampled_means(values: Floats, counts: ResampleCounts, units: Units | None = None) -> Floats:
    """Return the means of (n,) or (n, k) values over each resample of the units: (resamples,) or (resamples, k)."""
    grouped = singles(len(values)) if units is None else units
    sums = grouped.sums(values)
    rows = max(1, BLOCK // len(grouped))
    drawn = (counts[i : i + rows].astype(np.float64) for i in range(0, len(counts), rows))
    parts = [((part @ sums).T / (part @ grouped.sizes)).T for part in drawn]
    means: Floats = np.concatenate(parts)
    return means


def bca(values: Floats, counts: Iterable[ResampleCounts], level: float = 0.95, units: Units | None = None) -> Interval:
    """Return the bias-corrected and accelerated bootstrap interval of a mean (Efron 1987).

    Percentiles are taken with linear interpolation; "not estimable" where all values are equal.

    Args:
        values: (n,).
        counts: blocks of (resamples, units), as `resample_blocks` draws them, the same for all measures and pairs.
        level: confidence.
        units: clusters of the queries, if any.
    """
    if standard_error(values, units) is None:
        return NONE
    centre = mean(values)
    slack = SLACK * max(1.0, float(np.abs(values).max()))
    grouped = singles(len(values)) if units is None else units
    spread = values - centre
    shifts = np.concatenate([resampled_means(spread, block, grouped) for block in counts])
    below = np.count_nonzero(shifts < -slack) + np.count_nonzero(np.abs(shifts) <= slack) / 2
    bias = float(special.ndtri(below / len(shifts)))
    # The jackknife's skewness: how the mean moves where one unit is left out.
    left = -grouped.sums(spread) / (len(values) - grouped.sizes)
    pull = left.mean() - left
    acceleration = float(np.sum(pull**3) / (6 * np.sum(pull**2) ** 1.5))
    z = bias + special.ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    low, high = np.quantile(shifts, special.ndtr(bias + z / (1 - acceleration * z))) + centre
    return Interval(float(low), float(high), "bca")
