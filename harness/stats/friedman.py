"""Friedman's test of more than two retrievers at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from scipy import special

from harness.stats.differences import SLACK, Floats, Integers
from harness.stats.signed_rank import SMALLEST

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
