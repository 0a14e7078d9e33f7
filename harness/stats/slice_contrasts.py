"""Mean differences of slices against those of the other queries."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from harness.stats.differences import SCORE_TOLERANCE, Floats
from harness.stats.draws import draw_permutations
from harness.stats.intervals import mean
from harness.stats.max_t import STATISTIC_TOLERANCE, max_t_family_tests
from harness.stats.units import Units

SliceMasks = npt.NDArray[np.bool_]
"""(n, k): whether each query is in each of k slices."""
MIN_SIDE = 2
"""Queries of a side, at least: the scatter of one is unknown."""


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
    p_value: float
    """Two-sided p of this slice alone."""
    p_adjusted: float
    """Two-sided p, corrected over all slices."""
    explained: float
    """The share of the scatter of the differences that is between the slice and the
    other queries: eta squared."""

    @property
    def gap(self) -> float:
        """The slice's mean difference minus that of the other queries."""
        return self.inside - self.outside


class _FamilyTests(NamedTuple):
    """The statistics of all slices with their tests."""

    statistics: Floats
    single_p_values: list[float]
    p_values: list[float]
    """Two-sided p of each slice, corrected over all slices."""
    quantiles: Floats
    """Standard errors from the gap to the ends of its interval; NaN if unknown."""


def slice_contrasts(
    differences: Floats,
    masks: SliceMasks,
    units: Units,
    *,
    alpha: float = 0.05,
    seed: int = 0,
) -> list[SliceContrast]:
    """Compare each slice with the queries outside of it, as one max-T family.

    If slices mean nothing, every difference could be that of any other query: T is
    Welch's, and the differences are permuted over the queries, the same way for all
    slices. That is exact for differences of any shape. Clusters and weights cannot be
    permuted: there, the signs of the differences from the common mean are flipped by
    unit.

    Args:
        differences: (n,) scores of one retriever minus those of another.
        masks: the slices; each has two queries or more inside, and two outside.
        units: clusters and weights of the queries.
        alpha: intervals hold with 1 - alpha for all slices at once.
        seed: of the draws.

    >>> from harness.stats.units import single_units
    >>> differences = np.array([0.3, 0.5, 0.4, 0.4] + [0.0, 0.2, 0.1, 0.1] * 2)
    >>> masks = np.arange(12)[:, None] < [[4]]
    >>> [contrast] = slice_contrasts(differences, masks, single_units(12))
    >>> round(contrast.gap, 3), round(contrast.p_adjusted, 3)
    (0.3, 0.003)
    """
    errors = [
        _contrast_error(differences, masks[:, column], units)
        for column in range(masks.shape[1])
    ]
    if are_permuted(units):
        family = _permute(differences, masks, alpha, seed)
    else:
        family = _flip_signs(differences, masks, units, errors, alpha=alpha, seed=seed)
    contrasts: list[SliceContrast] = []
    for column, error in enumerate(errors):
        mask = masks[:, column]
        inside = _side_mean(differences, mask, units)
        outside = _side_mean(differences, ~mask, units)
        low = None
        high = None
        half_width = family.quantiles[column] * (
            math.nan if error is None else error.error
        )
        if not math.isnan(half_width):
            low = float(inside - outside - half_width)
            high = float(inside - outside + half_width)
        contrasts.append(
            SliceContrast(
                inside=inside,
                outside=outside,
                low=low,
                high=high,
                statistic=float(family.statistics[column]),
                p_value=family.single_p_values[column],
                p_adjusted=family.p_values[column],
                explained=_explained_share(
                    differences, mask, units, gap=inside - outside
                ),
            )
        )
    return contrasts


def are_permuted(units: Units) -> bool:
    """Whether differences are permuted, rather than their signs flipped."""
    return not units.clustered and units.weights is None


def _permute(
    differences: Floats, masks: SliceMasks, alpha: float, seed: int
) -> _FamilyTests:
    """Test slices of single queries of equal weight by permutations.

    p is the share of permutations whose largest |T| is at least that of the slice; the
    observed order is one more.
    """
    centred = differences - differences.mean()
    slack = SCORE_TOLERANCE * max(1.0, float(np.abs(differences).max()))
    k = masks.shape[1]
    if float(np.abs(centred).max()) <= slack:
        ones = [1.0] * k
        return _FamilyTests(np.zeros(k), ones, ones, np.full(k, math.nan))
    columns = masks.astype(np.float64)
    statistics = welch_statistics(centred[None, :], columns)[0]
    observed = np.abs(statistics) - STATISTIC_TOLERANCE
    maxima: list[Floats] = []
    single_counts = np.ones(k)
    for block in draw_permutations(centred, seed):
        permuted = np.abs(welch_statistics(block, columns))
        maxima.append(permuted.max(axis=1))
        single_counts += (permuted >= observed).sum(axis=0)
    rising = np.sort(np.concatenate(maxima))
    as_extreme = len(rising) - np.searchsorted(rising, observed)
    orders = len(rising) + 1
    quantile = float(np.quantile(rising, 1 - alpha, method="inverted_cdf"))
    return _FamilyTests(
        statistics,
        (single_counts / orders).tolist(),
        ((as_extreme + 1) / orders).tolist(),
        np.full(k, quantile),
    )


