"""The one order of hits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
HitsType = TypeVar("HitsType")
SCORE_RESOLUTION = 1e-6
"""Scores of ours nearer than this share of a query's largest absolute score are equal (see `rounded`)."""


def with_min_score(ranking: Ranking, floor: float) -> Ranking:
    """Return the hits whose score reaches a floor.

    >>> with_min_score(ranked(["a", "b"], [0.5, 0.2]), 0.3).doc_ids
    ('a',)
    """
    kept = int(np.count_nonzero(ranking.scores >= floor))
    return Ranking(ranking.doc_ids[:kept], ranking.scores[:kept])


class Hit(NamedTuple):
    """One row of a ranking."""

    doc_id: str
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """What a retriever answered to one query, best first: made by `ranked`, or read back from what it made."""

    doc_ids: tuple[str, ...]
    scores: Floats
    """float64, descending, read-only; equal scores are in descending order of document id."""

    def __len__(self) -> int:
        return len(self.doc_ids)

    def __iter__(self) -> Iterator[Hit]:
        return map(Hit._make, zip(self.doc_ids, self.scores.tolist(), strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranking):
            return NotImplemented
        return self.doc_ids == other.doc_ids and np.array_equal(
            self.scores, other.scores
        )


def without_document(ranking: Ranking, doc_id: str, depth: int) -> Ranking:
    """Return a ranking without one document, at most `depth` of the others.

    >>> without_document(ranked(["a", "b"], [2, 1]), "a", 5).doc_ids
    ('b',)
    """
    kept = [hit for hit in ranking if hit.doc_id != doc_id][:depth]
    return ranked([hit.doc_id for hit in kept], [hit.score for hit in kept])


def merge_duplicates(ranking: Ranking, same_as: Mapping[str, str]) -> Ranking:
    """Return a ranking in which one document stands for all that are the same: at the best place of any.

    >>> merge_duplicates(ranked(["a2", "b", "a1"], [3, 2, 1]), {"a2": "a1"}).doc_ids
    ('a1', 'b')
    """
    best: dict[str, float] = {}
    for doc_id, score in ranking:
        best.setdefault(same_as.get(doc_id, doc_id), score)
    return ranked(list(best), list(best.values()))


def ranked(
    doc_ids: Sequence[str], scores: npt.ArrayLike, depth: int | None = None
) -> Ranking:
    """Return hits in the one total order: score descending, then document id descending.

    Scores are compared as the doubles that they are: what another system gave says its order to the last digit, and
    what is computed here is `rounded` first. Descending ids among equals is the order of NIST's trec_eval
    (`form_res_rels.c`).

    Args:
        doc_ids: distinct document ids.
        scores: one finite number each.
        depth: how many hits to keep; all of them if left out.

    >>> ranked(["a", "b", "c"], [0.5, 0.9, 0.5]).doc_ids
    ('b', 'c', 'a')
    """
    values = np.asarray(scores, dtype=np.float64)
    if len(doc_ids) != len(values):
        raise ValueError(f"{len(doc_ids)} ids for {len(values)} scores")
    if not np.isfinite(values).all():
        raise ValueError("a score is not finite")
    if (values[1:] < values[:-1]).all():  # they are in their order
        ids, kept = doc_ids, values[:depth].copy()
    else:
        order = np.argsort(-values, kind="stable")
        kept, ids = values[order], list(map(doc_ids.__getitem__, order.tolist()))
        edges = [0, *(np.flatnonzero(kept[1:] != kept[:-1]) + 1).tolist(), len(ids)]
        for start, stop in pairwise(edges):
            if stop - start > 1:
                ids[start:stop] = sorted(ids[start:stop], reverse=True)
        kept = kept[:depth]
    kept.setflags(write=False)
    return Ranking(tuple(ids[:depth]), kept)


def round_scores(scores: npt.ArrayLike) -> Floats:
    """Round the scores of one query that were computed here to 1e-6 of the largest absolute one.

    Sums of 32-bit floats differ by 2e-7 between engines and batch shapes: without it, noise would say which of two
    equal documents comes first.

    >>> round_scores([0.5, 1.0, 0.50000001]).tolist()
    [0.5, 1.0, 0.5]
    """
    values = np.asarray(scores, dtype=np.float64)
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    return np.asarray(
        np.rint(values / largest / SCORE_RESOLUTION) * SCORE_RESOLUTION * largest
    )


def search_until_settled(
    ask: Callable[[list[int], int], Iterable[HitsType]],
    queries: int,
    size: int,
    settled: Callable[[int, HitsType, int], Ranking | None],
) -> list[Ranking]:
    """Return one ranking per query; those that are not settled by what came are asked for four times more, and again.

    Args:
        ask: answers the queries at some positions with so many hits each at most.
        queries: how many there are.
        size: hits to ask for at first.
        settled: what answers the query at a position, from what came when so many hits were asked for; None: ask again.
    """
    answers: dict[int, Ranking] = {}
    waiting = list(range(queries))
    while waiting:
        for position, found in zip(waiting, ask(waiting, size), strict=True):
            if (ranking := settled(position, found, size)) is not None:
                answers[position] = ranking
        waiting = [position for position in waiting if position not in answers]
        size *= 4
    return [answers[position] for position in range(queries)]


def top_k_candidates(
    scores: npt.NDArray[np.floating], depth: int, among: Mask | None = None
) -> npt.NDArray[np.intp]:
    """Return the positions of scores that could be in the first `depth`, ties at the end included.

    Args:
        scores: of one query, not rounded yet.
        depth: how many are kept in the end.
        among: which may be kept; left out, all.

    >>> top_k_candidates(np.array([0.5, 0.9, 0.0, 0.5, 1.0]), 2, np.array([1, 1, 1, 1, 0], dtype=np.bool_)).tolist()
    [0, 1, 3]
    """
    some = np.arange(len(scores)) if among is None else np.flatnonzero(among)
    if len(some) <= depth:
        return some
    values = scores[some]
    cut = np.partition(values, len(some) - depth)[len(some) - depth]
    kept: npt.NDArray[np.intp] = some[
        values >= cut - 2 * SCORE_RESOLUTION * float(np.abs(values).max())
    ]
    return kept
