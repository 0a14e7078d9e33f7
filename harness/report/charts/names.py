"""Names beside the rows or points of a chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product, starmap
from typing import NamedTuple

from markupsafe import Markup

from harness.pages import visible_text
from harness.report.charts.elements import (
    LINE_HEIGHT,
    Point,
    draw_side_text,
    join_elements,
    svg_element,
    text_width,
)
from harness.report.palette import BACKGROUND_SHADE, INK_SHADE

ROW_HEIGHT = 24.0
"""Height of a row in pixels."""


NAME_OFFSET = 7.0
"""Pixels between a point and its name, across."""
BESIDE = 4.0
ABOVE = -9.0
BELOW = 17.0
"""Baselines of a name, in pixels below the middle of its point."""
LETTER_WIDTH = 6.5
"""Pixels of a letter, on average."""
LETTER_RISE = 4.0
"""Pixels from a baseline up to the middle of the letters."""
NAME_HEIGHT = 14.0
"""Pixels of a line with a name."""
POINT_RADIUS = 8.0
"""Half the square around a point that no other name enters: else it seems its own."""


class NamePlace(NamedTuple):
    """The place of a name beside its point."""

    baseline: float
    anchor: str
    """"start": it begins right of the point; "end": it ends left of it."""

    @property
    def offset(self) -> float:
        """Where it begins or ends, in pixels right of the point."""
        return NAME_OFFSET if self.anchor == "start" else -NAME_OFFSET

    def draw(self, name: str, color: str | None = None) -> Markup:
        """The name, in a group that is moved to the point."""
        return draw_side_text(
            name, self.offset, self.baseline, anchor=self.anchor, color=color
        )


class RowLayout(NamedTuple):
    """The layout of a chart's rows.

    Names are beside the rows, or above them if they are too long.
    """

    left: float
    """Pixels of the names at the left of the rows; 0 if they are above."""
    step: float
    """Pixels from one row to the next."""
    top: float
    """Start of the first row, in pixels."""
    row_count: int

    @property
    def names_are_above(self) -> bool:
        """Whether the names are above their rows."""
        return not self.left

    @property
    def bottom(self) -> float:
        """The end of the last row."""
        return self.top + self.step * self.row_count

    def row_middle(self, row: int) -> float:
        """The middle of a row."""
        name_height = LINE_HEIGHT if self.names_are_above else 0.0
        return self.top + self.step * row + name_height + ROW_HEIGHT / 2

    def draw_names(self, names: Sequence[str]) -> Markup:
        """The names, as dark as text."""
        if self.names_are_above:
            texts = self._name_texts(names, Point(0, -ROW_HEIGHT / 2 - 1), "start")
            # Rules cross these names: an outline in the page's colour keeps them
            # legible.
            return svg_element(
                "g",
                texts,
                fill=INK_SHADE.light,
                font_size=13,
                stroke=BACKGROUND_SHADE.light,
                stroke_width=4,
                paint_order="stroke",
            )
        texts = self._name_texts(names, Point(self.left - 10, 4.0), "end")
        return svg_element("g", texts, fill=INK_SHADE.light, font_size=13)

    def _name_texts(self, names: Sequence[str], offset: Point, anchor: str) -> Markup:
        """Return the names; `offset` is from the middle of a row at the left edge."""
        return join_elements(
            svg_element(
                "text",
                visible_text(name),
                class_="name",
                x=offset.x,
                y=self.row_middle(i) + offset.y,
                text_anchor=anchor,
            )
            for i, name in enumerate(names)
        )


def lay_out_rows(names: Sequence[str], width: float, top: float = 4.0) -> RowLayout:
    """Return the layout of rows with these names.

    Args:
        names: of the rows.
        width: of the chart.
        top: the start of the first row, in pixels.
    """
    left = max(map(text_width, names), default=0.0) * 13 / 12 + 12
    if left <= 0.5 * width:
        return RowLayout(left, ROW_HEIGHT, top, len(names))
    return RowLayout(0.0, ROW_HEIGHT + LINE_HEIGHT, top, len(names))


class _Box(NamedTuple):
    left: float
    right: float
    top: float
    bottom: float

    def overlaps(self, other: _Box) -> bool:
        in_columns = self.left < other.right and other.left < self.right
        in_rows = self.top < other.bottom and other.top < self.bottom
        return in_columns and in_rows


def place_names(
    centres: Mapping[str, tuple[float, float]],
    left: float,
    right: float,
    baselines: Sequence[float],
) -> dict[str, NamePlace]:
    """Return name -> its place, for the points that have room.

    The best points choose first.

    Args:
        centres: name -> position of its point; the highest is the best.
        left: start of the chart.
        right: end of the chart.
        baselines: those that are tried, in their order.
    """
    points = {name: _point_box(*centre) for name, centre in centres.items()}
    places: dict[str, NamePlace] = {}
    name_boxes: list[_Box] = []
    for name in sorted(centres, key=lambda name: centres[name][1]):
        x, y = centres[name]
        obstacles = [box for other, box in points.items() if other != name]
        obstacles += name_boxes
        in_left_half = x <= (left + right) / 2
        anchors = ("start", "end") if in_left_half else ("end", "start")
        for place in starmap(NamePlace, product(baselines, anchors)):
            box = _name_box(name, x, y, place)
            if box.left < left or box.right > right:
                continue
            if any(box.overlaps(obstacle) for obstacle in obstacles):
                continue
            places[name] = place
            name_boxes.append(box)
            break
    return places


def _point_box(x: float, y: float) -> _Box:
    return _Box(x - POINT_RADIUS, x + POINT_RADIUS, y - POINT_RADIUS, y + POINT_RADIUS)


def _name_box(name: str, x: float, y: float, place: NamePlace) -> _Box:
    length = LETTER_WIDTH * len(name)
    left = x + place.offset
    if place.anchor == "end":
        left -= length
    middle = y + place.baseline - LETTER_RISE
    return _Box(left, left + length, middle - NAME_HEIGHT / 2, middle + NAME_HEIGHT / 2)
