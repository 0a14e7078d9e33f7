"""The axis that the dots of one table column share."""

from collections.abc import Sequence
from typing import NamedTuple

from harness.report.charts.axes import axis_room, round_steps, tick_labels

AXIS_ROOM = 0.03
"""Share of the axis that is left free on each side."""
MIN_TICKS = 2
MAX_TICKS = 5
"""Ticks of an axis: fewer than two show no scale, more than five crowd it."""


class Tick(NamedTuple):
    """A round value of the axis with its label."""

    value: float
    label: str


class StripAxis(NamedTuple):
    """The scale that all rows of one column share."""

    low: float
    high: float
    ticks: tuple[Tick, ...]
    margin_low: float
    """Equal to `margin_high` if there is no margin."""
    margin_high: float

    def percent(self, value: float) -> str:
        """The position of a value, as an SVG attribute.

        >>> StripAxis(0.0, 2.0, (), 0.0, 0.0).percent(0.5)
        '25.0%'
        """
        return f"{self._share(value):.1f}%"

    def width_percent(self, low: float, high: float) -> str:
        """The distance between two values, as an SVG attribute."""
        return f"{self._share(high) - self._share(low):.1f}%"

    def _share(self, value: float) -> float:
        return 100 * (value - self.low) / (self.high - self.low)


def fit_strip_axis(
    values: Sequence[float],
    margin: float | None,
    *,
    is_signed: bool = False,
    max_ticks: int = MAX_TICKS,
) -> StripAxis:
    """Return an axis with some room, round ticks, and the margin.

    Args:
        values: what the axis covers.
        margin: differences below it do not matter; None if there is no margin.
        is_signed: whether differences go both ways, so that labels have signs.
        max_ticks: about how many.
    """
    low = min(values)
    high = max(values)
    room = axis_room(low, high, AXIS_ROOM)
    low -= room
    high += room
    ticks = round_steps(low, high, max_ticks)
    while len(ticks) < MIN_TICKS:
        max_ticks += 1
        ticks = round_steps(low, high, max_ticks)
    sign_format = "+" if is_signed else "-"  # as in f"{value:+}": "-" signs losses only
    labels = tick_labels(ticks, sign_format)
    return StripAxis(
        low,
        high,
        tuple(map(Tick, ticks, labels)),
        margin_low=-(margin or 0.0) if is_signed else 0.0,
        margin_high=margin or 0.0,
    )
