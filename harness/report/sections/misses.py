"""Causes of misses."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from harness.english import join_names
from harness.records import SHARED_WORDS
from harness.report.sections.quality_counts import quality_with_parts
from harness.report.view import View
from retrievers.types import Floats

QueryMask = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
"""(n,) whether each query belongs."""


class QueryGroup(NamedTuple):
    """Queries that fail alike."""

    key: str
    title: str
    meaning: str
    query_indices: tuple[int, ...]
    """Indices of its queries in the arrays."""


class _GroupMask(NamedTuple):
    """A group, and which queries belong to it."""

    key: str
    title: str
    meaning: str
    mask: QueryMask


def found_within(view: View, depth: int) -> dict[str, Floats]:
    """Retriever -> 1 for each query with a relevant document among its first hits.

    0 for the others; `depth` hits count.
    """
    hits: dict[str, Floats] = {}
    for retriever in view.ranked:
        ranks = view.ranking_digests[retriever].first_relevant_rank
        hits[retriever] = (ranks <= depth).astype(np.float64)
    return hits


def group_queries(view: View) -> list[QueryGroup]:
    """The groups that have queries; a query may be in several."""
    near = _found_mask(view, view.cutoff)
    masks = [
        *_groups_by_hits(view, near, _found_mask(view, view.resolved.depth)),
        *_unjudged_groups(view),
    ]
    groups: list[QueryGroup] = []
    for key, title, meaning, mask in masks:
        indices = [i for i in view.order if mask[i] and view.grades[view.ids[i]]]
        if indices:
            groups.append(QueryGroup(key, title, meaning, tuple(indices)))
    return groups


def _found_mask(view: View, depth: int) -> QueryMask:
    """(n, retrievers) whether each retriever finds a relevant document."""
    return np.column_stack(list(found_within(view, depth).values())) > 0


def no_groups_reason(view: View) -> str:
    """The reason why no query is in any group, as a sentence."""
    if not any(view.grades.values()):
        return "No query has document labels, so it is unknown which queries fail."
    finders = f"{view.ranked[0]} finds"
    if len(view.ranked) > 1:
        finders = "at least two retrievers find"
    return (
        f"No query fails: for each, {finders} a relevant document "
        f"among the first {view.cutoff} hits."
    )


def _groups_by_hits(
    view: View, near: QueryMask, far: QueryMask
) -> Iterator[_GroupMask]:
    """The queries that no retriever finds, or too late, or that one alone finds."""
    k = view.cutoff
    finders = np.asarray(near.sum(axis=1))
    yield _GroupMask(
        "nobody",
        "Found by none",
        f"no retriever has a relevant document among its first {k} hits",
        finders == 0,
    )
    yield _GroupMask(
        "deep",
        f"Found only at {k + 1} to {view.resolved.depth}",
        f"no retriever has a relevant document among the first {k} hits, "
        "but one has it further down",
        (finders == 0) & far.any(axis=1),
    )
    if len(view.ranked) < 2:
        return
    for column, retriever in enumerate(view.ranked):
        yield _GroupMask(
            f"only-{retriever}",
            f"Found by {retriever} alone",
            f"every other retriever has nothing relevant among its first {k} hits",
            (finders == 1) & near[:, column],
        )


def _truncated_documents(view: View, retriever: str) -> frozenset[str]:
    notes = quality_with_parts(view.manifest, retriever).notes
    return frozenset(notes.get("truncated", ()))


def _unjudged_groups(view: View) -> Iterator[_GroupMask]:
    """Queries whose first hit of the leader has no label.

    Only if labels also name irrelevant documents.
    """
    if not _has_irrelevant_labels(view):
        return
    leader = view.evaluation.leader
    mask = np.array(
        [_has_unlabelled_first_hit(view, query_id, leader) for query_id in view.ids]
    )
    yield _GroupMask(
        "unjudged",
        f"No label on top of {leader}",
        "its first hit has no label: it counts as irrelevant",
        mask,
    )


def _has_unlabelled_first_hit(view: View, query_id: str, retriever: str) -> bool:
    hits = view.ranking_digests[retriever].primary_hits.get(query_id, ())
    return bool(hits) and hits[0] not in view.grades[query_id]


def miss_causes(view: View) -> dict[int, dict[str, str]]:
    """Index of a query -> retriever -> why nothing relevant is among its first hits.

    Only if that can be computed.
    """
    finder = _CauseFinder(
        view,
        near=found_within(view, view.cutoff),
        far=found_within(view, view.resolved.depth),
        truncated={name: _truncated_documents(view, name) for name in view.ranked},
        without_shared_word=_queries_without_shared_word(view),
        has_irrelevant_labels=_has_irrelevant_labels(view),
    )
    causes: dict[int, dict[str, str]] = {}
    for i in view.listed_queries:
        relevant = _relevant_documents(view, i)
        if not relevant:
            continue
        for retriever in view.ranked:
            if finder.near[retriever][i] == 0:
                cause = finder.find_cause(i, retriever, relevant)
                causes.setdefault(i, {})[retriever] = cause
    return causes


@dataclass(frozen=True, slots=True)
class _CauseFinder:
    """Finds why a retriever misses a query."""

    view: View
    near: Mapping[str, Floats]
    """`found_within` the cutoff."""
    far: Mapping[str, Floats]
    """`found_within` the depth."""
    truncated: Mapping[str, frozenset[str]]
    """Retriever -> the documents that it truncated."""
    without_shared_word: frozenset[str]
    """The queries that share no word with a relevant document."""
    has_irrelevant_labels: bool

    def find_cause(self, i: int, retriever: str, relevant: Sequence[str]) -> str:
        """Return why a retriever misses the query at an index."""
        view = self.view
        query_id = view.ids[i]
        depth = view.resolved.depth
        digest = view.ranking_digests[retriever]
        ranks = digest.relevant_ranks.get(query_id, {}).values()
        parts = [
            part
            for part in view.resolved.uses(retriever)
            if part in self.near and self.near[part][i] > 0
        ]
        if parts:
            rank = f"rank {min(ranks)}" if ranks else f"not among the first {depth}"
            return f"lost, {join_names(parts)} had it: {rank}"
        if self.far[retriever][i] > 0:
            return f"below the cutoff: rank {min(ranks)}"
        if self.truncated[retriever].issuperset(relevant):
            return "the model read only the start of every relevant document"
        if query_id in self.without_shared_word:
            return "no word in common with a relevant document"
        if self.has_irrelevant_labels and _has_unlabelled_first_hit(
            view, query_id, retriever
        ):
            return "its first hit has no label"
        return f"not among the first {depth} hits"


def _queries_without_shared_word(view: View) -> frozenset[str]:
    return frozenset(
        row.query_id
        for row in view.results.query_properties
        if row.name == SHARED_WORDS and row.value == 0
    )


def _has_irrelevant_labels(view: View) -> bool:
    """Whether labels also name irrelevant documents."""
    return any(
        grade <= 0
        for query_grades in view.grades.values()
        for grade in query_grades.values()
    )


def _relevant_documents(view: View, index: int) -> list[str]:
    grades = view.grades[view.ids[index]]
    return [doc for doc, grade in grades.items() if grade > 0]
