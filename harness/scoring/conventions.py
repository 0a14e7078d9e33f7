"""Which queries of a run count."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from harness.english import count_queries
from harness.measures.score import Grades, Precision
from retrievers.errors import InputError, Problem


@dataclass(frozen=True, slots=True)
class RunConventions:
    """Which queries count, and how finely scores are compared; by default as trec_eval -c."""

    skip_no_relevant: bool = False
    """Leave out judged queries without a relevant document; else they score 0 and count."""
    intersection: bool = False
    """Leave out judged queries that the run lacks; else they score 0 and count."""
    queries: Collection[str] | None = None
    """Only these queries."""
    precision: Precision = "single"
    """"single" compares scores as 32-bit floats, as trec_eval 9.0.8; "double" as 10.0."""


def counting_queries(
    judgments: Grades, met: set[str], conventions: RunConventions
) -> tuple[set[str], list[str]]:
    """The queries that count, and what there is to tell about the others."""
    kept = set(judgments)
    notes = []
    if conventions.queries is not None:
        if unknown := [q for q in conventions.queries if q not in judgments]:
            remedy = f"the qrels judge {count_queries(len(judgments))}, such as {next(iter(judgments))!r}"
            raise InputError(
                [Problem(f"query {q!r}", "is not judged", remedy) for q in unknown]
            )
        kept &= set(conventions.queries)
    without_relevant = {
        q for q in kept if not any(grade > 0 for grade in judgments[q].values())
    }
    for queries, what, left_out, option in (
        (
            without_relevant,
            "without a relevant document",
            conventions.skip_no_relevant,
            "--skip-no-relevant",
        ),
        (
            kept - met,
            "that the run lacks",
            conventions.intersection,
            "harness score --intersection",
        ),
    ):
        if queries:
            treatment = (
                "left out"
                if left_out
                else f"they score 0 and count; {option} leaves them out"
            )
            notes.append(f"judged queries {what}: {len(queries)} ({treatment})")
            kept = kept - queries if left_out else kept
    return kept, notes
