"""Differences under one another with their intervals, and the margin as a band."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.report import charts
from harness.report.figures import Figure, figure


class ForestRow(NamedTuple):
    """One difference of a forest plot."""

    label: str
    """What stands beside it."""
    slice: str
    """What it is a difference of: a slice, or the other retriever."""
    difference: float
    low: float | None
    """None where no interval can be estimated: the point stands alone."""
    high: float | None
    queries: int
    record: str
    """Wins, ties and losses."""
    whole: bool = False
    """Whether it is the difference over all queries."""
    beside: str = ""


class ForestWords(NamedTuple):
    """What a forest plot is called, and what its axis says."""

    name: str
    title: str
    description: str
    axis: str


def forest(words: ForestWords, rows: Sequence[ForestRow], margin: float | None) -> Figure:
    """Draw differences in the order given; the margin is a band around zero, None or 0 for none."""
    return figure(
        words.name,
        words.title,
        words.description,
        charts.forest([row.label for row in rows], measure=words.axis, band=bool(margin)),
        rows=[
            {
                **row._asdict(),
                "place": place,
                "low": row.difference if row.low is None else row.low,
                "high": row.difference if row.high is None else row.high,
            }
            for place, row in enumerate(rows)
        ],
        zero=[{"zero": 0}],
        **({"margin": [{"low": -margin, "high": margin}]} if margin else {}),
    )
