"""Digests of the rankings that a page shows."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.measures import Measure
from harness.records import KEPT_RANKS, QueryRanking, Results
from retrievers.files.trec_files import Qrels
from retrievers.types import Floats, Ranking

TIE_TOLERANCE = 1e-9
"""Scores with a smaller relative difference are equal: rankings have rounded scores."""


@dataclass(frozen=True, slots=True, eq=False)
class RankingDigest:
    """One retriever's rankings of the scored queries."""

    primary_hits: Mapping[str, tuple[str, ...]]
    """Query id -> the hits that the primary measure uses."""
    top_hits: Mapping[str, Ranking]
    """Query id -> its first hits, as many as a page shows at most."""
    relevant_ranks: Mapping[str, Mapping[str, int]]
    """Query id -> relevant document -> rank; absent if it was not retrieved."""
    tied_queries: int
    """Queries whose last hit within the primary cutoff has the score of the next.

    There the order of ids decided.
    """
    short_queries: int
    """Queries with fewer hits than the primary cutoff."""


EMPTY_RANKING = Ranking((), np.zeros(0))


def read_ranking_digests(
    results: Results, grades: Qrels, primary: Measure
) -> dict[str, RankingDigest]:
    """Read every retriever's rankings.

    Args:
        results: with the rankings.
        grades: query id -> document id -> grade; only these queries count.
        primary: the measure that decides.
    """
    depth = results.manifest.resolved.depth
    cutoff = primary.cutoff or depth
    relevant: dict[str, frozenset[str]] = {}
    for query_id in grades:
        query_grades = grades[query_id].items()
        documents = frozenset(doc for doc, grade in query_grades if grade > 0)
        relevant[query_id] = documents
    reader = _DigestReader(
        relevant,
        cutoff=cutoff,
        # An ideal of all that was retrieved needs the hits below the cutoff.
        primary_depth=depth if primary.get("ideal") == "retrieved-all" else cutoff,
    )
    return {
        retriever: reader.read(results.iter_rankings(retriever))
        for retriever in results.retrievers
    }


@dataclass(frozen=True, slots=True)
class _DigestReader:
    """Reads the digests of the retrievers of one run."""

    relevant: Mapping[str, frozenset[str]]
    """Query id -> its relevant documents."""
    cutoff: int
    """Cutoff of the primary measure."""
    primary_depth: int
    """Number of hits that the primary measure uses."""

    def read(self, rankings: Iterable[QueryRanking]) -> RankingDigest:
        """Return the digest of one retriever's rankings."""
        primary_hits: dict[str, tuple[str, ...]] = {}
        top_hits: dict[str, Ranking] = {}
        relevant_ranks: dict[str, Mapping[str, int]] = {}
        tied_queries = 0
        short_queries = 0
        for query_id, ranking in rankings:
            if query_id not in self.relevant:
                continue
            hits = self._shared_ids(ranking.doc_ids)
            scores = ranking.scores
            primary_hits[query_id] = hits[: self.primary_depth]
            top_scores = scores[:KEPT_RANKS].copy()
            top = Ranking(hits[:KEPT_RANKS], top_scores, trace=ranking.trace)
            top_hits[query_id] = top
            relevant_ranks[query_id] = self._relevant_ranks(query_id, ranking)
            tied_queries += _is_tied_at(scores, self.cutoff)
            short_queries += len(ranking.doc_ids) < self.cutoff
        return RankingDigest(
            primary_hits,
            top_hits,
            relevant_ranks,
            tied_queries,
            short_queries,
        )

    def _shared_ids(self, documents: Sequence[str]) -> tuple[str, ...]:
        """Return the first hits, as strings that all digests share."""
        first = documents[: max(self.primary_depth, KEPT_RANKS)]
        return tuple(map(sys.intern, first))

    def _relevant_ranks(self, query_id: str, ranking: Ranking) -> dict[str, int]:
        relevant = self.relevant[query_id]
        return {
            sys.intern(doc): rank
            for rank, doc in enumerate(ranking.doc_ids, start=1)
            if doc in relevant
        }


def _is_tied_at(scores: Floats, cutoff: int) -> bool:
    """Whether the last hit within the cutoff has the score of the next."""
    if len(scores) <= cutoff:
        return False
    last, following = scores[cutoff - 1 : cutoff + 1].tolist()
    largest = max(abs(last), abs(following), sys.float_info.min)
    return bool(last - following <= TIE_TOLERANCE * largest)
