"""What a page shows of one retriever's rankings."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from harness.measures import Measure
from harness.records import KEPT_RANKS, Results
from retrievers.files.trec_files import Qrels
from retrievers.types import Floats, Ranking

TIE_TOLERANCE = 1e-9
"""Scores with a smaller relative difference are equal: rankings have rounded scores."""


@dataclass(frozen=True, slots=True, eq=False)
class RankingDigest:
    """One retriever's rankings of the scored queries; arrays are in the order of the ids."""

    primary_hits: Mapping[str, tuple[str, ...]]
    """Query id -> the hits that the primary measure uses."""
    top_hits: Mapping[str, Ranking]
    """Query id -> its first hits, as many as a page shows."""
    relevant_ranks: Mapping[str, Mapping[str, int]]
    """Query id -> relevant document -> rank; absent if it was not retrieved."""
    first_relevant_rank: Floats
    """(n,) rank of the first relevant hit; infinite if there is none."""
    tied_queries: int
    """Queries whose last hit within the primary cutoff has the score of the next: the order of ids decided."""
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
    looked_at = depth if primary.get("ideal") == "retrieved-all" else cutoff
    judged = {query: grades[query] for query in sorted(grades)}
    relevant = {
        query: frozenset(doc for doc, grade in of.items() if grade > 0)
        for query, of in judged.items()
    }
    ids: dict[str, str] = {}  # one string per document
    answers = {}
    for name in results.retrievers:
        heads: dict[str, tuple[str, ...]] = {}
        top: dict[str, Ranking] = {}
        places: dict[str, Mapping[str, int]] = {}
        tied = short = 0
        for query, ranking in results.iter_rankings(name):
            if query in judged:
                documents, scores = ranking.doc_ids, ranking.scores
                kept = tuple(
                    map(
                        ids.setdefault,
                        documents[: max(looked_at, KEPT_RANKS)],
                        documents,
                    )
                )
                heads[query], top[query] = (
                    kept[:looked_at],
                    Ranking(kept[:KEPT_RANKS], scores[:KEPT_RANKS].copy()),
                )
                wanted = relevant[query]
                places[query] = {
                    ids.setdefault(doc, doc): i
                    for i, doc in enumerate(documents, 1)
                    if doc in wanted
                }
                tied += _tied(scores, cutoff)
                short += len(documents) < cutoff
        first = np.array(
            [min(places.get(query, {}).values(), default=np.inf) for query in judged]
        )
        answers[name] = RankingDigest(heads, top, places, first, tied, short)
    return answers


def _tied(scores: Floats, cutoff: int) -> bool:
    if len(scores) <= cutoff:
        return False
    last, after = scores[cutoff - 1 : cutoff + 1].tolist()
    return bool(
        last - after <= TIE_TOLERANCE * max(abs(last), abs(after), sys.float_info.min)
    )
