"""The means of an experiment's runs over time."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

from harness.wording.dates import day_of, short_date_text

TREND_LOW, TREND_HIGH = 76.0, 24.0
"""Heights of the lowest and the highest mean, in percent from the top."""
AXIS_ROOM = 3.0
"""Percent of the axis that is left free on each side."""
MAX_DAYS = 5
"""Days with a label, at most."""


class TimeTick(NamedTuple):
    """A day of the axis."""

    x: float
    label: str


class TimeAxis(NamedTuple):
    """The scale that all trends share."""

    first: date
    last: date
    ticks: tuple[TimeTick, ...]

    def position(self, day: date) -> float:
        """The position of a day in percent."""
        days = (self.last - self.first).days
        if not days:
            return 50.0
        share = (day - self.first).days / days
        return AXIS_ROOM + (100 - 2 * AXIS_ROOM) * share


class TrendRun(NamedTuple):
    """One run."""

    started: str
    mean: float | None
    """The mean; None without scores."""
    state: str
    """The name of its colour."""
    retriever: str
    comparable: str
    """Runs with the same text can be compared."""
    queries: int


class TrendPoint(NamedTuple):
    """A run as a dot."""

    x: float
    y: float
    state: str
    title: str


class TrendLine(NamedTuple):
    """A line between two runs that can be compared."""

    start: TrendPoint
    end: TrendPoint


class TrendBreak(NamedTuple):
    """A break between two runs that cannot be compared."""

    x: float
    words: str
    """The number of queries before it."""


class Trend(NamedTuple):
    """The drawing of one experiment."""

    points: tuple[TrendPoint, ...]
    lines: tuple[TrendLine, ...]
    breaks: tuple[TrendBreak, ...]

    @property
    def description(self) -> str:
        """The runs in words."""
        return "; ".join(point.title for point in self.points)


def fit_time_axis(days: Sequence[str]) -> TimeAxis:
    """Return an axis over the days of times; a text that is no time is skipped."""
    known_days = [day for day in map(day_of, days) if day is not None]
    dates = sorted(known_days) or [date.min]
    first = dates[0]
    last = dates[-1]
    span = (last - first).days
    axis = TimeAxis(first, last, ())
    count = min(MAX_DAYS, span + 1)
    steps = max(1, count - 1)
    ticks: list[TimeTick] = []
    for step in range(count):
        day = first + timedelta(days=round(span * step / steps))
        ticks.append(TimeTick(axis.position(day), short_date_text(day.isoformat())))
    return axis._replace(ticks=tuple(ticks))


def draw_trend(runs: Sequence[TrendRun], axis: TimeAxis) -> Trend:
    """Draw runs, oldest first.

    A line joins successive dots that can be compared, a break parts others. A run
    without scores has no dot; one without a day is at the start of the axis.
    """
    scored = [run for run in runs if run.mean is not None]
    means = [run.mean for run in scored if run.mean is not None]
    points = [_point(run, means, axis) for run in scored]
    lines: list[TrendLine] = []
    breaks: list[TrendBreak] = []
    for position in range(1, len(scored)):
        before = scored[position - 1]
        pair = points[position - 1], points[position]
        if before.comparable == scored[position].comparable:
            lines.append(TrendLine(*pair))
        else:
            middle = (pair[0].x + pair[1].x) / 2
            breaks.append(TrendBreak(middle, f"{before.queries:,} queries"))
    return Trend(tuple(points), tuple(lines), tuple(breaks))


def _point(run: TrendRun, means: Sequence[float], axis: TimeAxis) -> TrendPoint:
    mean = run.mean or 0.0
    span = max(means) - min(means)
    share = (mean - min(means)) / span if span else 0.5
    return TrendPoint(
        axis.position(day_of(run.started) or axis.first),
        TREND_LOW + (TREND_HIGH - TREND_LOW) * share,
        run.state,
        f"{short_date_text(run.started)}: {run.retriever} {mean:.3f}",
    )
