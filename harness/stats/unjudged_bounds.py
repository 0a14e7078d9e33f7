"""What unjudged documents can still do to a difference of two retrievers: certain bounds, and no p-value.

For measures that are sums of gains times a weight of the rank, for nDCG, whose ideal further judgments change, and for
RR, Success, recall and AP. Choosing what to judge next by these numbers is as in minimal test collections (Carterette,
Allan & Sitaraman 2006); labels that were chosen this way are no random sample, so that no test may be made of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from retrievers.types import Floats


class Bounds(NamedTuple):
    """The least and the greatest that a number can become when every document has been judged."""

    low: float
    high: float

    @property
    def decided(self) -> bool:
        """Whether the sign is certain, whatever is judged next."""
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


def ideal_bounds(gains: Sequence[float], unjudged: int, most: float, discounts: Floats) -> Bounds:
    """Return the least and the greatest ideal sum that further judgments can make: no other document gains, or all do.

    Args:
        gains: of the judged documents, none above `most`.
        unjudged: documents of the corpus that are not judged.
        most: the gain of the highest grade.
        discounts: (k,) the weight of each rank, never rising; the ideal is cut there.

    >>> ideal_bounds([0.0, 1.0], 2, 1.0, np.array([1.0, 0.5]))
    Bounds(low=1.0, high=1.5)
    """
    ordered = np.sort(np.asarray(gains, dtype=np.float64))[::-1]
    above = discounts[:unjudged]
    judged, pushed_down = ordered[: len(discounts)], ordered[: len(discounts) - len(above)]
    low = math.fsum(judged * discounts[: len(judged)])
    return Bounds(low, most * float(above.sum()) + math.fsum(pushed_down * discounts[unjudged:][: len(pushed_down)]))


def normalised_bounds(sums: Floats, ideals: Floats) -> Floats:
    """Return the bounds of differences of sums that are divided by an ideal which is not known, either.

    low = L / I0 where L < 0, else L / Imax; high = H / I0 where H > 0, else H / Imax; never beyond -1 and 1, which is
    where they lie when I0 is 0.

    Args:
        sums: (2, n) the least (L) and the greatest (H) difference of the sums of n queries.
        ideals: (2, n) the least (I0) and the greatest (Imax) ideal of each.

    >>> normalised_bounds(np.array([[-0.5, 0.5, -0.5], [0.25, 1.0, 0.0]]), np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 2.0]]))
    array([[-0.5 ,  0.25, -1.  ],
           [ 0.25,  1.  ,  0.  ]])
    """
    least, most = ideals
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(sums[0] < 0, sums[0] / least, sums[0] / most)
        high = np.where(sums[1] > 0, sums[1] / least, sums[1] / most)
    nothing_can_gain = most == 0
    return np.where(nothing_can_gain, 0.0, np.clip(np.stack([low, high]), -1.0, 1.0))


def log_discounts(cutoff: int) -> Floats:
    """Return 1 / log2(rank + 1) for the ranks down to a cutoff: (cutoff,)."""
    discounts: Floats = 1 / np.log2(np.arange(2, cutoff + 2))
    return discounts


class TwoLists(NamedTuple):
    """Two rankings of one query down to the cutoff (the second empty for the value of one), and what is judged."""

    a: Sequence[str]
    b: Sequence[str]
    relevant: Mapping[str, bool]
    """Judged document -> whether it is relevant."""
    documents: int
    """Documents of the corpus."""

    def swapped(self) -> TwoLists:
        """The same with the rankings in the other order."""
        return self._replace(a=self.b, b=self.a)

    @property
    def known(self) -> int:
        """Judged documents that are relevant."""
        return sum(self.relevant.values())

    @property
    def elsewhere(self) -> int:
        """Unjudged documents that stand in neither ranking."""
        return self.documents - len({*self.a, *self.b, *self.relevant})


def first_hit_bounds(lists: TwoLists, worth: Sequence[float]) -> Bounds:
    """Return the bounds of a difference of what the first relevant document is worth at its rank.

    Args:
        lists: the rankings.
        worth: what the first relevant document is worth at rank 1, 2, …, never rising: 1/rank for RR, 1 for Success.

    >>> first_hit_bounds(TwoLists(["x", "y"], ["y", "z"], {"y": True}, 10), [1.0, 0.5])
    Bounds(low=-0.5, high=0.0)
    """
    return Bounds(-_most_by_first(lists.swapped(), worth), _most_by_first(lists, worth))


def recall_bounds(lists: TwoLists) -> Bounds:
    """Return the bounds of a difference of recall: relevant documents in a ranking / relevant documents.

    >>> recall_bounds(TwoLists(["x", "y"], [], {"y": True, "z": True}, 10))
    Bounds(low=0.1111111111111111, high=0.6666666666666666)
    """
    return Bounds(-_most_recall(lists.swapped()), _most_recall(lists))


def average_precision_bounds(lists: TwoLists) -> Bounds:
    """Return bounds of a difference of average precision, each value at its own worst and best.

    >>> average_precision_bounds(TwoLists(["x", "y"], [], {"y": True}, 2))
    Bounds(low=0.5, high=1.0)
    """
    a, b = (_average_precision(lists._replace(a=ranking, b=())) for ranking in (lists.a, lists.b))
    return Bounds(a.low - b.high, a.high - b.low)


def _most_by_first(lists: TwoLists, worth: Sequence[float]) -> float:
    """The greatest difference: one unjudged document, at most, is needed for it, the first relevant one of `a`."""
    nowhere = len(worth)
    first_a, first_b = (_first_judged(ranking, lists.relevant, nowhere) for ranking in (lists.a, lists.b))
    best = _worth(worth, first_a) - _worth(worth, first_b)
    places = {document: place for place, document in enumerate(lists.b)}
    for place, document in enumerate(lists.a):
        if place >= first_a:
            break
        if document not in lists.relevant:
            in_b = min(first_b, places.get(document, nowhere))
            best = max(best, _worth(worth, place) - _worth(worth, in_b))
    return best


def _first_judged(ranking: Sequence[str], relevant: Mapping[str, bool], nowhere: int) -> int:
    places = (place for place, document in enumerate(ranking) if relevant.get(document))
    return next(places, nowhere)


def _worth(worth: Sequence[float], place: int) -> float:
    return worth[place] if place < len(worth) else 0.0


def _most_recall(lists: TwoLists) -> float:
    a, b = set(lists.a), set(lists.b)
    hits = sum(lists.relevant.get(document, False) for document in a)
    hits -= sum(lists.relevant.get(document, False) for document in b)
    alone = sum(document not in lists.relevant for document in a - b)
    both = sum(document not in lists.relevant for document in a & b)
    gain, number = hits + alone, lists.known + alone
    if gain < 0:  # the more documents are relevant that help nobody, the less is lost
        number += both + lists.elsewhere
    return gain / number if number else 0.0


def _average_precision(lists: TwoLists) -> Bounds:
    """The least and the greatest value of one ranking.

    Of so many unjudged documents that turn out relevant, the value is greatest where they stand first and nothing else
    is relevant, and least where they stand last and everything outside of the ranking is.
    """
    open_ = [place for place, document in enumerate(lists.a) if document not in lists.relevant]
    hits = {place for place, document in enumerate(lists.a) if lists.relevant.get(document)}
    high = (_of_hits(hits | set(open_[:number]), lists.known + number) for number in range(len(open_) + 1))
    low = (
        _of_hits(hits | set(open_[len(open_) - number :]), lists.known + number + lists.elsewhere)
        for number in range(len(open_) + 1)
    )
    return Bounds(min(low), max(high))


def _of_hits(places: set[int], relevant: int) -> float:
    return sum(_precisions(places)) / relevant if relevant else 0.0


def _precisions(places: set[int]) -> Iterator[float]:
    for number, place in enumerate(sorted(places), start=1):
        yield number / (place + 1)
