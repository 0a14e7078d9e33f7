"""Every measure at once: the means with their intervals as dots, and the statistics of describe()."""

from __future__ import annotations

import math

from harness.report import charts, text
from harness.report.figures import Figure, Section, figure
from harness.report.heat_map import HeatGrid, heat_map
from harness.report.view import View

PLACE = 81

RANKS = (1, 2, 3, 4, 6, 11, 21, 101)
"""Where the bars of the histogram of first relevant ranks begin."""


def section(view: View) -> Section:
    """The dot matrix of all measures, and the table of describe()."""
    table = view.results.summary.to_dict("records")
    rows = [
        (view.names[measure], [row for name in view.ranked for row in table
                               if row["measure"] == measure and row["retriever"] == name])
        for measure in view.measures
    ]  # fmt: skip
    best = {measure: max(row["mean"] for row in table if row["measure"] == measure) for measure in view.measures}
    drawn = (_dots(view), _first_ranks(view))
    return Section("distribution", "Every measure", {"rows": rows, "best": best}, drawn, "tests")


def _first_ranks(view: View) -> Figure:
    """On how many queries each retriever has its first relevant hit at which rank."""
    lows = [low for low in RANKS if low <= view.resolved.depth]
    highs = [*(low - 1 for low in lows[1:]), view.resolved.depth]
    heads = [f"{low}" if low == high else f"{low} to {high}" for low, high in zip(lows, highs, strict=True)]
    counts = {
        (row, column): int(((view.answers[name].first >= low) & (view.answers[name].first <= high)).sum())
        for row, name in enumerate(view.ranked)
        for column, (low, high) in enumerate([*zip(lows, highs, strict=True), (math.inf, math.inf)])
    }
    axes = ("retriever", "\t".join(view.ranked)), ("rank of the first relevant hit", "\t".join([*heads, "none"]))
    early = "; ".join(f"{name} {counts[row, 0]}" for row, name in enumerate(view.ranked))
    return figure(
        "first-ranks",
        f"Queries by the rank of their first relevant hit, of {view.n:,}",
        f"Queries whose first hit is relevant: {early}.",
        lambda width: heat_map(HeatGrid(*axes, counts, shown=text.count), width),
    )


def _dots(view: View) -> Figure:
    measured: dict[str, list[charts.Dot]] = {name.short: [] for name in view.names.values()}
    for row in view.results.summary.to_dict("records"):
        if row["measure"] in view.names and not math.isnan(row["mean"]):
            # Without an interval the point stands alone.
            low, high = (row["mean"] if math.isnan(row[end]) else row[end] for end in ("ci_low", "ci_high"))
            measured[view.names[row["measure"]].short].append(charts.Dot(row["retriever"], row["mean"], low, high))
    shown = {measure: dots for measure, dots in measured.items() if dots}
    best = {measure: max(dots, key=lambda dot: dot.mean) for measure, dots in shown.items()}
    leaders = (f"{measure}: {dot.retriever} {text.score(dot.mean)}" for measure, dot in best.items())
    return figure(
        "measures",
        f"Means of every measure with their {100 * view.settings.level:g} % intervals",
        f"The highest mean of each measure: {'; '.join(leaders)}.",
        lambda width: charts.dots(view.ranked, shown, view.marks, width),
    )
