"""Planned interim looks with their levels."""

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

import numpy as np
import scipy
from scipy import special

from harness.stats.settings import Settings

QueryKey = TypeVar("QueryKey")

LOOK_GRID_POINTS = 1_001
"""Points on which the distribution of the test between two looks is integrated."""


@dataclass(frozen=True, slots=True)
class InterimAnalysis:
    """Which look this is, and what it may claim."""

    number: int
    """From 1, those that were taken included."""
    planned: tuple[int, ...]
    """Queries in all at each planned look."""
    level: float
    """Two-sided level of the tests at this look; beyond the last planned one, that of its intervals alone."""
    alpha: float
    """What all looks together spend."""
    alpha_spent: bool
    """Whether alpha is spent: more queries were asked than planned."""


def spent_alpha(alpha: float, fraction: float) -> float:
    """Return how much of a two-sided alpha is spent when this fraction of the queries has been looked at.

    O'Brien & Fleming's boundary as a spending function (Lan & DeMets 1983), alpha / 2 in each tail:
    2 x (2 - 2 Phi(z(1 - alpha / 4) / sqrt(fraction))).

    >>> round(spent_alpha(0.05, 0.5), 6), round(spent_alpha(0.05, 1.0), 6)
    (0.003051, 0.05)
    """
    return float(4 * special.ndtr(special.ndtri(alpha / 4) / np.sqrt(fraction)))


@lru_cache(maxsize=16)
def look_levels(
    alpha: float, queries: tuple[int, ...], end: int | None = None
) -> tuple[float, ...]:
    """Return the two-sided level of the test at each look, so that all together spend alpha at the end.

    The test statistics of the looks are normal with correlation sqrt(n_i / n_j); a look's boundary is where the chance
    of crossing it, and none before, is what the spending function grants (Armitage, McPherson & Rowe 1969).

    Args:
        alpha: of all looks together, two-sided.
        queries: rising numbers of queries in all.
        end: the last planned number; None: the last of `queries`.

    >>> [round(x, 4) for x in look_levels(0.05, (75, 150))]
    [0.0031, 0.049]
    """
    fractions = np.array(queries) / (end or queries[-1])
    granted = np.diff(
        [spent_alpha(alpha, float(fraction)) for fraction in fractions], prepend=0.0
    )
    bounds: list[float] = []
    grid, density = np.zeros(1), np.ones(1)
    for look, fraction in enumerate(fractions):
        step = np.sqrt(fraction - (fractions[look - 1] if look else 0.0))

        def crossed(
            bound: float, step: float = step, fraction: float = fraction
        ) -> float:
            edge = bound * np.sqrt(fraction)
            tails = special.ndtr((grid - edge) / step) + special.ndtr(  # noqa: B023
                (-edge - grid) / step  # noqa: B023
            )
            return float(density @ tails)  # noqa: B023

        bound = float(
            scipy.optimize.brentq(
                lambda x, want=granted[look]: crossed(x) - want, 0.0, 40.0
            )
        )
        bounds.append(bound)
        edge = bound * np.sqrt(fraction)
        onward = np.linspace(-edge, edge, LOOK_GRID_POINTS)
        apart = (onward[:, None] - grid[None, :]) / step
        weights = np.full(LOOK_GRID_POINTS, onward[1] - onward[0])
        weights[[0, -1]] /= 2
        density = (
            (np.exp(-(apart**2) / 2) / (np.sqrt(2 * np.pi) * step)) @ density * weights
        )
        grid = onward
    return tuple(float(2 * special.ndtr(-bound)) for bound in bounds)


def current_look(settings: Settings, queries: int) -> InterimAnalysis | None:
    """Return which look so many queries are, None where none are planned.

    Alpha is spent at the numbers of queries that were reached: the earlier looks that are known, and at a planned look
    all planned ones before it. Beyond the last planned number nothing is left.
    """
    if settings.looks is None:
        return None
    planned = settings.looks.queries
    before = {
        n
        for n in (*settings.earlier, *(planned if queries in planned else ()))
        if n < queries
    }
    reached = (*sorted(before), queries)
    spent = queries > planned[-1]
    level = (
        look_levels(settings.alpha, planned)[-1]
        if spent
        else look_levels(settings.alpha, reached, planned[-1])[-1]
    )
    return InterimAnalysis(len(reached), planned, level, settings.alpha, spent)


def settings_at_look(settings: Settings, queries: int) -> Settings:
    """Return the settings with the level of the look that so many queries are; unchanged where none are planned.

    Intervals get that level's confidence too (repeated confidence intervals, Jennison & Turnbull 1989).
    """
    look = current_look(settings, queries)
    return (
        settings
        if look is None
        else replace(
            settings, alpha=look.level, looks=None, alpha_spent=look.alpha_spent
        )
    )


def nested_look_sizes(
    earlier: Iterable[Set[QueryKey]], queries: Set[QueryKey]
) -> tuple[int, ...]:
    """Return how many queries each earlier look had, fewest first, given the queries of earlier runs.

    An earlier run counts where this one has all its queries and more; runs of the same queries are one look.

    >>> nested_look_sizes([frozenset("ab"), frozenset("ab"), frozenset("xy")], frozenset("abc"))
    (2,)
    """
    return tuple(
        sorted(
            len(before)
            for before in {frozenset(one) for one in earlier}
            if before and before < queries
        )
    )
