"""Queries that nothing answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from harness.scoring.grades import Grades
from harness.stats.differences import Floats
from harness.stats.roc_area import RocScores, compare_roc_areas, roc_area
from retrievers.types import Query, Ranking


@dataclass(frozen=True, slots=True)
class ScoreThreshold:
    """How well a retriever's best score tells answerable queries from those that nothing answers."""

    retriever: str
    area: float
    """Under the ROC curve: the chance that an answerable query has the higher best score."""
    low: float
    high: float
    floor: float | None
    """At which 95 % of the answerable queries that succeed still do; None where none succeeds."""
    kept: float | None
    """Share of successes above the floor, cross-fitted."""
    above: float | None
    """Share of unanswerable queries above it, cross-fitted."""


@dataclass(frozen=True, slots=True)
class AbstentionPair:
    """Two areas over the same queries, by DeLong's paired test."""

    a: str
    b: str
    difference: float
    p_value: float


@dataclass(frozen=True, slots=True)
class Abstention:
    """What scores say of queries that nothing answers; of retrievers whose scores can be compared between queries."""

    answerable: int
    unanswerable: int
    floors: tuple[ScoreThreshold, ...]
    pairs: tuple[AbstentionPair, ...]


KEPT_SUCCESS_SHARE = 0.95
"""Share of the answerable queries that succeed which a floor keeps."""
THRESHOLD_FOLDS = 5


def comparable_retrievers(tables: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The retrievers whose scores mean the same for every query: cosines, cross-encoders, declared ones."""
    return tuple(
        table["name"]
        for table in tables
        if table.get("comparable_scores")
        or (table.get("rerank") or table).get("kind") in ("cross-encoder", "dense")
    )


def evaluate_abstention(
    queries: Mapping[str, Query],
    grades: Grades,
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
    positives = [
        query.id for query in asked if not query.unanswerable and grades.get(query.id)
    ]
    negatives = [query.id for query in asked if query.unanswerable]
    if not positives or not negatives or not rankings:
        return None
    best = {
        name: RocScores(_best(of, positives), _best(of, negatives))
        for name, of in rankings.items()
    }
    floors = []
    for name, of in rankings.items():
        hits = np.array(
            [
                _best_relevant(of.get(query), grades[query], cutoff)
                for query in positives
            ]
        )
        floors.append(
            ScoreThreshold(
                name,
                *roc_area(*best[name], level),
                _floor(hits),
                *_crossed(hits, best[name][1]),
            )
        )
    pairs = tuple(
        AbstentionPair(a, b, *compare_roc_areas(best[a], best[b]))
        for a, b in combinations(best, 2)
    )
    return Abstention(len(positives), len(negatives), tuple(floors), pairs)


def _best(of: Mapping[str, Ranking], queries: Sequence[str]) -> Floats:
    """The best score of each query; -inf where nothing was returned."""
    found = (of.get(query) for query in queries)
    return np.array(
        [
            -np.inf if one is None or not len(one.scores) else one.scores[0]
            for one in found
        ]
    )


def _best_relevant(
    ranking: Ranking | None, judged: Mapping[str, int], cutoff: int
) -> float:
    """The score of the first relevant hit within the cutoff; -inf where there is none."""
    hits = () if ranking is None else list(ranking)[:cutoff]
    return next((hit.score for hit in hits if judged.get(hit.doc_id, 0) > 0), -np.inf)


def _floor(hits: Floats) -> float | None:
    """The highest floor at which 95 % of the queries that succeed still do; None where none does."""
    success = np.sort(hits[np.isfinite(hits)])
    return (
        float(success[int((1 - KEPT_SUCCESS_SHARE) * len(success) + 1e-9)])
        if len(success)
        else None
    )


def _crossed(hits: Floats, negatives: Floats) -> tuple[float | None, float | None]:
    """The shares of successes kept and of unanswerable queries above the floor, each by a floor of the other folds.

    Queries are dealt to the folds in the order of their ids.
    """
    kept, above = [], []
    for fold in range(THRESHOLD_FOLDS):
        ours, theirs = (
            np.arange(len(hits)) % THRESHOLD_FOLDS == fold,
            np.arange(len(negatives)) % THRESHOLD_FOLDS == fold,
        )
        floor = _floor(hits[~ours])
        if floor is None:
            return None, None
        kept += (hits[ours & np.isfinite(hits)] >= floor).tolist()
        above += (negatives[theirs] >= floor).tolist()
    return float(np.mean(kept)) if kept else None, float(np.mean(above))
