"""The one order of hits.

A `Ranking` has a query's hits in this order. Scores computed here are rounded first
(`round_scores`); those of other programs stay as they are. Retrievers that cannot know
how many hits are enough search again with more (`search_until_settled`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from retrievers.passage import Passage
from retrievers.trace import Trace

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
HitsType = TypeVar("HitsType")
SCORE_RESOLUTION = 1e-6
"""Computed scores nearer than this share of a query's largest absolute score are equal
(see `round_scores`)."""
LIMIT_GROWTH = 4
"""How many times more hits the next search requests for unsettled queries."""


class Hit(NamedTuple):
    """One row of a ranking."""

    doc_id: str
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """A retriever's hits for one query, best first; `ranked` makes it."""

    doc_ids: tuple[str, ...]
    scores: Floats
    """float64, descending, read-only; hits with equal scores are in descending order of
    document id."""
    passages: tuple[Passage, ...] | None = None
    """The hits before they were collapsed to documents, best first; None if unknown."""
    trace: Trace | None = None
    """What an agent did to find them; it does not count for equality."""

    def __len__(self) -> int:
        return len(self.doc_ids)

    def __iter__(self) -> Iterator[Hit]:
        return map(Hit._make, zip(self.doc_ids, self.scores.tolist(), strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranking):
            return NotImplemented
        has_same_hits = self.doc_ids == other.doc_ids and np.array_equal(
            self.scores, other.scores
        )
        return has_same_hits and self.passages == other.passages

    def with_passages(self, passages: Iterable[Passage] | None) -> Ranking:
        """Return the same hits with passages; None if they are unknown."""
        return replace(self, passages=None if passages is None else tuple(passages))

    def with_trace(self, trace: Trace | None) -> Ranking:
        """Return the same hits with what an agent did to find them."""
        return replace(self, trace=trace)


def with_min_score(ranking: Ranking, min_score: float) -> Ranking:
    """Return the hits, and the passages, whose score is at least `min_score`.

    A score that only its rounding (`round_scores`) made lower is kept.

    >>> with_min_score(ranked(["a", "b"], [0.5, 0.2]), 0.3).doc_ids
    ('a',)
    >>> with_min_score(ranked(["a", "b"], round_scores([0.3, 0.1])), 0.1).doc_ids
    ('a', 'b')
    """
    largest = float(np.abs(ranking.scores).max(initial=0.0))
    return cut_below(ranking, min_score - SCORE_RESOLUTION / 2 * largest)


def cut_below(ranking: Ranking, least: float) -> Ranking:
    """Return the hits, and the passages, whose score is at least `least`, exactly."""
    count = int(np.count_nonzero(ranking.scores >= least))
    passages = ranking.passages
    if passages is not None:
        passages = tuple(passage for passage in passages if passage.score >= least)
    return Ranking(
        ranking.doc_ids[:count], ranking.scores[:count], passages, ranking.trace
    )


def without_documents(
    ranking: Ranking, doc_ids: Collection[str], depth: int
) -> Ranking:
    """Return a ranking without some documents, with `depth` hits and passages at most.

    >>> without_documents(ranked(["a", "b"], [2, 1]), {"a"}, 5).doc_ids
    ('b',)
    """
    hits = [hit for hit in ranking if hit.doc_id not in doc_ids][:depth]
    others = ranked(
        [hit.doc_id for hit in hits], [hit.score for hit in hits]
    ).with_trace(ranking.trace)
    if ranking.passages is None:
        return others
    passages = [
        passage for passage in ranking.passages if passage.document not in doc_ids
    ]
    return others.with_passages(passages[:depth])


def merge_duplicates(ranking: Ranking, same_as: Mapping[str, str]) -> Ranking:
    """Return a ranking in which one document represents all that are the same.

    It gets the best score of them.

    >>> ranking = ranked(["a2", "b", "a1"], [3, 2, 1])
    >>> merge_duplicates(ranking, {"a2": "a1"}).doc_ids
    ('a1', 'b')
    """
    best_scores: dict[str, float] = {}
    for doc_id, score in ranking:
        best_scores.setdefault(same_as.get(doc_id, doc_id), score)
    merged = ranked(list(best_scores), list(best_scores.values()))
    merged = merged.with_trace(ranking.trace)
    if ranking.passages is None:
        return merged
    return merged.with_passages(
        passage._replace(document=same_as.get(passage.document, passage.document))
        for passage in ranking.passages
    )


def ranked(
    doc_ids: Sequence[str], scores: npt.ArrayLike, depth: int | None = None
) -> Ranking:
    """Return hits in the one total order: by score, then document id, descending.

    Scores are compared as doubles, to the last digit: another system's scores define
    its order, and computed scores are rounded before (`round_scores`). Descending ids
    among equals is the order of NIST's trec_eval (`form_res_rels.c`).

    Args:
        doc_ids: distinct document ids.
        scores: one finite number each.
        depth: how many hits to keep; None for all.

    >>> ranked(["a", "b", "c"], [0.5, 0.9, 0.5]).doc_ids
    ('b', 'c', 'a')
    """
    values = np.asarray(scores, dtype=np.float64)
    if len(doc_ids) != len(values):
        raise ValueError(f"{len(doc_ids)} ids for {len(values)} scores")
    if not np.isfinite(values).all():
        raise ValueError("a score is not finite")
    if (values[1:] < values[:-1]).all():  # already in order, without equal scores
        sorted_ids = doc_ids
        sorted_scores = values[:depth].copy()
    else:
        order = np.argsort(-values, kind="stable")
        sorted_scores = values[order]
        sorted_ids = _sort_equal_scores(
            [doc_ids[i] for i in order.tolist()], sorted_scores
        )
        sorted_scores = sorted_scores[:depth]
    sorted_scores.setflags(write=False)
    return Ranking(tuple(sorted_ids[:depth]), sorted_scores)


def _sort_equal_scores(doc_ids: Sequence[str], scores: Floats) -> list[str]:
    """Return ids with those of equal scores in descending order."""
    sorted_ids = list(doc_ids)
    changes = np.flatnonzero(scores[1:] != scores[:-1]) + 1
    boundaries = [0, *changes.tolist(), len(sorted_ids)]
    for start, stop in pairwise(boundaries):
        if stop - start > 1:
            sorted_ids[start:stop] = sorted(sorted_ids[start:stop], reverse=True)
    return sorted_ids


def round_scores(scores: npt.ArrayLike) -> Floats:
    """Round one query's computed scores to 1e-6 of the largest absolute one.

    Sums of 32-bit floats differ by 2e-7 between engines and batch shapes. Without
    rounding, noise would decide which of two equal documents comes first.

    >>> round_scores([0.5, 1.0, 0.50000001]).tolist()
    [0.5, 1.0, 0.5]
    """
    values = np.asarray(scores, dtype=np.float64)
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    steps = np.rint(values / largest / SCORE_RESOLUTION)
    return np.asarray(steps * SCORE_RESOLUTION * largest)


def search_until_settled(
    search: Callable[[list[int], int], Iterable[HitsType]],
    query_count: int,
    limit: int,
    settle: Callable[[int, HitsType, int], Ranking | None],
) -> list[Ranking]:
    """Return one ranking per query; search unsettled queries again, with more hits.

    Args:
        search: returns the hits of the queries at some positions, at most `limit` each.
        query_count: how many queries there are.
        limit: hits to request at first; each further search requests four times more.
        settle: returns the ranking of the query at a position, from its hits and their
            limit; None if more hits are needed.
    """
    rankings: dict[int, Ranking] = {}
    unsettled = list(range(query_count))
    while unsettled:
        for position, hits in zip(unsettled, search(unsettled, limit), strict=True):
            ranking = settle(position, hits, limit)
            if ranking is not None:
                rankings[position] = ranking
        unsettled = [position for position in unsettled if position not in rankings]
        limit *= LIMIT_GROWTH
    return [rankings[position] for position in range(query_count)]


def top_k_candidates(
    scores: npt.NDArray[np.floating], depth: int, mask: Mask | None = None
) -> npt.NDArray[np.intp]:
    """Return the positions of scores that could be in the first `depth`.

    They include all that may tie with the last one after `round_scores`.

    Args:
        scores: the scores of one query, not rounded yet.
        depth: how many are needed in the end, at least 1.
        mask: which scores count; None for all.

    >>> scores = np.array([0.5, 0.9, 0.0, 0.5, 1.0])
    >>> top_k_candidates(scores, 2, np.array([True, True, True, True, False])).tolist()
    [0, 1, 3]
    """
    positions = np.arange(len(scores)) if mask is None else np.flatnonzero(mask)
    if len(positions) <= depth:
        return positions
    values = scores[positions]
    cut = len(positions) - depth
    last_score = np.partition(values, cut)[cut]
    tolerance = 2 * SCORE_RESOLUTION * float(np.abs(values).max())
    candidates: npt.NDArray[np.intp] = positions[values >= last_score - tolerance]
    return candidates
