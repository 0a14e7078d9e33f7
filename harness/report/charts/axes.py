"""Axes of charts: positions of values, with ticks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from harness.english import with_minus_sign
from harness.report.charts.elements import (
    LINE_HEIGHT,
    join_elements,
    svg_element,
    text_width,
    wrap_title,
)
from harness.report.numbers import byte_size_text, number_text
from harness.report.palette import RULE_SHADE

TickLabels = Callable[[Sequence[float]], list[str]]
"""Ticks -> their labels."""


class Axis(NamedTuple):
    """Maps values to pixels."""

    low: float
    high: float
    start: float
    """Pixel of the lowest value; `end` is that of the highest, which is above it on a vertical axis."""
    end: float
    logarithmic: bool = False

    def position(self, value: float) -> float:
        """The position of a value in pixels.

        >>> Axis(0.0, 2.0, 100.0, 300.0).position(0.5), Axis(1.0, 100.0, 0.0, 200.0, logarithmic=True).position(10.0)
        (150.0, 100.0)
        """
        low, high, place = (
            (math.log10(x) for x in (self.low, self.high, value))
            if self.logarithmic
            else (self.low, self.high, value)
        )
        return self.start + (self.end - self.start) * (
            (place - low) / ((high - low) or 1.0)
        )

    def ticks(self, apart: float) -> list[float]:
        """Round values of the axis, at least `apart` pixels from each other."""
        most = max(2, int(abs(self.end - self.start) / apart))
        if self.logarithmic:
            return _powers(self.low, self.high)
        while len(found := round_steps(self.low, self.high, most)) < 3:
            most += 1
        return found


def round_steps(low: float, high: float, max_count: int) -> list[float]:
    """Return the multiples of a round step between two values, at most about `max_count`.

    >>> round_steps(0.12, 0.68, 4), round_steps(-0.4, 0.4, 4)
    ([0.2, 0.4, 0.6], [-0.4, -0.2, 0.0, 0.2, 0.4])
    """
    wide = (high - low) / max_count or 1.0
    power = 10.0 ** math.floor(math.log10(wide))
    step = next(
        factor * power for factor in (1, 2, 5, 10) if factor * power >= wide * 0.999
    )
    places = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [round(place * step, 12) for place in places]


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten, with 2 and 5 between them if there are few; else round values."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 2, 5)):
        found = [factor * 10.0**power for power in powers for factor in factors]
        inside = [value for value in found if low * 0.999 <= value <= high * 1.001]
        if len(inside) > 2:
            return inside
    return (
        inside
        if len(inside) > 1
        else [value for value in round_steps(low, high, 4) if value > 0]
    )


AXIS_PADDING = 0.06
"""Room on either side of an axis, as a share of the range of its values."""


def axis_ends(values: Iterable[float], *, bounded: bool = True) -> tuple[float, float]:
    """Return the ends of an axis that holds all values, with some room.

    Args:
        values: at least one.
        bounded: whether values are scores: the axis then ends at 0 and 1.

    >>> axis_ends([0.02, 0.52]), axis_ends([-0.5, 0.5], bounded=False), axis_ends([0.5, 1.0])
    ((0.0, 0.55), (-0.56, 0.56), (0.47, 1.0))
    """
    held = list(values)
    low, high = min(held), max(held)
    more = (high - low) * AXIS_PADDING or 0.05
    least, most = low - more, high + more
    if bounded:
        least, most = (
            max(least, min(low, 0.0)),
            min(most, 1.0 if high <= 1 else math.inf),
        )
    return round(least, 12), round(most, 12)


def tick_labels(ticks: Sequence[float], sign: str = "") -> list[str]:
    """Return ticks with as many decimals as their step needs.

    >>> tick_labels([0.0, 0.25, 0.5]), tick_labels([-0.2, 0.0, 0.2], "+")
    (['0.00', '0.25', '0.50'], ['−0.2', '0', '+0.2'])
    """
    finest = 1e-6 * max(map(abs, ticks))
    digits = next(
        (
            d
            for d in range(12)
            if all(abs(value - round(value, d)) <= finest for value in ticks)
        ),
        12,
    )
    shown = [with_minus_sign(f"{value:{sign}.{digits}f}") for value in ticks]
    return [
        "0" if sign and not value else word
        for value, word in zip(ticks, shown, strict=True)
    ]


def signed_tick_labels(ticks: Sequence[float]) -> list[str]:
    """Return the same with signs, for an axis of differences."""
    return tick_labels(ticks, "+")


PRICE_TICK_LABELS: dict[str, TickLabels] = {
    "dollars": lambda ticks: [f"${number_text(value)}" for value in ticks],
    "ms": lambda ticks: [number_text(value) for value in ticks],
    "bytes": lambda ticks: [byte_size_text(value) for value in ticks],
}
"""TickLabels of a price axis by unit: half a dollar is $0.5, not 500m."""


def draw_horizontal_axis(
    axis: Axis,
    across: tuple[float, float],
    title: str,
    labels: TickLabels = tick_labels,
) -> Markup:
    """An axis below a chart, with its rules.

    Args:
        axis: its values and their positions.
        across: both ends of its rules, in pixels from the top.
        title: below it; a long one is wrapped.
        labels: of its ticks.
    """
    top, bottom = across
    ticks = axis.ticks(90)
    parts = [
        svg_element(
            "line",
            x1=axis.position(v),
            x2=axis.position(v),
            y1=top,
            y2=bottom,
            stroke=RULE_SHADE.light,
        )
        for v in ticks
    ]
    free = -1e9
    for value, shown in zip(ticks, labels(ticks), strict=True):
        half = text_width(shown) / 2
        if axis.position(value) - half >= free:  # labels that would overlap are omitted
            parts.append(
                svg_element(
                    "text",
                    shown,
                    x=axis.position(value),
                    y=bottom + LINE_HEIGHT,
                    text_anchor="middle",
                )
            )
            free = axis.position(value) + half + 6
    middle = (axis.start + axis.end) / 2
    lines = join_elements(
        svg_element(
            "text",
            line,
            x=middle,
            y=bottom + LINE_HEIGHT * (2.4 + i),
            text_anchor="middle",
        )
        for i, line in enumerate(wrap_title(title, axis.end))
    )
    return svg_element("g", join_elements(parts), class_="ticks") + svg_element(
        "g", lines, class_="title"
    )


def draw_vertical_axis(
    axis: Axis, across: tuple[float, float], labels: TickLabels = tick_labels
) -> Markup:
    """A vertical axis at the left of a chart; `across` are both ends of its rules."""
    left, right = across
    ticks = axis.ticks(44)
    parts = [
        svg_element(
            "line",
            x1=left,
            x2=right,
            y1=axis.position(v),
            y2=axis.position(v),
            stroke=RULE_SHADE.light,
        )
        + svg_element(
            "text", shown, x=left - 6, y=axis.position(v) + 4, text_anchor="end"
        )
        for v, shown in zip(ticks, labels(ticks), strict=True)
    ]
    return svg_element("g", join_elements(parts), class_="ticks")
