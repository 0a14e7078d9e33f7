"""Rank-biased overlap of two rankings."""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from retrievers.types import Floats

Integers = npt.NDArray[np.int64]

RBO_PERSISTENCE = 0.9
"""The first ten ranks have 86 % of the weight (Webber, Moffat & Zobel 2010)."""
OVERLAP_DEPTH = 10
"""Ranks whose share in common is reported beside rank-biased overlap."""


class RankOverlap(NamedTuple):
    """Rank-biased overlap of two rankings: 0 (nothing in common) to 1 (the same).

    Source: Webber, Moffat & Zobel (2010).
    """

    extrapolated: float
    """Rank-biased overlap if both lists went on agreeing as they did."""
    top: float
    """Share of the first ten in common: of the longer list's length, at most ten."""


def rank_overlap(
    a: Sequence[str], b: Sequence[str], p: float = RBO_PERSISTENCE
) -> RankOverlap:
    """Compare two rankings without ties or duplicates, with weight p^depth.

    Equation 32 of Webber, Moffat & Zobel (2010), "A similarity measure for indefinite
    rankings", TOIS 28, uneven lists included. Two empty rankings are the same; an empty
    one has nothing in common with another.

    Args:
        a: document ids, best first.
        b: the other retriever's, for the same query.
        p: the chance that a reader goes on to the next rank, between 0 and 1.

    >>> round(rank_overlap("abcde", "bacfg").extrapolated, 6)
    0.619335
    """
    short, long = (b, a) if len(b) < len(a) else (a, b)
    if not short:
        is_same = float(not long)
        return RankOverlap(extrapolated=is_same, top=is_same)
    shared = _shared_counts(short, long)
    top_end = min(OVERLAP_DEPTH, len(long))
    return RankOverlap(
        extrapolated=_extrapolated_overlap(shared, len(short), p),
        top=int(shared[top_end - 1]) / top_end,
    )


def _extrapolated_overlap(shared: Integers, short_end: int, p: float) -> float:
    """Return equation 32.

    Args:
        shared: (n,) documents that both have, down to each depth of the longer list.
        short_end: the length of the shorter list.
        p: as in `rank_overlap`.
    """
    long_end = len(shared)
    shared_in_short = int(shared[short_end - 1])
    shared_in_long = int(shared[long_end - 1])
    depths, weights = _depth_weights(long_end, p)
    agreed = math.fsum((shared / depths * weights).tolist())
    uneven = 0.0
    if short_end < long_end:
        beyond = depths[short_end:]
        missing_shares = shared_in_short * (beyond - short_end) / (short_end * beyond)
        uneven = math.fsum((missing_shares * weights[short_end:]).tolist())
    last_agreement = (
        shared_in_long - shared_in_short
    ) / long_end + shared_in_short / short_end
    seen_part = (1 - p) / p * (agreed + uneven)
    return seen_part + last_agreement * float(weights[long_end - 1])


class DepthWeights(NamedTuple):
    """The depths of a ranking with their weights."""

    depths: Integers
    """(n,): 1, 2, 3 and so on."""
    weights: Floats
    """(n,): p^depth."""


@lru_cache(maxsize=1 << 12)
def _depth_weights(n: int, p: float) -> DepthWeights:
    weights = np.array([p**depth for depth in range(1, n + 1)])
    return DepthWeights(np.arange(1, n + 1), weights)


def _shared_counts(short: Sequence[str], long: Sequence[str]) -> Integers:
    """Return how many documents both have, down to each depth of the longer: (n,)."""
    rank_in_short = dict(zip(short, range(len(short)), strict=True))
    n = len(long)
    # A document that only the longer list has gets n, beyond every depth.
    ranks = map(rank_in_short.get, long, repeat(n))
    met_at = np.maximum(np.fromiter(ranks, np.int64, n), np.arange(n))
    return np.bincount(met_at, minlength=n + 1)[:n].cumsum()


def mean_rank_overlap(
    pairs: Sequence[tuple[Sequence[str], Sequence[str]]],
) -> RankOverlap | None:
    """Return the mean overlap of the two rankings of each query; None without any."""
    if not pairs:
        return None
    overlaps = [rank_overlap(a, b) for a, b in pairs]
    count = len(overlaps)
    return RankOverlap(
        extrapolated=math.fsum(overlap.extrapolated for overlap in overlaps) / count,
        top=math.fsum(overlap.top for overlap in overlaps) / count,
    )
