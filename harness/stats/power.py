"""Power: what so many queries can find, how many a difference worth finding needs, and testing again with more.

The model of power: differences with the observed standard deviation, tested by a two-sided t-test at the smallest level
of the family, with power 0.80. Nothing is planned from the observed mean difference. Looks: alpha is spent over those
that were planned.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

import numpy as np
import scipy  # scipy.optimize is loaded at first use: few experiments plan looks
from scipy import special

from harness.stats.differences import Differences
from harness.stats.intervals import deviation
from harness.stats.settings import Settings

POWER = 0.80
FEWEST = 10
"""Non-zero differences below which nothing is said of power."""
MOST = 1_000_000
"""Queries beyond which no number is given."""


def t_power(effect: float, n: int, alpha: float) -> float:
    """Return the power of the two-sided paired t-test, from the noncentral t distribution.

    Args:
        effect: the true mean difference divided by the differences' standard deviation.
        n: pairs, 2 or more.
        alpha: two-sided level.

    >>> round(t_power(0.5, 34, 0.05), 4)
    0.8078
    """
    edge = float(special.stdtrit(n - 1, 1 - alpha / 2))
    centre = effect * math.sqrt(n)
    wrong_side = float(
        special.nctdtr(n - 1, centre, -edge)
    )  # scipy gives NaN where it is below 1e-6
    return float(1 - special.nctdtr(n - 1, centre, edge)) + (
        0.0 if math.isnan(wrong_side) else wrong_side
    )


def queries_for(effect: float, alpha: float = 0.05) -> int | None:
    """Return the smallest number of pairs with power 0.80; None where it is above 1,000,000.

    Args:
        effect: the true mean difference divided by the differences' standard deviation; > 0.
        alpha: two-sided level.

    Raises:
        ValueError: the effect is not above 0.

    >>> queries_for(0.5), queries_for(0.2)
    (34, 199)
    """
    if not effect > 0:
        raise ValueError(f"the effect {effect} is not above 0")
    sizes = range(2, MOST + 1)
    place = bisect_left(sizes, POWER, key=lambda n: t_power(effect, n, alpha))
    return sizes[place] if place < len(sizes) else None


def detectable_effect(n: int, alpha: float = 0.05) -> float:
    """Return the smallest mean difference, in standard deviations, that n pairs find with power 0.80; n >= 2.

    >>> round(detectable_effect(34), 3)
    0.495
    """
    top = 1.0
    while t_power(top, n, alpha) < POWER:
        top *= 2
    low, high = 0.0, top
    while (
        high - low > 1e-9 * high
    ):  # scipy.optimize needs fewer steps, and longer to be imported than all of these
        middle = (low + high) / 2
        low, high = (
            (middle, high) if t_power(middle, n, alpha) < POWER else (low, middle)
        )
    return high


def queries_needed(pairs: Differences, difference: float, alpha: float) -> int | None:
    """Return how many queries find a true mean difference with power 0.80; more than MOST where that is not enough.

    None below ten non-zero differences, and where all are equal: then nothing is said of power.

    Args:
        pairs: the observed differences, of clusters' means where clusters are declared; their mean is not used.
        difference: what must not be missed; > 0, in points of the measure.
        alpha: two-sided level, divided by the rows of the family.
    """
    if pairs.wins + pairs.losses < FEWEST or pairs.constant:
        return None
    return queries_for(difference / deviation(pairs.values), alpha) or MOST + 1


T = TypeVar("T")

GRID = 1_001
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
    spent: bool
    """Whether alpha is spent: more queries were asked than planned."""


def spent(alpha: float, fraction: float) -> float:
    """Return how much of a two-sided alpha is spent when this fraction of the queries has been looked at.

    O'Brien & Fleming's boundary as a spending function (Lan & DeMets 1983), alpha / 2 in each tail:
    2 x (2 - 2 Phi(z(1 - alpha / 4) / sqrt(fraction))).

    >>> round(spent(0.05, 0.5), 6), round(spent(0.05, 1.0), 6)
    (0.003051, 0.05)
    """
    return float(4 * special.ndtr(special.ndtri(alpha / 4) / np.sqrt(fraction)))


@lru_cache(maxsize=16)
def levels(
    alpha: float, queries: tuple[int, ...], end: int | None = None
) -> tuple[float, ...]:
    """Return the two-sided level of the test at each look, so that all together spend alpha at the end.

    The test statistics of the looks are normal with correlation sqrt(n_i / n_j); a look's boundary is where the chance
    of crossing it, and none before, is what the spending function grants (Armitage, McPherson & Rowe 1969).

    Args:
        alpha: of all looks together, two-sided.
        queries: rising numbers of queries in all.
        end: the last planned number; None: the last of `queries`.

    >>> [round(x, 4) for x in levels(0.05, (75, 150))]
    [0.0031, 0.049]
    """
    fractions = np.array(queries) / (end or queries[-1])
    granted = np.diff(
        [spent(alpha, float(fraction)) for fraction in fractions], prepend=0.0
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
        onward = np.linspace(-edge, edge, GRID)
        apart = (onward[:, None] - grid[None, :]) / step
        weights = np.full(GRID, onward[1] - onward[0])
        weights[[0, -1]] /= 2
        density = (
            (np.exp(-(apart**2) / 2) / (np.sqrt(2 * np.pi) * step)) @ density * weights
        )
        grid = onward
    return tuple(float(2 * special.ndtr(-bound)) for bound in bounds)


def look_at(settings: Settings, queries: int) -> InterimAnalysis | None:
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
        levels(settings.alpha, planned)[-1]
        if spent
        else levels(settings.alpha, reached, planned[-1])[-1]
    )
    return InterimAnalysis(len(reached), planned, level, settings.alpha, spent)


def at_look(settings: Settings, queries: int) -> Settings:
    """Return the settings with the level of the look that so many queries are; unchanged where none are planned.

    Intervals get that level's confidence too (repeated confidence intervals, Jennison & Turnbull 1989).
    """
    look = look_at(settings, queries)
    return (
        settings
        if look is None
        else replace(settings, alpha=look.level, looks=None, spent=look.spent)
    )


def earlier_looks(earlier: Iterable[Set[T]], queries: Set[T]) -> tuple[int, ...]:
    """Return how many queries each earlier look had, fewest first, given the queries of earlier runs.

    An earlier run counts where this one has all its queries and more; runs of the same queries are one look.

    >>> earlier_looks([frozenset("ab"), frozenset("ab"), frozenset("xy")], frozenset("abc"))
    (2,)
    """
    return tuple(
        sorted(
            len(before)
            for before in {frozenset(one) for one in earlier}
            if before and before < queries
        )
    )
