"""Every chart as SVG at a given width: marks at their places, which the page's filter moves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from harness.report.axes import (
    LINE,
    PRICED,
    STEP,
    Axis,
    Rows,
    drawn,
    horizontal,
    joined,
    lines_of,
    long,
    placed_names,
    px,
    reach,
    rows_of,
    signed,
    upright,
)
from harness.report.text import visible
from harness.report.theme import INK, MUTED, RULE, SHAPES, Mark
from harness.stats.intervals import Summary

WIDE, NARROW = 700.0, 336.0
"""Pixels that charts take on a screen, and on a telephone."""
BARS = 288
"""Pixels for the bars of paired differences, on either: so many are drawn at most."""
PANEL = 118.0
"""Pixels that one measure of many takes."""
FACET = 230.0
"""Pixels that one panel of several takes at least."""
PADDING = 24.0
"""What is left beside the outermost points of a trade-off: pixels."""


class Plot(NamedTuple):
    """What stands in an SVG element."""

    width: float
    height: float
    body: Markup


class Dot(NamedTuple):
    """A mean with its interval."""

    retriever: str
    mean: float
    low: float
    """The mean itself where there is no interval: the point stands alone."""
    high: float
    beside: str = ""
    """What stands at its right."""
    price: float = 0.0


def dot_of(retriever: str, row: Summary, price: float = 0.0) -> Dot:
    """A mean as a summary has it; without an interval the point stands alone."""
    low, high = (row.mean if end is None else end for end in (row.ci_low, row.ci_high))
    return Dot(retriever, row.mean, low, high, price=price)


class Bar(NamedTuple):
    """A paired difference."""

    at: int
    """Place of the query in the order of the file."""
    difference: float


class ForestRow(NamedTuple):
    """One difference of a forest plot."""

    label: str
    """What stands beside it."""
    slice: str
    """What it is a difference of: a slice, or the other retriever."""
    difference: float
    low: float | None
    """None where no interval can be estimated: the point stands alone."""
    high: float | None
    queries: int
    record: str
    """Wins, ties and losses."""
    whole: bool = False
    """Whether it is the difference over all queries."""
    beside: str = ""


class StageDot(NamedTuple):
    """How long one stage of a retriever takes: milliseconds, above 0."""

    retriever: str
    stage: str
    p50: float
    p95: float
    p99: float


def _title(facts: Mapping[str, object]) -> Markup:
    """What a mark tells who points at it, and a spreadsheet: a line a fact."""
    lines = [f"{key}: {f'{value:.4f}' if isinstance(value, float) else value}" for key, value in facts.items()]
    return drawn("title", visible("\n".join(lines)))


class _Look(NamedTuple):
    """How a point is drawn."""

    outline: str
    color: str
    size: float = 5.0
    beside: Markup = Markup("")


def _dot(data: Markup, span: tuple[float, float, float, float], point: tuple[float, float], look: _Look,
         facts: Mapping[str, object]) -> Markup:  # fmt: skip
    """A point on its interval; the page's filter moves the one and takes the other away.

    Args:
        data: attributes that say what it is.
        span: both ends of the interval: x, x, y, y.
        point: x, y.
        look: of the point.
        facts: what it tells.
    """
    return Markup(
        '<g class="dot"{}><line class="span" x1="{}" x2="{}" y1="{}" y2="{}" stroke="{}" stroke-width="2"/>'
        '<g class="at" transform="translate({} {})"><path d="{}" fill="{}" transform="scale({})"/>{}</g>{}</g>'
    ).format(data, *map(px, span), look.color, *map(px, point), look.outline, look.color, look.size, look.beside,
             _title(facts))  # fmt: skip


def _of(**data: object) -> Markup:
    form = Markup(' data-{}="{}"')
    return joined(form.format(key, visible(str(value))) for key, value in data.items())


def _beside(words: str, x: float, y: float, anchor: str = "start", color: str = INK.light) -> Markup:
    shown = {"class_": "beside", "x": x, "y": y, "text_anchor": anchor, "fill": color}
    return drawn("text", visible(words), **shown) if words else Markup("")


def _mean_dot(dot: Dot, axis: Axis, y: float, mark: Mark, **data: object) -> Markup:
    reached = axis.at(dot.high) - axis.at(dot.mean) + 9
    look = _Look(mark.outline, mark.color, 5.0, _beside(dot.beside, reached, 4))
    facts = {"retriever": dot.retriever, **data, "mean": dot.mean, "low": dot.low, "high": dot.high}
    ends = (axis.at(dot.low), axis.at(dot.high), y, y)
    return _dot(_of(retriever=dot.retriever, **data), ends, (axis.at(dot.mean), y), look, facts)


def dots(order: Sequence[str], measured: Mapping[str, Sequence[Dot]], marks: Mapping[str, Mark], width: float) -> Plot:
    """Every measure at once: a panel each, a row a retriever, the mean with its interval."""
    rows = rows_of(order, width, top=22.0)
    fit = max(1, int((width - rows.left) / PANEL))
    lines = max(1, -(-len(measured) // fit))
    beside = max(1, -(-len(measured) // lines))  # as many in each line
    wide, high = (width - rows.left) / beside, rows.bottom + 2 * LINE
    body = []
    for place, (measure, of) in enumerate(measured.items()):
        line, column = divmod(place, beside)
        ends = reach(end for dot in of for end in (dot.low, dot.high))
        axis = Axis(*ends, rows.left + wide * column + 18, rows.left + wide * (column + 1) - 18)
        bold = {"class_": "head", "x": axis.start - 12, "y": 14, "fill": INK.light, "font_weight": "bold"}
        marked = [
            _mean_dot(dot, axis, rows.y(order.index(dot.retriever)), marks[dot.retriever], measure=measure)
            for dot in of
        ]
        panel = [drawn("text", visible(measure), **bold), horizontal(axis, (rows.top, rows.bottom), ""), *marked]
        shift = f"translate(0 {px(high * line)})"
        body.append(drawn("g", joined(panel), class_="panel", data_measure=visible(measure), transform=shift))
    body += [drawn("g", rows.names(order), transform=f"translate(0 {px(high * line)})") for line in range(lines)]
    return Plot(width, high * lines, joined(body))


def forest(panels: Mapping[str, Sequence[ForestRow]], title: str, margin: float | None, width: float) -> Plot:
    """Differences in the order given, a row each, the one over everything as a diamond; the margin is a band at 0.

    Args:
        panels: head -> rows, the same parts in each; they share the names of the rows and the axis.
        title: of the axis.
        margin: None or 0 for none.
        width: of the chart.
    """
    first = next(iter(panels.values()))
    every = [row for rows in panels.values() for row in rows]
    headed = len(panels) > 1
    held = rows_of([row.label for row in first], width, 26.0 if headed else 4.0)
    right = max((long(row.beside) for row in every), default=0.0)
    fit = max(1, min(len(panels), int((width - held.left) / FACET)))
    wide = (width - held.left) / fit
    high = held.bottom + LINE * (2 + len(lines_of(title, held.left + wide - right - 16)))
    ends = [end for row in every for end in (row.low, row.difference, row.high) if end is not None]
    reached = reach((*ends, *((-margin, margin) if margin else ()), 0.0), bounded=False)
    body = []
    for place, (head, rows) in enumerate(panels.items()):
        line, column = divmod(place, fit)
        start = held.left + wide * column
        axis = Axis(*reached, start + 16, start + wide - right - 16)
        panel = [horizontal(axis, (held.top, held.bottom), "" if column else title, signed)]
        panel += _forest(rows, axis, held, margin)
        if headed:
            panel.append(_beside(head, start + 16, 16))
        panel += [_beside(row.beside, width, held.y(i) + 4, "end", MUTED.light) for i, row in enumerate(rows)]
        if not column:
            panel.append(held.names([row.label for row in rows]))
        body.append(drawn("g", joined(panel), class_="panel", transform=f"translate(0 {px(high * line)})"))
    return Plot(width, high * -(-len(panels) // fit), joined(body))


def _forest(rows: Sequence[ForestRow], axis: Axis, held: Rows, margin: float | None) -> list[Markup]:
    """The band, the zero and the rows of one panel."""
    body = []
    if margin:
        body.append(_band((axis.at(-margin), held.top), (axis.at(margin), held.bottom)))
    body.append(_zero((axis.at(0), held.top), (axis.at(0), held.bottom)))
    for i, row in enumerate(rows):
        y, (low, high) = held.y(i), (row.difference if end is None else end for end in (row.low, row.high))
        look = _Look(SHAPES["diamond" if row.whole else "square"], INK.light)
        facts = {"slice": row.slice, "difference": row.difference, "low": low, "high": high, "queries": row.queries,
                 "better / equal / worse": row.record}  # fmt: skip
        ends_of = (axis.at(low), axis.at(high), y, y)
        body.append(_dot(_of(slice=row.slice), ends_of, (axis.at(row.difference), y), look, facts))
    return body


def _band(start: tuple[float, float], end: tuple[float, float]) -> Markup:
    """The margin, from its left upper corner to the other."""
    size = {"width": end[0] - start[0], "height": end[1] - start[1]}
    return drawn("rect", class_="margin", x=start[0], y=start[1], **size, fill=RULE.light, opacity="0.6")


def _zero(start: tuple[float, float], end: tuple[float, float], kind: str = "zero") -> Markup:
    """Where differences are 0, or another rule."""
    shown = (INK.light, "1.5", "4 3") if kind == "mean" else (MUTED.light, None, None)
    look = dict(zip(("stroke", "stroke_width", "stroke_dasharray"), shown, strict=True))
    return drawn("line", class_=kind, x1=start[0], x2=end[0], y1=start[1], y2=end[1], **look)


def _legend(looks: Mapping[str, tuple[str, str]], width: float, top: float) -> tuple[Markup, float]:
    """Names beside their marks, in as many lines as they need; and where the last line ends."""
    x, y, parts = 8.0, top, []
    for name, (outline, color) in looks.items():
        if x > 8 and x + 14 + long(name) > width:
            x, y = 8.0, y + LINE + 4
        parts.append(drawn("path", d=outline, fill=color, transform=f"translate({px(x)} {px(y - 4)}) scale(5)"))
        parts.append(drawn("text", visible(name), x=x + 12, y=y, fill=INK.light))
        x += 34 + long(name)
    return joined(parts), y + 8


def differences(
    bars: Sequence[Bar], pair: tuple[str, str], marks: Mapping[str, Mark], mean: float, limit: float
) -> Plot:
    """Paired differences a - b, sorted: above the line a is better, below it b; the dashed rule is the mean.

    Every bar has the same whole number of pixels, lest neighbours shimmer.

    Args:
        bars: the highest first.
        pair: a and b.
        marks: how retrievers are drawn.
        mean: difference.
        limit: of the axis, the same for all pairs.
    """
    left, top, high, wide = 44.0, 6.0, 150.0, max(1, BARS // max(1, len(bars)))
    right = left + wide * len(bars)
    axis = Axis(-limit, limit, top + high, top)
    thick = wide * 0.75 if len(bars) <= 60 else wide
    colors = [marks[name].color for name in pair]
    drawn_bars = [
        drawn("rect", data_at=bar.at, x=left + wide * i, y=min(axis.at(bar.difference), axis.at(0)), width=thick,
              height=abs(axis.at(bar.difference) - axis.at(0)), fill=colors[0 if bar.difference > 0 else 1])
        for i, bar in enumerate(bars)
    ]  # fmt: skip
    body = [
        upright(axis, (left, right), signed),
        drawn("g", joined(drawn_bars), class_="bars"),
        *(_zero((left, axis.at(at)), (right, axis.at(at)), kind) for kind, at in (("zero", 0.0), ("mean", mean))),
    ]
    return Plot(left + BARS, top + high + 8, joined(body))


def logarithmic(prices: Iterable[float]) -> bool:
    """Whether an axis of prices is logarithmic: they span more than a factor of 20."""
    held = list(prices)
    return min(held) > 0 and max(held) / min(held) > 20


def growth(rows: Sequence[ForestRow], title: str, margin: float | None, width: float) -> Plot:
    """One difference on more and more queries, each with its interval; the margin is a band at 0.

    Args:
        rows: the fewest queries first; the last is of all.
        title: of the axis of queries.
        margin: None or 0 for none.
        width: of the chart.
    """
    top, high, left = 6.0, 200.0, 52.0
    ends = [end for row in rows for end in (row.low, row.difference, row.high) if end is not None]
    up = Axis(*reach((*ends, *((-margin, margin) if margin else ()), 0.0), bounded=False), top + high, top)
    across = Axis(0.0, float(rows[-1].queries), left + 4, width - 12)
    body = [_band((left, up.at(margin)), (width - 12, up.at(-margin)))] if margin else []
    body += [
        upright(up, (left, width - 12), signed),
        horizontal(across, (top, top + high), title, PRICED["ms"]),
        _zero((left, up.at(0)), (width - 12, up.at(0))),
    ]
    for row in rows:
        x, (low, highest) = across.at(row.queries), (row.difference if e is None else e for e in (row.low, row.high))
        facts = {"queries": row.queries, "difference": row.difference, "low": low, "high": highest}
        look = _Look(SHAPES["circle"], INK.light)
        body.append(_dot(Markup(""), (x, x, up.at(low), up.at(highest)), (x, up.at(row.difference)), look, facts))
    return Plot(width, top + high + 4 * LINE, joined(body))


class PriceAxis(NamedTuple):
    """What a trade-off's axis of prices says."""

    title: str
    unit: str
    """A key of `axes.PRICED`."""


