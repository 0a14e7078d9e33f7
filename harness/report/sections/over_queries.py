"""The plots over the queries: paired differences, and each score where there are few."""

from __future__ import annotations

import math

import numpy as np

from harness.english import count
from harness.evaluation.verdict import Comparison
from harness.report import charts, text
from harness.report.figures import Figure, Section, figure
from harness.report.pair_details import in_reading_order
from harness.report.view import View, second
from harness.stats.differences import differences

PLACE = 50

DRAWN = 120
"""Queries that are drawn one by one; of more, their differences alone."""
LINES = 5
"""Retrievers whose lines can be told apart."""
PAIRS = 6
"""Pairs whose differences are drawn."""


def section(view: View) -> Section | None:
    """The paired differences, and each query's score where few retrievers were asked few queries."""
    few = view.n <= DRAWN and len(view.retrievers) <= LINES
    lines = [_lines(view, view.primary)] if few else []
    pairs, left = drawn_pairs(view)
    limit = max((abs(float(d)) for row in pairs for d in _differences(view, row)), default=1.0) or 1.0
    apart = [_apart(view, row, limit) for row in pairs]
    context = {"lines": lines, "pairs": apart, "pairs_left": left}
    drawn = (*lines, *apart)
    return Section("over_queries", "Query by query", context, drawn) if drawn else None


def drawn_pairs(view: View) -> tuple[list[Comparison], int]:
    """The pairs whose differences are drawn, and how many are not: with more than six, those of the leader.

    The leader against the baseline, or the next, stands first: the page's filter begins with it.
    """
    first = (view.conclusion.leader, second(view))
    pairs = sorted(in_reading_order(view, view.comparisons[view.primary]), key=lambda row: (row.a, row.b) != first)
    if len(pairs) <= PAIRS:
        return pairs, 0
    against = list(view.conclusion.against.values())[:PAIRS]
    return against, len(pairs) - len(against)


def _lines(view: View, measure: str) -> Figure:
    name = view.names[measure]
    scores = {
        retriever: [None if math.isnan(value) else value for value in of[list(view.order)].tolist()]
        for retriever, of in view.scores[measure].items()
    }
    ids = [view.ids[i] for i in view.order]
    return figure(
        f"queries-{name.full}",
        f"{name.short} of each query",
        f"One line a retriever, one point a query in the order of the file; {name.short} from 0 to 1 upwards. "
        "The same numbers stand in the table of every query.",
        lambda width: charts.over_queries(ids, scores, view.marks, width),
    )._replace(follows="lines")


def _differences(view: View, row: Comparison) -> list[float]:
    scores = view.scores[view.primary]
    values: list[float] = differences(scores[row.a], scores[row.b]).values.tolist()
    return values


def _apart(view: View, row: Comparison, limit: float) -> Figure:
    name = view.names[view.primary]
    values, at = _differences(view, row), {i: place for place, i in enumerate(view.order)}
    order = sorted(range(view.n), key=lambda i: (-values[i], view.ids[i]))
    if view.n > charts.BARS:
        order = [order[i] for i in np.linspace(0, view.n - 1, charts.BARS).round().astype(int).tolist()]
    bars = [charts.Bar(at[i], values[i]) for i in order]
    drawn = charts.differences(bars, (row.a, row.b), view.marks, row.mean_difference, limit)
    return figure(
        f"differences-{row.a}-{row.b}",
        f"{row.a} − {row.b}",
        f"{name.short}: {row.a} scores higher on {count(row.wins)}, {row.b} on {row.losses}, equal on {row.ties}; "
        f"mean difference {text.signed(row.mean_difference)}.",
        lambda width: drawn,
    )._replace(follows="differences", pair=(row.a, row.b))
