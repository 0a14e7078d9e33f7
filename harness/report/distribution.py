"""How the scores are spread: boxes, points, and the statistics of describe()."""

from __future__ import annotations

import numpy as np

from harness.report import charts, text
from harness.report.figures import Figure, figure
from harness.report.section import Section
from harness.report.view import View

POINTS = 2_500
"""Points that the primary measure's chart draws; beyond, boxes alone."""
OTHERS = 600
"""The same for each other measure."""


def distribution(view: View) -> Section:
    """A strip of every query for each measure, and the table of describe()."""
    drawn = [_strip(view, measure, charts.NARROW if i else charts.WIDE) for i, measure in enumerate(view.measures)]
    table = view.results.summary.to_dict("records")
    rows = [
        (view.names[measure], [row for name in view.retrievers for row in table
                               if row["measure"] == measure and row["retriever"] == name])
        for measure in view.measures
    ]  # fmt: skip
    best = {measure: max(row["mean"] for row in table if row["measure"] == measure) for measure in view.measures}
    context = {"strips": drawn, "rows": rows, "best": best, "points": view.n * len(view.retrievers) <= POINTS}
    return Section("distribution", "Distribution", context, tuple(drawn))


def _strip(view: View, measure: str, width: int) -> Figure:
    name = view.names[measure]
    boxes, points = [], []
    pointed = view.n * len(view.retrievers) <= (POINTS if measure == view.primary else OTHERS)
    for retriever in view.retrievers:
        values = view.defined(measure, retriever)
        if not len(values):
            continue
        places = np.flatnonzero(~np.isnan(view.scores[measure][retriever])).tolist()
        low, q25, median, q75, high = np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist()
        boxes.append({"retriever": retriever, "min": low, "q25": q25, "median": median, "q75": q75, "max": high,
                      "mean": float(values.mean())})  # fmt: skip
        if pointed:
            points += [
                {
                    "retriever": retriever,
                    "query": text.shortened(view.ids[i], 40),
                    "text": text.shortened(view.query(i).query.text, 80),
                    "value": value,
                    "spread": spread,
                }
                for i, value, spread in zip(places, values.tolist(), _spread(values), strict=True)
            ]
    medians = "; ".join(f"{box['retriever']} {text.score(float(box['median']))}" for box in boxes)
    return figure(
        f"distribution-{name.full}",
        f"Distribution of {name.short}",
        f"A box from the lower to the upper quartile for each retriever, a tick at the median, a diamond at the mean. "
        f"Medians: {medians}.",
        charts.strips(view.marks, measure=name.short, points=view.n if points else 0, width=width),
        rows=boxes,
        points=points,
    )


def _spread(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[float]:
    """Return an offset for each point, so that near ones stand side by side: from the middle outwards."""
    bins: dict[int, int] = {}
    found = []
    for value in values.tolist():
        near = round(value * 50)
        seen = bins.get(near, 0)
        bins[near] = seen + 1
        found.append(((seen + 1) // 2) * (1 if seen % 2 else -1))
    most = max(1.0, *(abs(step) for step in found))
    scale = max(most, 6.0)
    return [step / scale for step in found]
