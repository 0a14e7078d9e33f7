"""Rank-biased overlap of two rankings."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from retrievers.types import Floats

Integers = npt.NDArray[np.int64]


RBO_PERSISTENCE = 0.9
OVERLAP_DEPTH = 10


class RankOverlap(NamedTuple):
    """Rank-biased overlap (Webber, Moffat & Zobel 2010) of two rankings, 0 (nothing in common) to 1 (the same)."""

    extrapolated: float
    """As if both went on agreeing as they did."""
    top: float
    """Share of the first ten in common: of as many as the longer list has, at most ten."""


def rank_overlap(
    a: Sequence[str], b: Sequence[str], p: float = RBO_PERSISTENCE
) -> RankOverlap:
    """Compare two rankings without ties or duplicates, from the top down with weight p^depth.

    Equation 32 of Webber, Moffat & Zobel (2010), "A similarity measure for indefinite rankings", TOIS 28,
    uneven lists included. Two empty rankings are the same; an empty one has nothing in common with another.

    Args:
        a: document ids, best first.
        b: the other retriever's, for the same query.
        p: how far a reader goes on, between 0 and 1.

    >>> round(rank_overlap("abcde", "bacfg").extrapolated, 6)
    0.619335
    """
    short, long = sorted((list(a), list(b)), key=len)
    if not short:
        return RankOverlap(float(not long), float(not long))
    shared = _shared(short, long)
    s, n = len(short), len(long)
    x_s, x_n = int(shared[s - 1]), int(shared[n - 1])
    depths, weights = _weights(n, p)
    agreed = math.fsum((shared / depths * weights).tolist())
    beyond = depths[s:]
    uneven = math.fsum((x_s * (beyond - s) / (s * beyond) * weights[s:]).tolist())
    extrapolated = (1 - p) / p * (agreed + uneven) + (
        (x_n - x_s) / n + x_s / s
    ) * float(weights[n - 1])
    return RankOverlap(
        extrapolated,
        len({*short[:OVERLAP_DEPTH]} & {*long[:OVERLAP_DEPTH]})
        / len(long[:OVERLAP_DEPTH]),
    )


@lru_cache(maxsize=1 << 12)
def _weights(n: int, p: float) -> tuple[Integers, Floats]:
    """Each depth, and its weight: (n,) both."""
    return np.arange(1, n + 1), np.array([p**depth for depth in range(1, n + 1)])


def _shared(short: Sequence[str], long: Sequence[str]) -> Integers:
    """Return how many documents the two have in common down to each depth of the longer one: (n,)."""
    places = {document: place for place, document in enumerate(short)}
    met = [0] * len(long)
    for place, document in enumerate(long):
        if document in places:
            met[max(place, places[document])] += 1
    return np.cumsum(met)


def mean_rank_overlap(
    pairs: Sequence[tuple[Sequence[str], Sequence[str]]],
) -> RankOverlap | None:
    """Return the means over queries, each with the two rankings of its answers; None without a query."""
    if not pairs:
        return None
    overlaps = [rank_overlap(a, b) for a, b in pairs]
    return RankOverlap(
        *(math.fsum(column) / len(overlaps) for column in zip(*overlaps, strict=True))
    )
