"""Queries that several folders share."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from harness.english import count_of
from harness.records import Results
from harness.scoring.grades import GradedLabels, grade_labels
from harness.scoring.rescore import relevance_by_rule
from retrievers.types import Reference, Span


class SharedQueries(NamedTuple):
    """The queries that several folders have in common, and why others are missing."""

    ids: tuple[str, ...]
    """Queries scored in every folder with the same text, history and labels.

    They are in the order of the first folder.
    """
    absent: int
    """How many queries are scored in some folders and not in others."""
    reworded: int
    """How many that every folder scored have another text, or another history."""
    relabelled: int
    """How many of the same text have other labels, or another reference answer."""

    def sentence(self) -> str:
        """Say on how many queries the folders are compared, and what was left out.

        >>> print(SharedQueries(("q1", "q2"), 3, 0, 1).sentence())
        Compared on the 2 queries that all folders share. Left out: 3 that not every \
folder has, 1 with other labels.
        >>> print(SharedQueries(("q1",), 0, 0, 0).sentence())
        Compared on the only query, the same in every folder.
        """
        reasons = {
            "that not every folder has": self.absent,
            "with another text": self.reworded,
            "with other labels": self.relabelled,
        }
        left_out = [
            f"{number:,} {reason}" for reason, number in reasons.items() if number
        ]
        queries = count_of(len(self.ids), "query")
        if not left_out:
            compared = "the only query" if len(self.ids) == 1 else f"all {queries}"
            return f"Compared on {compared}, the same in every folder."
        compared = f"Compared on the {queries} that all folders share."
        return f"{compared} Left out: {', '.join(left_out)}."


class QueryLabels(NamedTuple):
    """All that the scores of a query depend on besides the rankings."""

    grades: dict[str, int] | None
    """Document id -> grade, by the grade rule.

    None for a query that is scored without a relevant document: by its claims, or since
    nothing answers it.
    """
    groups: tuple[tuple[str, ...], ...] | None
    """Groups of alternatives; None if the labels have none."""
    spans: tuple[Span, ...] | None
    """The labelled characters of documents; None if the labels have none."""
    reference: Reference
    """The reference answer and its claims."""


def find_shared_queries(
    results: Sequence[Results], grade_rule: str | None = None
) -> SharedQueries:
    """Return the queries that every folder scored, with the same text and labels.

    Args:
        results: the folders.
        grade_rule: the grade rule; None: each experiment's own.
    """
    graded = [_grade_folder(folder, grade_rule) for folder in results]
    folder_counts = Counter[str]()
    for folder in results:
        folder_counts.update(set(folder.score_columns["query_id"]))
    common = [
        query_id
        for query_id in results[0].queries
        if folder_counts[query_id] == len(results)
    ]
    same_text = [query_id for query_id in common if _has_same_text(query_id, results)]
    same_labels = [
        query_id
        for query_id in same_text
        if _has_same_labels(query_id, results, graded)
    ]
    return SharedQueries(
        ids=tuple(same_labels),
        absent=len(folder_counts) - len(common),
        reworded=len(common) - len(same_text),
        relabelled=len(same_text) - len(same_labels),
    )


def _has_same_text(query_id: str, results: Sequence[Results]) -> bool:
    """Whether a query has the same text, after the same history, in every folder."""
    queries = [folder.queries[query_id].query for folder in results]
    return len({(query.text, query.history) for query in queries}) == 1


def _has_same_labels(
    query_id: str, results: Sequence[Results], graded: Sequence[GradedLabels]
) -> bool:
    """Whether a query has the same labels and reference in every folder."""
    labels_by_folder = [
        _query_labels(folder, labels, query_id)
        for folder, labels in zip(results, graded, strict=True)
    ]
    first = labels_by_folder[0]
    return all(labels == first for labels in labels_by_folder)


def _grade_folder(results: Results, grade_rule: str | None) -> GradedLabels:
    labels = {
        query_id: judged_query.labels
        for query_id, judged_query in results.queries.items()
    }
    return grade_labels(labels, relevance_by_rule(results, grade_rule))


def _query_labels(results: Results, graded: GradedLabels, query_id: str) -> QueryLabels:
    return QueryLabels(
        grades=graded.grades.get(query_id),
        groups=graded.groups.get(query_id),
        spans=graded.spans.get(query_id),
        reference=results.queries[query_id].query.reference,
    )
