"""Statistics that describe one retriever's scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.stats.differences import Floats, ValueRange
from harness.stats.intervals import (
    NOT_ESTIMABLE,
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
    mean: float
    ci_low: float | None
    """Both ends None where no interval can be estimated."""
    ci_high: float | None
    std: float | None
    """With n - 1; None for one query."""
    min: float
    q25: float
    median: float
    q75: float
    max: float
    ci_method: str


def summarize_scores(
    values: Floats,
    level: float = 0.95,
    *,
    binary: bool = False,
    bounds: ValueRange | None = None,
    units: Units | None = None,
) -> ScoreSummary:
    """Describe one retriever's scores: mean by `math.fsum`, std with n - 1, quantiles linear (pandas' describe).

    Args:
        values: (n,) finite scores, n >= 1.
        level: confidence of the interval.
        binary: whether the measure can only be 0 or 1: then the interval is Wilson's, else Student's t. Values that
            merely happen to be 0 and 1 do not tell: the mean of a measure that goes up to 2 is not bounded by 1.
        bounds: the measure's range, which the interval does not leave; None where it is not known.
        units: clusters and weights of the queries, if any.

    >>> summarize_scores(np.array([0.0, 0.5, 1.0])).median
    0.5
    """
    if binary and (units is None or not (units.clustered or units.weights is not None)):
        low, high, method = (
            wilson_interval(int(values.sum()), len(values), level)
            if len(values) > 1
            else NOT_ESTIMABLE
        )
    else:
        low, high, method = student_interval(values, level, bounds=bounds, units=units)
    q25, median, q75 = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    return ScoreSummary(
        count=len(values),
        mean=mean(values, None if units is None else units.weights),
        ci_low=low,
        ci_high=high,
        std=standard_deviation(values) if len(values) > 1 else None,
        min=float(values.min()),
        q25=q25,
        median=median,
        q75=q75,
        max=float(values.max()),
        ci_method=method,
    )
