"""Data sets as small multiples: each retriever's mean from run to run on the same data, by the same measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from harness.overview.listing import Entry, RetrieverMean
from harness.report.theme import Mark, marks


class Point(NamedTuple):
    """One retriever in one run."""

    run: int
    """Place among the runs of the panel, the oldest is 0."""
    standing: RetrieverMean


class Series(NamedTuple):
    """One retriever over time."""

    identity: str
    points: tuple[Point, ...]

    @property
    def last(self) -> RetrieverMean:
        """What it came to in the newest run that it was in."""
        return self.points[-1].standing

    @property
    def change(self) -> float | None:
        """From the run before the newest to the newest, on the same data; None where it was in one run only."""
        return self.last.mean - self.points[-2].standing.mean if len(self.points) > 1 else None


class Panel(NamedTuple):
    """The runs on one state of a data set, by one measure."""

    measure: str
    runs: tuple[Entry, ...]
    """The oldest first."""
    series: tuple[Series, ...]
    """The highest newest mean first."""

    @property
    def repeated(self) -> bool:
        """Whether a retriever was in more than one run: otherwise no mean has an earlier one to change from."""
        return any(series.change is not None for series in self.series)


class DataGroup(NamedTuple):
    """All states of one data set."""

    path: str
    panels: tuple[Panel, ...]
    """The newest state first."""


def groups(entries: Sequence[Entry]) -> list[DataGroup]:
    """Sort runs by data set, then by its digest and the primary measure: only such means can be compared.

    Args:
        entries: newest first.
    """
    by_path: dict[str, dict[tuple[str, str], list[Entry]]] = {}
    known: dict[str, str] = {}
    for entry in entries:
        if entry.standings:
            dataset = entry.manifest.dataset
            # The same data may be reached by several paths: the newest gives the name.
            path = known.setdefault(dataset.digest, known.setdefault(f"path {dataset.path}", dataset.path))
            known[f"path {dataset.path}"] = path
            by_path.setdefault(path, {}).setdefault((dataset.digest, entry.primary), []).append(entry)
    return [
        DataGroup(path, tuple(_panel(measure, tuple(reversed(runs))) for (_, measure), runs in states.items()))
        for path, states in by_path.items()
    ]


def _panel(measure: str, runs: tuple[Entry, ...]) -> Panel:
    points: dict[str, list[Point]] = {}
    for number, run in enumerate(runs):
        for standing in run.standings:
            points.setdefault(standing.identity, []).append(Point(number, standing))
    series = [Series(key, tuple(of)) for key, of in points.items()]
    return Panel(measure, runs, tuple(sorted(series, key=lambda one: -one.last.mean)))


def marks_of(entries: Sequence[Entry]) -> dict[str, Mark]:
    """Give each retriever of the page one look, as far as possible the same as in its reports."""
    names: dict[str, str] = {}
    for entry in entries:
        for standing in entry.standings:
            names.setdefault(standing.identity, standing.retriever)
    # Colours are given in the order of the names, as a report does it; what it is makes each of them unique.
    given = marks({f"{name}\0{key}": key for key, name in names.items()})
    return {key: given[f"{name}\0{key}"] for key, name in names.items()}


def axis_of(panels: Sequence[Panel]) -> tuple[float, float]:
    """The axis that panels of one measure share: from the lowest to the highest end of an interval, with some room.

    Room that no mean could use, below 0 or above 1, is not given.
    """
    ends = [
        end
        for panel in panels
        for series in panel.series
        for point in series.points
        for end in (point.standing.low, point.standing.mean, point.standing.high)
        if end is not None
    ]
    room = (max(ends) - min(ends)) * 0.08 or 0.05
    low, high = min(ends), max(ends)
    return max(low - room, min(low, 0.0)), min(high + room, 1.0 if high <= 1 else math.inf)
