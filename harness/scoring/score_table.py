"""Columns of scores, joined into one table."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from harness.measures import parse_measure, value_bounds
from harness.measures.score import Grades
from harness.measures.table import is_binary
from harness.scoring.scores import (
    RankedIds,
    ScoreColumn,
    Scores,
    are_zeros_and_ones,
)
from harness.stats.differences import UNIT_RANGE, ScoreTable, ValueRange
from retrievers.types import Floats


def scores_from_columns(
    columns: Iterable[ScoreColumn],
    judgments: Grades,
    rankings: Mapping[str, Callable[[], RankedIds]],
    *,
    compared: Mapping[str, Callable[[], RankedIds]],
    source_order: Iterable[str],
    primary: str,
) -> Scores:
    """Return the table of measures that we compute ourselves.

    Ranges and identical rankings follow from the names and the labels. A measure of the
    user's own is binary if its scores are, and its range is 0 to 1.

    Args:
        columns: the scores of one retriever on one measure each.
        judgments: query id -> document id -> grade.
        rankings: retriever -> a function that reads its rankings.
        compared: as in `Scores`.
        source_order: the queries in the order of the source.
        primary: the primary measure.
    """
    ids, values = arrange_columns(columns)
    ranges: dict[str, ValueRange | None] = {}
    binary: set[str] = set()
    for name in values:
        measure = parse_measure(name)
        ranges[name] = ValueRange(*value_bounds(measure, judgments))
        is_unit_own = measure.is_own and ranges[name] == UNIT_RANGE
        if is_binary(measure) or (is_unit_own and are_zeros_and_ones(values[name])):
            binary.add(name)
    index_of = {query_id: index for index, query_id in enumerate(ids)}
    return Scores(
        ids=ids,
        values=values,
        declared_primary=primary,
        ranges=ranges,
        binary=frozenset(binary),
        identical=identical_ranking_pairs(
            values[primary],
            compared,
            queries=ids,
            cutoff=parse_measure(primary).cutoff,
        ),
        source_order=tuple(
            index_of[query_id] for query_id in source_order if query_id in index_of
        ),
        rankings=rankings,
        compared=compared,
        has_irrelevant_labels=any(
            min(judged.values(), default=1) <= 0 for judged in judgments.values()
        ),
    )


class ScoreGrid(NamedTuple):
    """Scores on the same queries."""

    ids: tuple[str, ...]
    """The queries, sorted."""
    values: dict[str, dict[str, Floats]]
    """Measure -> retriever -> (n,); NaN where there is no score."""


def arrange_columns(columns: Iterable[ScoreColumn]) -> ScoreGrid:
    """Join columns into one table; missing scores are undefined."""
    column_list = list(columns)
    query_lists = {tuple(column.query_ids) for column in column_list}
    ids = tuple(sorted(set().union(*query_lists)))
    index_of = {query_id: index for index, query_id in enumerate(ids)}
    indices_of = {
        query_ids: list(map(index_of.__getitem__, query_ids))
        for query_ids in query_lists
    }
    values: dict[str, dict[str, Floats]] = {}
    for column in column_list:
        by_retriever = values.setdefault(column.measure, {})
        row = by_retriever.setdefault(column.retriever, np.full(len(ids), np.nan))
        row[indices_of[tuple(column.query_ids)]] = column.values
    return ScoreGrid(ids, values)


def scores_from_rows(rows: Mapping[tuple[str, str, str], float]) -> Scores:
    """Return the table of (retriever, query id, measure) -> score.

    Missing scores are undefined.
    """
    by_column: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for (retriever, query_id, measure), score in rows.items():
        by_column[measure, retriever][query_id] = score
    columns = [
        ScoreColumn(measure, retriever, list(scores), list(scores.values()))
        for (measure, retriever), scores in by_column.items()
    ]
    ids, values = arrange_columns(columns)
    return Scores(ids=ids, values=values)


def rankings_digest(
    rankings: RankedIds, queries: Sequence[str], cutoff: int | None
) -> str:
    """Return the SHA-256 of one retriever's rankings down to a cutoff.

    Args:
        rankings: query id -> document ids.
        queries: their order in the digest.
        cutoff: how many documents count; None: all.
    """
    digest = hashlib.sha256()
    for query_id in queries:
        documents = list(rankings.get(query_id, ())[:cutoff])
        digest.update(json.dumps([query_id, documents]).encode())
    return digest.hexdigest()


def identical_ranking_pairs(
    scores: ScoreTable,
    rankings: Mapping[str, Callable[[], RankedIds]],
    *,
    queries: Sequence[str],
    cutoff: int | None,
) -> frozenset[frozenset[str]]:
    """Return the pairs with the same rankings of every query down to a cutoff.

    Only rankings with the same scores can be the same: no others are read.

    Args:
        scores: retriever -> (n,) scores of the primary measure.
        rankings: retriever -> a function that reads its rankings.
        queries: in any order that is the same for all.
        cutoff: that of the primary measure.
    """
    digests: dict[str, str] = {}
    for retriever in scores:
        if retriever in rankings and _has_equal_scores(retriever, scores):
            retriever_rankings = rankings[retriever]()
            digests[retriever] = rankings_digest(retriever_rankings, queries, cutoff)
    return frozenset(
        frozenset(pair)
        for pair in combinations(digests, 2)
        if digests[pair[0]] == digests[pair[1]]
    )


def _has_equal_scores(retriever: str, scores: ScoreTable) -> bool:
    """Whether another retriever has the same scores."""
    for other in scores:
        if other == retriever:
            continue
        if np.array_equal(scores[retriever], scores[other], equal_nan=True):
            return True
    return False
