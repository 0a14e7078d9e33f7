"""The hits of a run, kept small in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from harness.measures.score import Precision
from retrievers.types import Floats

MAX_KEPT_HITS = 6_000_000
"""Hits that are kept of all runs: 16 bytes each, 30 runs of 2,000 queries x 100."""


class QueryHits(NamedTuple):
    """The hits of one query, in the order of the run."""

    query_id: str
    documents: tuple[str, ...]
    scores: Floats
    """(n,)"""

    def rank(self, precision: Precision) -> list[str]:
        """Rank the documents by trec_eval's rule: score, then id, both descending."""
        scores = self.scores
        if precision == "single":
            with np.errstate(over="ignore"):
                scores = scores.astype(np.float32)
        if (scores[1:] < scores[:-1]).all():  # as most runs are written
            return list(self.documents)
        ranked = sorted(zip(scores.tolist(), self.documents, strict=True), reverse=True)
        return [document for _, document in ranked]


def hits_by_query(run: Mapping[str, Mapping[str, float]]) -> Iterator[QueryHits]:
    """Yield the hits of each query.

    Args:
        run: query id -> document id -> score.
    """
    for query_id, hits in run.items():
        scores = np.fromiter(hits.values(), np.float64, len(hits))
        yield QueryHits(query_id, tuple(hits), scores)


class HitKeeper:
    """Decides which runs' hits stay in memory."""

    def __init__(self) -> None:
        """Keep at most MAX_KEPT_HITS."""
        self._room = MAX_KEPT_HITS

    def reserve(self, hits: Sequence[QueryHits]) -> bool:
        """Take the room for a run's hits; return whether there was enough."""
        count = sum(len(query_hits.documents) for query_hits in hits)
        if count > self._room:
            return False
        self._room -= count
        return True
