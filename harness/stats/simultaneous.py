"""Intervals that hold for several pairs at once.

They are as wide as the largest of all pairs' statistics demands (max-T). Tests by the
same idea are in `max_t`.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy import special

from harness.stats.differences import SCORE_TOLERANCE, Floats, ValueRange
from harness.stats.draws import (
    MAX_ENUMERATED_UNITS,
    draw_flipped_sums,
    enumerate_flipped_sums,
)
from harness.stats.intervals import NOT_ESTIMABLE, Interval, standard_error
from harness.stats.sign_flip import Contrast
from harness.stats.units import Units

MIN_UNCANCELLED_SHARE = 1e-6
"""Share of a sum of squares below which a difference of two has too few digits."""


def simultaneous_intervals(
    scores: Floats,
    units: Units,
    pairs: Sequence[Contrast],
    family: Sequence[Contrast],
    *,
    level: float = 0.95,
    seed: int = 0,
    bounds: ValueRange | None = None,
) -> list[Interval]:
    """Return intervals of mean differences that hold at once for a family of pairs.

    Each is the mean difference and c standard errors on either side; c is the quantile
    of the largest studentised, centred difference over the family (max-T, two-sided).

    Args:
        scores: (n, k) scores of k retrievers.
        units: clusters and weights of the queries.
        pairs: the pairs whose intervals are returned.
        family: the pairs for which they hold at once.
        level: over the family.
        seed: of the draws.
        bounds: the range of the differences, where intervals end; None if unknown.
    """
    c = simultaneous_quantile(scores, units, family, level=level, seed=seed)
    intervals: list[Interval] = []
    for a, b in pairs:
        estimate = standard_error(scores[:, a] - scores[:, b], units)
        if estimate is None or c is None:
            intervals.append(NOT_ESTIMABLE)
            continue
        half_width = c * estimate.error
        low = estimate.mean - half_width
        high = estimate.mean + half_width
        if bounds is not None:
            low = max(low, bounds.low)
            high = min(high, bounds.high)
        intervals.append(Interval(low, high, "max-t"))
    return intervals


def single_level(quantile: float, units: Units) -> float:
    """Return the two-sided level at which Student's t has a quantile.

    It is that of a single interval that is as wide as a simultaneous one.
    """
    degrees_of_freedom = units.effective - 1
    return 2 * float(special.stdtr(degrees_of_freedom, -quantile))


def simultaneous_quantile(
    scores: Floats,
    units: Units,
    family: Sequence[Contrast],
    *,
    level: float = 0.95,
    seed: int = 0,
) -> float | None:
    """Return the quantile of the largest studentised difference over a family of pairs.

    The signs of whole units are flipped, shared by all pairs: all patterns up to 16
    units, else 100,000 seeded draws. Each flip is studentised by its own standard
    error, that of `standard_error`. None if no pair varies, there are fewer than two
    units, or one has as good as all of the weight.

    Args:
        scores: (n, k) scores of k retrievers.
        units: clusters and weights of the queries.
        family: pairs of columns.
        level: over the family.
        seed: of the draws.

    >>> from harness.stats.units import single_units
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(200, 4))
    >>> pairs = [Contrast(a, b) for a in range(4) for b in range(a)]
    >>> round(simultaneous_quantile(scores, single_units(200), pairs), 1)
    2.6
    """
    weight = float(units.totals.sum())
    shares = units.totals / weight
    if len(units) < 2 or float(shares.max()) > 1 - SCORE_TOLERANCE:
        return None
    means = units.sums(scores).sum(axis=0) / weight
    deviations = units.sums(scores - means) / weight
    pairs = _varying_pairs(deviations, scores, family)
    if not pairs:
        return None
    maxima = _largest_statistics(deviations, units, pairs, seed)
    return float(np.quantile(maxima, level, method="inverted_cdf"))


def _varying_pairs(
    deviations: Floats, scores: Floats, family: Sequence[Contrast]
) -> list[Contrast]:
    """Return the pairs whose differences are not all equal.

    Deviations are divided by the whole weight; times the number of units they are as
    large as scores, of whose float noise `slack` is the limit.
    """
    slack = SCORE_TOLERANCE * max(1.0, float(np.abs(scores).max()))
    return [
        pair
        for pair in family
        if float(np.abs(deviations[:, pair.a] - deviations[:, pair.b]).max())
        * len(deviations)
        > slack
    ]


def _largest_statistics(
    deviations: Floats, units: Units, pairs: list[Contrast], seed: int
) -> Floats:
    """Return the largest |T| over the pairs for each flip.

    The variance of a flip is that of `standard_error`, computed for the flipped
    deviations about their own mean.
    """
    shares = units.totals / units.totals.sum()
    leverages = 1 / (1 - shares) ** 2
    count = len(units)
    correction = (count - 1) / count if units.weights is None else 1.0
    products = (deviations.T * leverages) @ deviations
    squares = np.diag(products)
    square_sums = squares[:, None] + squares
    pair_squares = np.maximum(square_sums - 2 * products, 0.0)
    for pair in pairs:
        # Of two columns that are nearly equal the sum cancels: from their difference.
        if pair_squares[pair] < MIN_UNCANCELLED_SHARE * square_sums[pair]:
            difference = deviations[:, pair.a] - deviations[:, pair.b]
            pair_squares[pair] = leverages @ difference**2
    cross_weights = leverages * shares
    share_squares = float(cross_weights @ shares)
    has_equal_shares = float(np.ptp(shares)) == 0
    columns = deviations
    if not has_equal_shares:
        columns = np.hstack([deviations, cross_weights[:, None] * deviations])
    maxima: list[Floats] = []
    for flips in _flips(columns, seed):
        # One column after the other: (draws, pairs) took gigabytes.
        sums = np.ascontiguousarray(flips.T)
        if has_equal_shares:
            ratios = _largest_ratios(sums, np.sqrt(pair_squares), pairs)
            variances = 1 - share_squares * ratios**2
            statistics = ratios / np.sqrt(np.maximum(variances, SCORE_TOLERANCE))
        else:
            statistics = _largest_studentised(sums, pair_squares, share_squares, pairs)
        maxima.append(statistics)
    return np.concatenate(maxima) / math.sqrt(correction)


def _largest_ratios(sums: Floats, roots: Floats, pairs: Sequence[Contrast]) -> Floats:
    """Return the largest |a - b| over the root of their pair for each flip: (d,).

    With units of equal weight, the flip's own variance is V - S^2 x a constant, so that
    the largest S^2 / V is that of the largest |T|.

    Args:
        sums: (k, d) of each column.
        roots: (k, k) of V.
        pairs: of columns.
    """
    largest = np.zeros(sums.shape[1])
    ratios = np.empty_like(largest)
    for pair in pairs:
        np.subtract(sums[pair.a], sums[pair.b], out=ratios)
        np.abs(ratios, out=ratios)
        np.divide(ratios, roots[pair], out=ratios)
        np.maximum(largest, ratios, out=largest)
    return largest


def _largest_studentised(
    sums: Floats, pair_squares: Floats, share_squares: float, pairs: Sequence[Contrast]
) -> Floats:
    """Return the largest |a - b| over its flip's own deviation: (d,).

    Args:
        sums: (2 k, d) of each column, then of each times its units' cross weights.
        pair_squares: (k, k).
        share_squares: the sum of squared shares times their leverages.
        pairs: of columns.
    """
    plain, crossed = np.vsplit(sums, 2)
    largest = np.zeros(sums.shape[1])
    for pair in pairs:
        differences = plain[pair.a] - plain[pair.b]
        cross_sums = crossed[pair.a] - crossed[pair.b]
        squares = pair_squares[pair]
        variances = squares - 2 * differences * cross_sums
        variances += differences**2 * share_squares
        np.maximum(variances, SCORE_TOLERANCE * squares, out=variances)
        np.maximum(largest, np.abs(differences) / np.sqrt(variances), out=largest)
    return largest


def _flips(columns: Floats, seed: int) -> Iterator[Floats]:
    """Yield the sums of the columns under flips of whole rows, in blocks of flips."""
    if len(columns) <= MAX_ENUMERATED_UNITS:
        yield enumerate_flipped_sums(columns)
    else:
        yield from draw_flipped_sums(columns, seed)
