"""Queries that no document answers.

A retriever can abstain from them only if its best score is lower there than where it
succeeds. So this measures how well the best score separates both kinds of queries, and
from which score on (`floor`) an answer could be given.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from harness.measures.score import Grades
from harness.records import RetrieverRecord
from harness.scoring.query_units import query_clusters
from harness.stats.corrections import adjust_p_values
from harness.stats.differences import Floats
from harness.stats.intervals import wilson_interval
from harness.stats.roc_area import RocScores, RocUnits, compare_roc_areas, roc_area
from harness.stats.units import Units, cluster_units, single_units
from retrievers.types import Query, Ranking


@dataclass(frozen=True, slots=True)
class Share:
    """A share with Wilson's interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ScoreThreshold:
    """How well a retriever's best score separates answerable from other queries."""

    retriever: str
    area: float
    """Area under the ROC curve.

    It is the chance that an answerable query scores higher than an unanswerable one.
    """
    low: float | None
    """Both ends are None with fewer than 5 queries (or clusters) of either kind."""
    high: float | None
    floor: float | None
    """The score that keeps 95 % of the successful answerable queries.

    None with fewer than 19 of them.
    """
    kept: Share | None
    """Share of the successes that reach the floor, cross-fitted.

    None if some four fifths of the queries have fewer than 19 of them; so is `above`.
    """
    above: Share | None
    """Share of the unanswerable queries that reach it, cross-fitted."""


@dataclass(frozen=True, slots=True)
class AbstentionPair:
    """Two areas over the same queries, by DeLong's paired test."""

    a: str
    b: str
    difference: float
    """The area of a minus that of b."""
    p_value: float | None
    """None with fewer than 5 queries (or clusters) of either kind."""
    p_adjusted: float | None
    """The p corrected by Holm over the pairs; None likewise."""


@dataclass(frozen=True, slots=True)
class Abstention:
    """How well scores separate queries that no document answers from the others.

    It covers the retrievers whose scores can be compared between queries.
    """

    answerable: int
    """How many queries have an answer."""
    unanswerable: int
    """How many have none."""
    floors: tuple[ScoreThreshold, ...]
    """The threshold of each retriever."""
    pairs: tuple[AbstentionPair, ...]
    """The areas of each two retrievers."""


LOST_SUCCESS_SHARE = 0.05
"""Share of the successful answerable queries that a floor may lose."""
THRESHOLD_FOLDS = 5
"""Folds for cross-fitting: each floor is set by four fifths of the queries."""


def comparable_retrievers(retrievers: Sequence[RetrieverRecord]) -> tuple[str, ...]:
    """Return the retrievers whose scores can be compared between queries.

    These are cosines, cross-encoders, and those that are declared so.
    """
    names: list[str] = []
    for retriever in retrievers:
        kind = (retriever.rerank or retriever).kind
        if retriever.comparable_scores or kind in ("cross-encoder", "dense"):
            names.append(retriever.name)
    return tuple(names)


def evaluate_abstention(
    queries: Mapping[str, Query],
    grades: Grades,
    rankings: Mapping[str, Mapping[str, Ranking]],
    *,
    cutoff: int,
    level: float,
    cluster: str | None = None,
) -> Abstention | None:
    """Return how well the best score of each ranking separates answerable queries.

    None without queries of both kinds, or without rankings.

    Args:
        queries: those that were searched; one that is neither declared unanswerable nor
            has a relevant document does not count.
        grades: query id -> document id -> grade.
        rankings: retriever -> query id -> its ranking, of retrievers whose scores can
            be compared between queries.
        cutoff: hits among which a relevant one is a success.
        level: confidence of the intervals.
        cluster: the declared field of the queries' clusters.
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
    successes: dict[str, Floats] = {}
    for retriever, by_query in rankings.items():
        scores[retriever] = RocScores(
            positives=_best_scores(by_query, answerable),
            negatives=_best_scores(by_query, unanswerable),
        )
        successes[retriever] = np.array(
            [
                _best_relevant_score(by_query.get(query_id), grades[query_id], cutoff)
                for query_id in answerable
            ]
        )
    units = RocUnits(
        _units([queries[query_id] for query_id in answerable], cluster),
        _units([queries[query_id] for query_id in unanswerable], cluster),
    )
    thresholds = tuple(
        _threshold(
            retriever, scores[retriever], successes[retriever], units, level=level
        )
        for retriever in scores
    )
    return Abstention(
        len(answerable), len(unanswerable), thresholds, _compare_areas(scores, units)
    )


def _units(queries: Sequence[Query], cluster: str | None) -> Units:
    """Return the clusters of queries, which count as one observation each."""
    clusters = query_clusters(queries, cluster)
    if clusters is None:
        return single_units(len(queries))
    return cluster_units(clusters)


def _compare_areas(
    scores: Mapping[str, RocScores], units: RocUnits
) -> tuple[AbstentionPair, ...]:
    """Test each two areas; p-values are corrected by Holm over the pairs."""
    name_pairs = list(combinations(scores, 2))
    tests = [compare_roc_areas(scores[a], scores[b], units) for a, b in name_pairs]
    p_values = [test.p_value for test in tests if test.p_value is not None]
    corrected = iter(adjust_p_values(p_values, "holm"))
    pairs: list[AbstentionPair] = []
    for (a, b), test in zip(name_pairs, tests, strict=True):
        p_adjusted = None if test.p_value is None else next(corrected)
        pairs.append(AbstentionPair(a, b, test.difference, test.p_value, p_adjusted))
    return tuple(pairs)


def _threshold(
    retriever: str,
    scores: RocScores,
    successes: Floats,
    units: RocUnits,
    *,
    level: float,
) -> ScoreThreshold:
    """Return how well one retriever's best score separates the queries."""
    area = roc_area(scores, units, level)
    shares = _cross_fitted_shares(successes, scores.negatives, level)
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
    """Return the best score of each query; -inf if nothing was returned."""
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
    """Return the highest floor that keeps 95 % of the successes on new queries.

    It is the order statistic j with j / (n + 1) of at most 5 %; None below 19
    successes.

    Args:
        successes: (n,) the score of each query's relevant hit, -inf for a failure.
    """
    rising = np.sort(successes[np.isfinite(successes)])
    slack = 1e-9  # 0.05 * 20 is 1, whatever the floats say
    j = math.floor(LOST_SUCCESS_SHARE * (len(rising) + 1) + slack)
    return float(rising[j - 1]) if j else None


class CrossFittedShares(NamedTuple):
    """The shares of queries that reach a floor chosen by others; None if unknown."""

    successes: Share | None
    unanswerable: Share | None


def _cross_fitted_shares(
    successes: Floats, unanswerable: Floats, level: float
) -> CrossFittedShares:
    """Return the shares of queries in each fold that reach the floor of the others.

    Queries are dealt to the folds in the order of their ids. None if a floor of four
    fifths has too few successes.
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
    return CrossFittedShares(
        _share(successes_above, level), _share(unanswerable_above, level)
    )


def _share(is_above: Sequence[bool], level: float) -> Share | None:
    if not is_above:
        return None
    count = sum(is_above)
    interval = wilson_interval(count, len(is_above), level)
    return Share(count / len(is_above), interval.low or 0.0, interval.high or 1.0)
