"""Confidence intervals of means."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.differences import SCORE_TOLERANCE, Floats, ValueRange
from harness.stats.units import Units, single_units


class Interval(NamedTuple):
    """A confidence interval."""

    low: float | None
    """Both ends are None if it cannot be estimated."""
    high: float | None
    method: str
    """How it was computed: "t", "logit", "wilson" (see this file), "sign flips"
    (`binary_interval`), "max-t" (`simultaneous`), or "not estimable".
    """

    @property
    def negated(self) -> Interval:
        """The interval of the opposite value.

        >>> Interval(-0.1, 0.3, "t").negated
        Interval(low=-0.3, high=0.1, method='t')
        """
        low = None if self.high is None else -self.high
        high = None if self.low is None else -self.low
        return Interval(low, high, self.method)


NOT_ESTIMABLE = Interval(None, None, "not estimable")
"""No interval: the spread of the values is unknown, or the mean is at an end."""


def mean(values: Floats, weights: Floats | None = None) -> float:
    """Return the mean, independent of the order of the queries.

    Its sum is rounded once (`math.fsum`).

    Args:
        values: (n,), n >= 1.
        weights: (n,), above 0; None: all alike.
    """
    if weights is None:
        return math.fsum(values.tolist()) / len(values)
    return math.fsum(values * weights) / math.fsum(weights)


def student_interval(
    values: Floats,
    level: float = 0.95,
    *,
    bounds: ValueRange | None = None,
    units: Units | None = None,
) -> Interval:
    """Return Student's t interval of a mean; "not estimable" without standard error.

    If it would exceed `bounds`, the result is the t interval of the logit of the mean
    by the delta method, transformed back ("logit"); a mean at a bound has no logit, and
    is "not estimable". With clusters or weights, see `standard_error`.

    Args:
        values: (n,), n >= 1.
        level: confidence of the interval.
        bounds: the range of the values; None if unknown.
        units: clusters and weights of the queries; None: every query by itself.

    >>> student_interval(np.array([0.5])).method
    'not estimable'
    >>> values = np.array([0.8, 0.9, 1.0, 1.0])
    >>> student_interval(values, bounds=ValueRange(0, 1)).method
    'logit'
    """
    estimate = standard_error(values, units)
    if estimate is None:
        return NOT_ESTIMABLE
    centre = estimate.mean
    quantile = float(special.stdtrit(estimate.degrees_of_freedom, (1 + level) / 2))
    half_width = quantile * estimate.error
    low = centre - half_width
    high = centre + half_width
    if bounds is None or (bounds.low <= low and high <= bounds.high):
        return Interval(low, high, "t")
    return _logit_interval(centre, half_width, bounds)


def _logit_interval(centre: float, half_width: float, bounds: ValueRange) -> Interval:
    """Return the interval on the logit scale, which stays within the bounds."""
    share = (centre - bounds.low) / bounds.span
    if not 0 < share < 1:
        return NOT_ESTIMABLE
    logit_centre = float(special.logit(share))
    logit_half_width = half_width / bounds.span / (share * (1 - share))
    low_share = float(special.expit(logit_centre - logit_half_width))
    high_share = float(special.expit(logit_centre + logit_half_width))
    low = bounds.low + bounds.span * low_share
    high = bounds.low + bounds.span * high_share
    return Interval(low, high, "logit")


class StandardError(NamedTuple):
    """A mean with its standard error."""

    error: float
    degrees_of_freedom: float
    """Degrees of freedom of its t distribution."""
    mean: float


def standard_error(values: Floats, units: Units | None = None) -> StandardError | None:
    """Return the standard error of a mean, robust to clusters and weights.

    None if there is one unit (query, or cluster), if all have the same mean, or if one
    has as good as all of the weight.

    With h the queries' shares of the weight (1/n each without weights) and h_g those of
    the G clusters: e_g = sum of h (d - mean) within the cluster / (1 - h_g), the
    deviation from the other clusters; SE^2 = sum e_g^2, times (G - 1) / G without
    weights; 1 / sum h_g^2 - 1 degrees of freedom. With one query in each cluster and no
    weights this is the usual standard error. One dominant cluster makes plain
    robust intervals too short (72 to 85 % for 95).

    >>> units = single_units(4, np.array([4.0, 2.0, 1.0, 1.0]))
    >>> estimate = standard_error(np.array([0.1, 0.2, -0.1, 0.3]), units)
    >>> round(estimate.error, 6), round(estimate.degrees_of_freedom + 1, 3)
    (0.053927, 2.909)
    """
    if units is None:
        units = single_units(len(values))
    if len(units) < 2:
        return None
    slack = SCORE_TOLERANCE * max(1.0, float(np.abs(values).max()))
    if float(np.ptp(units.sums(values) / units.totals)) <= slack:
        return None
    if units.clustered or units.weights is not None:
        return _robust_standard_error(values, units)
    n = len(units)
    centre = mean(values)
    sum_of_squares = math.fsum(((values - centre) ** 2).tolist())
    return StandardError(math.sqrt(n / (n - 1) * sum_of_squares) / n, n - 1, centre)


def _robust_standard_error(values: Floats, units: Units) -> StandardError | None:
    """Return the standard error with clusters or weights; None if one has them all."""
    centre = mean(values, units.weights)
    deviations = values - centre
    totals = units.totals
    weight = math.fsum(totals)
    shares = totals / weight
    if float(shares.max()) > 1 - SCORE_TOLERANCE:
        return None
    unit_deviations = units.sums(deviations) / weight / (1 - shares)
    count = len(units)
    correction = (count - 1) / count if units.weights is None else 1.0
    error = math.sqrt(correction * math.fsum(unit_deviations**2))
    return StandardError(error, 1 / math.fsum(shares**2) - 1, centre)


def standard_deviation(values: Floats) -> float:
    """Return the standard deviation with n - 1, from exactly rounded sums; n >= 2."""
    centre = mean(values)
    return math.sqrt(math.fsum(((values - centre) ** 2).tolist()) / (len(values) - 1))


def wilson_interval(successes: int, n: int, level: float = 0.95) -> Interval:
    """Return Wilson's (1927) score interval of a proportion; n >= 1.

    >>> [round(x, 4) for x in wilson_interval(9, 10)[:2]]
    [0.5958, 0.9821]
    """
    z = float(special.ndtri((1 + level) / 2))
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    deviation = math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    half_width = z / (1 + z * z / n) * deviation
    low = 0.0 if successes == 0 else centre - half_width
    high = 1.0 if successes == n else centre + half_width
    return Interval(low, high, "wilson")
