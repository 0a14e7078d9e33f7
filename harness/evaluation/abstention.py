"""Queries that nothing answers: can a retriever's scores tell them, and at which floor?"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from harness.evaluation.evaluation import Abstention, AbstentionPair, ScoreFloor
from harness.evaluation.grading import Judgments
from harness.stats.differences import Floats
from harness.stats.paired_tests import area, compare_areas
from retrievers.types import Query, Ranking

KEPT = 0.95
"""Share of the answerable queries that succeed which a floor keeps."""
FOLDS = 5
CUTOFF = 10
"""Hits among which a relevant one is a success, where the primary measure has no cutoff."""


def comparable(tables: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The retrievers whose scores mean the same for every query: cosines, cross-encoders, declared ones."""

    def means_the_same(table: Mapping[str, Any]) -> bool:
        if table.get("comparable_scores"):
            return True
        if table.get("rerank"):
            return bool(table["rerank"].get("kind") == "cross-encoder")
        return table.get("kind") == "dense"

    return tuple(table["name"] for table in tables if means_the_same(table))


def abstention_of(
    queries: Mapping[str, Query],
    grades: Judgments,
    rankings: Mapping[str, Mapping[str, Ranking]],
    cutoff: int,
    level: float,
) -> Abstention | None:
    """Return what the best score of each ranking says; None without queries of both sorts, or without rankings.

    Args:
        queries: those that were asked and are answerable, with a relevant document, or said not to be.
        grades: query id -> document id -> grade.
        rankings: retriever -> query id -> its answer, of retrievers whose scores can be compared between queries.
        cutoff: hits among which a relevant one is a success.
        level: confidence of the intervals.
    """
    asked = [queries[query] for query in sorted(queries)]
    positives = [query.id for query in asked if not query.unanswerable and grades.get(query.id)]
    negatives = [query.id for query in asked if query.unanswerable]
    if not positives or not negatives or not rankings:
        return None
    best = {name: (_best(of, positives), _best(of, negatives)) for name, of in rankings.items()}
    floors = []
    for name, of in rankings.items():
        hits = np.array([_best_relevant(of.get(query), grades[query], cutoff) for query in positives])
        found = area(*best[name], level)
        floors.append(ScoreFloor(name, *found, _floor(hits), *_crossed(hits, best[name][1])))
    pairs = [AbstentionPair(a, b, *compare_areas(best[a], best[b])) for a, b in combinations(best, 2)]
    return Abstention(len(positives), len(negatives), tuple(floors), tuple(pairs))


def _best(of: Mapping[str, Ranking], queries: Sequence[str]) -> Floats:
    """The best score of each query; -inf where nothing was returned."""
    found = (of.get(query) for query in queries)
    return np.array([-np.inf if one is None or not len(one.scores) else one.scores[0] for one in found])


def _best_relevant(ranking: Ranking | None, judged: Mapping[str, int], cutoff: int) -> float:
    """The score of the first relevant hit within the cutoff; -inf where there is none."""
    hits = () if ranking is None else list(ranking)[:cutoff]
    return next((hit.score for hit in hits if judged.get(hit.doc_id, 0) > 0), -np.inf)


def _floor(hits: Floats) -> float | None:
    """The highest floor at which 95 % of the queries that succeed still do; None where none does."""
    success = np.sort(hits[np.isfinite(hits)])
    return float(success[int((1 - KEPT) * len(success) + 1e-9)]) if len(success) else None


def _crossed(hits: Floats, negatives: Floats) -> tuple[float | None, float | None]:
    """The shares of successes kept and of unanswerable queries above the floor, each by a floor of the other folds.

    Queries are dealt to the folds in the order of their ids.
    """
    kept, above = [], []
    for fold in range(FOLDS):
        ours, theirs = np.arange(len(hits)) % FOLDS == fold, np.arange(len(negatives)) % FOLDS == fold
        floor = _floor(hits[~ours])
        if floor is None:
            return None, None
        kept += (hits[ours & np.isfinite(hits)] >= floor).tolist()
        above += (negatives[theirs] >= floor).tolist()
    return float(np.mean(kept)) if kept else None, float(np.mean(above))
