"""Few queries judged by people and many by a model: prediction-powered inference on means.

The unit is the query, or the cluster where clusters are declared. n queries are a random sample that people and the
model judged; N further queries were judged by the model alone. Sources: Angelopoulos et al. (2023),
"Prediction-powered inference" and "PPI++"; lambda is chosen without the query that it weighs, and the coverage of the
interval is simulated in benchmarks/prediction.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from harness.stats.differences import SLACK, Integers, Range, Units, singles
from harness.stats.intervals import NONE, Interval, StandardError, around, mean, standard_error, student
from retrievers.types import Floats

ENOUGH = 30
"""Queries (clusters) that people and the model judged; below, intervals that use both are too short."""
ENOUGH_DIFFERENT = 5
"""Of these, those on which people and the model must differ; below, nothing tells how far the model errs."""
ROUNDING = 1e-12
"""A sum of squares that leaves less than this share of it when one unit is left out is a rounding of 0."""


class Powered(NamedTuple):
    """A mean of people's values, estimated with a model's help."""

    estimate: float
    standard_error: float
    tuning: float
    """The mean of lambda: how much weight the model's values get, 0 to 1."""


class Predicted(NamedTuple):
    """One mean (of a measure, or of a difference of two retrievers), estimated with and without the model."""

    n: int
    """Queries that people judged, and the model too."""
    others: int
    """Further queries, judged by the model alone."""
    units: int
    """The n queries as clusters; n where none are declared."""
    differing: int
    """Of the units, those on which people's and the model's values differ."""
    people: float
    """The mean by people's grades alone."""
    people_interval: Interval
    powered: Powered | None
    """The estimate that uses both; None below ENOUGH units, or ENOUGH_DIFFERENT on which the two differ."""
    interval: Interval
    """Of that estimate."""
    as_narrow_as: float
    """Queries judged by people alone that would give as narrow an interval; NaN where nothing tells."""
    favour: float
    """The mean of people's minus the model's values over the n queries: below 0 where the model overrates a."""
    favour_interval: Interval


def predicted(
    people: Floats, model: Floats, elsewhere: Floats, *, level: float = 0.95, units: Units | None = None,
    bounds: Range | None = None,
) -> Predicted:  # fmt: skip
    """Combine people's values on a random sample of the queries with a model's values on all of them.

    The interval is Student's t with n - 1 degrees of freedom; with clusters n^2 / sum n_g^2 - 1, n_g the queries of
    each. An interval is as narrow as var_n(D) / SE^2 queries judged by people would give.

    Args:
        people: (n,) values by people's grades.
        model: (n,) values by the model's grades, for the same queries in the same order.
        elsewhere: (N,) values by the model's grades for the other queries; may be empty.
        level: confidence.
        units: clusters of the n + N queries, those that people judged first; None where each stands for itself.
        bounds: what the mean cannot leave, nor any of its intervals; None where it is not known.

    Raises:
        ValueError: there is no query that both judged, or units are not of n + N queries.
    """
    n, others = len(people), len(elsewhere)
    together = singles(n + others) if units is None else units
    if n < 1 or len(model) != n or len(together.members) != n + others:
        raise ValueError(f"{n} values by people, {len(model)} and {others} by the model, {len(together.members)} units")
    _, members, sizes = np.unique(together.members[:n], return_inverse=True, return_counts=True)
    judged = Units(members, sizes.astype(np.float64), clustered=together.clustered)
    apart = np.abs(people - model) > SLACK * max(1.0, float(np.abs(people).max()), float(np.abs(model).max()))
    differing = len(np.unique(members[apart]))
    enough = len(judged) >= ENOUGH and differing >= ENOUGH_DIFFERENT
    powered = prediction_powered(people, model, elsewhere, together) if enough else None
    if powered is not None and bounds is not None:  # what the others add may lead beyond every possible mean
        powered = powered._replace(estimate=min(max(powered.estimate, bounds.low), bounds.high))
    interval, as_narrow_as = NONE, math.nan
    if powered is not None and powered.standard_error > 0:
        freedom = n**2 / float((judged.sizes**2).sum()) - 1
        interval = around(powered.estimate, StandardError(powered.standard_error, freedom), level, bounds)
        alone = standard_error(people, judged)
        if interval != NONE:
            as_narrow_as = n * ((0.0 if alone is None else alone.error) / powered.standard_error) ** 2
    return Predicted(
        n=n,
        others=others,
        units=len(judged),
        differing=differing,
        people=mean(people),
        people_interval=student(people, level, bounds=bounds, units=judged),
        powered=powered,
        interval=interval,
        as_narrow_as=as_narrow_as,
        favour=mean(people - model),
        favour_interval=student(
            people - model, level, bounds=bounds and Range(-bounds.span, bounds.span), units=judged
        ),
    )


