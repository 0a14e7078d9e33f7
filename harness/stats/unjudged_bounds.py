"""What unjudged documents can still do to a difference of two retrievers: certain bounds, and no p-value.

For measures that are sums of gains times a weight of the rank, for nDCG, whose ideal further judgments change, and for
RR, Success, recall and AP. Choosing what to judge next by these numbers is as in minimal test collections (Carterette,
Allan & Sitaraman 2006); labels that were chosen this way are not a random sample, so that no test may be made of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.stats.intervals import mean
from retrievers.types import Floats

CELLS = 1 << 22
"""Pairs of ranks that are compared at once; it bounds the memory and moves no result."""
ENDED = -1
"""Stands for a document where a list has ended."""


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


class Linear(NamedTuple):
    """A measure as a sum over the ranks: of discount times gain, divided by the ideal sum of the query for nDCG."""

    discounts: Floats
    gain_of: Callable[[int], float]
    """The gain of a grade from 0 up; grades may be large, so that no table holds them."""
    most: float
    """The gain of the highest grade."""
    ideal: Floats | None = None
    """The weights of the ranks of the ideal; None where nothing is divided."""

    def gain(self, grade: int) -> float:
        """The gain of a grade; that of 0 for one below 0."""
        return self.gain_of(max(0, grade))


class TopK(NamedTuple):
    """The first hits of one retriever for n queries, each array (n, cutoff)."""

    documents: npt.NDArray[np.int64]
    """A number for each document, ENDED behind the last."""
    known: npt.NDArray[np.bool_]
    """Whether it is judged."""
    gains: Floats
    """Of those that are; else 0."""

    def rows(self, part: slice) -> TopK:
        """Some of the queries."""
        return TopK(self.documents[part], self.known[part], self.gains[part])


def top_k_of(
    lists: Sequence[Sequence[str]], known: Sequence[Mapping[str, int]], linear: Linear, numbers: dict[str, int]
) -> TopK:
    """Return the lists of one retriever as arrays.

    Args:
        lists: the documents of each query, best first, no more than there are discounts.
        known: the grades of each query.
        linear: the measure.
        numbers: document -> its number; those that are new to it are added.
    """
    there = np.arange(len(linear.discounts)) < np.array([len(one) for one in lists], dtype=np.int64)[:, None]
    documents, judged, gains = np.full(there.shape, ENDED), np.zeros(there.shape, np.bool_), np.zeros(there.shape)
    documents[there] = [numbers.setdefault(document, len(numbers)) for one in lists for document in one]
    grades = [of.get(document) for one, of in zip(lists, known, strict=True) for document in one]
    worth = {grade: 0.0 if grade is None else linear.gain(grade) for grade in {*grades}}
    judged[there] = [grade is not None for grade in grades]
    gains[there] = [worth[grade] for grade in grades]
    return TopK(documents, judged, gains)


def mean_bounds(a: TopK, b: TopK, linear: Linear, ideals: Floats, weights: Floats | None = None) -> Bounds:
    """Return the bounds of the mean of a - b: the numbers that `bounds_of` gives for each query, averaged.

    Args:
        a: the first retriever.
        b: the second; one whose lists are all empty leaves the value of the first.
        linear: the measure.
        ideals: (2, n) the least and the greatest ideal of each query, which nDCG is divided by.
        weights: (n,) how much each query counts; None: all alike.
    """
    n, cutoff = a.documents.shape
    rows = max(1, CELLS // max(1, cutoff) ** 2)
    parts = [
        _edges(a.rows(part), b.rows(part), linear)
        for part in (slice(start, start + rows) for start in range(0, n, rows))
    ]
    edges = np.concatenate(parts, axis=1) if parts else np.zeros((2, 0))
    ends = edges if linear.ideal is None else normalised_bounds(edges, ideals)
    return Bounds(*(mean(row, weights) for row in ends)) if n else Bounds(0.0, 0.0)


def query_bounds(
    a: Sequence[str], b: Sequence[str], known: Mapping[str, int], linear: Linear, documents: int
) -> Bounds:
    """Return the bounds of a - b of one query.

    Args:
        a: document ids of the first ranking, best first, no more than there are discounts.
        b: those of the second; empty for the value of the first.
        known: the grades of those that are judged.
        linear: the measure.
        documents: of the corpus.

    >>> sums = Linear(np.array([1.0, 0.5]), float, most=1.0)
    >>> tuple(query_bounds(["x", "y"], ["y", "x"], {"x": 1}, sums, 10))
    (0.0, 0.5)
    """
    numbers: dict[str, int] = {}
    first, second = (top_k_of([ranking], [known], linear, numbers) for ranking in (a, b))
    return mean_bounds(first, second, linear, ideals_of(linear, [known], documents))


def _edges(a: TopK, b: TopK, linear: Linear) -> Floats:
    """Return each query's sum at its least and at its greatest, before the scale: (2, n)."""
    in_a, in_b = a.documents != ENDED, b.documents != ENDED
    same = (a.documents[:, :, None] == b.documents[:, None, :]) & in_a[:, :, None]
    # At most one rank of b has the document of a rank of a: the product adds nothing but zeros to its discount.
    of_a = np.where(in_a, linear.discounts, 0.0) - same @ linear.discounts
    of_b = np.where(in_b & ~same.any(axis=1), -linear.discounts, 0.0)
    weights = np.concatenate([of_a, of_b], axis=1)
    known = np.concatenate([a.known, b.known], axis=1)
    judged = _sums(np.where(known, weights * np.concatenate([a.gains, b.gains], axis=1), 0.0))
    open_ = np.where(known, 0.0, weights * linear.most)
    return np.stack([judged + _sums(np.minimum(open_, 0.0)), judged + _sums(np.maximum(open_, 0.0))])


def _sums(rows: Floats) -> Floats:
    """Each row's sum, rounded once: what is certain must not hang on the order of the ranks."""
    return np.array([math.fsum(row) for row in rows.tolist()])


def ideals_of(linear: Linear, known: Sequence[Mapping[str, int]], documents: int) -> Floats:
    """Return the least and the greatest ideal of each query, (2, n); 1 where nothing is divided.

    Args:
        linear: the measure.
        known: the grades of each query.
        documents: of the corpus.
    """
    if linear.ideal is None:
        return np.ones((2, len(known)))
    bounds = [
        ideal_bounds(
            [linear.gain(grade) for grade in judged.values()], documents - len(judged), linear.most, linear.ideal
        )
        for judged in known
    ]
    return np.array(bounds, dtype=np.float64).reshape(len(known), 2).T


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
    hits = ((place for place, one in enumerate(ranking) if lists.relevant.get(one)) for ranking in (lists.a, lists.b))
    first_a, first_b = (next(places, nowhere) for places in hits)
    best = _worth(worth, first_a) - _worth(worth, first_b)
    places = {document: place for place, document in enumerate(lists.b)}
    for place, document in enumerate(lists.a):
        if place >= first_a:
            break
        if document not in lists.relevant:
            in_b = min(first_b, places.get(document, nowhere))
            best = max(best, _worth(worth, place) - _worth(worth, in_b))
    return best


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
    precisions = (number / (place + 1) for number, place in enumerate(sorted(places), start=1))
    return sum(precisions) / relevant if relevant else 0.0
