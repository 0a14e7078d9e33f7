"""What unjudged documents can still do to measures that are no sums over the ranks: RR, Success, recall, AP.

A document is relevant or not. The bounds of RR, Success and recall are reached by some outcome of the judging; those of
a difference of AP are certain and may be wider than need be, since what one more relevant document adds depends on the
others. Where a measure is divided by the number of relevant documents, every unjudged document of the corpus counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.stats.bounds import Bounds


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