def prediction_powered(people: Floats, model: Floats, elsewhere: Floats, units: Units) -> Powered:
    """Estimate the mean of people's values with the help of a model's, however few there are.

    With x = D^ (the model's values), y = D (people's) and S the sums of products over the n - 1 other judged queries:

        lambda_i = clip(S_xy(-i) / S_xx(-i) N / (n + N), 0, 1)
        theta    = mean(D_i - lambda_i D^_i) + mean(lambda) mean_N(D^)
        SE^2     = sum[(D_i - mean D) - lambda_i (D^_i - mean_n D^)]^2 / (n (n - 1)) + mean(lambda)^2 var_N(D^) / N

    By clusters a cluster is left out at once, products are of the clusters' sums, n and N count clusters in lambda, and
    SE is robust to clusters, also to those that people judged in part.

    Args:
        people: (n,) values by people's grades, of two units or more.
        model: (n,) values by the model's grades.
        elsewhere: (N,) values by the model's grades for other queries; fewer than two are left out.
        units: of the n + N queries.

    >>> powered = prediction_powered(
    ...     np.array([0.2, 0.0, -0.1, 0.3, 0.1]), np.array([0.3, 0.1, 0.0, 0.2, 0.1]),
    ...     np.array([0.1, 0.2, 0.0, 0.3, 0.1, 0.0, 0.2, 0.1, 0.1, 0.1]), singles(15)
    ... )
    >>> round(powered.estimate, 6), round(powered.standard_error, 6)
    (0.074574, 0.054204)
    """
    n = len(people)
    here, there = units.members[:n], units.members[n:]
    numbers = len(np.unique(here)), len(np.unique(there))
    tuning = np.zeros(n) if numbers[1] < 2 else _tuning(people, model, here) * numbers[1] / sum(numbers)
    tuning = np.clip(tuning, 0.0, 1.0)
    weight = mean(tuning)
    estimate = mean(people - tuning * model)
    errors = _errors((people - mean(people)) - tuning * (model - mean(model)), here, len(units))
    if weight > 0:
        estimate += weight * mean(elsewhere)
        errors = errors + weight * _errors(elsewhere - mean(elsewhere), there, len(units))
    return Powered(estimate, math.sqrt(math.fsum(errors**2)), weight)


def _tuning(people: Floats, model: Floats, members: Integers) -> Floats:
    """For each query, the slope of people's values on the model's over the other clusters: (n,)."""
    _, members = np.unique(members, return_inverse=True)
    x, y = (np.bincount(members, weights=one - one.mean()).astype(np.float64) for one in (model, people))
    sizes = np.bincount(members).astype(np.float64)
    left = sizes.sum() - sizes
    mean_x, mean_y = -x / left, -y / left  # the centred sums of all clusters are 0

    def others(values: Floats) -> Floats:
        without: Floats = values.sum() - values
        return without

    weights = others(sizes * sizes) * mean_x
    squares = others(x * x) - 2 * mean_x * others(sizes * x) + weights * mean_x
    products = others(x * y) - mean_x * others(sizes * y) - mean_y * others(sizes * x) + weights * mean_y
    there = squares > ROUNDING * float((x * x).sum())
    slopes: Floats = np.divide(products, squares, out=np.zeros(len(x)), where=there)[members]
    return slopes


def _errors(deviations: Floats, members: Integers, units: int) -> Floats:
    """What each unit adds to the error of a mean, so that the squares' sum is that of the standard error: (units,).

    Sums of the deviations in a unit, over n, each raised by its leverage: 1 / (1 - n_g / n).
    """
    n, sizes = len(deviations), np.bincount(members, minlength=units)
    number = np.count_nonzero(sizes)
    sums = np.bincount(members, weights=deviations, minlength=units)
    return np.divide(sums, n - sizes, out=np.zeros(units), where=sizes < n) * math.sqrt((number - 1) / number)
