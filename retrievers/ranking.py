"""Documents, queries and rankings, the one order of every list of hits, and rankings from several."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Found = TypeVar("Found")
RESOLUTION = 1e-6
"""Scores of ours nearer than this share of a query's largest absolute score are equal (see `rounded`)."""


SAMPLE = 10_000
"""Documents that stand for a corpus where looking at each would take long."""


def _no_fields() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Document:
    """One thing that can be retrieved."""

    id: str
    title: str
    text: str
    fields: Mapping[str, str] = field(default_factory=_no_fields, hash=False)

    @property
    def content(self) -> str:
        """What encoders and BM25 read: title + " " + text, or the text alone without a title."""
        return f"{self.title} {self.text}".strip() if self.title else self.text


class Claim(NamedTuple):
    """One statement of a reference answer, which can be checked by itself."""

    text: str
    vital: bool = True
    """Whether an answer without it would be no answer."""


class Reference(NamedTuple):
    """What a right answer to a query says; no retriever looks at it."""

    answers: tuple[str, ...] = ()
    """Each complete by itself."""
    claims: tuple[Claim, ...] = ()


NO_REFERENCE = Reference()


@dataclass(frozen=True, slots=True)
class Query:
    """One question that is asked."""

    id: str
    text: str
    fields: Mapping[str, str] = field(default_factory=_no_fields, hash=False)
    reference: Reference = NO_REFERENCE
    history: tuple[str, ...] = ()
    """What was said before it in a conversation, oldest first."""

    @property
    def unanswerable(self) -> bool:
        """Whether the field `answerable` says that no document answers it."""
        return self.fields.get("answerable", "").lower() in ("false", "0", "no")


def above(ranking: Ranking, floor: float) -> Ranking:
    """Return the hits whose score reaches a floor.

    >>> above(ranked(["a", "b"], [0.5, 0.2]), 0.3).doc_ids
    ('a',)
    """
    kept = int(np.count_nonzero(ranking.scores >= floor))
    return Ranking(ranking.doc_ids[:kept], ranking.scores[:kept])


def sample(
    documents: Iterable[Document], *, seed: int = 0, size: int = SAMPLE
) -> list[Document]:
    """Return the documents whose hashed ids are the smallest, in the order of the corpus: any order gives the same."""
    start = hashlib.blake2b(f"{seed}\0".encode(), digest_size=8)

    def hashed(item: tuple[int, Document]) -> bytes:
        digest = start.copy()
        digest.update(item[1].id.encode("utf-8", "surrogatepass"))
        return digest.digest()

    return [
        document
        for _, document in sorted(
            heapq.nsmallest(size, enumerate(documents), key=hashed), key=itemgetter(0)
        )
    ]


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


def without(ranking: Ranking, doc_id: str, depth: int) -> Ranking:
    """Return a ranking without one document, at most `depth` of the others.

    >>> without(ranked(["a", "b"], [2, 1]), "a", 5).doc_ids
    ('b',)
    """
    kept = [hit for hit in ranking if hit.doc_id != doc_id][:depth]
    return ranked([hit.doc_id for hit in kept], [hit.score for hit in kept])


def collapsed(ranking: Ranking, same_as: Mapping[str, str]) -> Ranking:
    """Return a ranking in which one document stands for all that are the same: at the best place of any.

    >>> collapsed(ranked(["a2", "b", "a1"], [3, 2, 1]), {"a2": "a1"}).doc_ids
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


def rounded(scores: npt.ArrayLike) -> Floats:
    """Round the scores of one query that were computed here to 1e-6 of the largest absolute one.

    Sums of 32-bit floats differ by 2e-7 between engines and batch shapes: without it, noise would say which of two
    equal documents comes first.

    >>> rounded([0.5, 1.0, 0.50000001]).tolist()
    [0.5, 1.0, 0.5]
    """
    values = np.asarray(scores, dtype=np.float64)
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    return np.asarray(np.rint(values / largest / RESOLUTION) * RESOLUTION * largest)


def asked_until(
    ask: Callable[[list[int], int], Iterable[Found]],
    queries: int,
    size: int,
    settled: Callable[[int, Found, int], Ranking | None],
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
        values >= cut - 2 * RESOLUTION * float(np.abs(values).max())
    ]
    return kept
