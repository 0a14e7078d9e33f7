"""Rankings, and the one order in which every list of hits stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
RESOLUTION = 1e-6
"""Scores of ours nearer than this share of a query's largest absolute score are equal (see `rounded`)."""


class Hit(NamedTuple):
    """One row of a ranking."""

    doc_id: str
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """What a retriever answered to one query, best first: made by `ranked`, or read back from what it made."""

    doc_ids: tuple[str, ...]
    scores: Floats
    """float64, descending, read-only; equal scores stand in descending order of document id."""

    def __len__(self) -> int:
        return len(self.doc_ids)

    def __iter__(self) -> Iterator[Hit]:
        return map(Hit._make, zip(self.doc_ids, self.scores.tolist(), strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranking):
            return NotImplemented
        return self.doc_ids == other.doc_ids and np.array_equal(self.scores, other.scores)


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


def ranked(doc_ids: Sequence[str], scores: npt.ArrayLike, depth: int | None = None) -> Ranking:
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
    by_id = sorted(range(len(doc_ids)), key=doc_ids.__getitem__, reverse=True)
    order = np.asarray(by_id, dtype=np.intp)
    order = order[np.argsort(-values[order], kind="stable")][:depth]
    kept = values[order]
    kept.setflags(write=False)
    return Ranking(tuple(doc_ids[i] for i in order), kept)


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
