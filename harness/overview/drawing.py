"""A panel of the small multiples as SVG: a mark and an interval for each retriever and run, lines over several runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from harness.overview.panels import Panel, Point
from harness.report.axes import steps
from harness.report.theme import Mark

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
