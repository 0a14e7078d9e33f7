"""Paired differences, drawn row by row."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from harness.report.charts import axes
from harness.report.charts.axes import Axis
from harness.report.charts.elements import (
    LINE_HEIGHT,
    draw_interval_point,
    draw_side_text,
    join_elements,
    pixel_text,
    svg_element,
    text_width,
    wrap_title,
)
from harness.report.charts.figure import WIDE_WIDTH, Figure, Plot, draw_figure
from harness.report.charts.names import RowLayout, lay_out_rows
from harness.report.palette import INK_SHADE, MUTED_SHADE, RULE_SHADE

MIN_PANEL_WIDTH = 230.0
"""Smallest width of one panel of several, in pixels."""


class ForestRow(NamedTuple):
    """One difference of a forest plot."""

    label: str
    """The text beside it."""
    slice: str
    """The slice, or the other retriever."""
    difference: float
    low: float | None
    """None if no interval can be estimated."""
    high: float | None
    queries: int
    record: str
    """Wins, ties and losses."""
    side_text: str = ""
    color: str = ""
    """Of the point; the colour of text if it belongs to no retriever."""


def draw_forest(
    panels: Mapping[str, Sequence[ForestRow]],
    title: str,
    margin: float | None,
    width: float,
) -> Plot:
    """Differences in the given order, one row each; the margin is a band at 0.

    Args:
        panels: head -> rows; all panels share the names of the rows and the axis.
        title: of the axis.
        margin: None or 0 for none.
        width: of the chart.
    """
    first = next(iter(panels.values()))
    every = [row for rows in panels.values() for row in rows]
    headed = len(panels) > 1
    held = lay_out_rows([row.label for row in first], width, 26.0 if headed else 4.0)
    right = max((text_width(row.side_text) for row in every), default=0.0)
    fit = max(1, min(len(panels), int((width - held.left) / MIN_PANEL_WIDTH)))
    wide = (width - held.left) / fit
    high = held.bottom + LINE_HEIGHT * (
        2 + len(wrap_title(title, held.left + wide - right - 16))
    )
    ends = [
        end
        for row in every
        for end in (row.low, row.difference, row.high)
        if end is not None
    ]
    reached = axes.axis_ends(
        (*ends, *((-margin, margin) if margin else ()), 0.0), bounded=False
    )
    body = []
    for place, (head, rows) in enumerate(panels.items()):
        line, column = divmod(place, fit)
        start = held.left + wide * column
        axis = Axis(*reached, start + 16, start + wide - right - 16)
        panel = [
            axes.draw_horizontal_axis(
                axis,
                (held.top, held.bottom),
                "" if column else title,
                axes.signed_tick_labels,
            )
        ]
        panel += _forest(rows, axis, held, margin)
        if headed:
            panel.append(draw_side_text(head, start + 16, 16))
        panel += [
            draw_side_text(
                row.side_text, width, held.row_middle(i) + 4, "end", MUTED_SHADE.light
            )
            for i, row in enumerate(rows)
        ]
        if not column:
            panel.append(held.draw_names([row.label for row in rows]))
        body.append(
            svg_element(
                "g",
                join_elements(panel),
                class_="panel",
                transform=f"translate(0 {pixel_text(high * line)})",
            )
        )
    return Plot(width, high * -(-len(panels) // fit), join_elements(body))


def _forest(
    rows: Sequence[ForestRow], axis: Axis, held: RowLayout, margin: float | None
) -> list[Markup]:
    """The band, the zero and the rows of one panel."""
    zero, ends = axis.position(0), {"y1": held.top, "y2": held.bottom}
    body = [
        svg_element(
            "line", class_="zero", x1=zero, x2=zero, **ends, stroke=MUTED_SHADE.light
        )
    ]
    if margin:
        left, height = axis.position(-margin), held.bottom - held.top
        size = {
            "x": left,
            "y": held.top,
            "width": axis.position(margin) - left,
            "height": height,
        }
        body.insert(
            0,
            svg_element(
                "rect", class_="margin", **size, fill=RULE_SHADE.light, opacity="0.6"
            ),
        )
    for i, row in enumerate(rows):
        y, (low, high) = (
            held.row_middle(i),
            (row.difference if end is None else end for end in (row.low, row.high)),
        )
        facts = {
            "slice": row.slice,
            "difference": row.difference,
            "low": low,
            "high": high,
            "queries": row.queries,
            "won / tied / lost": row.record,
        }
        point = axis.position(row.difference), y
        body.append(
            draw_interval_point(
                (axis.position(low), axis.position(high), y, y),
                point,
                row.color or INK_SHADE.light,
                facts,
                slice_=row.slice,
            )
        )
    return body


ForestPanels = Mapping[str, Sequence[ForestRow]]
PANELS_WIDTH = 1080.0
"""Width of a forest with several panels, in pixels."""


def forest_figure(
    words: tuple[str, str, str, str], panels: ForestPanels, margin: float | None
) -> Figure:
    """Draw differences in the given order; the margin is a band around zero, None or 0 for none.

    Args:
        words: name, title, description, and the title of the axis.
        panels: head -> rows.
        margin: of the measure.
    """
    name, title, description, axis = words
    return draw_figure(
        name,
        title,
        description,
        lambda width: draw_forest(panels, axis, margin, width),
        wide=PANELS_WIDTH if len(panels) > 1 else WIDE_WIDTH,
    )
