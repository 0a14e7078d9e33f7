"""Queries that fail alike."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from harness.report.view import View
from harness.stats.differences import paired_differences

FEW_RETRIEVERS = 6
"""Retrievers up to which a query lost to any other one counts as lost.

If there are more, only losses count to those that are not shown to be worse, if any.
"""


@dataclass(frozen=True, slots=True)
class QueryGroup:
    """A title of the list of queries, and what it opens."""

    title: str
    query_ids: tuple[str, ...]
    """The queries, the largest losses first."""

    @property
    def count(self) -> int:
        """The number of its queries."""
        return len(self.query_ids)


def group_queries(view: View, slices: Sequence[QueryGroup] = ()) -> list[QueryGroup]:
    """The queries that the examined retriever lost, those of each slice, and all.

    Without a lost query, that group is left out; of a single retriever, all queries
    are the only group.

    Args:
        view: the results.
        slices: the slices on which the leader and its rival differ, as `harness
            explain` finds them.
    """
    order = order_by_loss(view)
    gaps = score_gaps(view)
    every = QueryGroup("All queries", tuple(view.ids[i] for i in order))
    if len(view.ranked) == 1:
        return [every]
    lost = tuple(view.ids[i] for i in order if gaps[i] < 0)
    title = f"Lost by {view.examined}"
    groups = [QueryGroup(title, lost)] if lost else []
    return [*groups, *slices, every]


def query_rivals(view: View) -> tuple[str, ...]:
    """The retrievers to which a query counts as lost; none if there is no other."""
    others = tuple(name for name in view.ranked if name != view.examined)
    if len(view.ranked) <= FEW_RETRIEVERS:
        return others
    worse: Collection[str] = view.evaluation.shown_worse
    if view.examined != view.evaluation.leader:
        worse = view.evaluation.board.worse
    return tuple(name for name in others if name not in worse) or others


def score_gaps(view: View) -> list[float]:
    """The examined retriever's score less that of its best rival.

    In the order of `view.ids`; below 0 where it lost, 0 if only float noise separates
    them. Its own score if it ran alone.
    """
    scores = view.values_by_measure[view.primary]
    gaps = scores[view.examined]
    rivals = query_rivals(view)
    if rivals:
        best = np.max([scores[name] for name in rivals], axis=0)
        gaps = paired_differences(gaps, best).values
    return [float(gap) for gap in gaps]


def order_by_loss(view: View) -> list[int]:
    """The indices into `view.ids`, the examined retriever's largest losses first.

    If it lost none, those on which it scores lowest; among equals the smaller id.
    """
    losses = score_gaps(view)
    if min(losses, default=0.0) >= 0:
        losses = view.values_by_measure[view.primary][view.examined].tolist()
    return sorted(view.order, key=lambda i: (losses[i], view.ids[i]))
