"""Axes of charts as SVG: pixel positions of values, rows and names, and ticks with distinct labels."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from harness.english import minus
from harness.report import text
from harness.report.text import INK, PAPER, RULE

LINE = 16.0
"""Pixels of a line of text."""
STEP = 24.0
"""Height of a row in pixels."""

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

    def at(self, value: float) -> float:
        """The position of a value in pixels.

        >>> Axis(0.0, 2.0, 100.0, 300.0).at(0.5), Axis(1.0, 100.0, 0.0, 200.0, logarithmic=True).at(10.0)
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
        while len(found := steps(self.low, self.high, most)) < 3:
            most += 1
        return found


def steps(low: float, high: float, most: int) -> list[float]:
    """Return the multiples of a round step between two values, at most about `most`.

    >>> steps(0.12, 0.68, 4), steps(-0.4, 0.4, 4)
    ([0.2, 0.4, 0.6], [-0.4, -0.2, 0.0, 0.2, 0.4])
    """
    wide = (high - low) / most or 1.0
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
        else [value for value in steps(low, high, 4) if value > 0]
    )


ROOM = 0.06
"""Room on either side of an axis, as a share of the range of its values."""


def reach(values: Iterable[float], *, bounded: bool = True) -> tuple[float, float]:
    """Return the ends of an axis that holds all values, with some room.

    Args:
        values: at least one.
        bounded: whether values are scores: the axis then ends at 0 and 1.

    >>> reach([0.02, 0.52]), reach([-0.5, 0.5], bounded=False), reach([0.5, 1.0])
    ((0.0, 0.55), (-0.56, 0.56), (0.47, 1.0))
    """
    held = list(values)
    low, high = min(held), max(held)
    more = (high - low) * ROOM or 0.05
    least, most = low - more, high + more
    if bounded:
        least, most = (
            max(least, min(low, 0.0)),
            min(most, 1.0 if high <= 1 else math.inf),
        )
    return round(least, 12), round(most, 12)


def numbers(ticks: Sequence[float], sign: str = "") -> list[str]:
    """Return ticks with as many decimals as their step needs.

    >>> numbers([0.0, 0.25, 0.5]), numbers([-0.2, 0.0, 0.2], "+")
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
    shown = [minus(f"{value:{sign}.{digits}f}") for value in ticks]
    return [
        "0" if sign and not value else word
        for value, word in zip(ticks, shown, strict=True)
    ]


def signed(ticks: Sequence[float]) -> list[str]:
    """Return the same with signs, for an axis of differences."""
    return numbers(ticks, "+")


PRICED: dict[str, TickLabels] = {
    "dollars": lambda ticks: [f"${text.plain(value)}" for value in ticks],
    "ms": lambda ticks: [text.plain(value) for value in ticks],
    "bytes": lambda ticks: [text.size(value) for value in ticks],
}
"""TickLabels of a price axis by unit: half a dollar is $0.5, not 500m."""


def long(words: str) -> float:
    """Return the largest width of a text in pixels, for the widest font of a page."""
    return sum(map(_width, words))


def _width(letter: str) -> float:
    if letter in "mwMW@%" or unicodedata.east_asian_width(letter) in "WF":
        return 12.0
    return 4.5 if letter in "iljtfI.,:;|' ()" else 7.5


def px(pixels: float) -> str:
    """Return a position with at most one decimal: more is not visible, and a page has thousands of them."""
    return f"{pixels:.1f}".removesuffix(".0")


def drawn(
    tag: str, body: str | Markup | None = None, /, **attributes: object
) -> Markup:
    """An SVG element: numbers in pixels, underscores in names as dashes, texts escaped; None is omitted.

    >>> drawn("text", "a<b", x=1.26, text_anchor="end", class_="name")
    Markup('<text x="1.3" text-anchor="end" class="name">a&lt;b</text>')
    """
    form = Markup(' {}="{}"')
    shown = Markup("").join(
        form.format(
            name.rstrip("_").replace("_", "-"),
            px(value) if isinstance(value, float | int) else value,
        )
        for name, value in attributes.items()
        if value is not None
    )
    element = "<{0}{1}/>" if body is None else "<{0}{1}>{2}</{0}>"
    return Markup(element).format(tag, shown, body)  # noqa: S704 - ours


def joined(parts: Iterable[Markup]) -> Markup:
    """Join elements."""
    return Markup("").join(parts)


def horizontal(
    axis: Axis, across: tuple[float, float], title: str, labels: TickLabels = numbers
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
        drawn(
            "line", x1=axis.at(v), x2=axis.at(v), y1=top, y2=bottom, stroke=RULE.light
        )
        for v in ticks
    ]
    free = -1e9
    for value, shown in zip(ticks, labels(ticks), strict=True):
        half = long(shown) / 2
        if axis.at(value) - half >= free:  # labels that would overlap are omitted
            parts.append(
                drawn(
                    "text",
                    shown,
                    x=axis.at(value),
                    y=bottom + LINE,
                    text_anchor="middle",
                )
            )
            free = axis.at(value) + half + 6
    middle = (axis.start + axis.end) / 2
    lines = joined(
        drawn("text", line, x=middle, y=bottom + LINE * (2.4 + i), text_anchor="middle")
        for i, line in enumerate(lines_of(title, axis.end))
    )
    return drawn("g", joined(parts), class_="ticks") + drawn("g", lines, class_="title")


def upright(
    axis: Axis, across: tuple[float, float], labels: TickLabels = numbers
) -> Markup:
    """A vertical axis at the left of a chart; `across` are both ends of its rules."""
    left, right = across
    ticks = axis.ticks(44)
    parts = [
        drawn(
            "line", x1=left, x2=right, y1=axis.at(v), y2=axis.at(v), stroke=RULE.light
        )
        + drawn("text", shown, x=left - 6, y=axis.at(v) + 4, text_anchor="end")
        for v, shown in zip(ticks, labels(ticks), strict=True)
    ]
    return drawn("g", joined(parts), class_="ticks")


def lines_of(title: str, width: float) -> list[str]:
    """The title, wrapped to the width of the chart."""
    lines: list[str] = []
    for word in text.visible(title).split():
        if lines and long(f"{lines[-1]} {word}") <= width:
            lines[-1] = f"{lines[-1]} {word}"
        else:
            lines.append(word)
    return lines


class Rows(NamedTuple):
    """The layout of a chart's rows: names beside them, or above if they are too long."""

    left: float
    """0 if the names are above."""
    step: float
    top: float
    number: int

    @property
    def bottom(self) -> float:
        """The end of the last row."""
        return self.top + self.step * self.number

    def y(self, row: int) -> float:
        """The middle of a row."""
        return self.top + self.step * row + (0.0 if self.left else LINE) + STEP / 2

    def names(self, words: Sequence[str]) -> Markup:
        """The names, as dark as text."""
        above = not self.left
        x, up, end = (
            (0, -STEP / 2 - 1, "start") if above else (self.left - 10, 4.0, "end")
        )
        shown = joined(
            drawn(
                "text",
                text.visible(word),
                class_="name",
                x=x,
                y=self.y(i) + up,
                text_anchor=end,
            )
            for i, word in enumerate(words)
        )
        # Rules cross names that are above their rows: an outline in the page's colour keeps these legible.
        rim = (
            {"stroke": PAPER.light, "stroke_width": 4, "paint_order": "stroke"}
            if above
            else {}
        )
        return drawn("g", shown, fill=INK.light, font_size=13, **rim)


