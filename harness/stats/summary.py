"""The describe() statistics of one retriever on one measure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.stats.differences import Floats
from harness.stats.facts import Range
from harness.stats.intervals import deviation, mean, mean_interval
from harness.stats.units import Units


@dataclass(frozen=True, slots=True)
class Summary:
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


def summarize(
    values: Floats,
    level: float = 0.95,
    *,
    binary: bool = False,
    bounds: Range | None = None,
    units: Units | None = None,
) -> Summary:
    """Describe one retriever's scores: mean by `math.fsum`, std with n - 1, quantiles linear (pandas' describe).

    Args:
        values: (n,) finite scores, n >= 1.
        level: confidence of the interval.
        binary: whether the measure can only be 0 or 1: then the interval is Wilson's, else Student's t.
        bounds: the measure's range, which the interval does not leave; None where it is not known.
        units: clusters of the queries, if any.

    Raises:
        ValueError: no score, or one that is not finite.

    >>> summarize(np.array([0.0, 0.5, 1.0])).median
    0.5
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        raise ValueError("a row of finite scores is needed")
    low, high, method = mean_interval(values, level, binary=binary, bounds=bounds, units=units)
    q25, median, q75 = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    return Summary(
        count=len(values),
        mean=mean(values),
        ci_low=low,
        ci_high=high,
        std=deviation(values) if len(values) > 1 else None,
        min=float(values.min()),
        q25=q25,
        median=median,
        q75=q75,
        max=float(values.max()),
        ci_method=method,
    )
