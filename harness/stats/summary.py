"""Statistics that describe one retriever's scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.stats.differences import Floats, ValueRange
from harness.stats.intervals import (
    NOT_ESTIMABLE,
    Interval,
    mean,
    standard_deviation,
    student_interval,
    wilson_interval,
)
from harness.stats.units import Units


@dataclass(frozen=True, slots=True)
class ScoreSummary:
    """One row of summary.csv, without the names."""

    count: int
    """How many queries have a score."""
    mean: float
    """The mean, weighted if queries have weights; `std` and the quantiles are not."""
    ci_low: float | None
    """Both ends are None if no interval can be estimated."""
    ci_high: float | None
    std: float | None
    """Standard deviation with n - 1; None for one query."""
    min: float
    q25: float
    median: float
    q75: float
    max: float
    ci_method: str
    """How the interval was computed, as in `Interval`."""


def summarize_scores(
    scores: Floats,
    level: float = 0.95,
    *,
    binary: bool = False,
    bounds: ValueRange | None = None,
    units: Units | None = None,
) -> ScoreSummary:
    """Describe one retriever's scores.

    The mean is by `math.fsum`, std with n - 1, quantiles linear (pandas' describe).

    Args:
        scores: (n,) finite, n >= 1.
        level: confidence of the interval.
        binary: whether the measure can only be 0 or 1: then the interval is Wilson's
            without clusters and weights, else Student's t. Scores that merely happen to
            be 0 and 1 do not show this: the mean of a measure that goes up to 2 is not
            bounded by 1.
        bounds: the measure's range, which the interval does not leave; None if unknown.
        units: clusters and weights of the queries, if any.

    >>> summarize_scores(np.array([0.0, 0.5, 1.0])).median
    0.5
    """
    has_plain_units = units is None or (not units.clustered and units.weights is None)
    if binary and has_plain_units:
        interval = _interval_of_share(scores, level)
    else:
        interval = student_interval(scores, level, bounds=bounds, units=units)
    q25, median, q75 = np.quantile(scores, [0.25, 0.5, 0.75]).tolist()
    return ScoreSummary(
        count=len(scores),
        mean=mean(scores, None if units is None else units.weights),
        ci_low=interval.low,
        ci_high=interval.high,
        std=standard_deviation(scores) if len(scores) > 1 else None,
        min=float(scores.min()),
        q25=q25,
        median=median,
        q75=q75,
        max=float(scores.max()),
        ci_method=interval.method,
    )


def _interval_of_share(scores: Floats, level: float) -> Interval:
    """Return the interval of the mean of zeros and ones."""
    if len(scores) < 2:
        return NOT_ESTIMABLE
    return wilson_interval(int(scores.sum()), len(scores), level)