def rows_of(words: Sequence[str], width: float, top: float = 4.0) -> Rows:
    """Return the layout of rows with these names; `top` is the start of the first, in pixels."""
    left = max(map(long, words), default=0.0) * 13 / 12 + 12
    return (
        Rows(left, STEP, top, len(words))
        if left <= 0.5 * width
        else Rows(0.0, STEP + LINE, top, len(words))
    )


SIDES = ("left", "right")
"""How a name is aligned: "left" begins right of its point, "right" ends left of it."""
APART, ABOVE, LETTER, HIGH, MARK = 7.0, 9.0, 6.5, 14.0, 6.0
"""Pixels: a name beside and above its point, a letter's width, a name's height, half of a point's size."""


class _Box(NamedTuple):
    left: float
    right: float
    top: float
    bottom: float

    def meets(self, other: _Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def placed_names(
    centres: Mapping[str, tuple[float, float]], left: float, right: float
) -> dict[str, str]:
    """Return name -> its side, for the points that have room; the best points choose first.

    Args:
        centres: name -> position of its point in pixels; the highest is the best.
        left: start of the chart.
        right: end of the chart.
    """
    marks = {
        name: _Box(x - MARK, x + MARK, y - MARK, y + MARK)
        for name, (x, y) in centres.items()
    }
    taken: dict[str, tuple[str, _Box]] = {}
    for name in sorted(centres, key=lambda name: centres[name][1]):
        for side in SIDES if centres[name][0] <= (left + right) / 2 else SIDES[::-1]:
            box = _box(name, centres[name], side)
            others = [
                *(mark for other, mark in marks.items() if other != name),
                *(box for _, box in taken.values()),
            ]
            if (
                box.left >= left
                and box.right <= right
                and not any(box.meets(other) for other in others)
            ):
                taken[name] = (side, box)
                break
    return {name: side for name, (side, _) in taken.items()}


def _box(name: str, centre: tuple[float, float], side: str) -> _Box:
    x, y = centre
    long = LETTER * len(name)
    left = x + APART if side == "left" else x - APART - long
    return _Box(left, left + long, y - ABOVE - HIGH / 2, y - ABOVE + HIGH / 2)
