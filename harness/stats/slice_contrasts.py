"""Mean differences of slices against those of the other queries."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from harness.stats.differences import SCORE_TOLERANCE, Floats
from harness.stats.intervals import mean
from harness.stats.max_t import max_t_family_tests
from harness.stats.units import Units

SliceMasks = npt.NDArray[np.bool_]
"""(n, k): whether each query is in each of k slices."""


class SliceContrast(NamedTuple):
    """The mean difference of one slice against that of the other queries."""

    inside: float
    """Mean difference on the slice."""
    outside: float
    """Mean difference on the other queries."""
    low: float | None
    """Both ends of the interval of inside - outside, which holds for all slices at
    once; None if it cannot be estimated."""
    high: float | None
    statistic: float
    """T of inside - outside."""
    p_adjusted: float
    """Two-sided, corrected over all slices."""

    @property
    def gap(self) -> float:
        """The slice's mean difference minus that of the other queries."""
        return self.inside - self.outside


def slice_contrasts(
    differences: Floats,
    masks: SliceMasks,
    units: Units,
    *,
    alpha: float = 0.05,
    seed: int = 0,
) -> list[SliceContrast]:
    """Compare each slice with the queries outside of it, as one max-T family.

    Every query counts by its weight over that of its side, positive in the slice and
    negative outside; the sum of such differences is the slice's mean minus that of the
    others. What is flipped are the differences from the mean of all queries, by unit:
    if the slice means nothing, their sign is as likely to be the other.

    Args:
        differences: (n,) scores of one retriever minus those of another.
        masks: the slices; each has queries, and leaves some out.
        units: clusters and weights of the queries.
        alpha: intervals hold with 1 - alpha for all slices at once.
        seed: of the flips.

    >>> from harness.stats.units import single_units
    >>> differences = np.array([0.3, 0.5, 0.4, 0.4] + [0.0, 0.2, 0.1, 0.1] * 2)
    >>> masks = np.arange(12)[:, None] < [[4]]
    >>> [contrast] = slice_contrasts(differences, masks, single_units(12))
    >>> round(contrast.gap, 3), round(contrast.p_adjusted, 4)
    (0.3, 0.002)
    """
    sides = side_weights(masks, units)
    centred = differences - mean(differences, units.weights)
    contributions = units.sums(sides * centred[:, None])
    family = max_t_family_tests(contributions, alpha=alpha, seed=seed)
    statistics = contrast_statistics(contributions)
    contrasts: list[SliceContrast] = []
    for column, p_adjusted in enumerate(family.p_values):
        mask = masks[:, column]
        inside = _side_mean(differences, mask, units)
        outside = _side_mean(differences, ~mask, units)
        reach = _interval_reach(differences, mask, units, family.quantile)
        contrasts.append(
            SliceContrast(
                inside=inside,
                outside=outside,
                low=None if reach is None else inside - outside - reach,
                high=None if reach is None else inside - outside + reach,
                statistic=float(statistics[column]),
                p_adjusted=p_adjusted,
            )
        )
    return contrasts


def side_weights(masks: SliceMasks, units: Units) -> Floats:
    """Return 1 over the weight of each query's side, negative outside: (n, k)."""
    weights = np.ones(len(masks)) if units.weights is None else units.weights
    inside = weights @ masks
    outside = weights @ ~masks
    return np.asarray(masks / inside - ~masks / outside)


def contrast_statistics(contributions: Floats) -> Floats:
    """Return T of each column: its sum over the root of its sum of squares."""
    roots = np.sqrt((contributions**2).sum(axis=0))
    varies = roots > SCORE_TOLERANCE
    statistics = np.zeros(contributions.shape[1])
    statistics[varies] = contributions.sum(axis=0)[varies] / roots[varies]
    return statistics


def _side_mean(differences: Floats, mask: npt.NDArray[np.bool_], units: Units) -> float:
    weights = units.weights
    return mean(differences[mask], None if weights is None else weights[mask])


class _SideErrors(NamedTuple):
    """What one side adds to the standard error of a contrast."""

    deviations: Floats
    """(units,): of the side's mean, each by the leverage of its unit."""
    degrees_of_freedom: float

    @property
    def variance(self) -> float:
        """The variance of the side's mean."""
        return math.fsum(self.deviations**2)


def _interval_reach(
    differences: Floats,
    mask: npt.NDArray[np.bool_],
    units: Units,
    quantile: float | None,
) -> float | None:
    """Return half the width of a contrast's interval; None if it is not estimable.

    The standard error is Welch's, robust to clusters on both sides; the quantile of the
    flips becomes one of Student's t at the same level.
    """
    inside = _side_errors(differences, mask, units)
    outside = _side_errors(differences, ~mask, units)
    if quantile is None or inside is None or outside is None:
        return None
    sum_of_variances = inside.variance + outside.variance
    if sum_of_variances <= SCORE_TOLERANCE**2:
        return None
    degrees_of_freedom = sum_of_variances**2 / (
        inside.variance**2 / inside.degrees_of_freedom
        + outside.variance**2 / outside.degrees_of_freedom
    )
    # A cluster with queries on both sides has the difference of its two deviations.
    error = math.sqrt(math.fsum((inside.deviations - outside.deviations) ** 2))
    tail = float(special.ndtr(-quantile))
    return -float(special.stdtrit(degrees_of_freedom, tail)) * error


def _side_errors(
    differences: Floats, mask: npt.NDArray[np.bool_], units: Units
) -> _SideErrors | None:
    """Return the deviations of one side; None if one unit has all of its weight."""
    weights = units.sums(mask.astype(np.float64))
    shares = weights / weights.sum()
    if float(shares.max()) > 1 - SCORE_TOLERANCE:
        return None
    centre = _side_mean(differences, mask, units)
    deviations = units.sums(np.where(mask, differences - centre, 0.0)) / weights.sum()
    correction = 1.0
    if units.weights is None:
        count = int(np.count_nonzero(weights))
        correction = math.sqrt((count - 1) / count)
    return _SideErrors(
        correction * deviations / (1 - shares), 1 / math.fsum(shares**2) - 1
    )
