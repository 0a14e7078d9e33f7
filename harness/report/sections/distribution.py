"""Every measure at once: the means with their intervals as dots, and the statistics of describe()."""

from __future__ import annotations

import math

from harness.report import charts, text
from harness.report.figures import Figure, Section, figure
from harness.report.view import View

PLACE = 110


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
    return Section("distribution", "Every measure", {"rows": rows, "best": best, "dots": drawn}, (drawn,))


def _dots(view: View) -> Figure:
    rows = [
        {
            "retriever": row["retriever"],
            "measure": view.names[row["measure"]].short,
            "mean": row["mean"],
            # Without an interval the point stands alone.
            "low": row["mean"] if math.isnan(row["ci_low"]) else row["ci_low"],
            "high": row["mean"] if math.isnan(row["ci_high"]) else row["ci_high"],
        }
        for row in view.results.summary.to_dict("records")
        if row["measure"] in view.names and not math.isnan(row["mean"])
    ]
    leaders: dict[str, str] = {}
    places = {name.short: place for place, name in enumerate(view.names.values())}
    for row in sorted(rows, key=lambda row: (places[row["measure"]], -row["mean"])):
        leaders.setdefault(row["measure"], f"{row['measure']}: {row['retriever']} {text.score(row['mean'])}")
    return figure(
        "measures",
        f"Means of every measure with their {view.settings.level:.0%} intervals",
        f"The highest mean of each measure: {'; '.join(leaders.values())}.",
        charts.dots(view.ranked, list(leaders), view.marks),
        rows=rows,
    )._replace(follows="measures")
