"""Quality against price, drawn."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from harness.evaluation.costs import RetrieverCost
from harness.report.charts import axes
from harness.report.charts.axes import Axis
from harness.report.charts.elements import (
    LINE_HEIGHT,
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
    """A key of `axes.PRICED`."""
    read_cost: Callable[[RetrieverCost], float | None]
    superlative: str
    """Superlative: the word for the lowest."""


def draw_trade_off(
    dots: Sequence[PricedMean],
    edge: Sequence[tuple[float, float]],
    colors: Mapping[str, str],
    price: CostKind,
    width: float,
) -> Plot:
    """Quality against a price, with the frontier: the retrievers that no other beats on both.

    Args:
        dots: the retrievers with their prices.
        edge: price and mean of the corners of the frontier, cheapest first.
        colors: of the retrievers.
        price: the axis.
        width: of the chart.
    """
    left, top, high = 44.0, 22.0, 260.0
    ends = axes.axis_ends(end for dot in dots for end in (dot.low, dot.mean, dot.high))
    prices = [dot.price for dot in dots]
    spread = min(prices) > 0 and max(prices) / min(prices) > 20
    inner = Axis(
        min(prices),
        max(prices),
        left + TRADE_OFF_PADDING,
        width - 8 - TRADE_OFF_PADDING,
        spread,
    )
    y = Axis(*ends, top + high, top)
    sides = place_names(
        {
            dot.retriever: (inner.position(dot.price), y.position(dot.mean))
            for dot in dots
        },
        left,
        width - 8,
    )
    corners = [(inner.position(at), y.position(mean)) for at, mean in edge]
    path = "".join(
        f"M{pixel_text(a)},{pixel_text(b)}"
        if not i
        else f"H{pixel_text(a)}V{pixel_text(b)}"
        for i, (a, b) in enumerate(corners)
    )
    body = [
        axes.draw_vertical_axis(y, (left, width - 8)),
        axes.draw_horizontal_axis(
            inner, (top, top + high), price.title, axes.PRICE_TICK_LABELS[price.unit]
        ),
        svg_element(
            "path",
            class_="edge",
            d=path,
            fill="none",
            stroke=MUTED_SHADE.light,
            stroke_dasharray="4 3",
        ),
    ]
    for dot in dots:
        x = inner.position(dot.price)
        side = sides.get(dot.retriever)
        word = (
            draw_side_text(dot.retriever, 7, -9)
            if side == "left"
            else draw_side_text(dot.retriever, -7, -9, "end")
        )
        facts = {
            "retriever": dot.retriever,
            price.title: f"{dot.price:,.6g}",
            "mean": dot.mean,
            "low": dot.low,
            "high": dot.high,
        }
        ends_of = (x, x, y.position(dot.low), y.position(dot.high))
        beside = word if side else Markup("")
        body.append(
            draw_interval_point(
                ends_of, (x, y.position(dot.mean)), colors[dot.retriever], facts, beside
            )
        )
    return Plot(
        width,
        top + high + LINE_HEIGHT * (2 + len(wrap_title(price.title, width))),
        join_elements(body),
    )
