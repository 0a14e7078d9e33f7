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
    Plane,
    Rows,
    horizontal,
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
    return Markup("<title>{}</title>").format(visible("\n".join(lines)))


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
    return Markup("").join(form.format(key, visible(str(value))) for key, value in data.items())


def _beside(words: str, x: float, y: float, anchor: str = "start", color: str = INK.light) -> Markup:
    form = Markup('<text class="beside" x="{}" y="{}" text-anchor="{}" fill="{}">{}</text>')
    return form.format(px(x), px(y), anchor, color, visible(words)) if words else Markup("")


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
        head = Markup('<text class="head" x="{}" y="14" fill="{}" font-weight="bold">{}</text>').format(
            px(axis.start - 12), INK.light, visible(measure)
        )
        marked = [
            _mean_dot(dot, axis, rows.y(order.index(dot.retriever)), marks[dot.retriever], measure=measure)
            for dot in of
        ]
        body.append(
            Markup('<g class="panel"{} transform="translate(0 {})">{}{}{}</g>').format(
                _of(measure=measure),
                px(high * line),
                head,
                horizontal(axis, (rows.top, rows.bottom), ""),
                Markup("").join(marked),
            )
        )
    shift = Markup('<g transform="translate(0 {})">{}</g>')
    body += [shift.format(px(high * line), rows.names(order)) for line in range(lines)]
    return Plot(width, high * lines, Markup("").join(body))


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
        shift = Markup('<g class="panel" transform="translate(0 {})">{}</g>')
        body.append(shift.format(px(high * line), Markup("").join(panel)))
    return Plot(width, high * -(-len(panels) // fit), Markup("").join(body))


def _forest(rows: Sequence[ForestRow], axis: Axis, held: Rows, margin: float | None) -> list[Markup]:
    """The band, the zero and the rows of one panel."""
    body = []
    if margin:
        band = Markup('<rect class="margin" x="{}" y="{}" width="{}" height="{}" fill="{}" opacity="0.6"/>')
        body.append(band.format(px(axis.at(-margin)), px(held.top), px(axis.at(margin) - axis.at(-margin)),
                                px(held.bottom - held.top), RULE.light))  # fmt: skip
    zero = Markup('<line class="zero" x1="{0}" x2="{0}" y1="{1}" y2="{2}" stroke="{3}"/>')
    body.append(zero.format(px(axis.at(0)), px(held.top), px(held.bottom), MUTED.light))
    for i, row in enumerate(rows):
        y, (low, high) = held.y(i), (row.difference if end is None else end for end in (row.low, row.high))
        look = _Look(SHAPES["diamond" if row.whole else "square"], INK.light)
        facts = {"slice": row.slice, "difference": row.difference, "low": low, "high": high, "queries": row.queries,
                 "better / equal / worse": row.record}  # fmt: skip
        ends_of = (axis.at(low), axis.at(high), y, y)
        body.append(_dot(_of(slice=row.slice), ends_of, (axis.at(row.difference), y), look, facts))
    return body


def _legend(looks: Mapping[str, tuple[str, str]], width: float, top: float) -> tuple[Markup, float]:
    """Names beside their marks, in as many lines as they need; and where the last line ends."""
    form = Markup(
        '<path d="{}" fill="{}" transform="translate({} {}) scale(5)"/><text x="{}" y="{}" fill="{}">{}</text>'
    )
    x, y, parts = 8.0, top, []
    for name, (outline, color) in looks.items():
        if x > 8 and x + 14 + long(name) > width:
            x, y = 8.0, y + LINE + 4
        parts.append(form.format(outline, color, px(x), px(y - 4), px(x + 12), px(y), INK.light, visible(name)))
        x += 34 + long(name)
    return Markup("").join(parts), y + 8


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
    rect = Markup('<rect data-at="{}" x="{}" y="{}" width="{}" height="{}" fill="{}"/>')
    drawn = [
        rect.format(bar.at, px(left + wide * i), px(min(axis.at(bar.difference), axis.at(0))), px(thick),
                    px(abs(axis.at(bar.difference) - axis.at(0))), colors[0 if bar.difference > 0 else 1])
        for i, bar in enumerate(bars)
    ]  # fmt: skip
    line = Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}" stroke="{}"{}/>')
    body = [
        upright(axis, (left, right), signed), Markup('<g class="bars">{}</g>').format(Markup("").join(drawn)),
        line.format("zero", px(left), px(right), px(axis.at(0)), px(axis.at(0)), MUTED.light, ""),
        line.format("mean", px(left), px(right), px(axis.at(mean)), px(axis.at(mean)), INK.light,
                    Markup(' stroke-width="1.5" stroke-dasharray="4 3"')),
    ]  # fmt: skip
    return Plot(left + BARS, top + high + 8, Markup("").join(body))


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
    band = Markup('<rect class="margin" x="{}" y="{}" width="{}" height="{}" fill="{}" opacity="0.6"/>')
    zero = Markup('<line class="zero" x1="{0}" x2="{1}" y1="{2}" y2="{2}" stroke="{3}"/>')
    body = [
        band.format(px(left), px(up.at(margin)), px(width - 12 - left), px(up.at(-margin) - up.at(margin)), RULE.light)
        if margin
        else Markup(""),
        upright(up, (left, width - 12), signed), horizontal(across, (top, top + high), title, PRICED["ms"]),
        zero.format(px(left), px(width - 12), px(up.at(0)), MUTED.light),
    ]  # fmt: skip
    for row in rows:
        x, (low, highest) = across.at(row.queries), (row.difference if e is None else e for e in (row.low, row.high))
        facts = {"queries": row.queries, "difference": row.difference, "low": low, "high": highest}
        look = _Look(SHAPES["circle"], INK.light)
        body.append(_dot(Markup(""), (x, x, up.at(low), up.at(highest)), (x, up.at(row.difference)), look, facts))
    return Plot(width, top + high + 4 * LINE, Markup("").join(body))


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
    plane = Plane(width - left - 8, high, PADDING, spread)
    sides = placed_names({dot.retriever: (dot.price, dot.mean) for dot in dots}, ends, plane)
    prices = [dot.price for dot in dots]
    inner = Axis(min(prices), max(prices), left + PADDING, width - 8 - PADDING, spread)
    y = Axis(*ends, top + high, top)
    corners = [(inner.at(at), y.at(mean)) for at, mean in edge]
    path = "".join(f"M{px(a)},{px(b)}" if not i else f"H{px(a)}V{px(b)}" for i, (a, b) in enumerate(corners))
    body = [
        upright(y, (left, width - 8)),
        horizontal(inner, (top, top + high), price.title, PRICED[price.unit]),
        Markup('<path class="edge" d="{}" fill="none" stroke="{}" stroke-dasharray="4 3"/>').format(path, MUTED.light),
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
    return Plot(width, top + high + LINE * (2 + len(lines_of(price.title, width))), Markup("").join(body))


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
    tick = Markup('<line x1="{0}" x2="{0}" y1="{1}" y2="{2}" stroke="{3}" stroke-width="2"/>')
    for dot in dots:
        y = rows.y(order.index(dot.retriever)) + 14.0 * names.index(dot.stage)
        late = tick.format(px(axis.at(dot.p95)), px(y - 4.5), px(y + 4.5), MUTED.light)
        facts = {"retriever": dot.retriever, "stage": dot.stage,
                 **{f"{p} (ms)": f"{getattr(dot, p):.4g}" for p in ("p50", "p95", "p99")}}  # fmt: skip
        look = _Look(outlines[dot.stage], INK.light)
        ends_of = (axis.at(dot.p50), axis.at(dot.p99), y, y)
        body += [late, _dot(_of(retriever=dot.retriever), ends_of, (axis.at(dot.p50), y), look, facts)]
    looks = {name: (outline, INK.light) for name, outline in outlines.items()}
    legend, below = _legend(looks, width, rows.bottom + 4 * LINE)
    return Plot(width, below, Markup("").join([*body, legend]))
