"""Which points of a chart have their name beside them: where it lies on no other name and on no other point."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

SIDES = ("left", "right")
"""How a name is aligned: "left" begins right of its point, "right" ends left of it."""
APART, ABOVE, LETTER, LINE, MARK = 7.0, 9.0, 6.5, 14.0, 6.0
"""Pixels: a name beside and above its point, a letter's width, a name's height, half of a point's size."""


class Plane(NamedTuple):
    """Where points lie, in pixels."""

    width: float
    height: float
    padding: float
    """Left and right of the outermost points."""
    logarithmic: bool
    """Whether the axis of prices is."""


class _Box(NamedTuple):
    left: float
    right: float
    top: float
    bottom: float

    def meets(self, other: _Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def placed_names(points: Mapping[str, tuple[float, float]], span: tuple[float, float], plane: Plane) -> dict[str, str]:
    """Return name -> the side on which it stands, for the points that have room; the best choose first.

    Args:
        points: name -> price and quality.
        span: lowest and highest quality of the axis.
        plane: where points lie.
    """
    prices = {name: math.log(price) if plane.logarithmic else price for name, (price, _) in points.items()}
    first, last = min(prices.values()), max(prices.values())
    inner, low, high = plane.width - 2 * plane.padding, *span
    centres = {
        name: (
            plane.padding + inner * ((prices[name] - first) / ((last - first) or 1)),
            plane.height * (high - quality) / ((high - low) or 1),
        )
        for name, (_, quality) in points.items()
    }
    marks = {name: _Box(x - MARK, x + MARK, y - MARK, y + MARK) for name, (x, y) in centres.items()}
    taken: dict[str, tuple[str, _Box]] = {}
    for name in sorted(points, key=lambda name: -points[name][1]):
        x = centres[name][0]
        for side in SIDES if x <= plane.width / 2 else SIDES[::-1]:
            box = _box(name, centres[name], side)
            others = [*(mark for other, mark in marks.items() if other != name), *(box for _, box in taken.values())]
            if box.left >= 0 and box.right <= plane.width and not any(box.meets(other) for other in others):
                taken[name] = (side, box)
                break
    return {name: side for name, (side, _) in taken.items()}


def _box(name: str, centre: tuple[float, float], side: str) -> _Box:
    x, y = centre
    long = LETTER * len(name)
    left = x + APART if side == "left" else x - APART - long
    return _Box(left, left + long, y - ABOVE - LINE / 2, y - ABOVE + LINE / 2)
