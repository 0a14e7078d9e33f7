"""Queries that several folders share."""

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from harness.english import count_of
from harness.records import Results
from harness.scoring.grades import GradedLabels, grade_labels
from harness.scoring.rescore import relevance_by_rule
from retrievers.types import Reference


class SharedQueries(NamedTuple):
    """The queries that several folders have in common, and why others are missing."""

    ids: tuple[str, ...]
    """Queries scored in every folder with the same text and the same grades.

    They are in the order of the first folder.
    """
    absent: int
    """Queries scored in some folders and not in others."""
    reworded: int
    """Queries with another text under the same id."""
    relabelled: int
    """Queries of the same text with other grades."""
    gone: tuple[str, ...] = ()
    """A relevant document is no longer in the corpus."""

    def sentence(self) -> str:
        """Say on how many queries the folders are compared, and what was left out.

        >>> print(SharedQueries(("q1", "q2"), 3, 0, 1).sentence())
        Compared on the 2 queries that all folders share. Left out: 3 that not every \
folder has, 1 graded otherwise.
        """
        reasons = {
            "that not every folder has": self.absent,
            "with another text": self.reworded,
            "graded otherwise": self.relabelled,
            "that lost a relevant document": len(self.gone),
        }
        left_out = [
            f"{number:,} {reason}" for reason, number in reasons.items() if number
        ]
        queries = count_of(len(self.ids), "query")
        if not left_out:
            return f"Compared on all {queries}, the same in every folder."
        compared = f"Compared on the {queries} that all folders share."
        return f"{compared} Left out: {', '.join(left_out)}."


class QueryLabels(NamedTuple):
    """The labels of a query: its scores depend only on these and the rankings."""

    grades: dict[str, int] | None
    groups: tuple[tuple[str, ...], ...] | None
    reference: Reference


def find_shared_queries(
    results: Sequence[Results],
    grade_rule: str | None = None,
    removed: AbstractSet[str] | None = None,
) -> SharedQueries:
    """Return the queries that every folder scored, with the same text and grades.

    Args:
        results: the folders.
        grade_rule: the grade rule; None: each experiment's own.
        removed: documents that only an earlier state of the corpus has: queries with
            such a relevant document are left out, and of the others the grades of the
            relevant documents must be the same. None: one state.
    """
    graded = [_grade_folder(folder, grade_rule) for folder in results]
    gone: dict[str, None] = {}
    if removed is not None:
        graded = [_without_irrelevant(labels) for labels in graded]
        for labels in graded:
            for query_id, judged in labels.grades.items():
                if removed & judged.keys():
                    gone[query_id] = None
    scored = Counter[str]()
    for folder in results:
        scored.update(set(folder.score_columns["query_id"]) - gone.keys())
    common = [
        query_id for query_id in results[0].queries if scored[query_id] == len(results)
    ]
    same_text = [query_id for query_id in common if _has_one_text(query_id, results)]
    same_grades = [
        query_id for query_id in same_text if _has_one_label(query_id, results, graded)
    ]
    return SharedQueries(
        ids=tuple(same_grades),
        absent=len(scored) - len(common),
        reworded=len(common) - len(same_text),
        relabelled=len(same_text) - len(same_grades),
        gone=tuple(gone),
    )


def _has_one_text(query_id: str, results: Sequence[Results]) -> bool:
    """Whether a query has the same text in every folder."""
    texts = {folder.queries[query_id].query.text for folder in results}
    return len(texts) == 1


def _has_one_label(
    query_id: str, results: Sequence[Results], graded: Sequence[GradedLabels]
) -> bool:
    """Whether a query has the same grades, groups and reference in every folder."""
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


def _without_irrelevant(graded: GradedLabels) -> GradedLabels:
    """Return the grades of relevant documents only."""
    grades: dict[str, dict[str, int]] = {}
    for query_id, judged in graded.grades.items():
        grades[query_id] = {
            document: grade for document, grade in judged.items() if grade > 0
        }
    return graded._replace(grades=grades)


def _query_labels(results: Results, graded: GradedLabels, query_id: str) -> QueryLabels:
    return QueryLabels(
        grades=graded.grades.get(query_id),
        groups=graded.groups.get(query_id),
        reference=results.queries[query_id].query.reference,
    )
