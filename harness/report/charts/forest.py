"""The forest plot of paired differences."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from harness.report.charts import axes
from harness.report.charts.axes import Axis
from harness.report.charts.elements import (
    LINE_HEIGHT,
    Line,
    MarkFact,
    Point,
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
PANELS_WIDTH = 1080.0
"""Width of a forest with several panels, in pixels."""
PANEL_PADDING = 16.0
"""Room at both ends of a panel's axis, in pixels."""
PANEL_TITLE_HEIGHT = 26.0
"""Start of the first row below the title of a panel, in pixels."""
ONE_PANEL_TOP = 4.0
"""Start of the first row if the only panel has no title, in pixels."""
TITLE_BASELINE = 16
"""Pixels from the edges of a panel to the start of its title."""


class ForestRow(NamedTuple):
    """One difference of a forest plot."""

    label: str
    """The slice, or the other retriever."""
    difference: float
    low: float | None
    """None if no interval can be estimated."""
    high: float | None
    queries: int
    record: str
    """Wins, ties and losses."""
    side_text: str = ""
    """Text at the right end of the row."""
    color: str = ""
    """Colour of the point; "" for that of text."""

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends of the interval; the difference itself if there is none."""
        low = self.difference if self.low is None else self.low
        high = self.difference if self.high is None else self.high
        return low, high


ForestPanels = Mapping[str, Sequence[ForestRow]]
"""The title of a panel -> its rows."""


class ForestTexts(NamedTuple):
    """The texts of a forest."""

    name: str
    """Name of its file."""
    title: str
    description: str
    axis_title: str


def forest_figure(
    texts: ForestTexts, panels: ForestPanels, margin: float | None
) -> Figure:
    """Draw differences in the given order.

    Args:
        texts: of the figure.
        panels: with the same rows in each.
        margin: of the measure, a band around zero; None or 0 for none.
    """
    return draw_figure(
        texts.name,
        texts.title,
        texts.description,
        lambda width: draw_forest(panels, texts.axis_title, margin, width),
        wide=PANELS_WIDTH if len(panels) > 1 else WIDE_WIDTH,
    )


def draw_forest(
    panels: ForestPanels, axis_title: str, margin: float | None, width: float
) -> Plot:
    """Draw differences in the given order, one row each; the margin is a band at 0.

    Several panels stand side by side as the width allows, then in further lines.

    Args:
        panels: all share the names of the rows and the axis.
        axis_title: the title of the axis.
        margin: None or 0 for none.
        width: of the chart.
    """
    first_rows = next(iter(panels.values()))
    all_rows = [row for rows in panels.values() for row in rows]
    top = PANEL_TITLE_HEIGHT if len(panels) > 1 else ONE_PANEL_TOP
    layout = lay_out_rows([row.label for row in first_rows], width, top)
    column_count = int((width - layout.left) / MIN_PANEL_WIDTH)
    column_count = max(1, min(len(panels), column_count))
    panel_width = (width - layout.left) / column_count
    side_width = max((text_width(row.side_text) for row in all_rows), default=0.0)
    axis_length = panel_width - side_width - PANEL_PADDING
    title_lines = wrap_title(axis_title, layout.left + axis_length)
    panel_height = layout.bottom + LINE_HEIGHT * (2 + len(title_lines))
    axis_range = _axis_range(all_rows, margin)
    body: list[Markup] = []
    for index, (panel_title, rows) in enumerate(panels.items()):
        panel_line, column = divmod(index, column_count)
        start = layout.left + panel_width * column
        axis = Axis(*axis_range, start + PANEL_PADDING, start + axis_length)
        first_title = "" if column else axis_title
        parts = _draw_panel(rows, axis, layout, margin, axis_title=first_title)
        if len(panels) > 1:
            title_x = start + TITLE_BASELINE
            parts.append(draw_side_text(panel_title, title_x, TITLE_BASELINE))
        parts += _draw_side_texts(rows, layout, width)
        if not column:
            parts.append(layout.draw_names([row.label for row in rows]))
        shift = f"translate(0 {pixel_text(panel_height * panel_line)})"
        body.append(
            svg_element("g", join_elements(parts), class_="panel", transform=shift)
        )
    panel_lines = math.ceil(len(panels) / column_count)
    return Plot(width, panel_height * panel_lines, join_elements(body))


def _axis_range(rows: Sequence[ForestRow], margin: float | None) -> tuple[float, float]:
    """Return the ends of an axis with 0, all intervals and the margin."""
    ends = [0.0]
    for row in rows:
        ends.append(row.difference)
        ends.extend(row.interval)
    if margin:
        ends.extend((-margin, margin))
    return axes.axis_ends(ends, bounded=False)


def _draw_side_texts(
    rows: Sequence[ForestRow], layout: RowLayout, width: float
) -> list[Markup]:
    return [
        draw_side_text(
            row.side_text,
            width,
            layout.row_middle(i) + 4,
            anchor="end",
            color=MUTED_SHADE.light,
        )
        for i, row in enumerate(rows)
    ]


def _draw_panel(
    rows: Sequence[ForestRow],
    axis: Axis,
    layout: RowLayout,
    margin: float | None,
    *,
    axis_title: str,
) -> list[Markup]:
    """Draw the axis, the margin's band, the line at 0, and the rows of one panel."""
    span = (layout.top, layout.bottom)
    parts = [axes.draw_horizontal_axis(axis, span, axis_title, axes.signed_tick_labels)]
    if margin:
        left = axis.position(-margin)
        band = svg_element(
            "rect",
            class_="margin",
            x=left,
            y=layout.top,
            width=axis.position(margin) - left,
            height=layout.bottom - layout.top,
            fill=RULE_SHADE.light,
            opacity="0.6",
        )
        parts.append(band)
    zero = axis.position(0)
    zero_line = svg_element(
        "line",
        class_="zero",
        x1=zero,
        x2=zero,
        y1=layout.top,
        y2=layout.bottom,
        stroke=MUTED_SHADE.light,
    )
    parts.append(zero_line)
    for i, row in enumerate(rows):
        parts.append(_draw_row(row, axis, layout.row_middle(i)))
    return parts


def _draw_row(row: ForestRow, axis: Axis, y: float) -> Markup:
    low, high = row.interval
    facts = [
        MarkFact("row", row.label),
        MarkFact("difference", row.difference),
        MarkFact("low", low),
        MarkFact("high", high),
        MarkFact("queries", row.queries),
        MarkFact("won / tied / lost", row.record),
    ]
    return draw_interval_point(
        Line(axis.position(low), axis.position(high), y, y),
        Point(axis.position(row.difference), y),
        row.color or INK_SHADE.light,
        facts,
    )
