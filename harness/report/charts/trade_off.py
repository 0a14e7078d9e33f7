"""Quality against price, drawn."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from harness.evaluation.costs import RetrieverCost
from harness.pages import visible_text
from harness.report.charts import axes
from harness.report.charts.axes import Axis
from harness.report.charts.elements import (
    LINE_HEIGHT,
    Point,
    draw_side_text,
    join_elements,
    pixel_text,
    svg_element,
    wrap_title,
)
from harness.report.charts.figure import Plot
from harness.report.charts.names import ABOVE, BELOW, BESIDE, NamePlace, place_names
from harness.report.palette import BACKGROUND_SHADE, INK_SHADE, MUTED_SHADE

TRADE_OFF_PADDING = 24.0
"""Room beside the outermost points of a trade-off, in pixels."""
PLOT_LEFT = 44.0
PLOT_TOP = 22.0
PLOT_HEIGHT = 200.0
"""Pixels: where the plot begins, and how high it is."""
PLOT_MARGIN = 8.0
"""Room at the right of a trade-off, in pixels."""
MAX_LINEAR_RATIO = 20
"""Largest ratio of two prices on a linear axis."""


class PricedMean(NamedTuple):
    """The mean of a retriever with its price."""

    retriever: str
    mean: float
    price: float
    color: str
    is_open: bool
    """Whether it is drawn as a ring."""
    is_named: bool


class CostKind(NamedTuple):
    """One kind of cost, against which quality is drawn."""

    short_title: str
    title: str
    """Title of its axis."""
    unit: str
    """A key of `axes.PRICE_TICK_LABELS`."""
    read_cost: Callable[[RetrieverCost], float | None]
    cost_text: Callable[[float], str]
    """A cost with the digits that the leaderboard shows."""


class TradeOffAxes(NamedTuple):
    """The axes of a trade-off."""

    price: Axis
    quality: Axis

    def centre(self, price: float, mean: float) -> Point:
        """The position of a price and a mean."""
        return Point(self.price.position(price), self.quality.position(mean))


def draw_trade_off(
    dots: Sequence[PricedMean], price: CostKind, measure: str, width: float
) -> Plot:
    """Quality against a price.

    Args:
        dots: the retrievers with their prices, of which two differ.
        price: what the horizontal axis shows.
        measure: what the vertical axis shows.
        width: of the chart.
    """
    bottom = PLOT_TOP + PLOT_HEIGHT
    right = width - PLOT_MARGIN
    trade_off_axes = _trade_off_axes(dots, right)
    centres = {
        dot.retriever: trade_off_axes.centre(dot.price, dot.mean)
        for dot in dots
        if dot.is_named
    }
    places = place_names(centres, PLOT_LEFT, right, (BESIDE, ABOVE, BELOW))
    axis_title = price.title
    if trade_off_axes.price.logarithmic:
        axis_title += ", log scale"
    body = [
        draw_side_text(f"mean {measure}", 4, 12, color=MUTED_SHADE.light),
        axes.draw_vertical_axis(trade_off_axes.quality, (PLOT_LEFT, right)),
        axes.draw_horizontal_axis(
            trade_off_axes.price,
            (PLOT_TOP, bottom),
            axis_title,
            axes.PRICE_TICK_LABELS[price.unit],
        ),
    ]
    marks: list[Markup] = []
    for dot in dots:
        centre = trade_off_axes.centre(dot.price, dot.mean)
        marks.append(_draw_dot(dot, centre, price, places.get(dot.retriever)))
    body.append(svg_element("g", join_elements(marks), fill=INK_SHADE.light))
    title_lines = wrap_title(axis_title, trade_off_axes.price.end)
    height = bottom + LINE_HEIGHT * (2 + len(title_lines))
    return Plot(width, height, join_elements(body))


def _draw_dot(
    dot: PricedMean, centre: Point, price: CostKind, place: NamePlace | None
) -> Markup:
    """Draw a dot with its name and its numbers."""
    cost = f"{price.title} {price.cost_text(dot.price)}"
    numbers = f"{dot.retriever}: {dot.mean:.3f}, {cost}"
    if dot.is_open:
        circle = svg_element(
            "circle",
            r=4.5,
            fill=BACKGROUND_SHADE.light,
            stroke=dot.color,
            stroke_width=2,
        )
    else:
        # Without a stroke, as large as a ring with one.
        circle = svg_element("circle", r=5.5, fill=dot.color)
    tooltip = svg_element("title", visible_text(numbers))
    name = place.draw(dot.retriever) if place else Markup("")
    position = f"translate({pixel_text(centre.x)} {pixel_text(centre.y)})"
    return svg_element("g", join_elements([tooltip, circle, name]), transform=position)


def _trade_off_axes(dots: Sequence[PricedMean], right: float) -> TradeOffAxes:
    ends = [dot.mean for dot in dots]
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
