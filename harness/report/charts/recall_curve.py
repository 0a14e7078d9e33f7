"""Recall against the tokens of a context, drawn."""

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
    join_elements,
    pixel_text,
    svg_element,
    wrap_title,
)
from harness.report.charts.figure import Plot
from harness.report.charts.names import ABOVE, NamePlace, place_names
from harness.report.numbers import number_text

PLOT_LEFT = 44.0
PLOT_TOP = 22.0
PLOT_HEIGHT = 220.0
"""Pixels: where the plot begins, and how high it is."""
PLOT_MARGIN = 28.0
"""Room at each end of the axis of tokens, in pixels."""
TOKENS_TITLE = "tokens of the context"


class RecallPoint(NamedTuple):
    """The mean recall of one retriever within one context."""

    tokens: int
    recall: float


class RecallCurve(NamedTuple):
    """The recall of one retriever."""

    color: str
    points: Sequence[RecallPoint]
    """Fewest tokens first."""


def draw_recall_curves(curves: Mapping[str, RecallCurve], width: float) -> Plot:
    """The recall of each retriever against the tokens of the context.

    Args:
        curves: by retriever; each has a point or more.
        width: of the chart.
    """
    bottom = PLOT_TOP + PLOT_HEIGHT
    right = width - PLOT_MARGIN
    budgets = [point.tokens for curve in curves.values() for point in curve.points]
    tokens_axis = Axis(
        min(budgets), max(budgets), PLOT_LEFT + PLOT_MARGIN, right, logarithmic=True
    )
    recall_axis = Axis(0.0, 1.0, bottom, PLOT_TOP)
    centres: dict[str, list[Point]] = {}
    for retriever, curve in curves.items():
        centres[retriever] = [
            Point(
                tokens_axis.position(point.tokens), recall_axis.position(point.recall)
            )
            for point in curve.points
        ]
    ends = {retriever: positions[-1] for retriever, positions in centres.items()}
    # Beside or below its point a name would lie on the line that ends there.
    places = place_names(ends, PLOT_LEFT, right, (ABOVE,))
    body = [
        axes.draw_vertical_axis(recall_axis, (PLOT_LEFT, right)),
        axes.draw_horizontal_axis(
            tokens_axis, (PLOT_TOP, bottom), TOKENS_TITLE, _token_labels
        ),
    ]
    for retriever, (color, points) in curves.items():
        body.append(_draw_line(centres[retriever], color))
        for point, centre in zip(points, centres[retriever], strict=True):
            is_last = point is points[-1]
            place = places.get(retriever) if is_last else None
            body.append(_draw_point(retriever, point, centre, color, place=place))
    title_lines = wrap_title(TOKENS_TITLE, tokens_axis.end)
    height = bottom + LINE_HEIGHT * (2 + len(title_lines))
    return Plot(width, height, join_elements(body))


def _token_labels(ticks: Sequence[float]) -> list[str]:
    return [number_text(tick) for tick in ticks]


def _draw_line(positions: Sequence[Point], color: str) -> Markup:
    corners = [f"{pixel_text(x)},{pixel_text(y)}" for x, y in positions]
    path = f"M{'L'.join(corners)}"
    return svg_element("path", d=path, fill="none", stroke=color, stroke_width=2)


def _draw_point(
    retriever: str,
    point: RecallPoint,
    centre: Point,
    color: str,
    *,
    place: NamePlace | None,
) -> Markup:
    facts = [
        MarkFact("retriever", retriever),
        MarkFact("tokens", point.tokens),
        MarkFact("recall", point.recall),
    ]
    span = Line(centre.x, centre.x, centre.y, centre.y)
    side_text = place.draw(retriever, color) if place else ""
    return draw_interval_point(span, centre, color, facts, side_text=side_text)
