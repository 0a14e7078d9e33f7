"""Every chart as SVG, wide and narrow; the page's filter moves its marks. A section has figures."""

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from markupsafe import Markup

from harness.evaluation.csv_views import Cost
from harness.report import axes
from harness.report.axes import LINE, Axis, Rows, drawn, joined, lines_of, long, px
from harness.report.text import FONT, INK, MUTED, PAPER, RULE, visible

WIDE, NARROW = 700.0, 336.0
"""Width of charts in pixels, on a screen and on a telephone."""
FACET = 230.0
"""Smallest width of one panel of several, in pixels."""
PADDING = 24.0
"""Room beside the outermost points of a trade-off, in pixels."""


class Plot(NamedTuple):
    """The content of an SVG element."""

    width: float
    height: float
    body: Markup


class Dot(NamedTuple):
    """A mean with its interval."""

    retriever: str
    mean: float
    low: float
    """The mean itself if there is no interval."""
    high: float
    price: float = 0.0


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
    beside: str = ""
    color: str = ""
    """Of the point; the colour of text if it belongs to no retriever."""


def _title(facts: Mapping[str, object]) -> Markup:
    """The tooltip of a mark, one line per fact; a spreadsheet gets it, too."""
    lines = [
        f"{key}: {f'{value:.4f}' if isinstance(value, float) else value}"
        for key, value in facts.items()
    ]
    return drawn("title", visible("\n".join(lines)))


def _dot(
    span: tuple[float, float, float, float],
    point: tuple[float, float],
    color: str,
    facts: Mapping[str, object],
    beside: str = "",
    slice_: str = "",
) -> Markup:
    """A point on its interval.

    Args:
        span: both ends of the interval: x, x, y, y.
        point: x, y.
        color: of point and interval.
        facts: of the tooltip.
        beside: the text beside it.
        slice_: its slice, which a click selects.
    """
    body = Markup(
        '<line class="span" x1="{}" x2="{}" y1="{}" y2="{}" stroke="{}" stroke-width="2"/>'
        '<g transform="translate({} {})"><circle r="5" fill="{}"/>{}</g>{}'
    ).format(*map(px, span), color, *map(px, point), color, beside, _title(facts))
    return drawn(
        "g", body, class_="dot", data_slice=visible(slice_) if slice_ else None
    )


def _beside(
    words: str, x: float, y: float, anchor: str = "start", color: str = INK.light
) -> Markup:
    shown = {"class_": "beside", "x": x, "y": y, "text_anchor": anchor, "fill": color}
    return drawn("text", visible(words), **shown) if words else Markup("")


