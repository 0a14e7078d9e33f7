"""What a sweep found as SVG: two axes of its grid as a heat map, and each configuration's gain against its cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from harness.report import text
from harness.report.axes import LINE, PRICED, Axis, drawn, horizontal, joined, long, reach, signed, upright
from harness.report.charts import Plot, PriceAxis
from harness.report.theme import INK, MUTED, SERIES

FAINT, FULL = 0.06, 0.6
"""How much colour the lowest and the highest cell have: numbers stay legible on either."""
HIGH = 34.0
"""Pixels of a row of cells."""
NUMBER = 38.0
"""Pixels that a number of a cell needs."""
PLANE = 220.0


class HeatGrid(NamedTuple):
    """Two axes of a sweep; what a cell shows is the mean over all values of the other axes."""

    rows: tuple[str, str]
    """The axis that runs down, and its words joined by a tab."""
    columns: tuple[str, str]
    values: Mapping[tuple[int, int], float]
    """(row, column) -> mean; absent where every configuration failed."""
    chosen: tuple[int, int] | None = None
    default: tuple[int, int] | None = None
    """Where the default is one of the grid."""
    shown: Callable[[float], str] = text.score
    """How a value reads in its cell."""


class GainPoint(NamedTuple):
    """One configuration."""

    name: str
    price: float
    gain: float
    """Its mean less the default's."""
    alike: bool
    """Whether it cannot be told from the chosen one."""
    role: str = ""
    """"chosen", "default" or ""."""


def heat_map(grid: HeatGrid, width: float) -> Plot:
    """Draw two axes; the chosen cell has a frame, the default's a dashed one."""
    down, across = (words.split("\t") for _, words in (grid.rows, grid.columns))
    left = min(max(map(long, (*down, grid.rows[0]))) + 12, 0.4 * width)
    wide = (width - left - 2) / len(across)
    low, high = min(grid.values.values()), max(grid.values.values())
    top = 2.4 * LINE
    middle = {"text_anchor": "middle", "fill": INK.light}
    body = [
        drawn("text", text.visible(grid.rows[0]), x=left - 8, y=top - LINE, text_anchor="end", fill=MUTED.light),
        drawn("text", text.visible(grid.columns[0]), x=left + wide * len(across) / 2, y=LINE,
              **{**middle, "fill": MUTED.light}),
    ]  # fmt: skip
    body += [
        drawn("text", _cut(one, wide), x=left + wide * (i + 0.5), y=top - 6, **middle) for i, one in enumerate(across)
    ]
    body += [
        drawn("text", _cut(one, left - 8), x=left - 8, y=top + HIGH * (i + 0.5) + 4, text_anchor="end", fill=INK.light)
        for i, one in enumerate(down)
    ]
    for (row, column), value in grid.values.items():
        x, y = left + wide * column, top + HIGH * row
        share = (value - low) / (high - low) if high > low else 1.0
        chosen, faint = (row, column) == grid.chosen, f"{FAINT + (FULL - FAINT) * share:.2f}"
        size = {"x": x + 1, "y": y + 1, "width": wide - 2, "height": HIGH - 2}
        cell = [drawn("rect", **size, fill=SERIES[0].light, fill_opacity=faint)]
        if (row, column) in (grid.chosen, grid.default):
            size = {"x": x + 2, "y": y + 2, "width": wide - 4, "height": HIGH - 4}
            dash = None if chosen else "4 3"
            cell.append(drawn("rect", **size, fill="none", stroke=INK.light, stroke_width=2, stroke_dasharray=dash))
        if wide >= NUMBER:
            bold = "bold" if chosen else None
            word = {"x": x + wide / 2, "y": y + HIGH / 2 + 4, **middle, "font_weight": bold}
            cell.append(drawn("text", grid.shown(value), **word))
        told = f"{down[row]}, {across[column]}: {value:.4f}".removesuffix(".0000")
        body.append(drawn("g", joined([*cell, drawn("title", text.visible(told))])))
    return Plot(width, top + HIGH * len(down) + 4, joined(body))


def _cut(words: str, room: float) -> str:
    shown = text.visible(words)
    while long(shown) > room and len(shown) > 2:
        shown = shown[:-2] + "…"
    return shown


def gains(points: Sequence[GainPoint], price: PriceAxis, width: float) -> Plot:
    """Draw what each configuration gains over the default against what it costs; those told from the best are hollow.

    Args:
        points: configurations, and the default.
        price: what the axis of costs says.
        width: of the chart.
    """
    left, bottom = 52.0, PLANE
    across = Axis(*reach([one.price for one in points], bounded=False), left + 8, width - 16)
    up = Axis(*reach([0.0, *(one.gain for one in points)], bounded=False), bottom - 4, 8.0)
    body = [upright(up, (left, width - 8), signed), horizontal(across, (8.0, bottom), price.title, PRICED[price.unit])]
    for one in sorted(points, key=lambda point: bool(point.role)):
        color = INK.light if one.role else SERIES[0].light
        told = drawn("title", text.visible(f"{one.name}: {text.signed(one.gain)}"))
        look = {"r": 6 if one.role else 4, "fill": color if one.alike else "none", "stroke": color}
        body.append(drawn("circle", told, cx=across.at(one.price), cy=up.at(one.gain), **look, stroke_width="1.5"))
        if one.role:
            right = across.at(one.price) < width / 2
            x = across.at(one.price) + (10 if right else -10)
            words = _cut(f"{one.name}, {one.role}" if one.role == "default" else one.name, width / 2)
            look = {"text_anchor": "start" if right else "end", "fill": INK.light}
            body.append(drawn("text", words, x=x, y=up.at(one.gain) - 8, **look))
    return Plot(width, bottom + 3.4 * LINE, joined(body))
