"""How much two rankings have in common, whatever is relevant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

PERSISTENCE = 0.9
TOP = 10


class Overlap(NamedTuple):
    """Rank-biased overlap (Webber, Moffat & Zobel 2010) of two rankings, 0 (nothing in common) to 1 (the same)."""

    extrapolated: float
    """As if both went on agreeing as they did."""
    minimum: float
    """What they have in common for certain."""
    residual: float
    """How much the unseen ranks could add to the minimum."""
    top: float
    """Share of the first ten in common: of as many as the longer list has, at most ten."""


def overlap(a: Sequence[str], b: Sequence[str], p: float = PERSISTENCE) -> Overlap:
    """Compare two rankings without ties or duplicates, from the top down with weight p^depth.

    Equations 11, 30 and 32 of Webber, Moffat & Zobel (2010), "A similarity measure for indefinite rankings", TOIS 28,
    uneven lists included. Two empty rankings are the same; an empty one has nothing in common with another.

    Args:
        a: document ids, best first.
        b: the other retriever's, for the same query.
        p: how far a reader goes on, between 0 and 1.

    >>> [round(x, 6) for x in overlap("abcde", "bacfg")[:3]]
    [0.619335, 0.422528, 0.423161]
    """
    short, long = sorted((list(a), list(b)), key=len)
    if not short:
        return Overlap(float(not long), float(not long), float(bool(long)), float(not long))
    shared = _shared(short, long)
    s, n = len(short), len(long)
    x_s, x_n = shared[s - 1], shared[n - 1]
    weights = _weights(n, p)
    agreed = math.fsum([count / d * weight for d, (count, weight) in enumerate(zip(shared, weights, strict=True), 1)])
    uneven = math.fsum([x_s * (d - s) / (s * d) * weights[d - 1] for d in range(s + 1, n + 1)])
    extrapolated = (1 - p) / p * (agreed + uneven) + ((x_n - x_s) / n + x_s / s) * weights[n - 1]
    # What is certain: the overlap at the depth of both lists goes on, and nothing is added.
    head = math.fsum([
        (count - x_n) / d * weight for d, (count, weight) in enumerate(zip(shared, weights, strict=True), 1)
    ])  # fmt: skip
    minimum = (1 - p) / p * (head - x_n * math.log(1 - p))
    return Overlap(extrapolated, minimum, _residual(s, n, x_n, p), _top_share(short, long))


@lru_cache(maxsize=1 << 12)
def _weights(n: int, p: float) -> tuple[float, ...]:
    """The weight of each depth."""
    return tuple(p**depth for depth in range(1, n + 1))


def _shared(short: Sequence[str], long: Sequence[str]) -> list[int]:
    """Return how many documents the two have in common down to each depth of the longer one."""
    places = {document: place for place, document in enumerate(short)}
    met = [0] * len(long)
    for place, document in enumerate(long):
        if document in places:
            met[max(place, places[document])] += 1
    return list(accumulate(met))


@lru_cache(maxsize=1 << 16)
def _residual(s: int, n: int, shared: int, p: float) -> float:
    """Return the most that the unseen ranks can add: both lists agree from here on (equation 30)."""
    full = s + n - shared
    tail = math.fsum(p**d / d for d in range(s + 1, full + 1))
    beyond = math.fsum(p**d / d for d in range(n + 1, full + 1))
    known = math.fsum(p**d / d for d in range(1, full + 1))
    return p**s + p**n - p**full - (1 - p) / p * (s * tail + n * beyond + shared * (-math.log(1 - p) - known))


def _top_share(short: Sequence[str], long: Sequence[str]) -> float:
    return len(set(short[:TOP]) & set(long[:TOP])) / len(long[:TOP])


def mean_overlap(pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> Overlap | None:
    """Return the means over queries, each with the two rankings of its answers; None without a query."""
    if not pairs:
        return None
    overlaps = [overlap(a, b) for a, b in pairs]
    return Overlap(*(math.fsum(column) / len(overlaps) for column in zip(*overlaps, strict=True)))
