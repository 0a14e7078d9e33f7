"""Causes of misses."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from harness.english import join_names
from harness.report.sections.quality_counts import quality_with_parts
from harness.report.view import View
from retrievers.types import Floats

WORD_PATTERN = re.compile(r"[^\W_]+")
UNSPACED_SCRIPTS = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
"""Scripts without spaces between words: pairs of letters are used as words."""


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
        _group_by_words(view, near),
        *_truncated_groups(view, near),
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


def _group_by_words(view: View, near: QueryMask) -> _GroupMask:
    """Queries without a word in common with a relevant document.

    Only queries that a retriever missed.
    """
    is_missed = np.asarray(near.sum(axis=1)) < len(view.ranked)
    mask = np.zeros(view.n, dtype=np.bool_)
    for i in range(view.n):
        mask[i] = is_missed[i] and _has_no_word_in_common(view, i)
    return _GroupMask(
        "words",
        "No word in common",
        "a retriever missed them, and they share no word "
        "with the stored text of a relevant document",
        mask,
    )


def _truncated_groups(view: View, near: QueryMask) -> Iterator[_GroupMask]:
    """The queries whose relevant documents a retriever truncated and missed.

    One group for each retriever that truncated documents.
    """
    relevant = [frozenset(_relevant_documents(view, i)) for i in range(view.n)]
    for column, retriever in enumerate(view.ranked):
        truncated = _truncated_documents(view, retriever)
        if not truncated:
            continue
        is_truncated = np.array([documents <= truncated for documents in relevant])
        yield _GroupMask(
            f"cut-{retriever}",
            f"Missed by {retriever}, truncated",
            f"nothing relevant among its first {view.cutoff} hits; "
            "its model read only the start of each",
            is_truncated & ~near[:, column],
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
        if _has_no_word_in_common(view, i):
            return "no word in common with a relevant document"
        if self.has_irrelevant_labels and _has_unlabelled_first_hit(
            view, query_id, retriever
        ):
            return "its first hit has no label"
        return f"not among the first {depth} hits"


def _has_irrelevant_labels(view: View) -> bool:
    """Whether labels also name irrelevant documents."""
    return any(
        grade <= 0
        for query_grades in view.grades.values()
        for grade in query_grades.values()
    )


def text_words(text: str) -> set[str]:
    """The words of a text in lower case; pairs of letters if it has no spaces.

    >>> sorted(text_words("Two cats, 休暇は"))
    ['cats', 'two', '休暇', '暇は']
    """
    words: set[str] = set()
    for word in WORD_PATTERN.findall(text.casefold()):
        if UNSPACED_SCRIPTS.search(word):
            words |= {word[i : i + 2] for i in range(max(1, len(word) - 1))}
        else:
            words.add(word)
    return words


def _relevant_documents(view: View, index: int) -> list[str]:
    grades = view.grades[view.ids[index]]
    return [doc for doc, grade in grades.items() if grade > 0]


def _has_no_word_in_common(view: View, index: int) -> bool:
    """Whether a query shares no word with the stored relevant documents."""
    relevant = _relevant_documents(view, index)
    query_words = text_words(view.query(index).query.text)
    for doc in relevant:
        document = view.results.documents.get(doc)
        if document is None:
            return False
        if query_words & text_words(f"{document.title} {document.text}"):
            return False
    return bool(relevant)
