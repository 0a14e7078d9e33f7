"""Every measure at once: the means with their intervals as dots, and the statistics of describe()."""

from __future__ import annotations

import math

from harness.report import charts, text
from harness.report.figures import Figure, Section, figure
from harness.report.view import View

PLACE = 81


def section(view: View) -> Section:
    """The dot matrix of all measures, and the table of describe()."""
    table = view.results.summary.to_dict("records")
    rows = [
        (view.names[measure], [row for name in view.ranked for row in table
                               if row["measure"] == measure and row["retriever"] == name])
        for measure in view.measures
    ]  # fmt: skip
    best = {measure: max(row["mean"] for row in table if row["measure"] == measure) for measure in view.measures}
    drawn = _dots(view)
    return Section("distribution", "Every measure", {"rows": rows, "best": best, "dots": drawn}, (drawn,), "tests")


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