def forest(
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
    held = axes.rows_of([row.label for row in first], width, 26.0 if headed else 4.0)
    right = max((long(row.beside) for row in every), default=0.0)
    fit = max(1, min(len(panels), int((width - held.left) / FACET)))
    wide = (width - held.left) / fit
    high = held.bottom + LINE * (
        2 + len(lines_of(title, held.left + wide - right - 16))
    )
    ends = [
        end
        for row in every
        for end in (row.low, row.difference, row.high)
        if end is not None
    ]
    reached = axes.reach(
        (*ends, *((-margin, margin) if margin else ()), 0.0), bounded=False
    )
    body = []
    for place, (head, rows) in enumerate(panels.items()):
        line, column = divmod(place, fit)
        start = held.left + wide * column
        axis = Axis(*reached, start + 16, start + wide - right - 16)
        panel = [
            axes.horizontal(
                axis, (held.top, held.bottom), "" if column else title, axes.signed
            )
        ]
        panel += _forest(rows, axis, held, margin)
        if headed:
            panel.append(_beside(head, start + 16, 16))
        panel += [
            _beside(row.beside, width, held.y(i) + 4, "end", MUTED.light)
            for i, row in enumerate(rows)
        ]
        if not column:
            panel.append(held.names([row.label for row in rows]))
        body.append(
            drawn(
                "g",
                joined(panel),
                class_="panel",
                transform=f"translate(0 {px(high * line)})",
            )
        )
    return Plot(width, high * -(-len(panels) // fit), joined(body))


def _forest(
    rows: Sequence[ForestRow], axis: Axis, held: Rows, margin: float | None
) -> list[Markup]:
    """The band, the zero and the rows of one panel."""
    zero, ends = axis.at(0), {"y1": held.top, "y2": held.bottom}
    body = [drawn("line", class_="zero", x1=zero, x2=zero, **ends, stroke=MUTED.light)]
    if margin:
        left, height = axis.at(-margin), held.bottom - held.top
        size = {
            "x": left,
            "y": held.top,
            "width": axis.at(margin) - left,
            "height": height,
        }
        body.insert(
            0, drawn("rect", class_="margin", **size, fill=RULE.light, opacity="0.6")
        )
    for i, row in enumerate(rows):
        y, (low, high) = (
            held.y(i),
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
        point = axis.at(row.difference), y
        body.append(
            _dot(
                (axis.at(low), axis.at(high), y, y),
                point,
                row.color or INK.light,
                facts,
                slice_=row.slice,
            )
        )
    return body


class CostKind(NamedTuple):
    """One kind of cost, against which quality is drawn."""

    short: str
    title: str
    """Of its axis."""
    unit: str
    """A key of `axes.PRICED`."""
    of: Callable[[Cost], float | None]
    word: str
    """Superlative: the word for the lowest."""


def trade_off(
    dots: Sequence[Dot],
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
    ends = axes.reach(end for dot in dots for end in (dot.low, dot.mean, dot.high))
    prices = [dot.price for dot in dots]
    spread = min(prices) > 0 and max(prices) / min(prices) > 20
    inner = Axis(min(prices), max(prices), left + PADDING, width - 8 - PADDING, spread)
    y = Axis(*ends, top + high, top)
    sides = axes.placed_names(
        {dot.retriever: (inner.at(dot.price), y.at(dot.mean)) for dot in dots},
        left,
        width - 8,
    )
    corners = [(inner.at(at), y.at(mean)) for at, mean in edge]
    path = "".join(
        f"M{px(a)},{px(b)}" if not i else f"H{px(a)}V{px(b)}"
        for i, (a, b) in enumerate(corners)
    )
    body = [
        axes.upright(y, (left, width - 8)),
        axes.horizontal(inner, (top, top + high), price.title, axes.PRICED[price.unit]),
        drawn(
            "path",
            class_="edge",
            d=path,
            fill="none",
            stroke=MUTED.light,
            stroke_dasharray="4 3",
        ),
    ]
    for dot in dots:
        x = inner.at(dot.price)
        side = sides.get(dot.retriever)
        word = (
            _beside(dot.retriever, 7, -9)
            if side == "left"
            else _beside(dot.retriever, -7, -9, "end")
        )
        facts = {
            "retriever": dot.retriever,
            price.title: f"{dot.price:,.6g}",
            "mean": dot.mean,
            "low": dot.low,
            "high": dot.high,
        }
        ends_of = (x, x, y.at(dot.low), y.at(dot.high))
        beside = word if side else Markup("")
        body.append(
            _dot(ends_of, (x, y.at(dot.mean)), colors[dot.retriever], facts, beside)
        )
    return Plot(
        width, top + high + LINE * (2 + len(lines_of(price.title, width))), joined(body)
    )


class Figure(NamedTuple):
    """One chart."""

    name: str
    """Of its file."""
    title: str
    """A short title."""
    description: str
    """The description for screen readers."""
    wide: Plot
    narrow: Plot
    """The drawing for a telephone; may equal the wide one."""


def figure(
    name: str,
    title: str,
    description: str,
    draw: Callable[[float], Plot],
    *,
    wide: float = WIDE,
) -> Figure:
    """Draw a chart for both widths.

    Args:
        name: of its file; characters that a file name cannot hold become dashes.
        title: a short title.
        description: for screen readers.
        draw: returns the drawing for a width in pixels.
        wide: the larger width.
    """
    broad, narrow = draw(wide), draw(NARROW)
    return Figure(
        re.sub(r"[^A-Za-z0-9.@_-]+", "-", name).strip("-"),
        title,
        description,
        broad,
        broad if narrow == broad else narrow,
    )


def svg(figure: Figure) -> str:
    """Return a figure as a self-contained SVG file on white, with a description for screen readers."""
    words = f"<title>{escape(figure.title)}</title><desc>{escape(figure.description)}</desc>"
    paper = f'<rect width="100%" height="100%" fill="{PAPER.light}"/>'
    head = f'xmlns="http://www.w3.org/2000/svg" role="img" font-family="{FONT}"'
    return _element(figure.wide, head, words + paper) + "\n"


def inline(figure: Figure) -> str:
    """Return it for the page, without background; the surrounding figure names it."""
    hidden = 'aria-hidden="true" focusable="false"'
    if figure.narrow is figure.wide:
        return _element(figure.wide, hidden)
    narrow = _element(figure.narrow, f'{hidden} class="narrow"')
    return _element(figure.wide, f'{hidden} class="broad"') + narrow


def _element(drawing: Plot, attributes: str, before: str = "") -> str:
    width, height = (f"{size:.0f}" for size in (drawing.width, drawing.height))
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-size="12" fill="{MUTED.light}"'
    return f"<svg {attributes} {size}>{before}{drawing.body}</svg>"


class Section(NamedTuple):
    """One section: its template is `<id>.html`, with a block for the page and one for Markdown."""

    id: str
    title: str
    context: Mapping[str, Any]
    """The variables of the template."""
    figures: tuple[Figure, ...] = ()


Panels = Mapping[str, Sequence[ForestRow]]
FACETED = 1080.0
"""Width of a forest with several panels, in pixels."""


def paired_forest(
    words: tuple[str, str, str, str], panels: Panels, margin: float | None
) -> Figure:
    """Draw differences in the given order; the margin is a band around zero, None or 0 for none.

    Args:
        words: name, title, description, and the title of the axis.
        panels: head -> rows.
        margin: of the measure.
    """
    name, title, description, axis = words
    return figure(
        name,
        title,
        description,
        lambda width: forest(panels, axis, margin, width),
        wide=FACETED if len(panels) > 1 else WIDE,
    )
