"""More hypotheses than one: corrections for a family of tests, and Friedman's test of all retrievers at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from scipy import special

from harness.stats.differences import SLACK, Floats, Integers
from harness.stats.signed_rank import SMALLEST
from retrievers.errors import InputError, Problem, did_you_mean


def adjust(p_values: Sequence[float], method: str = "holm") -> tuple[float, ...]:
    """Return the adjusted p-values of one family, in the given order, none above 1.

    Args:
        p_values: one for each hypothesis of the family, 0 < p <= 1; an undefined test counts with p = 1.
        method: "holm" (Holm 1979) and "bonferroni" keep the chance of any false claim in the family at alpha; "bh"
            (Benjamini & Hochberg 1995) the expected share of false claims among all claims.

    Raises:
        InputError: an unknown method.

    >>> adjust([0.01, 0.04, 0.03])
    (0.03, 0.06, 0.06)
    """
    if method not in CORRECTIONS:
        raise InputError(Problem("correction", f"unknown method {method!r}", did_you_mean(method, CORRECTIONS)))
    p = np.asarray(p_values, dtype=np.float64)
    if not p.size:
        return ()
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(CORRECTIONS[method](p[order]), 1.0)
    return tuple(adjusted.tolist())


def _holm(p: Floats) -> Floats:
    stepped: Floats = np.maximum.accumulate(p * np.arange(len(p), 0, -1))
    return stepped


def _bonferroni(p: Floats) -> Floats:
    return p * len(p)


def _bh(p: Floats) -> Floats:
    m = len(p)
    stepped: Floats = np.minimum.accumulate((p * (m / np.arange(1, m + 1)))[::-1])[::-1]
    return stepped


CORRECTIONS: dict[str, Callable[[Floats], Floats]] = {
    "holm": _holm,
    "bonferroni": _bonferroni,
    "bh": _bh,
}
"""Ours: importing statsmodels takes longer than a whole comparison; the tests compare both."""


def adjusted_floors(p_values: Sequence[float], floors: Sequence[float | None], method: str) -> tuple[float | None, ...]:
    """Return, for each hypothesis, the correction with its own p replaced by the smallest that it could have been.

    Args:
        p_values: one for each hypothesis of the family.
        floors: the smallest p of the first hypotheses; None where there is no such bound.
        method: as for `adjust`.

    >>> adjusted_floors([0.03, 0.04], [0.01, None], "holm")
    (0.02, None)
    """
    return tuple(
        None if floor is None else adjust([*p_values[:i], floor, *p_values[i + 1 :]], method)[i]
        for i, floor in enumerate(floors)
    )


EXACT_QUERIES = 100


@dataclass(frozen=True, slots=True)
class Friedman:
    """What Friedman's test found; reported, never a gate before the pairwise tests."""

    statistic: float | None
    """Chi-squared, corrected for ties; None where no query tells any two retrievers apart."""
    p_value: float
    method: str
    """"exact" (3 retrievers, up to 100 queries), "iman-davenport", or "undefined" (p = 1)."""


def friedman(scores: Mapping[str, Floats]) -> Friedman:
    """Test whether all retrievers rank alike, conditional on the ties within each query.

    Args:
        scores: retriever -> (n,) scores of one measure; at least two retrievers.

    >>> result = friedman({"x": np.array([0.9, 0.8]), "y": np.array([0.5, 0.5]), "z": np.array([0.1, 0.3])})
    >>> result.statistic, round(result.p_value, 4), result.method
    (4.0, 0.1667, 'exact')
    """
    table = np.column_stack(list(scores.values()))
    n, k = table.shape
    if k < 2:
        raise ValueError("Friedman's test compares at least two retrievers")
    ranks = doubled_ranks_within(table)
    # Deviations from the middle rank, doubled: whole numbers whose squares tell all that follows.
    deviations = ranks - (k + 1)
    within, between = int((deviations**2).sum()), int((deviations.sum(axis=0) ** 2).sum())
    if not within or n == 1:
        return Friedman(None, 1.0, "undefined")
    chi = (k - 1) * between / within
    if k == 3 and n <= EXACT_QUERIES:
        return Friedman(chi, max(_exact_three(deviations, between), SMALLEST), "exact")
    room = n * (k - 1) - chi
    if room <= SLACK:
        # All queries agree: of the k! orders of each but the first, only one is this extreme.
        return Friedman(chi, max(math.factorial(k) ** float(1 - n), SMALLEST), "iman-davenport")
    p = float(special.fdtrc(k - 1, (k - 1) * (n - 1), (n - 1) * chi / room))
    return Friedman(chi, max(p, SMALLEST), "iman-davenport")


def doubled_ranks_within(table: Floats) -> Integers:
    """Return twice the mid-ranks within each row of (n, k) scores, 2 for the highest; float noise ties."""
    n, k = table.shape
    order = np.argsort(-table, axis=1, kind="stable")
    falling = np.take_along_axis(table, order, axis=1)
    new = -np.diff(falling, axis=1) > SLACK * max(1.0, float(np.abs(table).max()))
    groups = np.concatenate([np.zeros((n, 1), dtype=np.int64), np.cumsum(new, axis=1)], axis=1)
    flat = groups + k * np.arange(n)[:, None]
    members = np.bincount(flat.ravel(), minlength=n * k).reshape(n, k)
    before = np.cumsum(members, axis=1) - members
    doubled = np.take_along_axis(2 * before + members + 1, groups, axis=1)
    ranks = np.empty_like(doubled)
    np.put_along_axis(ranks, order, doubled, axis=1)
    return ranks


def _exact_three(deviations: Integers, observed: int) -> float:
    """Return P(sum of squared rank sums >= observed) over all orders within the queries of three retrievers."""
    reach = int(np.abs(deviations).max(axis=1).sum())
    chance = np.zeros((2 * reach + 1, 2 * reach + 1))
    chance[reach, reach] = 1.0
    for row in deviations.tolist():
        if any(row):
            # Nothing reaches the border before the last query, so that rolling never wraps.
            chance = sum((np.roll(chance, (x, y), (0, 1)) for x, y, _ in permutations(row)), np.zeros(())) / 6
    x, y = np.ogrid[-reach : reach + 1, -reach : reach + 1]
    return float(chance[x * x + y * y + (x + y) ** 2 >= observed].sum())
