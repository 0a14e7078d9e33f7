"""Areas under ROC curves by DeLong's test.

Source: DeLong et al. (1988).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.differences import Floats


class RocScores(NamedTuple):
    """The best scores of one retriever; -inf where nothing was returned."""

    positives: Floats
    """(m,)"""
    negatives: Floats
    """(n,)"""


class RocArea(NamedTuple):
    """An area under the ROC curve with its interval."""

    value: float
    low: float
    high: float


class RocAreaTest(NamedTuple):
    """The difference of two areas over the same queries."""

    difference: float
    p_value: float
    """Two-sided; 1 if both areas agree on every pair of queries."""


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


def roc_area(positives: Floats, negatives: Floats, level: float = 0.95) -> RocArea:
    """Return the chance that a positive scores higher than a negative, a tie half.

    Its interval is DeLong's.

    Args:
        positives: (m,) best scores; -inf where nothing was returned.
        negatives: (n,) the same.
        level: confidence; the interval is cut at 0 and 1.

    >>> positives, negatives = np.array([0.9, 0.8, 0.7, 0.4]), np.array([0.6, 0.3, 0.2])
    >>> roc_area(positives, negatives).value == 11 / 12
    True
    """
    placements = _placements(RocScores(positives, negatives))
    area = placements.area
    variance = _area_covariance([placements])[0, 0]
    reach = float(special.ndtri((1 + level) / 2)) * float(np.sqrt(variance))
    return RocArea(area, max(0.0, area - reach), min(1.0, area + reach))


def compare_roc_areas(first: RocScores, second: RocScores) -> RocAreaTest:
    """Test whether two retrievers separate the same positives and negatives alike.

    Args:
        first: the scores of one retriever.
        second: those of the other, query by query.
    """
    first_placements = _placements(first)
    second_placements = _placements(second)
    difference = first_placements.area - second_placements.area
    covariance = _area_covariance([first_placements, second_placements])
    variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    if variance <= 0:
        return RocAreaTest(difference, 1.0 if difference == 0 else 0.0)
    p_value = float(2 * special.ndtr(-abs(difference) / np.sqrt(variance)))
    return RocAreaTest(difference, p_value)


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


def _area_covariance(placements: Sequence[Placements]) -> Floats:
    """Return the covariance of the areas: (k, k).

    A side with a single query adds 0: its spread is unknown.
    """
    covariance: Floats = np.zeros((len(placements), len(placements)))
    for side in zip(*placements, strict=True):
        shares = np.array(side)
        queries = shares.shape[1]
        if queries > 1:
            covariance = covariance + np.atleast_2d(np.cov(shares)) / queries
    return covariance
