"""The typical difference: the Hodges-Lehmann estimate and the interval that belongs to the signed-rank test."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.differences import Differences
from harness.stats.signed_rank import EXACT_LIMIT, lower_tail, normal_tail


class HodgesLehmann(NamedTuple):
    """The median of the Walsh averages; `low` and `high` None where no interval has the confidence."""

    estimate: float
    low: float | None
    high: float | None
    method: str
    """"exact", "normal" beyond 2,000 queries, or "not estimable"."""


def hodges_lehmann(pairs: Differences, level: float = 0.95) -> HodgesLehmann:
    """Estimate the centre of the differences, zeros included (Hollander & Wolfe 1999, sections 3.2 and 3.3).

    The estimate is the median of the n(n+1)/2 averages (d_i + d_j) / 2, i <= j. The interval reaches from the
    C-th smallest to the C-th largest of them, C being as large as the null distribution without ties allows; with
    ties it is conservative. Up to five queries have no 95 % interval: even [min, max] covers less.

    >>> from harness.stats.differences import differences
    >>> hodges_lehmann(differences(np.array([0.1, 0.2, 0.6]), np.zeros(3))).estimate
    0.275
    """
    d = np.sort(pairs.values)
    n = len(d)
    rows, columns = np.triu_indices(n)
    walsh = (d[rows] + d[columns]) / 2
    count = len(walsh)
    place = depth(n, level)
    wanted = {(count - 1) // 2, count // 2} | ({place - 1, count - place} if place else set())
    walsh.partition(sorted(wanted))
    estimate = float(walsh[(count - 1) // 2] + walsh[count // 2]) / 2
    if not place or pairs.constant:
        return HodgesLehmann(estimate, None, None, "not estimable")
    method = "exact" if n <= EXACT_LIMIT else "normal"
    return HodgesLehmann(estimate, float(walsh[place - 1]), float(walsh[count - place]), method)


@lru_cache(maxsize=8)
def depth(n: int, level: float) -> int:
    """Return the largest C with 2 P(W+ < C) <= 1 - level for n untied differences; 0 where there is none.

    >>> depth(9, 0.95), depth(5, 0.95)
    (6, 0)
    """
    ranks = np.arange(1, n + 1, dtype=np.int64)
    allowed = (1 - level) / 2 * (1 + 1e-12)
    # Start at the normal approximation and walk to the exact value: a step or two at any n.
    spread = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    place = max(0, math.floor(n * (n + 1) / 4 + float(special.ndtri(allowed)) * spread))

    def covered(c: int) -> bool:
        return (lower_tail(ranks, c - 1) if n <= EXACT_LIMIT else normal_tail(2 * ranks, 2 * (c - 1))) <= allowed

    while place and not covered(place):
        place -= 1
    while covered(place + 1):
        place += 1
    return place