def welch_statistics(rows: Floats, columns: Floats) -> Floats:
    """Return Welch's t of each slice for each row of differences: (rows, k).

    Args:
        rows: (rows, n) differences, centred.
        columns: (n, k), 1 in the slice and 0 outside.
    """
    n = len(columns)
    sizes = columns.sum(axis=0)
    sums = rows @ columns
    squares = rows**2 @ columns
    total_squares = (rows**2).sum(axis=1)[:, None]
    inside = _mean_variances(sums, squares, sizes)
    # The rows are centred: the sum outside is the opposite of the one inside.
    outside = _mean_variances(sums, total_squares - squares, n - sizes)
    gaps = sums / sizes + sums / (n - sizes)
    # If both sides scatter by float noise alone, T is large, and never infinite.
    floor = SCORE_TOLERANCE * total_squares / n**2
    return np.asarray(gaps / np.sqrt(np.maximum(inside + outside, floor)))


def _mean_variances(sums: Floats, squares: Floats, sizes: Floats) -> Floats:
    """Return the squared standard errors of the means of one side."""
    return np.asarray((squares - sums**2 / sizes) / (sizes - 1) / sizes)


def _flip_signs(
    differences: Floats,
    masks: SliceMasks,
    units: Units,
    errors: list[_ContrastError | None],
    *,
    alpha: float,
    seed: int,
) -> _FamilyTests:
    """Test slices of clusters, or of weighted queries, by flips of signs.

    Every query counts by its weight over that of its side, positive in the slice and
    negative outside; the sum of such differences is the slice's mean minus that of the
    others. The quantile of the flips becomes one of Student's t at the same level.
    """
    sides = side_weights(masks, units)
    centred = differences - mean(differences, units.weights)
    contributions = units.sums(sides * centred[:, None])
    flip_tests = max_t_family_tests(contributions, alpha=alpha, seed=seed)
    roots = np.sqrt((contributions**2).sum(axis=0))
    varies = roots > SCORE_TOLERANCE
    statistics = np.zeros(masks.shape[1])
    statistics[varies] = contributions.sum(axis=0)[varies] / roots[varies]
    quantiles = np.full(masks.shape[1], math.nan)
    if flip_tests.quantile is not None:
        tail = float(special.ndtr(-flip_tests.quantile))
        for column, error in enumerate(errors):
            if error is not None:
                quantiles[column] = -special.stdtrit(error.degrees_of_freedom, tail)
    return _FamilyTests(
        statistics, flip_tests.single_p_values, flip_tests.p_values, quantiles
    )


def side_weights(masks: SliceMasks, units: Units) -> Floats:
    """Return 1 over the weight of each query's side, negative outside: (n, k)."""
    weights = np.ones(len(masks)) if units.weights is None else units.weights
    inside = weights @ masks
    outside = weights @ ~masks
    return np.asarray(masks / inside - ~masks / outside)


def _side_mean(differences: Floats, mask: npt.NDArray[np.bool_], units: Units) -> float:
    weights = units.weights
    return mean(differences[mask], None if weights is None else weights[mask])


def _explained_share(
    differences: Floats, mask: npt.NDArray[np.bool_], units: Units, *, gap: float
) -> float:
    """Return the sum of squares between both sides over the one of all queries."""
    weights = np.ones(len(mask)) if units.weights is None else units.weights
    centred = differences - mean(differences, units.weights)
    scatter = math.fsum(weights * centred**2)
    slack = SCORE_TOLERANCE * max(1.0, float(np.abs(differences).max()))
    if float(np.abs(centred).max()) <= slack:
        return 0.0
    inside = math.fsum(weights[mask])
    outside = math.fsum(weights[~mask])
    return gap**2 * inside * outside / (inside + outside) / scatter


class _ContrastError(NamedTuple):
    """The standard error of a contrast."""

    error: float
    degrees_of_freedom: float


class _SideErrors(NamedTuple):
    """What one side adds to the standard error of a contrast."""

    deviations: Floats
    """(units,): of the side's mean, each by the leverage of its unit."""
    degrees_of_freedom: float

    @property
    def variance(self) -> float:
        """The variance of the side's mean."""
        return math.fsum(self.deviations**2)


def _contrast_error(
    differences: Floats, mask: npt.NDArray[np.bool_], units: Units
) -> _ContrastError | None:
    """Return the standard error of a contrast; None if it is not estimable.

    It is Welch's, robust to clusters on both sides.
    """
    inside = _side_errors(differences, mask, units)
    outside = _side_errors(differences, ~mask, units)
    if inside is None or outside is None:
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
    return _ContrastError(error, degrees_of_freedom)


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
