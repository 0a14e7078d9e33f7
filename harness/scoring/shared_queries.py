"""Queries that several folders share."""

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from harness.english import count_of
from harness.records import Results
from harness.scoring.grades import GradedLabels, grade_labels
from harness.scoring.rescore import relevance_by_rule


class SharedQueries(NamedTuple):
    """Which queries several folders have in common, and why the others are none of these."""

    ids: tuple[str, ...]
    """Scored in every folder, with the same text and the same grades; in the order of the first folder."""
    absent: int
    """Scored in some folders and not in others."""
    reworded: int
    """Another text under the same id."""
    relabelled: int
    """Other grades of the same text."""
    gone: tuple[str, ...] = ()
    """A relevant document is no longer in the corpus."""

    def sentence(self) -> str:
        """On how many queries the folders are compared, and what was left out.

        >>> SharedQueries(("q1", "q2"), 3, 0, 1).sentence()
        'Compared on the 2 queries that all folders share. Left out: 3 that not every folder has, 1 graded otherwise.'
        """
        reasons = {
            "that not every folder has": self.absent,
            "with another text": self.reworded,
            "graded otherwise": self.relabelled,
            "that lost a relevant document": len(self.gone),
        }
        left_out = ", ".join(
            f"{number:,} {reason}" for reason, number in reasons.items() if number
        )
        if not left_out:
            return f"Compared on all {count_of(len(self.ids), 'query')}, the same in every folder."
        return f"Compared on the {count_of(len(self.ids), 'query')} that all folders share. Left out: {left_out}."


def find_shared_queries(
    results: Sequence[Results],
    grade_rule: str | None = None,
    removed: AbstractSet[str] | None = None,
) -> SharedQueries:
    """Return which queries were scored in every folder, with the same text and the same grades.

    Args:
        results: the folders.
        grade_rule: the grade rule; left out, each experiment's own.
        removed: documents that only an earlier state of the corpus has: queries with such a relevant document are left
            out, and of the others the grades of the relevant documents must be the same. None: one state.
    """
    gone: dict[str, None] = {}
    graded = [
        grade_labels(
            {query: given.labels for query, given in one.queries.items()},
            relevance_by_rule(one, grade_rule),
        )
        for one in results
    ]
    if removed is not None:
        graded = [
            one._replace(
                grades={
                    q: {d: g for d, g in of.items() if g > 0}
                    for q, of in one.grades.items()
                }
            )
            for one in graded
        ]
        gone = {
            query: None
            for one in graded
            for query, grades in one.grades.items()
            if removed & grades.keys()
        }
    every = Counter(
        query
        for one in results
        for query in set(one.score_columns["query_id"]) - gone.keys()
    )
    common = [query for query in results[0].queries if every[query] == len(results)]
    worded = [
        query
        for query in common
        if len({one.queries[query].query.text for one in results}) == 1
    ]
    sides = list(zip(results, graded, strict=True))
    ids = [
        query
        for query in worded
        if all(_judged(*side, query) == _judged(*sides[0], query) for side in sides)
    ]
    absent, reworded = len(every) - len(common), len(common) - len(worded)
    return SharedQueries(
        tuple(ids), absent, reworded, len(worded) - len(ids), tuple(gone)
    )


def _judged(results: Results, graded: GradedLabels, query: str) -> tuple[object, ...]:
    """All that a query's scores rest on beside the rankings."""
    return (
        graded.grades.get(query),
        graded.groups.get(query),
        results.queries[query].query.reference,
    )
