"""What unjudged documents can still do to a difference of two retrievers: certain bounds, and no p-value.

They hold for measures that are sums of gains times a weight of the rank. Choosing what to judge next by these numbers
is as in minimal test collections (Carterette, Allan & Sitaraman 2006); labels that were chosen this way are no random
sample, so that no test may be made of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from retrievers.types import Floats

NOISE = 1e-12
"""What is at most this is a rounding of 0: no sign may hang on it."""


class Bounds(NamedTuple):
    """The least and the greatest that a number can become when every document has been judged."""

    low: float
    high: float

    @property
    def decided(self) -> bool:
        """Whether the sign is certain, whatever the unjudged documents turn out to be."""
        return self.low > 0 or self.high < 0

    @property
    def width(self) -> float:
        """How much is still open."""
        return self.high - self.low


def rank_weights(a: Sequence[str], b: Sequence[str], discounts: Floats) -> dict[str, float]:
    """Return what one unit of gain of each document adds to a - b: its discount in a minus that in b.

    Args:
        a: document ids of the first ranking, best first.
        b: document ids of the second.
        discounts: (k,) the weight of each rank; ranks below weigh 0.

    >>> weights = rank_weights(["x", "y"], ["y", "x"], np.array([1.0, 0.5]))
    >>> weights["x"], weights["y"]
    (0.5, -0.5)
    """
    weights: dict[str, float] = {}
    for documents, sign in ((a, 1.0), (b, -1.0)):
        for document, discount in zip(documents, discounts.tolist(), strict=False):
            weights[document] = weights.get(document, 0.0) + sign * discount
    return weights


def difference_bounds(weights: Mapping[str, float], gains: Mapping[str, float], most: float) -> Bounds:
    """Return the bounds of a difference when unjudged documents may have any gain from 0 to `most`.

    Args:
        weights: document -> what a unit of its gain adds to a - b.
        gains: document -> gain, for those that are judged.
        most: the gain of the highest grade.

    >>> weights = rank_weights(["d1", "d2"], ["d3", "d1"], 1 / np.log2(np.arange(2, 4)))
    >>> [round(x, 4) for x in difference_bounds(weights, {"d1": 1}, 1)]
    [-0.6309, 1.0]
    """
    known = math.fsum(weight * gains[document] for document, weight in weights.items() if document in gains)
    open_ = [weight * most for document, weight in weights.items() if document not in gains]
    return Bounds(
        known + math.fsum(change for change in open_ if change < 0),
        known + math.fsum(change for change in open_ if change > 0),
    )


def capped_bounds(difference: Floats, a: Floats, b: Floats, largest: float) -> Floats:
    """Return the bounds of the differences of values of which none counts more than `largest`.

    Where neither value can pass it, those of the sums hold. Where one can, the difference of what counts lies between
    that of the sums and 0, and never beyond what the bounds of the two values leave.

    Args:
        difference: (2, n) the least and the greatest difference of the two sums, for each of n queries.
        a: (2, n) the least and the greatest sum of the first ranking.
        b: (2, n) those of the second.
        largest: what one value can be at most.

    >>> capped_bounds(np.array([[-0.5], [2.0]]), np.array([[0.8], [2.5]]), np.array([[0.5], [1.0]]), 1.0).tolist()
    [[-0.19999999999999996], [0.5]]
    """
    passing = np.maximum(a[1], b[1]) > largest + NOISE
    first, second = np.minimum(a, largest), np.minimum(b, largest)
    apart = np.stack([first[0] - second[1], first[1] - second[0]])
    apart = np.where(np.abs(apart) <= NOISE, 0.0, apart)
    low = np.maximum(np.minimum(difference[0], 0.0), apart[0])
    high = np.minimum(np.maximum(difference[1], 0.0), apart[1])
    return np.where(passing, np.stack([low, high]), difference)


def log_discounts(cutoff: int) -> Floats:
    """Return 1 / log2(rank + 1) for the ranks down to a cutoff: (cutoff,)."""
    discounts: Floats = 1 / np.log2(np.arange(2, cutoff + 2))
    return discounts
