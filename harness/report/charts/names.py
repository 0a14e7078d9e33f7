"""Names beside the rows or points of a chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from harness.pages import visible_text
from harness.report.charts.elements import (
    LINE_HEIGHT,
    join_elements,
    svg_element,
    text_width,
)
from harness.report.palette import INK_SHADE, PAPER_SHADE

ROW_HEIGHT = 24.0
"""Height of a row in pixels."""


class RowLayout(NamedTuple):
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

    def row_middle(self, row: int) -> float:
        """The middle of a row."""
        return (
            self.top
            + self.step * row
            + (0.0 if self.left else LINE_HEIGHT)
            + ROW_HEIGHT / 2
        )

    def draw_names(self, words: Sequence[str]) -> Markup:
        """The names, as dark as text."""
        above = not self.left
        x, up, end = (
            (0, -ROW_HEIGHT / 2 - 1, "start") if above else (self.left - 10, 4.0, "end")
        )
        shown = join_elements(
            svg_element(
                "text",
                visible_text(word),
                class_="name",
                x=x,
                y=self.row_middle(i) + up,
                text_anchor=end,
            )
            for i, word in enumerate(words)
        )
        # Rules cross names that are above their rows: an outline in the page's colour keeps these legible.
        rim = (
            {"stroke": PAPER_SHADE.light, "stroke_width": 4, "paint_order": "stroke"}
            if above
            else {}
        )
        return svg_element("g", shown, fill=INK_SHADE.light, font_size=13, **rim)


def lay_out_rows(words: Sequence[str], width: float, top: float = 4.0) -> RowLayout:
    """Return the layout of rows with these names; `top` is the start of the first, in pixels."""
    left = max(map(text_width, words), default=0.0) * 13 / 12 + 12
    return (
        RowLayout(left, ROW_HEIGHT, top, len(words))
        if left <= 0.5 * width
        else RowLayout(0.0, ROW_HEIGHT + LINE_HEIGHT, top, len(words))
    )


NAME_SIDES = ("left", "right")
"""How a name is aligned: "left" begins right of its point, "right" ends left of it."""
NAME_OFFSET, NAME_RISE, LETTER_WIDTH, NAME_HEIGHT, POINT_RADIUS = (
    7.0,
    9.0,
    6.5,
    14.0,
    6.0,
)
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


def place_names(
    centres: Mapping[str, tuple[float, float]], left: float, right: float
) -> dict[str, str]:
    """Return name -> its side, for the points that have room; the best points choose first.

    Args:
        centres: name -> position of its point in pixels; the highest is the best.
        left: start of the chart.
        right: end of the chart.
    """
    marks = {
        name: _Box(
            x - POINT_RADIUS, x + POINT_RADIUS, y - POINT_RADIUS, y + POINT_RADIUS
        )
        for name, (x, y) in centres.items()
    }
    taken: dict[str, tuple[str, _Box]] = {}
    for name in sorted(centres, key=lambda name: centres[name][1]):
        for side in (
            NAME_SIDES if centres[name][0] <= (left + right) / 2 else NAME_SIDES[::-1]
        ):
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
    long = LETTER_WIDTH * len(name)
    left = x + NAME_OFFSET if side == "left" else x - NAME_OFFSET - long
    return _Box(
        left,
        left + long,
        y - NAME_RISE - NAME_HEIGHT / 2,
        y - NAME_RISE + NAME_HEIGHT / 2,
    )
