"""Columns of values, put into one table."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np

from harness.measures import parse_measure, value_bounds
from harness.measures.score import Grades
from harness.measures.table import is_binary
from harness.scoring.scores import RankedIds, ScoreColumn, Scores
from harness.stats.differences import ScoreTable, ValueRange
from retrievers.types import Floats


def scores_from_columns(
    columns: Iterable[ScoreColumn],
    judgments: Grades,
    rankings: Mapping[str, Callable[[], RankedIds]],
    source_order: Iterable[str],
    primary: str,
) -> Scores:
    """Put values of measures that we compute ourselves into the table, with all that follows from names and labels.

    Args:
        columns: what `table_of` takes.
        judgments: query id -> document id -> grade.
        rankings: retriever -> what reads its rankings.
        source_order: the queries in the order of the source.
        primary: the primary measure.
    """
    ids, values = arrange_columns(columns)
    place = {query: i for i, query in enumerate(ids)}
    return Scores(
        ids=ids,
        values=values,
        declared_primary=primary,
        ranges={
            measure: ValueRange(*value_bounds(parse_measure(measure), judgments))
            for measure in values
        },
        binary=frozenset(
            measure for measure in values if is_binary(parse_measure(measure))
        ),
        identical=identical_ranking_pairs(
            values[primary], rankings, (ids, parse_measure(primary).cutoff)
        ),
        source_order=tuple(place[query] for query in source_order if query in place),
        rankings=rankings,
        has_irrelevant_labels=any(
            grade <= 0 for labels in judgments.values() for grade in labels.values()
        ),
    )


def arrange_columns(
    columns: Iterable[ScoreColumn],
) -> tuple[tuple[str, ...], dict[str, dict[str, Floats]]]:
    """Put columns (measure, retriever, queries, values) into one table; what is not there is undefined.

    Returns:
        The queries, sorted, and measure -> retriever -> (n,).
    """
    columns = [
        (measure, retriever, tuple(queries), row)
        for measure, retriever, queries, row in columns
    ]
    kinds = {queries for _, _, queries, _ in columns}
    ids = tuple(sorted({query for queries in kinds for query in queries}))
    place = {query: i for i, query in enumerate(ids)}
    places = {queries: [place[query] for query in queries] for queries in kinds}
    values: dict[str, dict[str, Floats]] = {}
    for measure, retriever, queries, row in columns:
        own = values.setdefault(measure, {}).setdefault(
            retriever, np.full(len(ids), np.nan)
        )
        own[places[queries]] = row
    return ids, values


def scores_from_rows(rows: Mapping[tuple[str, str, str], float]) -> Scores:
    """Put (retriever, query id, measure) -> value in order; what is not there is undefined."""
    columns: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for (retriever, query, measure), value in rows.items():
        columns[measure, retriever][query] = value
    ids, values = arrange_columns(
        (*key, [*column], [*column.values()]) for key, column in columns.items()
    )
    return Scores(ids=ids, values=values)


def rankings_digest(
    answers: RankedIds, queries: Sequence[str], cutoff: int | None
) -> str:
    """Return the SHA-256 of what one retriever ranks down to a cutoff, in the order of the queries."""
    digest = hashlib.sha256()
    for query in queries:
        digest.update(
            json.dumps([query, list(answers.get(query, ())[:cutoff])]).encode()
        )
    return digest.hexdigest()


def identical_ranking_pairs(
    scores: ScoreTable,
    rankings: Mapping[str, Callable[[], RankedIds]],
    about: tuple[Sequence[str], int | None],
) -> frozenset[frozenset[str]]:
    """Return the pairs of retrievers that rank the same documents in the same order, on every query.

    Only rankings with the same scores can be the same: no others are read.

    Args:
        scores: retriever -> (n,) scores of the primary measure.
        rankings: retriever -> what reads its rankings.
        about: the queries, in any order that is the same for all; and the primary measure's cutoff.
    """
    queries, cutoff = about
    twins = {
        name
        for name, values in scores.items()
        if name in rankings
        and any(
            o != name and np.array_equal(values, same, equal_nan=True)
            for o, same in scores.items()
        )
    }
    digests = {
        name: rankings_digest(rankings[name](), queries, cutoff)
        for name in scores
        if name in twins
    }
    return frozenset(
        frozenset((a, b))
        for a, b in combinations(digests, 2)
        if digests[a] == digests[b]
    )
