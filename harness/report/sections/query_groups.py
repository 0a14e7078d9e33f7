"""Queries that fail alike."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from harness.report.view import View

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


def group_queries(view: View, slices: Sequence[QueryGroup] = ()) -> list[QueryGroup]:
    """The groups that have queries; a query may be in several, and all are in one.

    Args:
        view: the results.
        slices: the groups by properties of the queries, after those that are lost.
    """
    groups: list[QueryGroup] = []
    order = order_by_loss(view)
    for title, mask, is_part in _group_masks(view):
        query_ids = tuple(view.ids[i] for i in order if mask[i])
        if query_ids:
            groups.append(QueryGroup(title, query_ids, is_part))
    lost = 1 if groups[0].title == _lost_title(view) else 0
    return [*groups[:lost], *slices, *groups[lost:]]


def _lost_title(view: View) -> str:
    return f"Lost by {view.evaluation.leader}"


def _group_masks(view: View) -> Iterator[_GroupMask]:
    lost = np.array([gap < 0 for gap in leader_gaps(view)])
    if len(view.ranked) > 1:
        yield _GroupMask(_lost_title(view), lost)
    labelled = np.array([bool(view.grades[query_id]) for query_id in view.ids])
    near = _found_mask(view, view.cutoff)
    for group in (
        *_groups_by_hits(view, near),
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
