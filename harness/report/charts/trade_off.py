"""Quality against price, drawn."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from harness.evaluation.costs import RetrieverCost
from harness.report.charts import axes
from harness.report.charts.axes import Axis
from harness.report.charts.elements import (
    LINE_HEIGHT,
    Line,
    Point,
    draw_interval_point,
    draw_side_text,
    join_elements,
    pixel_text,
    svg_element,
    wrap_title,
)
from harness.report.charts.figure import Plot
from harness.report.charts.names import place_names
from harness.report.palette import MUTED_SHADE

TRADE_OFF_PADDING = 24.0
"""Room beside the outermost points of a trade-off, in pixels."""
PLOT_LEFT = 44.0
PLOT_TOP = 22.0
PLOT_HEIGHT = 260.0
PLOT_MARGIN = 8.0
"""Room at the right of a trade-off, in pixels."""
MAX_LINEAR_RATIO = 20
"""Largest ratio of two prices on a linear axis."""


class PricedMean(NamedTuple):
    """A mean with its interval."""

    retriever: str
    mean: float
    low: float
    """The mean itself if there is no interval."""
    high: float
    price: float = 0.0


class CostKind(NamedTuple):
    """One kind of cost, against which quality is drawn."""

    short_title: str
    title: str
    """Of its axis."""
    unit: str
    """A key of `axes.PRICE_TICK_LABELS`."""
    read_cost: Callable[[RetrieverCost], float | None]
    superlative: str
    """The word for the lowest."""


class TradeOffAxes(NamedTuple):
    """The axes of a trade-off."""

    price: Axis
    quality: Axis

    def centre(self, price: float, mean: float) -> Point:
        """The position of a price and a mean."""
        return Point(self.price.position(price), self.quality.position(mean))


def draw_trade_off(
    dots: Sequence[PricedMean],
    frontier: Sequence[tuple[float, float]],
    colors: Mapping[str, str],
    price: CostKind,
    *,
    width: float,
) -> Plot:
    """Quality against a price, with the frontier.

    The frontier are the retrievers that no other beats on both.

    Args:
        dots: the retrievers with their prices.
        frontier: price and mean of its corners, cheapest first.
        colors: of the retrievers.
        price: the axis.
        width: of the chart.
    """
    bottom = PLOT_TOP + PLOT_HEIGHT
    right = width - PLOT_MARGIN
    trade_off_axes = _trade_off_axes(dots, right)
    centres = {
        dot.retriever: trade_off_axes.centre(dot.price, dot.mean) for dot in dots
    }
    sides = place_names(centres, PLOT_LEFT, right)
    body = [
        axes.draw_vertical_axis(trade_off_axes.quality, (PLOT_LEFT, right)),
        axes.draw_horizontal_axis(
            trade_off_axes.price,
            (PLOT_TOP, bottom),
            price.title,
            axes.PRICE_TICK_LABELS[price.unit],
        ),
        _draw_frontier(trade_off_axes, frontier),
    ]
    for dot in dots:
        x, y = centres[dot.retriever]
        quality = trade_off_axes.quality
        span = Line(x, x, quality.position(dot.low), quality.position(dot.high))
        facts = {
            "retriever": dot.retriever,
            price.title: f"{dot.price:,.6g}",
            "mean": dot.mean,
            "low": dot.low,
            "high": dot.high,
        }
        body.append(
            draw_interval_point(
                span,
                Point(x, y),
                colors[dot.retriever],
                facts,
                side_text=_draw_name(dot.retriever, sides.get(dot.retriever)),
            )
        )
    title_lines = wrap_title(price.title, width)
    height = bottom + LINE_HEIGHT * (2 + len(title_lines))
    return Plot(width, height, join_elements(body))


def _trade_off_axes(dots: Sequence[PricedMean], right: float) -> TradeOffAxes:
    ends: list[float] = []
    for dot in dots:
        ends.extend((dot.low, dot.mean, dot.high))
    bottom = PLOT_TOP + PLOT_HEIGHT
    prices = [dot.price for dot in dots]
    lowest = min(prices)
    highest = max(prices)
    return TradeOffAxes(
        price=Axis(
            lowest,
            highest,
            PLOT_LEFT + TRADE_OFF_PADDING,
            right - TRADE_OFF_PADDING,
            logarithmic=lowest > 0 and highest / lowest > MAX_LINEAR_RATIO,
        ),
        quality=Axis(*axes.axis_ends(ends), bottom, PLOT_TOP),
    )


def _draw_frontier(
    trade_off_axes: TradeOffAxes, frontier: Sequence[tuple[float, float]]
) -> Markup:
    """Draw the frontier as steps from corner to corner."""
    path = ""
    for price, mean in frontier:
        corner = trade_off_axes.centre(price, mean)
        x = pixel_text(corner.x)
        y = pixel_text(corner.y)
        path += f"H{x}V{y}" if path else f"M{x},{y}"
    return svg_element(
        "path",
        class_="edge",
        d=path,
        fill="none",
        stroke=MUTED_SHADE.light,
        stroke_dasharray="4 3",
    )


def _draw_name(name: str, side: str | None) -> Markup | str:
    """Return the name beside its point; nothing without room."""
    if side is None:
        return ""
    if side == "left":
        return draw_side_text(name, 7, -9)
    return draw_side_text(name, -7, -9, anchor="end")
