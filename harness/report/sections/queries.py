"""The workbench of queries: who finds which, why the others miss it, and the rankings side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from harness.english import count
from harness.evaluation.verdict import Comparison
from harness.report import charts, text
from harness.report.browsed import STEPS, EvidenceKept, browsed, document, spread
from harness.report.failures import columns, groups, runs, without_groups
from harness.report.figures import Figure, Section, figure
from harness.report.view import View, second
from harness.stats.differences import differences

PLACE = 30

PRINTED = 3
"""Queries that are shown without scripts."""
HITS = 5
"""Hits of each ranking there, and ids of a group."""


REST = "queries.html"
"""The page beside the report that holds the queries for which it has no room."""


def rest(view: View, shown: Section) -> tuple[View, Section] | None:
    """The section of the queries that the page had no room for; None where it holds all of them."""
    left = tuple(place for place in view.order if place not in shown.context["places"])
    others = replace(view, shown=left)
    return (others, section(others, whole=True)) if left else None


def section(view: View, *, whole: bool = False) -> Section:
    """The picture of all queries, the groups of failures, and the evidence for the browser of queries."""
    distances, alike, order = spread(view), groups(view), columns(view)
    held = browsed(view, alike, whole=whole)
    most = sorted(view.shown, key=lambda i: (-distances[i], view.ids[i]))[:PRINTED]
    drawn = _apart(view)
    return Section(
        "queries",
        "Queries",
        {
            "evidence": held.packed,
            "held": len(held.evidence["queries"]),
            "places": frozenset(held.places),
            "rest": REST if len(held.places) < len(view.order) and not whole else "",
            "texts": held.texts,
            "kept": held.kept,
            "whole": held.kept == EvidenceKept(*STEPS[0], len(view.order)),
            "printed": [_printed(view, i) for i in most if distances[i] > 0],
            "groups": [(group, [view.ids[place] for place in group.places[:HITS]]) for group in alike],
            "without": "" if alike else without_groups(view),
            "rows": {name: list(runs(view.scores[view.primary][name], order)) for name in view.ranked},
            "drawn": len(order),
        },
        drawn,
    )


def _printed(view: View, place: int) -> dict[str, Any]:
    """One query for the page without scripts and for print."""
    qid = view.ids[place]
    judged = view.grades[qid]
    gold = sorted(((d, g) for d, g in judged.items() if g > 0), key=lambda item: (-item[1], item[0]))
    return {
        "id": qid,
        "text": view.results.queries[qid].query.text,
        "scores": [float(view.scores[view.primary][name][place]) for name in view.ranked],
        "lists": [
            [(*document(view, doc), judged.get(doc)) for doc in view.answers[name].heads.get(qid, ())[:HITS]]
            for name in view.ranked
        ],
        "gold": [
            (*document(view, doc), grade,
             [view.answers[name].places.get(qid, {}).get(doc) for name in view.ranked])
            for doc, grade in gold[: 2 * HITS]
        ],
        "gold_left": max(0, len(gold) - 2 * HITS),
    }  # fmt: skip


def _apart(view: View) -> tuple[Figure, ...]:
    """The leader against the next, or the baseline, query by query: the page draws any other pair from the scores."""
    leader, other = view.conclusion.leader, second(view)
    if other == leader:
        return ()
    row, name = view.conclusion.against[other], view.names[view.primary]
    values = _differences(view, row)
    at = {i: place for place, i in enumerate(view.order)}
    order: Sequence[int] = sorted(range(view.n), key=lambda i: (-values[i], view.ids[i]))
    if view.n > charts.BARS:
        order = [order[i] for i in np.linspace(0, view.n - 1, charts.BARS).round().astype(int).tolist()]
    limit = max((abs(value) for value in values), default=1.0) or 1.0
    drawn = charts.differences(
        [charts.Bar(at[i], values[i]) for i in order], (row.a, row.b), view.marks, row.mean_difference, limit
    )
    apart = figure(
        f"differences-{row.a}-{row.b}",
        f"{row.a} − {row.b}, query by query",
        f"{name.short}: {row.a} scores higher on {count(row.wins)}, {row.b} on {row.losses}, equal on {row.ties}; "
        f"mean difference {text.signed(row.mean_difference)}.",
        lambda width: drawn,
    )
    return (apart._replace(follows="differences", pair=(row.a, row.b)),)


def _differences(view: View, row: Comparison) -> list[float]:
    scores = view.scores[view.primary]
    values: list[float] = differences(scores[row.a], scores[row.b]).values.tolist()
    return values
