"""Planned interim looks with their levels.

Each look is a test of the same question with more queries; its level is such that all
looks together spend alpha. `settings_at_look` is the way in for an evaluation.
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
import scipy
from scipy import special

from harness.stats.differences import Floats
from harness.stats.settings import Settings

QueryKey = TypeVar("QueryKey")

LOOK_GRID_POINTS = 1_001
"""Points on which the distribution of the test between two looks is integrated."""
MIN_LOOK_CHANCE = 1e-12
"""The least chance that a look gets: with none, a test has no level."""
MAX_BOUNDARY = 40.0
"""A test statistic beyond which no chance is left in a float."""


@dataclass(frozen=True, slots=True)
class InterimAnalysis:
    """One look: a test of the same question as before, with more queries."""

    number: int
    """1, and one more for each earlier look that counts: see `current_look`."""
    planned: tuple[int, ...]
    """How many queries each planned look has, in all."""
    level: float
    """Two-sided level of the tests at this look.

    Beyond the last planned look it is only the level of the intervals.
    """
    alpha: float
    """The level that all looks spend together."""
    alpha_spent: bool
    """Whether alpha is spent: there are more queries than planned."""
    no_more_queries: bool = False
    """Whether this look is the last, since no further query can be scored."""


class StatisticDensity(NamedTuple):
    """The distribution of the statistic if no earlier look crossed its boundary."""

    grid: Floats
    """(points,): the statistic times the root of the look's `fraction`.

    So scaled, it changes from look to look by independent steps.
    """
    weights: Floats
    """(points,): the probability of each."""


class LookStep(NamedTuple):
    """The step of the scaled statistic from one look to the next."""

    fraction: float
    """The share of all planned queries at the next look."""
    deviation: float
    """Standard deviation of the step: the root of the added share of the queries."""


def spent_alpha(alpha: float, fraction: float) -> float:
    """Return how much of a two-sided alpha is spent at this fraction of the queries.

    O'Brien & Fleming's boundary as a spending function (Lan & DeMets 1983), alpha / 2
    in each tail: 2 x (2 - 2 Phi(z(1 - alpha / 4) / sqrt(fraction))).

    >>> round(spent_alpha(0.05, 0.5), 6), round(spent_alpha(0.05, 1.0), 6)
    (0.003051, 0.05)
    """
    return float(4 * special.ndtr(special.ndtri(alpha / 4) / np.sqrt(fraction)))


@lru_cache(maxsize=16)
def look_levels(
    alpha: float,
    queries: tuple[int, ...],
    end: int | None = None,
    *,
    spends_rest: bool = False,
) -> tuple[float, ...]:
    """Return the two-sided level of the test at each look; all together spend alpha.

    The test statistics of the looks are normal with correlation sqrt(n_i / n_j). At the
    boundary of a look, the chance to cross it, and no earlier one, is the alpha that
    the spending function grants (Armitage, McPherson & Rowe 1969), at least 1e-12.

    Args:
        alpha: of all looks together, two-sided.
        queries: rising numbers of queries in all.
        end: the last planned number; None: the last of `queries`.
        spends_rest: whether the last look spends what is left, before the end.

    >>> [round(x, 4) for x in look_levels(0.05, (75, 150))]
    [0.0031, 0.049]
    >>> levels = look_levels(0.05, (75, 140), 150, spends_rest=True)
    >>> round(levels[-1], 4)
    0.0491
    """
    fractions = np.array(queries) / (end or queries[-1])
    spent = [spent_alpha(alpha, float(fraction)) for fraction in fractions]
    if spends_rest:
        spent[-1] = alpha
    granted = np.maximum(np.diff(spent, prepend=0.0), MIN_LOOK_CHANCE)
    levels: list[float] = []
    density = StatisticDensity(grid=np.zeros(1), weights=np.ones(1))
    previous_fraction = 0.0
    for fraction, chance in zip(fractions, granted, strict=True):
        step = LookStep(fraction, deviation=np.sqrt(fraction - previous_fraction))
        boundary = _find_boundary(density, step, chance)
        levels.append(float(2 * special.ndtr(-boundary)))
        density = _density_within(boundary, density, step)
        previous_fraction = fraction
    return tuple(levels)


def _find_boundary(density: StatisticDensity, step: LookStep, chance: float) -> float:
    """Return the boundary that the test statistic crosses with this chance."""

    def excess_chance(boundary: float) -> float:
        return _crossing_chance(boundary, density, step) - chance

    return float(scipy.optimize.brentq(excess_chance, 0.0, MAX_BOUNDARY))


def _crossing_chance(
    boundary: float, density: StatisticDensity, step: LookStep
) -> float:
    """Return the chance to cross the boundary in either direction at the next look."""
    edge = boundary * np.sqrt(step.fraction)
    above = special.ndtr((density.grid - edge) / step.deviation)
    below = special.ndtr((-edge - density.grid) / step.deviation)
    return float(density.weights @ (above + below))


def _density_within(
    boundary: float, density: StatisticDensity, step: LookStep
) -> StatisticDensity:
    """Return the distribution at the next look if the boundary is not crossed."""
    edge = boundary * np.sqrt(step.fraction)
    grid = np.linspace(-edge, edge, LOOK_GRID_POINTS)
    deviations = (grid[:, None] - density.grid[None, :]) / step.deviation
    widths = np.full(LOOK_GRID_POINTS, grid[1] - grid[0])
    widths[[0, -1]] /= 2
    normal = np.exp(-(deviations**2) / 2) / (np.sqrt(2 * np.pi) * step.deviation)
    return StatisticDensity(grid, weights=normal @ density.weights * widths)


def current_look(settings: Settings, queries: int) -> InterimAnalysis | None:
    """Return the look that has so many queries; None if no looks are planned.

    Alpha is spent at the numbers of queries that were reached: those of known earlier
    looks, and at a planned look all planned ones before it, whether or not their
    results are known. The last planned number, or the last query there is, spends what
    is left; beyond nothing is left.
    """
    if settings.looks is None:
        return None
    planned = settings.looks.queries
    earlier = {*settings.earlier}
    if queries in planned:
        earlier.update(planned)
    reached = (*sorted(n for n in earlier if n < queries), queries)
    alpha_spent = queries > planned[-1]
    # Beyond the plan no test is left; intervals keep the last planned look's level.
    sizes = planned if alpha_spent else reached
    is_last = settings.no_more_queries and queries < planned[-1]
    levels = look_levels(settings.alpha, sizes, planned[-1], spends_rest=is_last)
    return InterimAnalysis(
        number=len(reached),
        planned=planned,
        level=levels[-1],
        alpha=settings.alpha,
        alpha_spent=alpha_spent,
        no_more_queries=is_last,
    )


def settings_at_look(settings: Settings, queries: int) -> Settings:
    """Return the settings with the level of the look that has so many queries.

    They are unchanged if no looks are planned. Intervals get the confidence of that
    level, too (repeated confidence intervals, Jennison & Turnbull 1989).
    """
    look = current_look(settings, queries)
    if look is None:
        return settings
    return replace(settings, alpha=look.level, looks=None, alpha_spent=look.alpha_spent)


def nested_look_sizes(
    earlier: Iterable[Set[QueryKey]], queries: Set[QueryKey]
) -> tuple[int, ...]:
    """Return how many queries each earlier look had, fewest first.

    An earlier run counts if this one has all its queries and more; runs of the same
    queries are one look.

    Args:
        earlier: the queries of each earlier run.
        queries: those of this run.

    >>> nested_look_sizes([{"a", "b"}, {"a", "b"}, {"x", "y"}], {"a", "b", "c"})
    (2,)
    """
    sizes = [
        len(earlier_queries)
        for earlier_queries in set(map(frozenset, earlier))
        if earlier_queries and earlier_queries < queries
    ]
    return tuple(sorted(sizes))
