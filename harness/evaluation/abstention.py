"""Queries that no document answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from harness.scoring.grades import Grades
from harness.stats.differences import Floats
from harness.stats.roc_area import RocScores, compare_roc_areas, roc_area
from retrievers.types import Query, Ranking


@dataclass(frozen=True, slots=True)
class ScoreThreshold:
    """How well a retriever's best score separates answerable from other queries."""

    retriever: str
    area: float
    """Under the ROC curve: the chance that an answerable query has the higher score."""
    low: float
    high: float
    floor: float | None
    """The score that 95 % of the successful answerable queries reach.

    None if none is successful.
    """
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
    """What scores say about queries that no document answers.

    Of retrievers whose scores can be compared between queries.
    """

    answerable: int
    unanswerable: int
    floors: tuple[ScoreThreshold, ...]
    pairs: tuple[AbstentionPair, ...]


KEPT_SUCCESS_SHARE = 0.95
"""Share of the successful answerable queries that are above a floor."""
THRESHOLD_FOLDS = 5


def comparable_retrievers(tables: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the retrievers whose scores can be compared between queries.

    These are cosines, cross-encoders, and those that are declared so.
    """
    names: list[str] = []
    for table in tables:
        kind = (table.get("rerank") or table).get("kind")
        if table.get("comparable_scores") or kind in ("cross-encoder", "dense"):
            names.append(table["name"])
    return tuple(names)


def evaluate_abstention(
    queries: Mapping[str, Query],
    grades: Grades,
    rankings: Mapping[str, Mapping[str, Ranking]],
    *,
    cutoff: int,
    level: float,
) -> Abstention | None:
    """Return what the best score of each ranking says.

    None without queries of both kinds, or without rankings.

    Args:
        queries: those that were searched and are answerable, with a relevant document,
            or declared not to be.
        grades: query id -> document id -> grade.
        rankings: retriever -> query id -> its ranking, of retrievers whose scores can
            be compared between queries.
        cutoff: hits among which a relevant one is a success.
        level: confidence of the intervals.
    """
    answerable: list[str] = []
    unanswerable: list[str] = []
    for query_id in sorted(queries):
        query = queries[query_id]
        if query.unanswerable:
            unanswerable.append(query.id)
        elif grades.get(query.id):
            answerable.append(query.id)
    if not answerable or not unanswerable or not rankings:
        return None
    scores: dict[str, RocScores] = {}
    thresholds: list[ScoreThreshold] = []
    for retriever, by_query in rankings.items():
        scores[retriever] = RocScores(
            positives=_best_scores(by_query, answerable),
            negatives=_best_scores(by_query, unanswerable),
        )
        successes = np.array(
            [
                _best_relevant_score(by_query.get(query_id), grades[query_id], cutoff)
                for query_id in answerable
            ]
        )
        thresholds.append(_threshold(retriever, scores[retriever], successes, level))
    pairs: list[AbstentionPair] = []
    for a, b in combinations(scores, 2):
        test = compare_roc_areas(scores[a], scores[b])
        pairs.append(AbstentionPair(a, b, test.difference, test.p_value))
    return Abstention(
        len(answerable), len(unanswerable), tuple(thresholds), tuple(pairs)
    )


def _threshold(
    retriever: str, scores: RocScores, successes: Floats, level: float
) -> ScoreThreshold:
    """Return how well one retriever's best score separates the queries."""
    area = roc_area(scores.positives, scores.negatives, level)
    shares = _cross_fitted_shares(successes, scores.negatives)
    return ScoreThreshold(
        retriever=retriever,
        area=area.value,
        low=area.low,
        high=area.high,
        floor=_success_floor(successes),
        kept=shares.successes,
        above=shares.unanswerable,
    )


def _best_scores(rankings: Mapping[str, Ranking], queries: Sequence[str]) -> Floats:
    """Return the best score of each query; -inf where nothing was returned."""
    scores: list[float] = []
    for query_id in queries:
        ranking = rankings.get(query_id)
        has_hits = ranking is not None and len(ranking.scores) > 0
        scores.append(ranking.scores[0] if ranking and has_hits else -np.inf)
    return np.array(scores)


def _best_relevant_score(
    ranking: Ranking | None, judged: Mapping[str, int], cutoff: int
) -> float:
    """Return the score of the first relevant hit within the cutoff; -inf for none."""
    if ranking is None:
        return -np.inf
    for hit in list(ranking)[:cutoff]:
        if judged.get(hit.doc_id, 0) > 0:
            return hit.score
    return -np.inf


def _success_floor(successes: Floats) -> float | None:
    """Return the highest floor that 95 % of the successes reach; None without any.

    Args:
        successes: (n,) the score of each query's relevant hit, -inf for a failure.
    """
    rising = np.sort(successes[np.isfinite(successes)])
    if not len(rising):
        return None
    return float(rising[int((1 - KEPT_SUCCESS_SHARE) * len(rising) + 1e-9)])


class CrossFittedShares(NamedTuple):
    """The shares of queries above a floor that other queries chose; None if unknown."""

    successes: float | None
    unanswerable: float | None


def _cross_fitted_shares(successes: Floats, unanswerable: Floats) -> CrossFittedShares:
    """Return the shares of queries above the floor of the other folds.

    Queries are dealt to the folds in the order of their ids.
    """
    successes_above: list[bool] = []
    unanswerable_above: list[bool] = []
    for fold in range(THRESHOLD_FOLDS):
        in_fold = np.arange(len(successes)) % THRESHOLD_FOLDS == fold
        floor = _success_floor(successes[~in_fold])
        if floor is None:
            return CrossFittedShares(None, None)
        fold_successes = successes[in_fold & np.isfinite(successes)]
        successes_above += (fold_successes >= floor).tolist()
        fold_unanswerable = unanswerable[fold::THRESHOLD_FOLDS]
        unanswerable_above += (fold_unanswerable >= floor).tolist()
    share = float(np.mean(successes_above)) if successes_above else None
    return CrossFittedShares(share, float(np.mean(unanswerable_above)))
