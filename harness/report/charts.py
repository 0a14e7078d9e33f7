"""Every chart as a Vega-Lite specification, put together without Altair's own copying, most of a chart's time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from harness.report.theme import INK, MUTED, RULE, SHAPES, Mark


def layered(*layers: Any, **settings: Any) -> dict[str, Any]:
    """Charts over one another, as `alt.layer` writes them.

    Args:
        layers: the charts, the undermost first.
        settings: of the whole, such as its width.
    """
    parts = [part(whole(layer)) for layer in layers]
    sources = [one["data"] for one in parts]
    if all(source == sources[0] for source in sources):
        parts = [{key: value for key, value in one.items() if key != "data"} for one in parts]
        settings["data"] = sources[0]
    return {"layer": parts, **dict(sorted(settings.items())), "$schema": alt.SCHEMA_URL}


def part(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A chart as a part of another."""
    return {key: value for key, value in spec.items() if key != "$schema"}


def whole(chart: Any) -> dict[str, Any]:
    """A chart of Altair's as it stands alone; its look is `figures`'s."""
    return {key: value for key, value in chart.to_dict(validate=False).items() if key != "config"}


WIDE, NARROW, HIGH = 694, 306, 190
TRADE_OFF, PADDING = (WIDE - 160, 260), 24
"""Width and height of quality against a price, and what is left beside its outermost points: pixels."""
FOREST = WIDE - 300
"""Width of the plot of differences, without what stands on its left."""
UNDEFINED = alt.Undefined
POWERS = [10.0**power for power in range(-3, 13)]
FINE = [step * power for power in POWERS for step in (1, 2, 5)]
"""The ticks of a logarithmic axis; those whose labels would collide are left out."""
SCREEN, COLUMN, LETTER = 1110, 118, 7
"""Pixels that a page of 1280 leaves for a chart, that one measure of many takes, and that a letter takes."""
PLAIN = "(datum.value >= 1000 ? format(datum.value, ',.0f') : format(datum.value, '.3~r'))"
BYTES = "replace(format(datum.value, '.3~s'), regexp('([a-zA-Z]?)$'), ' $1B')"
PRICED = {"dollars": f"'$' + {PLAIN}", "ms": PLAIN, "bytes": BYTES}
"""Labels of an axis of prices by its unit: half a dollar is $0.5, never 500m."""
SIGNED = "datum.value ? format(datum.value, '+.3~r') : '0'"
"""Labels of an axis of differences, as many decimals as its steps need."""


def _chart(rows: str = "rows") -> Any:
    return alt.Chart(alt.NamedData(name=rows))


def _by_retriever(marks: Mapping[str, Mark], legend: Any = None) -> dict[str, Any]:
    """Colour and shape of the retrievers, one legend for both."""
    names = list(marks)
    return {
        "color": alt.Color("retriever:N", legend=legend).scale(
            domain=names, range=[mark.color for mark in marks.values()]
        ),
        "shape": alt.Shape("retriever:N", legend=legend).scale(
            domain=names, range=[mark.shape for mark in marks.values()]
        ),
    }


def _dashes(marks: Mapping[str, Mark], legend: Any) -> Any:
    dashes = [list(mark.dash) for mark in marks.values()]
    return alt.StrokeDash("retriever:N", legend=legend).scale(domain=list(marks), range=dashes)


