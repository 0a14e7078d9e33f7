"""Queries that fail alike."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from harness.report.sections.quality_counts import quality_with_parts
from harness.report.view import View

WORD_PATTERN = re.compile(r"[^\W_]+")
UNSPACED_SCRIPTS = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
"""Scripts without spaces between words: pairs of letters are used as words."""
MAX_RIVALS = 6
"""Retrievers up to which a query lost to any other one counts as lost.

Of more, only losses to those that are not shown to be worse.
"""

QueryMask = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
"""(n,) whether each query belongs."""


@dataclass(frozen=True, slots=True)
class QueryGroup:
    """Queries that fail alike."""

    title: str
    query_ids: tuple[str, ...]
    """Those on which the leader loses most are first."""
    is_part: bool = False
    """Whether it is a part of the group before it."""

    @property
    def count(self) -> int:
        """The number of its queries."""
        return len(self.query_ids)


class _GroupMask(NamedTuple):
    """A group, and which queries belong to it."""

    title: str
    mask: QueryMask
    is_part: bool = False


def group_queries(view: View) -> list[QueryGroup]:
    """The groups that have queries; a query may be in several, and all are in one."""
    groups: list[QueryGroup] = []
    order = order_by_loss(view)
    for title, mask, is_part in _group_masks(view):
        query_ids = tuple(view.ids[i] for i in order if mask[i])
        if query_ids:
            groups.append(QueryGroup(title, query_ids, is_part))
    return groups


def _group_masks(view: View) -> Iterator[_GroupMask]:
    leader = view.evaluation.leader
    lost = np.array([gap < 0 for gap in leader_gaps(view)])
    if len(view.ranked) > 1:
        yield _GroupMask(f"Lost by {leader}", lost)
    labelled = np.array([bool(view.grades[query_id]) for query_id in view.ids])
    near = _found_mask(view, view.cutoff)
    for group in (
        *_groups_by_hits(view, near),
        _group_by_words(view, near),
        *_truncated_groups(view, near),
        *_unjudged_groups(view),
    ):
        yield group._replace(mask=group.mask & labelled)
    yield _GroupMask("All queries", np.ones(view.n, dtype=np.bool_))


def rivals_of_leader(view: View) -> tuple[str, ...]:
    """The retrievers to which a query of the leader counts as lost."""
    others = view.evaluation.others
    if len(view.ranked) <= MAX_RIVALS:
        return others
    worse = view.evaluation.shown_worse
    return tuple(name for name in others if name not in worse) or others


def leader_gaps(view: View) -> list[float]:
    """The leader's score less that of its best rival, for each query.

    Below 0 where it lost. Its own score if it ran alone.
    """
    sign = -1.0 if view.primary in view.evaluation.low_is_good else 1.0
    scores = view.values_by_measure[view.primary]
    leader_scores = sign * scores[view.evaluation.leader]
    rivals = [sign * scores[name] for name in rivals_of_leader(view)]
    if not rivals:
        gaps: list[float] = leader_scores.tolist()
        return gaps
    leads: list[float] = (leader_scores - np.max(rivals, axis=0)).tolist()
    return leads


def order_by_loss(view: View) -> list[int]:
    """The indices of the queries, those on which the leader loses most first.

    If it lost none, those on which it scores lowest.
    """
    gaps = leader_gaps(view)
    sign = -1.0 if view.primary in view.evaluation.low_is_good else 1.0
    scores = sign * view.values_by_measure[view.primary][view.evaluation.leader]
    if min(gaps, default=0.0) >= 0:
        gaps = scores.tolist()
    return sorted(view.order, key=lambda i: (gaps[i], view.ids[i]))


def _found_mask(view: View, depth: int) -> QueryMask:
    """(n, retrievers) whether each retriever finds a relevant document."""
    columns: list[QueryMask] = []
    for retriever in view.ranked:
        ranks = view.ranking_digests[retriever].first_relevant_rank
        columns.append(ranks <= depth)
    return np.column_stack(columns)


def _groups_by_hits(view: View, near: QueryMask) -> Iterator[_GroupMask]:
    """The queries that no retriever finds, or too late, or that one alone finds."""
    cutoff = view.cutoff
    finders = np.asarray(near.sum(axis=1))
    found_later = _found_mask(view, view.resolved.depth).any(axis=1)
    title = f"Found by none in its first {cutoff}"
    if len(view.ranked) == 1:
        title = f"Not found in the first {cutoff}"
    yield _GroupMask(title, finders == 0)
    yield _GroupMask(
        f"of these, found at {cutoff + 1} to {view.resolved.depth}",
        (finders == 0) & found_later,
        is_part=True,
    )
    if len(view.ranked) == 1:
        return
    leader_found = near[:, 0]
    yield _GroupMask("Found by one other alone", (finders == 1) & ~leader_found)
    title = f"Found by {view.evaluation.leader} alone"
    yield _GroupMask(title, (finders == 1) & leader_found)


def _group_by_words(view: View, near: QueryMask) -> _GroupMask:
    """Queries without a word in common with a relevant document.

    Only queries that a retriever missed.
    """
    is_missed = np.asarray(near.sum(axis=1)) < len(view.ranked)
    mask = np.zeros(view.n, dtype=np.bool_)
    for i in range(view.n):
        mask[i] = is_missed[i] and _has_no_word_in_common(view, i)
    return _GroupMask("No word in common with a labelled document", mask)


def _truncated_groups(view: View, near: QueryMask) -> Iterator[_GroupMask]:
    """The queries whose relevant documents a retriever truncated and missed.

    One group for each retriever that truncated documents.
    """
    relevant = [frozenset(_relevant_documents(view, i)) for i in range(view.n)]
    for column, retriever in enumerate(view.ranked[:MAX_RIVALS]):
        truncated = _truncated_documents(view, retriever)
        if not truncated:
            continue
        is_truncated = np.array([documents <= truncated for documents in relevant])
        yield _GroupMask(
            f"Missed by {retriever}: it read only the start",
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
    yield _GroupMask(f"No label on the first hit of {leader}", mask)


def _has_unlabelled_first_hit(view: View, query_id: str, retriever: str) -> bool:
    hits = view.ranking_digests[retriever].primary_hits.get(query_id, ())
    return bool(hits) and hits[0] not in view.grades[query_id]


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


def _relevant_documents(view: View, index: int) -> Sequence[str]:
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
