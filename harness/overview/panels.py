"""Data sets as small multiples: each retriever's mean from run to run on the same data, by the same measure, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from harness.overview.listing import Entry, RetrieverMean
from harness.report.axes import reach, steps
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
        """Its mean in the newest run that it was in."""
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
    """The axis that panels of one measure share: from the lowest to the highest end of an interval, with some room."""
    ends = [
        end
        for panel in panels
        for series in panel.series
        for point in series.points
        for end in (point.standing.low, point.standing.mean, point.standing.high)
        if end is not None
    ]
    return reach(ends, room=0.08)


WIDTH, HEIGHT = 340, 150
LEFT, RIGHT, TOP, BOTTOM = 40, 14, 10, 24
"""Room for the numbers beside and the dates beneath."""
APART, WIDEST = 5.0, 24.0
"""Pixels between two retrievers of one run, so that their intervals do not cover each other; and to either side."""


class Scale(NamedTuple):
    """Where a run and a value lie."""

    runs: int
    low: float
    high: float

    def x(self, run: int) -> float:
        """The middle of a run, in pixels from the left."""
        share = 0.5 if self.runs == 1 else 0.06 + 0.88 * run / (self.runs - 1)
        return LEFT + (WIDTH - LEFT - RIGHT) * share

    def y(self, value: float) -> float:
        """A value, in pixels from the top."""
        return TOP + (HEIGHT - TOP - BOTTOM) * (self.high - value) / (self.high - self.low)


def drawing(panel: Panel, drawn: Mapping[str, Mark], axis: tuple[float, float]) -> Markup:
    """Return a panel as SVG.

    Args:
        panel: the runs on one state of a data set.
        drawn: identity of a retriever -> its look.
        axis: the lowest and the highest value, which panels of one measure share.
    """
    scale = Scale(len(panel.runs), *axis)
    parts = [_axis(panel, scale)]
    for one in reversed(panel.series):
        places = [(scale.x(p.run) + _offset(panel, p), scale.y(p.standing.mean)) for p in one.points]
        parts.append(_line(places, drawn[one.identity]))
        for point, place in zip(one.points, places, strict=True):
            parts.append(_mark(panel, point, place[0], drawn[one.identity], scale))
    means = "; ".join(f"{one.last.retriever} {one.last.mean:.3f}" for one in panel.series)
    return Markup('<svg class="panel" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, HEIGHT, f"{panel.measure}: {means}", Markup("").join(parts)
    )


def _axis(panel: Panel, scale: Scale) -> Markup:
    rule = Markup('<line x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/><text x="{}" y="{:.1f}">{:.2f}</text>')
    date = Markup('<text class="date" x="{:.1f}" y="{}">{}</text>')
    rules = [
        rule.format(LEFT, WIDTH - RIGHT, scale.y(value), scale.y(value), LEFT - 6, scale.y(value) + 4, value)
        for value in steps(scale.low, scale.high, 5)
    ]
    if len(panel.runs) == 1:  # nothing went on over time
        return Markup('<g class="axis">{}</g>').format(Markup("").join(rules))
    ends = sorted({0, len(panel.runs) - 1})
    dates = [date.format(scale.x(run), HEIGHT - 6, day) for run, day in zip(ends, _days(panel, ends), strict=True)]
    return Markup('<g class="axis">{}</g>').format(Markup("").join(rules + dates))


def _days(panel: Panel, ends: Sequence[int]) -> list[str]:
    """The days of the first and the last run; with their times instead of the year where they are one day."""
    started = [panel.runs[run].manifest.started for run in ends]
    if len(started) > 1 and started[0][:10] == started[1][:10]:
        return [one[5:16].replace("T", " ") for one in started]
    return [one[:10] for one in started]


def _offset(panel: Panel, point: Point) -> float:
    """How far from the middle of its run a retriever is drawn: side by side, the best at the right."""
    beside = [one.identity for one in reversed(panel.series) if any(other.run == point.run for other in one.points)]
    offset = APART * (beside.index(point.standing.identity) - (len(beside) - 1) / 2)
    return max(-WIDEST, min(WIDEST, offset))


def _line(places: Sequence[tuple[float, float]], mark: Mark) -> Markup:
    if len(places) < 2:
        return Markup("")
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dash = " ".join(map(str, mark.dash)) if mark.dash[1] else "none"
    return Markup('<polyline points="{}" fill="none" stroke="{}" stroke-width="1.5" stroke-dasharray="{}"/>').format(
        points, mark.color, dash
    )


def _mark(panel: Panel, point: Point, x: float, mark: Mark, scale: Scale) -> Markup:
    standing, run = point.standing, panel.runs[point.run]
    whisker = Markup("")
    if standing.low is not None and standing.high is not None:
        whisker = Markup(
            '<line x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}" stroke="{3}" stroke-width="1.5"/>'
        ).format(x, scale.y(standing.low), scale.y(standing.high), mark.color)
    shape = Markup('<path d="{}" fill="{}" transform="translate({:.1f} {:.1f}) scale(4.5)"/>').format(
        mark.outline, mark.color, x, scale.y(standing.mean)
    )
    title = f"{standing.retriever} {standing.mean:.4f}, {run.folder}, {run.manifest.started[:10]}"
    return Markup("<g>{}{}<title>{}</title></g>").format(whisker, shape, title)