def _legend(marks: Mapping[str, Mark], width: int) -> Any:
    """A legend in one row where it fits, else with as many columns as the names leave room for."""
    wide = [7 * len(name) + 34 for name in marks]
    columns = 0 if sum(wide) <= width else max(1, width // max(wide))
    return alt.Legend(columns=columns)


def _pick() -> Any:
    """A click on the legend leaves that retriever alone in full colour."""
    return alt.selection_point(fields=["retriever"], bind="legend")


def means(order: Sequence[str], marks: Mapping[str, Mark], *, measure: str) -> dict[str, Any]:
    """The leaderboard: means with their intervals, and letters where there are any.

    Data: rows (retriever, mean, low, high, letters).
    """
    y = alt.Y("retriever:N", sort=list(order), title=None).axis(labelColor=INK.light, labelFontSize=13, labelLimit=0)
    base = _chart().encode(y=y)
    x = alt.X("mean:Q", title=measure).scale(zero=False, nice=True)
    tips = [alt.Tooltip("retriever:N"), alt.Tooltip("mean:Q", format=".4f"), alt.Tooltip("low:Q", format=".4f"),
            alt.Tooltip("high:Q", format=".4f")]  # fmt: skip
    colors = _by_retriever(marks)
    rule = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=measure).scale(zero=False), x2=alt.X2("high:Q"),
                                                color=colors["color"])  # fmt: skip
    point = base.mark_point(filled=True, size=110, opacity=1).encode(x=x, tooltip=tips, **colors)
    letters = base.mark_text(dx=10, align="left", fontSize=13, color=INK.light).encode(
        x=alt.X("high:Q"), text=alt.Text("letters:N")
    )
    return layered(rule, point, letters, width=WIDE - 100, height={"step": 34})


def over_queries(ids: Sequence[str], marks: Mapping[str, Mark], *, measure: str, width: int) -> dict[str, Any]:
    """Each query's score, in the order of the file: the article's plot. Few queries label the axis with their ids.

    Data: rows (place, query, text, retriever, value).
    """
    pick, legend = _pick(), _legend(marks, width)
    few = len(ids) <= 30
    x = (
        alt.X("query:N", sort=list(ids), title=None).axis(labelAngle=-90 if len(ids) > 6 else 0, labelLimit=70)
        if few
        else alt.X("place:Q", title="query, in the order of the file").scale(nice=False, zero=False)
    )
    faded = alt.when(pick).then(alt.value(1)).otherwise(alt.value(0.12))
    base = _chart().encode(x=x, y=alt.Y("value:Q", title=None), opacity=faded, **_by_retriever(marks, legend))
    line = base.mark_line(strokeWidth=1.6).encode(strokeDash=_dashes(marks, legend), shape=UNDEFINED)
    tips = [alt.Tooltip("retriever:N"), alt.Tooltip("query:N"), alt.Tooltip("text:N"),
            alt.Tooltip("value:Q", title=measure, format=".4f")]  # fmt: skip
    point = base.mark_point(filled=True, size=44 if few else 18).encode(tooltip=tips).add_params(pick)
    return whole(alt.layer(line, point).properties(width=width, height=HIGH))


