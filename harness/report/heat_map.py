"""What a sweep found as SVG: two axes of its grid as a heat map, and each configuration's gain against its cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from harness.report import text
from harness.report.axes import LINE, PRICED, Axis, horizontal, long, px, reach, signed, upright
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
    word = Markup('<text x="{}" y="{}" text-anchor="{}" fill="{}"{}>{}</text>')
    body = [
        word.format(px(left - 8), px(top - LINE), "end", MUTED.light, "", text.visible(grid.rows[0])),
        word.format(px(left + wide * len(across) / 2), px(LINE), "middle", MUTED.light, "",
                    text.visible(grid.columns[0])),
    ]  # fmt: skip
    body += [
        word.format(px(left + wide * (i + 0.5)), px(top - 6), "middle", INK.light, "", _cut(one, wide))
        for i, one in enumerate(across)
    ]
    body += [
        word.format(px(left - 8), px(top + HIGH * (i + 0.5) + 4), "end", INK.light, "", _cut(one, left - 8))
        for i, one in enumerate(down)
    ]
    for (row, column), value in grid.values.items():
        x, y = left + wide * column, top + HIGH * row
        share = (value - low) / (high - low) if high > low else 1.0
        cell = Markup(
            '<g><rect x="{}" y="{}" width="{}" height="{}" fill="{}" fill-opacity="{:.2f}"/>{}{}<title>{}</title></g>'
        )
        frame = _frame((x, y, wide, HIGH), "" if (row, column) == grid.chosen else ' stroke-dasharray="4 3"')
        framed = frame if (row, column) in (grid.chosen, grid.default) else Markup("")
        bold = Markup(' font-weight="bold"') if (row, column) == grid.chosen else Markup("")
        shown = word.format(px(x + wide / 2), px(y + HIGH / 2 + 4), "middle", INK.light, bold, grid.shown(value))
        body.append(
            cell.format(px(x + 1), px(y + 1), px(wide - 2), px(HIGH - 2), SERIES[0].light,
                        FAINT + (FULL - FAINT) * share, framed, shown if wide >= NUMBER else "",
                        text.visible(f"{down[row]}, {across[column]}: {value:.4f}".removesuffix(".0000")))
        )  # fmt: skip
    return Plot(width, top + HIGH * len(down) + 4, Markup("").join(body))


def _frame(at: tuple[float, float, float, float], dash: str) -> Markup:
    x, y, wide, high = at
    return Markup('<rect x="{}" y="{}" width="{}" height="{}" fill="none" stroke="{}" stroke-width="2"{}/>').format(
        px(x + 2),
        px(y + 2),
        px(wide - 4),
        px(high - 4),
        INK.light,
        Markup(dash),  # noqa: S704 - ours
    )


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
    dot = Markup('<circle cx="{}" cy="{}" r="{}" fill="{}" stroke="{}" stroke-width="1.5"><title>{}</title></circle>')
    for one in sorted(points, key=lambda point: bool(point.role)):
        color = INK.light if one.role else SERIES[0].light
        place = px(across.at(one.price)), px(up.at(one.gain))
        told = text.visible(f"{one.name}: {text.signed(one.gain)}")
        body.append(dot.format(*place, 6 if one.role else 4, color if one.alike else "none", color, told))
        if one.role:
            right = across.at(one.price) < width / 2
            name = Markup('<text x="{}" y="{}" text-anchor="{}" fill="{}">{}</text>')
            x = across.at(one.price) + (10 if right else -10)
            words = _cut(f"{one.name}, {one.role}" if one.role == "default" else one.name, width / 2)
            body.append(name.format(px(x), px(up.at(one.gain) - 8), "start" if right else "end", INK.light, words))
    return Plot(width, bottom + 3.4 * LINE, Markup("").join(body))