def trade_off(dots: Sequence[Dot], edge: Sequence[tuple[float, float]], marks: Mapping[str, Mark], price: PriceAxis,
              width: float) -> Plot:  # fmt: skip
    """Quality against a price, with the frontier: what nothing else beats on both.

    Args:
        dots: the retrievers with their prices.
        edge: price and mean of the corners of the frontier, cheapest first.
        marks: how retrievers are drawn.
        price: what the axis says.
        width: of the chart.
    """
    left, top, high = 44.0, 22.0, 260.0
    spread = logarithmic(dot.price for dot in dots)
    ends = reach(end for dot in dots for end in (dot.low, dot.mean, dot.high))
    prices = [dot.price for dot in dots]
    inner = Axis(min(prices), max(prices), left + PADDING, width - 8 - PADDING, spread)
    y = Axis(*ends, top + high, top)
    sides = placed_names({dot.retriever: (inner.at(dot.price), y.at(dot.mean)) for dot in dots}, left, width - 8)
    corners = [(inner.at(at), y.at(mean)) for at, mean in edge]
    path = "".join(f"M{px(a)},{px(b)}" if not i else f"H{px(a)}V{px(b)}" for i, (a, b) in enumerate(corners))
    body = [
        upright(y, (left, width - 8)),
        horizontal(inner, (top, top + high), price.title, PRICED[price.unit]),
        drawn("path", class_="edge", d=path, fill="none", stroke=MUTED.light, stroke_dasharray="4 3"),
    ]
    for dot in dots:
        mark, x = marks[dot.retriever], inner.at(dot.price)
        side = sides.get(dot.retriever)
        word = _beside(dot.retriever, 7, -9) if side == "left" else _beside(dot.retriever, -7, -9, "end")
        look = _Look(mark.outline, mark.color, 6.0, word if side else Markup(""))
        facts = {"retriever": dot.retriever, price.title: f"{dot.price:,.6g}", "mean": dot.mean, "low": dot.low,
                 "high": dot.high}  # fmt: skip
        data = _of(retriever=dot.retriever, price=repr(float(dot.price)))
        body.append(_dot(data, (x, x, y.at(dot.low), y.at(dot.high)), (x, y.at(dot.mean)), look, facts))
    return Plot(width, top + high + LINE * (2 + len(lines_of(price.title, width))), joined(body))