def differences(
    pair: tuple[str, str], marks: Mapping[str, Mark], *, measure: str, bars: int, limit: float
) -> dict[str, Any]:
    """Paired differences a - b, sorted: above the line a is better, below it b; the dashed rule is the mean.

    Every bar has the same whole number of pixels, lest neighbours shimmer.

    Data: rows (place, query, text, difference, better); mean (difference).

    Args:
        pair: a and b.
        marks: how retrievers are drawn.
        measure: what the difference is of.
        bars: how many there are.
        limit: of the axis, the same for all pairs.
    """
    a, b = pair
    y = alt.Y("difference:Q", title=None).scale(domain=[-limit, limit]).axis(labelExpr=SIGNED, tickCount=5)
    base = _chart()
    colors = alt.Color("better:N", legend=None).scale(domain=[a, b, "neither"],
                                                     range=[marks[a].color, marks[b].color, RULE.light])  # fmt: skip
    tips = [alt.Tooltip("query:N"), alt.Tooltip("text:N"), alt.Tooltip("difference:Q", title=measure, format="+.4f")]
    columns = base.mark_bar().encode(
        x=alt.X("place:O", title=None).axis(None).scale(padding=0, paddingInner=0.25 if bars <= 60 else 0),
        y=y, color=colors, tooltip=tips,
    )  # fmt: skip
    zero = base.mark_rule(color=MUTED.light).encode(y=alt.YDatum(0))
    mean = _chart("mean").mark_rule(color=INK.light, strokeDash=[4, 3], strokeWidth=1.5).encode(y=y)
    return layered(columns, zero, mean, width=bars * max(1, NARROW // bars), height=150)


def dots(order: Sequence[str], measures: Sequence[str], marks: Mapping[str, Mark]) -> dict[str, Any]:
    """Every measure at once: a column each, a row a retriever, the mean with its interval.

    Data: rows (retriever, measure, mean, low, high).
    """
    colors = _by_retriever(marks)
    tips = [
        alt.Tooltip("retriever:N"),
        alt.Tooltip("measure:N"),
        *(alt.Tooltip(f"{part}:Q", format=".4f") for part in ("mean", "low", "high")),
    ]
    fit = max(1, (SCREEN - LETTER * max(map(len, order))) // COLUMN)
    lines = -(-len(measures) // fit)
    beside = -(-len(measures) // lines)  # as many in each line
    columns = []
    for number, measure in enumerate(measures):
        axis = alt.Axis(labelColor=INK.light, labelLimit=0) if number % beside == 0 else None
        y = alt.Y("retriever:N", sort=list(order), title=None, axis=axis)
        x = (
            alt.X("low:Q", title=None)
            .scale(zero=False)
            .axis(tickCount=3, format="~g", grid=True, labelOverlap="greedy", labelSeparation=8)
        )
        base = _chart().transform_filter(alt.datum.measure == measure).encode(y=y)
        rule = base.mark_rule(strokeWidth=2).encode(x=x, x2=alt.X2("high:Q"), color=colors["color"])
        point = base.mark_point(filled=True, size=60, opacity=1).encode(x=alt.X("mean:Q"), tooltip=tips, **colors)
        column = layered(rule, point, width=95, height={"step": 24}, title=measure)
        columns.append(part(column))
    return {
        "concat": columns,
        "columns": beside,
        "resolve": {"scale": {"x": "independent"}},
        "spacing": 14,
        "$schema": alt.SCHEMA_URL,
    }


def forest(order: Sequence[str], *, measure: str, band: bool) -> dict[str, Any]:
    """Mean differences with their intervals, a row each, the first over everything; the margin is a band.

    Data: rows (label, slice, difference, low, high, queries, record, whole, and beside: what stands at the right); zero
    (zero); margin (low, high), where there is a band.
    """
    y = alt.Y("label:N", sort=list(order), title=None).axis(labelColor=INK.light, labelLimit=0)
    # What is wider than the plot would make the chart wider than the page: the two directions stand in two lines.
    title = measure if LETTER * len(measure) <= FOREST else measure.replace(" ← 0 → ", " ←\n→ ").split("\n")
    x = alt.X("low:Q", title=title).axis(grid=True, tickCount=6, labelExpr=SIGNED)
    tips = [alt.Tooltip("slice:N"), alt.Tooltip("queries:Q"), alt.Tooltip("difference:Q", format="+.4f"),
            alt.Tooltip("low:Q", format="+.4f"), alt.Tooltip("high:Q", format="+.4f"),
            alt.Tooltip("record:N", title="better / equal / worse")]  # fmt: skip
    base = _chart().encode(y=y)
    margin = (
        [_chart("margin").mark_rect(color=RULE.light, opacity=0.6).encode(x=x, x2=alt.X2("high:Q"))] if band else []
    )
    zero = _chart("zero").mark_rule(color=MUTED.light).encode(x=alt.X("zero:Q"))
    rule = base.mark_rule(strokeWidth=2, color=INK.light).encode(x=x, x2=alt.X2("high:Q"))
    shape = alt.Shape("whole:N", legend=None).scale(domain=[True, False], range=["diamond", "square"])
    point = base.mark_point(filled=True, size=80, opacity=1, color=INK.light).encode(
        x=alt.X("difference:Q"), shape=shape, tooltip=tips
    )
    beside = base.mark_text(align="left", fontSize=12, color=MUTED.light).encode(
        x=alt.XValue(FOREST + 10), text=alt.Text("beside:N")
    )
    return layered(*margin, zero, rule, point, beside, width=FOREST, height={"step": 22})


def logarithmic(prices: Sequence[float]) -> bool:
    """Whether an axis of prices is logarithmic: they span more than a factor of 20."""
    return min(prices) > 0 and max(prices) / min(prices) > 20


def trade_off(prices: Sequence[float], marks: Mapping[str, Mark], *, axis: str, unit: str) -> dict[str, Any]:
    """Quality against a price, with the frontier: what nothing else beats on both.

    Data: rows (retriever, price, mean, low, high, and its name as `left` or `right` of the point, "" where it has
    none); edge (price, mean: the corners of the frontier, cheapest first).
    """
    spread = logarithmic(prices)
    kind = "log" if spread else "linear"
    scale = alt.Scale(type=kind, zero=UNDEFINED if spread else False, nice=False, padding=PADDING)
    ticks = {"values": POWERS} if spread else {"tickCount": 4}
    x = alt.X("price:Q", title=axis, scale=scale).axis(
        grid=True, labelExpr=PRICED[unit], labelOverlap="greedy", labelSeparation=8, **ticks
    )
    y = alt.Y("mean:Q", title=None).scale(zero=False, padding=10, nice=False)  # a round end may lie below 0
    looks = _by_retriever(marks)
    base = _chart().encode(x=x)
    frontier = _chart("edge").mark_line(color=MUTED.light, strokeDash=[4, 3], interpolate="step-after").encode(x=x, y=y)
    bar = base.mark_rule(opacity=0.5).encode(
        y=alt.Y("low:Q", title=None).scale(zero=False), y2=alt.Y2("high:Q"), color=looks["color"]
    )
    point = base.mark_point(filled=True, size=100, opacity=1).encode(
        y=y,
        tooltip=[alt.Tooltip("retriever:N"), alt.Tooltip("price:Q", title=axis), alt.Tooltip("mean:Q", format=".4f")],
        **looks,
    )
    names = [
        base.mark_text(align=align, dx=dx, dy=-9, fontSize=12, color=INK.light).encode(y=y, text=alt.Text(f"{align}:N"))
        for align, dx in (("left", 7), ("right", -7))
    ]
    return layered(frontier, bar, point, *names, width=TRADE_OFF[0], height=TRADE_OFF[1])


def stages(names: Sequence[str], order: Sequence[str]) -> dict[str, Any]:
    """Where a query's time goes: each stage from its median (the point) past its p95 (the tick) to its p99.

    Data: rows (retriever, stage, p50, p95, p99 in milliseconds, above 0).
    """
    y = alt.Y("retriever:N", sort=list(order), title=None).axis(labelColor=INK.light, labelLimit=0, grid=True)
    offset = alt.YOffset("stage:N", sort=list(names))
    shapes = alt.Shape("stage:N", sort=list(names)).scale(domain=list(names), range=list(SHAPES)[: len(names)])
    x = (
        alt.X("p50:Q", title="ms a query")
        .scale(type="log", nice=False, padding=10)
        .axis(grid=True, values=FINE, labelExpr=PLAIN, labelOverlap="greedy", labelSeparation=8)
    )
    tips = [alt.Tooltip("retriever:N"), alt.Tooltip("stage:N")]
    tips += [alt.Tooltip(f"{p}:Q", title=f"{p} (ms)", format=".3~f") for p in ("p50", "p95", "p99")]
    # Colours belong to retrievers: a stage has a shape.
    base = _chart().encode(y=y, yOffset=offset)
    span = base.mark_rule(strokeWidth=2, color=MUTED.light).encode(x=x, x2=alt.X2("p99:Q"))
    late = base.mark_tick(thickness=2, height=9, color=MUTED.light).encode(x=alt.X("p95:Q"))
    middle = base.mark_point(filled=True, size=60, opacity=1, color=INK.light).encode(x=x, shape=shapes, tooltip=tips)
    return layered(span, late, middle, width=WIDE - 120, height={"step": 14 * len(names) + 10, "for": "position"})
