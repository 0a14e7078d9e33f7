"""Confidence intervals of means."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.differences import SCORE_TOLERANCE, Floats, ValueRange
from harness.stats.units import Units, single_units


class Interval(NamedTuple):
    """A confidence interval; `method` is "t", "logit", "wilson" or "not estimable" (both ends None then)."""

    low: float | None
    high: float | None
    method: str

    @property
    def negated(self) -> Interval:
        """The interval of the opposite value.

        >>> Interval(-0.1, 0.3, "t").negated
        Interval(low=-0.3, high=0.1, method='t')
        """
        low, high = (None if end is None else -end for end in (self.high, self.low))
        return Interval(low, high, self.method)


NOT_ESTIMABLE = Interval(None, None, "not estimable")
"""All values equal, or a single one: nothing tells how far they scatter."""


def mean(values: Floats, weights: Floats | None = None) -> float:
    """Return the mean, its sum rounded once (`math.fsum`): the order of the queries cannot move it.

    Args:
        values: (n,).
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
    """Return Student's t interval of a mean, "not estimable" where all values are equal.

    Where it would leave `bounds`, it is the t interval of the logit of the mean by the delta method, transformed
    back ("logit"). With clusters or weights, see `standard_error`.

    >>> student_interval(np.array([0.5])).method
    'not estimable'
    >>> student_interval(np.array([0.8, 0.9, 1.0, 1.0]), bounds=ValueRange(0, 1)).method
    'logit'
    """
    known = standard_error(values, units)
    if known is None:
        return NOT_ESTIMABLE
    centre = known.mean
    reach = (
        float(special.stdtrit(known.degrees_of_freedom, (1 + level) / 2)) * known.error
    )
    low, high = centre - reach, centre + reach
    if bounds is None or (bounds.low <= low and high <= bounds.high):
        return Interval(low, high, "t")
    share = (centre - bounds.low) / bounds.span
    if not 0 < share < 1:
        return NOT_ESTIMABLE
    middle, wide = (
        float(special.logit(share)),
        reach / bounds.span / (share * (1 - share)),
    )
    low, high = (
        bounds.low + bounds.span * float(special.expit(middle + side))
        for side in (-wide, wide)
    )
    return Interval(low, high, "logit")


class StandardError(NamedTuple):
    """The standard error of a mean."""

    error: float
    degrees_of_freedom: float
    """Degrees of freedom of its t distribution."""
    mean: float
    """The mean itself."""


def standard_error(values: Floats, units: Units | None = None) -> StandardError | None:
    """Return the standard error of a mean, robust to clusters and weights.

    None where all values are equal, or one query has as good as all of the weight.

    With h the queries' shares of the weight (1/n each without weights) and h_g those of the G clusters:
    e_g = sum of h (d - mean) within the cluster / (1 - h_g), the deviation that the others see; SE^2 = sum e_g^2,
    times (G - 1) / G without weights; 1 / sum h_g^2 - 1 degrees of freedom. With one query a cluster and equal weights
    that is the usual standard error. One dominant cluster makes plain robust intervals too short (72 to 85 % for 95).

    >>> units = single_units(4, np.array([4.0, 2.0, 1.0, 1.0]))
    >>> known = standard_error(np.array([0.1, 0.2, -0.1, 0.3]), units)
    >>> round(known.error, 6), round(known.degrees_of_freedom + 1, 3)
    (0.053927, 2.909)
    """
    units = single_units(len(values)) if units is None else units
    slack = SCORE_TOLERANCE * max(1.0, float(np.abs(values).max()))
    count = len(units)
    if count < 2 or float(np.ptp(units.sums(values) / units.totals)) <= slack:
        return None
    centre = mean(values, units.weights)
    off = values - centre
    if not units.clustered and units.weights is None:
        return StandardError(
            math.sqrt(count / (count - 1) * math.fsum((off**2).tolist())) / count,
            count - 1,
            centre,
        )
    totals = units.totals
    weight = math.fsum(totals)
    shares = totals / weight
    if float(shares.max()) > 1 - SCORE_TOLERANCE:
        return None
    seen = units.sums(off) / weight / (1 - shares)
    small = (count - 1) / count if units.weights is None else 1.0
    return StandardError(
        math.sqrt(small * math.fsum(seen**2)), 1 / math.fsum(shares**2) - 1, centre
    )


def standard_deviation(values: Floats) -> float:
    """Return the standard deviation with n - 1, from exactly rounded sums; n >= 2."""
    centre = mean(values)
    return math.sqrt(math.fsum(((values - centre) ** 2).tolist()) / (len(values) - 1))


def wilson_interval(successes: int, n: int, level: float = 0.95) -> Interval:
    """Return Wilson's (1927) score interval of a proportion.

    >>> [round(x, 4) for x in wilson_interval(9, 10)[:2]]
    [0.5958, 0.9821]
    """
    z = float(special.ndtri((1 + level) / 2))
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = (
        z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    )
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return Interval(low, high, "wilson")
