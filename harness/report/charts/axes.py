"""Axes of charts: positions of values, with ticks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from harness.english import with_minus_sign
from harness.report.charts.elements import (
    LINE_HEIGHT,
    Line,
    join_elements,
    pixel_text,
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
    """Pixel of the lowest value."""
    end: float
    """Pixel of the highest value, which is above `start` on a vertical axis."""
    logarithmic: bool = False

    def position(self, value: float) -> float:
        """The position of a value in pixels.

        >>> Axis(0.0, 2.0, 100.0, 300.0).position(0.5)
        150.0
        >>> Axis(1.0, 100.0, 0.0, 200.0, logarithmic=True).position(10.0)
        100.0
        """
        low = self.low
        high = self.high
        scaled = value
        if self.logarithmic:
            low = math.log10(low)
            high = math.log10(high)
            scaled = math.log10(value)
        share = (scaled - low) / ((high - low) or 1.0)
        return self.start + (self.end - self.start) * share

    def ticks(self, apart: float) -> list[float]:
        """Round values of the axis, at least `apart` pixels from each other.

        At least three, even if they are nearer; on a logarithmic axis those of
        `_powers_of_ten`, however near. A linear axis must have two ends that differ.
        """
        if self.logarithmic:
            return _powers_of_ten(self.low, self.high)
        max_count = max(2, int(abs(self.end - self.start) / apart))
        ticks = round_steps(self.low, self.high, max_count)
        while len(ticks) < 3:
            max_count += 1
            ticks = round_steps(self.low, self.high, max_count)
        return ticks


def round_steps(low: float, high: float, max_count: int) -> list[float]:
    """Return the multiples of a round step between two values, about `max_count`.

    >>> round_steps(0.12, 0.68, 4)
    [0.2, 0.4, 0.6]
    >>> round_steps(-0.4, 0.4, 4)
    [-0.4, -0.2, 0.0, 0.2, 0.4]
    """
    min_step = (high - low) / max_count or 1.0
    power = 10.0 ** math.floor(math.log10(min_step))
    step = next(
        factor * power for factor in (1, 2, 5, 10) if factor * power >= min_step * 0.999
    )
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(multiple * step, 12) for multiple in range(first, last + 1)]


def _powers_of_ten(low: float, high: float) -> list[float]:
    """Powers of ten, with 2 and 5 between them if there are few; else round values."""
    inside = _multiples_of_powers(low, high, (1,))
    if len(inside) > 2:
        return inside
    inside = _multiples_of_powers(low, high, (1, 2, 5))
    if len(inside) > 1:
        return inside
    return [value for value in round_steps(low, high, 4) if value > 0]


def _multiples_of_powers(
    low: float, high: float, factors: Sequence[int]
) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    multiples = [factor * 10.0**power for power in powers for factor in factors]
    return [value for value in multiples if low * 0.999 <= value <= high * 1.001]


AXIS_PADDING = 0.06
"""Room on either side of an axis, as a share of the range of its values."""
EMPTY_ROOM = 0.05
"""The least room on either side of an axis whose values are all equal."""


def axis_room(low: float, high: float, share: float) -> float:
    """Return the room on either side of an axis: a share of its range.

    Values that float noise separates are equal: their range has no ticks.

    >>> axis_room(0.25, 0.75, 0.5), axis_room(0.3, 0.1 + 0.2, 0.5)
    (0.25, 0.05)
    """
    largest = max(1.0, abs(low), abs(high))
    if high - low > 1e-9 * largest:
        return (high - low) * share
    return max(EMPTY_ROOM, 1e-6 * largest)


def axis_ends(values: Iterable[float], *, bounded: bool = True) -> tuple[float, float]:
    """Return the ends of an axis that holds all values, with some room.

    Args:
        values: at least one.
        bounded: whether values are scores: the axis then goes beyond 0 or 1 only as
            far as a value does below 0, or if one is above 1.

    >>> axis_ends([0.02, 0.52]), axis_ends([0.5, 1.0])
    ((0.0, 0.55), (0.47, 1.0))
    >>> axis_ends([-0.5, 0.5], bounded=False)
    (-0.56, 0.56)
    """
    numbers = list(values)
    low = min(numbers)
    high = max(numbers)
    padding = axis_room(low, high, AXIS_PADDING)
    start = low - padding
    end = high + padding
    if bounded:
        start = max(start, min(low, 0.0))
        if high <= 1:
            end = min(end, 1.0)
    return round(start, 12), round(end, 12)


def tick_labels(ticks: Sequence[float], sign: str = "") -> list[str]:
    """Return ticks with as many decimals as their step needs.

    Args:
        ticks: one at least.
        sign: as in f"{tick:+}": "+" for a sign at each, "-" for losses alone; with
            either, zero is "0".

    >>> tick_labels([0.0, 0.25, 0.5]), tick_labels([-0.2, 0.0, 0.2], "+")
    (['0.00', '0.25', '0.50'], ['−0.2', '0', '+0.2'])
    """
    decimals = _decimals_of(ticks)
    labels: list[str] = []
    for tick in ticks:
        if sign and not tick:
            labels.append("0")
        else:
            labels.append(with_minus_sign(f"{tick:{sign}.{decimals}f}"))
    return labels


def _decimals_of(ticks: Sequence[float]) -> int:
    """Return how many decimals all ticks need; at most 12."""
    tolerance = 1e-6 * max(map(abs, ticks))
    for decimals in range(12):
        if all(abs(tick - round(tick, decimals)) <= tolerance for tick in ticks):
            return decimals
    return 12


def signed_tick_labels(ticks: Sequence[float]) -> list[str]:
    """Return the same with signs, for an axis of differences."""
    return tick_labels(ticks, "+")


def vector_size_text(size: float) -> str:
    """The size of vectors; a retriever without any has none, not 0 bytes.

    >>> vector_size_text(280_000), vector_size_text(0)
    ('280 kB', 'none')
    """
    return byte_size_text(size) if size else "none"


PRICE_TICK_LABELS: dict[str, TickLabels] = {
    "dollars": lambda ticks: [f"${number_text(value)}" for value in ticks],
    "ms": lambda ticks: [number_text(value) for value in ticks],
    "bytes": lambda ticks: [vector_size_text(value) for value in ticks],
}
"""Unit of a price axis -> the labels of its ticks."""


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
    positions = map(axis.position, ticks)
    parts = [_draw_rules([Line(x, x, top, bottom) for x in positions])]
    free_from = -1e9
    for tick, label in zip(ticks, labels(ticks), strict=True):
        x = axis.position(tick)
        half_width = text_width(label) / 2
        if x - half_width < free_from:
            continue  # labels that would overlap are omitted
        parts.append(svg_element("text", label, x=x, y=bottom + LINE_HEIGHT))
        free_from = x + half_width + 6
    lines = _draw_title(title, axis, bottom)
    body = join_elements(parts)
    labelled_rules = svg_element("g", body, class_="ticks", text_anchor="middle")
    return labelled_rules + svg_element("g", lines, class_="title")


def _draw_rules(lines: Sequence[Line]) -> Markup:
    """The rules of an axis as one path, a third of the size of a line each."""
    moves = "".join(
        f"M{pixel_text(line.x1)} {pixel_text(line.y1)}"
        f"L{pixel_text(line.x2)} {pixel_text(line.y2)}"
        for line in lines
    )
    return svg_element("path", d=moves, stroke=RULE_SHADE.light)


def _draw_title(title: str, axis: Axis, bottom: float) -> Markup:
    middle = (axis.start + axis.end) / 2
    return join_elements(
        svg_element(
            "text",
            line,
            x=middle,
            y=bottom + LINE_HEIGHT * (2.4 + i),
            text_anchor="middle",
        )
        for i, line in enumerate(wrap_title(title, axis.end))
    )


def draw_vertical_axis(
    axis: Axis, across: tuple[float, float], labels: TickLabels = tick_labels
) -> Markup:
    """A vertical axis at the left of a chart; `across` are both ends of its rules."""
    left, right = across
    ticks = axis.ticks(44)
    positions = list(map(axis.position, ticks))
    parts = [_draw_rules([Line(left, right, y, y) for y in positions])]
    for y, label in zip(positions, labels(ticks), strict=True):
        parts.append(svg_element("text", label, x=left - 6, y=y + 4))
    body = join_elements(parts)
    return svg_element("g", body, class_="ticks", text_anchor="end")
