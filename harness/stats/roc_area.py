"""Areas under ROC curves by DeLong's test."""

from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.differences import Floats


class RocArea(NamedTuple):
    """An area under the ROC curve with its interval."""

    value: float
    low: float
    high: float


class RocAreaTest(NamedTuple):
    """The difference of two areas over the same queries."""

    difference: float
    p_value: float
    """Two-sided; 1 where both areas agree on every pair of queries."""


def roc_area(positives: Floats, negatives: Floats, level: float = 0.95) -> RocArea:
    """Return the chance that a positive scores higher than a negative, a tie counting half, with DeLong's interval.

    Args:
        positives: (m,) best scores; -inf where nothing was returned.
        negatives: (n,) the same.
        level: confidence; the interval is cut at 0 and 1.

    >>> roc_area(np.array([0.9, 0.8, 0.7, 0.4]), np.array([0.6, 0.3, 0.2])).value == 11 / 12
    True
    """
    placed = [_placements(positives, negatives)]
    value, ((variance,),) = float(placed[0][0].mean()), _covariance(placed)
    half = float(special.ndtri((1 + level) / 2)) * float(np.sqrt(variance))
    return RocArea(value, max(0.0, value - half), min(1.0, value + half))


def compare_roc_areas(
    first: tuple[Floats, Floats], second: tuple[Floats, Floats]
) -> RocAreaTest:
    """Test whether two retrievers tell the same positives from the same negatives equally well.

    Args:
        first: (m,) and (n,) best scores of one retriever.
        second: those of the other, query by query.
    """
    placed = [_placements(*first), _placements(*second)]
    (a, b), covariance = (
        (float(above.mean()) for above, _ in placed),
        _covariance(placed),
    )
    variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    if variance <= 0:
        return RocAreaTest(a - b, 1.0 if a == b else 0.0)
    return RocAreaTest(a - b, float(2 * special.ndtr(-abs(a - b) / np.sqrt(variance))))


def _placements(positives: Floats, negatives: Floats) -> tuple[Floats, Floats]:
    """For each positive the share of negatives below it, for each negative that of positives above; ties half."""
    return _share_below(positives, negatives), 1 - _share_below(negatives, positives)


def _share_below(scores: Floats, others: Floats) -> Floats:
    ordered = np.sort(others)
    below = np.searchsorted(ordered, scores, "left") + np.searchsorted(
        ordered, scores, "right"
    )
    return np.asarray(below / (2 * len(others)))


def _covariance(placed: list[tuple[Floats, Floats]]) -> Floats:
    """The covariance of the areas: 0 of a side with a single query, which says nothing of its scatter."""
    parts = [np.array(side) for side in zip(*placed, strict=True)]
    return sum(
        (
            np.atleast_2d(np.cov(side)) / side.shape[1]
            for side in parts
            if side.shape[1] > 1
        ),
        start=np.zeros((len(placed), len(placed))),
    )