def stages(dots: Sequence[StageDot], order: Sequence[str], names: Sequence[str], width: float) -> Plot:
    """Where a query's time goes: each stage from its median (the point) past its p95 (the tick) to its p99.

    Args:
        dots: one for each stage of each retriever.
        order: of the retrievers.
        names: of the stages, in their order.
        width: of the chart.
    """
    rows = rows_of(order, width)
    rows = rows._replace(step=rows.step - STEP + max(STEP, 14.0 * len(names) + 10))
    ends = [value for dot in dots for value in (dot.p50, dot.p99)]
    axis = Axis(min(ends) / 1.2, max(ends) * 1.2, rows.left + 12, width - 16, logarithmic=True)
    body = [horizontal(axis, (rows.top, rows.bottom), "ms a query", PRICED["ms"]), rows.names(order)]
    outlines = dict(zip(names, SHAPES.values(), strict=False))  # colours belong to retrievers: a stage has a shape
    for dot in dots:
        y = rows.y(order.index(dot.retriever)) + 14.0 * names.index(dot.stage)
        x = axis.at(dot.p95)
        late = drawn("line", x1=x, x2=x, y1=y - 4.5, y2=y + 4.5, stroke=MUTED.light, stroke_width=2)
        facts = {"retriever": dot.retriever, "stage": dot.stage,
                 **{f"{p} (ms)": f"{getattr(dot, p):.4g}" for p in ("p50", "p95", "p99")}}  # fmt: skip
        look = _Look(outlines[dot.stage], INK.light)
        ends_of = (axis.at(dot.p50), axis.at(dot.p99), y, y)
        body += [late, _dot(_of(retriever=dot.retriever), ends_of, (axis.at(dot.p50), y), look, facts)]
    looks = {name: (outline, INK.light) for name, outline in outlines.items()}
    legend, below = _legend(looks, width, rows.bottom + 4 * LINE)
    return Plot(width, below, joined([*body, legend]))
