"""The table of every query: its scores on every measure."""

from __future__ import annotations

import math

import numpy as np

from harness.report.figures import Section
from harness.report.view import View

PLACE = 100

CELLS = 20_000
"""Scores that the page's tables hold; beyond, it keeps the primary measure's."""


def section(view: View) -> Section:
    """The table of every measure, a row a query, the best value marked."""
    size = len(view.shown) * len(view.retrievers)
    kept = [m for i, m in enumerate(view.measures) if not i or size * (i + 1) <= CELLS]
    tables = []
    for measure in kept:
        values = np.column_stack([view.scores[measure][name] for name in view.ranked])[list(view.shown)]
        known = np.nan_to_num(values, nan=-1.0)  # an undefined value is never the best
        best = known.max(axis=1, keepdims=True)
        # A query on which all are equal has no best.
        marked = (known >= best - 1e-10) & (known.min(axis=1, keepdims=True) < best - 1e-10)
        cells = [[None if math.isnan(value) else value for value in row] for row in values.tolist()]
        tables.append((view.names[measure], list(zip(view.shown, cells, marked.tolist(), strict=True))))
    return Section(
        "per_query",
        "Every query",
        {
            "tables": tables,
            "left_out": [view.names[m].short for m in view.measures if m not in kept],
            "thinned": len(view.order) - len(view.shown),
        },
    )
