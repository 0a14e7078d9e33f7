"""How trec_eval's options change what is scored."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from harness.english import count_queries
from harness.measures.score import Grades, Precision
from retrievers.errors import InputError, Problem


@dataclass(frozen=True, slots=True)
class RunConventions:
    """Which queries count, and how scores are compared; by default as trec_eval -c."""

    skip_no_relevant: bool = False
    """Leave out judged queries without a relevant document; else they score 0."""
    intersection: bool = False
    """Leave out judged queries that the run lacks; else they score 0."""
    queries: Collection[str] | None = None
    """The queries that count; None for all."""
    precision: Precision = "single"
    """How scores are compared.

    "single" as 32-bit floats, as trec_eval 9.0.8; "double" as 10.0.
    """


class CountingQueries(NamedTuple):
    """The queries that count."""

    ids: set[str]
    notes: list[str]
    """How many lack a relevant document, or a ranking, and whether they count."""


def counting_queries(
    judgments: Grades, queries_in_run: set[str], conventions: RunConventions
) -> CountingQueries:
    """Return the queries that count, with notes.

    Args:
        judgments: query id -> document id -> grade.
        queries_in_run: the judged queries that the run has.
        conventions: which queries count.

    Raises:
        InputError: a query in the conventions is not judged.
    """
    ids = set(judgments)
    if conventions.queries is not None:
        _refuse_unjudged(conventions.queries, judgments)
        ids &= set(conventions.queries)
    without_relevant = {
        query_id
        for query_id in ids
        if max(judgments[query_id].values(), default=0) <= 0
    }
    missing = ids - queries_in_run
    # A query of both kinds is left out once, and is not said to count then.
    if conventions.skip_no_relevant:
        missing -= without_relevant
    elif conventions.intersection:
        without_relevant -= missing
    notes: list[str] = []
    if without_relevant:
        notes.append(
            _note(
                f"without a relevant document: {len(without_relevant)}",
                "--skip-no-relevant",
                left_out=conventions.skip_no_relevant,
            )
        )
        if conventions.skip_no_relevant:
            ids -= without_relevant
    if missing:
        notes.append(
            _note(
                f"that the run lacks: {len(missing)}",
                # `harness compare` reads runs, too, and has no such option.
                "harness score --intersection",
                left_out=conventions.intersection,
            )
        )
        if conventions.intersection:
            ids -= missing
    return CountingQueries(ids, notes)


def _refuse_unjudged(query_ids: Collection[str], judgments: Grades) -> None:
    """Refuse queries that are not judged.

    Raises:
        InputError: there are any.
    """
    example = next(iter(judgments), "")
    remedy = f"the qrels judge {count_queries(len(judgments))}, such as {example!r}"
    problems = [
        Problem(f"query {query_id!r}", "is not judged", remedy)
        for query_id in query_ids
        if query_id not in judgments
    ]
    if problems:
        raise InputError(problems)


def _note(queries: str, option: str, *, left_out: bool) -> str:
    treatment = f"they score 0 and count; {option} leaves them out"
    if left_out:
        treatment = "left out"
    return f"judged queries {queries} ({treatment})"
