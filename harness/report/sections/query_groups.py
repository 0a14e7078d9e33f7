"""Queries that fail alike."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.report.view import View

MAX_RIVALS = 6
"""Retrievers up to which a query lost to any other one counts as lost.

If there are more, only losses count to those that are not shown to be worse.
"""


@dataclass(frozen=True, slots=True)
class QueryGroup:
    """Queries that fail alike."""

    title: str
    query_ids: tuple[str, ...]
    """The queries, those on which the leader loses most first."""

    @property
    def count(self) -> int:
        """The number of its queries."""
        return len(self.query_ids)


def group_queries(view: View, slices: Sequence[QueryGroup] = ()) -> list[QueryGroup]:
    """The queries that the leader lost, those of each slice, and all.

    Args:
        view: the results.
        slices: the slices on which the leader and its rival differ, as `harness
            explain` finds them.
    """
    order = order_by_loss(view)
    gaps = leader_gaps(view)
    every = QueryGroup("All queries", tuple(view.ids[i] for i in order))
    if len(view.ranked) == 1:
        return [every]
    lost = tuple(view.ids[i] for i in order if gaps[i] < 0)
    title = f"Lost by {view.evaluation.leader}"
    groups = [QueryGroup(title, lost)] if lost else []
    return [*groups, *slices, every]


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
