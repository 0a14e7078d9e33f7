"""The order in which pairs of retrievers are read, wherever the page lists them."""

from __future__ import annotations

from collections.abc import Sequence

from harness.evaluation.unjudged import OpenPair
from harness.evaluation.verdict import Comparison
from harness.report.view import View


def in_reading_order(view: View, rows: Sequence[Comparison]) -> list[Comparison]:
    """The leader's pairs first, then those of the next; whoever has the higher mean on the primary measure is a."""
    place = {name: i for i, name in enumerate(view.ranked)}
    turned = [row.swapped if place[row.b] < place[row.a] else row for row in rows]
    return sorted(turned, key=lambda row: (place[row.a], place[row.b]))


def open_in_reading_order(view: View, rows: Sequence[OpenPair]) -> list[OpenPair]:
    """The same of what unjudged documents could change."""
    place = {name: i for i, name in enumerate(view.ranked)}
    turned = [_turned(row) if place[row.b] < place[row.a] else row for row in rows]
    return sorted(turned, key=lambda row: (place[row.a], place[row.b]))


def _turned(row: OpenPair) -> OpenPair:
    low, high = row.bounds.low, row.bounds.high
    return row._replace(a=row.b, b=row.a, bounds=row.bounds._replace(low=0.0 - high, high=0.0 - low))
