"""Areas under ROC curves by DeLong's test.

Positives are queries that have an answer, negatives those that have none (see
`evaluation.abstention`). Source: DeLong et al. (1988).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.differences import Floats
from harness.stats.signed_rank import SMALLEST
from harness.stats.units import Units, single_units


class RocScores(NamedTuple):
    """The best scores of one retriever; -inf for queries without a hit."""

    positives: Floats
    """(m,)"""
    negatives: Floats
    """(n,)"""


MIN_ROC_UNITS = 5
"""Queries, or clusters, on either side below which there is no interval and no p."""
INTERVAL_TOLERANCE = 1e-12
"""Width at which the search for an end of an interval stops."""


class RocArea(NamedTuple):
    """An area under the ROC curve with its interval."""

    value: float
    low: float | None
    """Both ends are None with fewer than 5 queries, or clusters, on either side."""
    high: float | None


class RocAreaTest(NamedTuple):
    """The difference of two areas over the same queries."""

    difference: float
    p_value: float | None
    """Two-sided p, never 0; None where `RocArea` has no interval."""


class Placements(NamedTuple):
    """How the scores of each side are placed among those of the other; ties half."""

    positives: Floats
    """(m,): for each positive the share of negatives below it."""
    negatives: Floats
    """(n,): for each negative the share of positives above it."""

    @property
    def area(self) -> float:
        """The area under the ROC curve."""
        return float(self.positives.mean())


class RocUnits(NamedTuple):
    """The clusters of the queries on each side."""

    positives: Units
    negatives: Units

    @property
    def allow_inference(self) -> bool:
        """Whether both sides have enough units for an interval or a test."""
        return min(len(self.positives), len(self.negatives)) >= MIN_ROC_UNITS


def roc_area(
    scores: RocScores, units: RocUnits | None = None, level: float = 0.95
) -> RocArea:
    """Return the chance that a positive scores higher than a negative, a tie half.

    Its interval is the wider of Newcombe's (2006) method 5 and DeLong's on the logit
    scale; the first alone where the second does not exist, as at an area of 0 or 1.

    Args:
        scores: the best scores of both sides.
        units: their clusters; None: every query by itself.
        level: confidence of the interval.

    >>> positives, negatives = np.array([0.9, 0.8, 0.7, 0.4]), np.array([0.6, 0.3, 0.2])
    >>> roc_area(RocScores(positives, negatives)).value == 11 / 12
    True
    >>> area = roc_area(RocScores(np.arange(8.0, 33.0), np.arange(8.0)))
    >>> round(area.low, 2), area.high
    (0.84, 1.0)
    """
    units = units or _single_units(scores)
    placements = _placements(scores)
    area = placements.area
    if not units.allow_inference:
        return RocArea(area, None, None)
    low, high = _newcombe_interval(area, units, level)
    variance = float(_area_covariance([placements], units)[0, 0])
    if 0 < area < 1 and variance > 0:
        z = float(special.ndtri((1 + level) / 2))
        half_width = z * np.sqrt(variance) / (area * (1 - area))
        logit = special.logit(area)
        low = min(low, float(special.expit(logit - half_width)))
        high = max(high, float(special.expit(logit + half_width)))
    return RocArea(area, low, high)


def _newcombe_interval(
    area: float, units: RocUnits, level: float
) -> tuple[float, float]:
    """Return Newcombe's method 5: the areas from which the observed one is z off."""
    z = float(special.ndtri((1 + level) / 2))
    low = 0.0
    if area > 0:
        low = _solve(area, 0.0, area, units, z=z)
    high = 1.0
    if area < 1:
        high = _solve(area, 1.0, area, units, z=z)
    return low, high


def _solve(area: float, far: float, near: float, units: RocUnits, *, z: float) -> float:
    """Return the area in `far` to `near` from which `area` is z deviations off."""
    while abs(far - near) > INTERVAL_TOLERANCE:
        middle = (far + near) / 2
        if abs(area - middle) > z * np.sqrt(_newcombe_variance(middle, units)):
            far = middle
        else:
            near = middle
    return near


def _newcombe_variance(area: float, units: RocUnits) -> float:
    """Return the variance of an area by Hanley & McNeil, both sides of mean size."""
    m = len(units.positives)
    n = len(units.negatives)
    others = (m + n) / 2 - 1
    factor = 1 + others * (1 - area) / (2 - area) + others * area / (1 + area)
    return area * (1 - area) * factor / (m * n)


def compare_roc_areas(
    first: RocScores, second: RocScores, units: RocUnits | None = None
) -> RocAreaTest:
    """Test whether two retrievers separate the same positives and negatives alike.

    DeLong's test. If the areas differ without any variance (as 1 and 0 do) p is that of
    the fewest queries that could differ: it is never 0.

    Args:
        first: the scores of one retriever.
        second: those of the other, query by query.
        units: clusters of the queries; None: every query by itself.
    """
    units = units or _single_units(first)
    first_placements = _placements(first)
    second_placements = _placements(second)
    difference = first_placements.area - second_placements.area
    if not units.allow_inference:
        return RocAreaTest(difference, None)
    covariance = _area_covariance([first_placements, second_placements], units)
    variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    if difference == 0:
        return RocAreaTest(difference, 1.0)
    if variance <= 0:
        smaller_side = min(len(units.positives), len(units.negatives))
        return RocAreaTest(difference, 2.0 ** (1 - smaller_side))
    p_value = float(2 * special.ndtr(-abs(difference) / np.sqrt(variance)))
    return RocAreaTest(difference, max(p_value, SMALLEST))


def _single_units(scores: RocScores) -> RocUnits:
    return RocUnits(
        single_units(len(scores.positives)), single_units(len(scores.negatives))
    )


def _placements(scores: RocScores) -> Placements:
    return Placements(
        positives=_share_below(scores.positives, scores.negatives),
        negatives=1 - _share_below(scores.negatives, scores.positives),
    )


def _share_below(scores: Floats, others: Floats) -> Floats:
    """Return the share of the others below each score; those that tie count half."""
    rising = np.sort(others)
    below = np.searchsorted(rising, scores, "left")
    not_above = np.searchsorted(rising, scores, "right")
    return np.asarray((below + not_above) / (2 * len(others)))


def _area_covariance(placements: Sequence[Placements], units: RocUnits) -> Floats:
    """Return the covariance of the areas: (k, k).

    Deviations are summed within clusters, which count as one observation each.
    """
    covariance: Floats = np.zeros((len(placements), len(placements)))
    for side, side_units in zip(zip(*placements, strict=True), units, strict=True):
        shares = np.array(side).T
        deviations = shares - shares.mean(axis=0)
        sums = side_units.sums(deviations) / len(shares)
        count = len(side_units)
        covariance = covariance + count / (count - 1) * (sums.T @ sums)
    return covariance
