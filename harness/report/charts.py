"""The charts, in Altair. Each takes plain rows and gives a chart; `figures` gives them their look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from harness.report.theme import INK, MUTED, RULE, SERIES, Mark

Rows = Sequence[Mapping[str, Any]]
WIDE, NARROW = 660, 300
UNDEFINED = alt.Undefined


def _data(rows: Rows) -> Any:
    return alt.Data(values=list(rows))


def _by_retriever(marks: Mapping[str, Mark], legend: bool = True) -> dict[str, Any]:
    """Colour and shape of the retrievers, one legend for both."""
    names = list(marks)
    shown = alt.Legend(columns=0 if len(names) <= 5 else 5) if legend else None
    return {
        "color": alt.Color("retriever:N", legend=shown).scale(
            domain=names, range=[mark.color for mark in marks.values()]
        ),
        "shape": alt.Shape("retriever:N", legend=shown).scale(
            domain=names, range=[mark.shape for mark in marks.values()]
        ),
    }


def _dashes(marks: Mapping[str, Mark]) -> Any:
    dashes = [list(mark.dash) for mark in marks.values()]
    return alt.StrokeDash("retriever:N", legend=None).scale(domain=list(marks), range=dashes)


def _pick() -> Any:
    """A click on the legend leaves that retriever alone in full colour."""
    return alt.selection_point(fields=["retriever"], bind="legend")


def means(rows: Rows, marks: Mapping[str, Mark], measure: str) -> Any:
    """The leaderboard: means with their intervals, and letters where there are any.

    Args:
        rows: retriever, mean, low, high, letters; best first.
        marks: how retrievers are drawn.
        measure: the axis' title.
    """
    order = [row["retriever"] for row in rows]
    y = alt.Y("retriever:N", sort=order, title=None).axis(labelColor=INK.light, labelFontSize=13)
    base = alt.Chart(_data(rows)).encode(y=y)
    x = alt.X("mean:Q", title=measure).scale(zero=False, nice=True)
    tips = ["retriever:N", alt.Tooltip("mean:Q", format=".4f"), alt.Tooltip("low:Q", format=".4f"),
            alt.Tooltip("high:Q", format=".4f")]  # fmt: skip
    colors = _by_retriever(marks, legend=False)
    rule = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=measure).scale(zero=False), x2="high:Q",
                                                color=colors["color"])  # fmt: skip
    point = base.mark_point(filled=True, size=110, opacity=1).encode(x=x, tooltip=tips, **colors)
    letters = base.mark_text(dx=10, align="left", fontSize=13, color=INK.light).encode(x="high:Q", text="letters:N")
    return alt.layer(rule, point, letters).properties(width=WIDE - 100, height=alt.Step(34))


def over_queries(rows: Rows, marks: Mapping[str, Mark], measure: str, ids: Sequence[str], width: int) -> Any:
    """Each query's score, in the order of the file: the article's plot.

    Args:
        rows: place, query, text, retriever, value.
        marks: how retrievers are drawn.
        measure: the axis' title.
        ids: the queries' ids in their order; they label the axis where there are few.
        width: in pixels.
    """
    pick = _pick()
    few = len(ids) <= 30
    x = (
        alt.X("query:N", sort=list(ids), title=None).axis(labelAngle=-90 if len(ids) > 6 else 0, labelLimit=70)
        if few
        else alt.X("place:Q", title="query, in the order of the file").scale(nice=False, zero=False)
    )
    faded = alt.when(pick).then(alt.value(1)).otherwise(alt.value(0.12))
    base = alt.Chart(_data(rows)).encode(
        x=x, y=alt.Y("value:Q", title=measure), opacity=faded, **_by_retriever(marks)
    )
    line = base.mark_line(strokeWidth=1.6).encode(strokeDash=_dashes(marks), shape=UNDEFINED)
    tips = [alt.Tooltip("retriever:N"), alt.Tooltip("query:N"), alt.Tooltip("text:N"),
            alt.Tooltip("value:Q", title=measure, format=".4f")]  # fmt: skip
    point = base.mark_point(filled=True, size=44 if few else 18).encode(tooltip=tips).add_params(pick)
    return alt.layer(line, point).properties(width=width, height=220 if width == WIDE else 170)


def curves(rows: Rows, marks: Mapping[str, Mark], measure: str, width: int) -> Any:
    """Too many queries for a line each: every retriever's scores, best first, over the share of queries.

    Args:
        rows: share (percent), retriever, value.
        marks: how retrievers are drawn.
        measure: the axis' title.
        width: in pixels.
    """
    pick = _pick()
    colors = _by_retriever(marks)
    del colors["shape"]
    return (
        alt.Chart(_data(rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("share:Q", title="share of queries (%), each retriever's best first"),
            y=alt.Y("value:Q", title=f"at least this {measure}"),
            strokeDash=_dashes(marks),
            opacity=alt.when(pick).then(alt.value(1)).otherwise(alt.value(0.12)),
            tooltip=["retriever:N", alt.Tooltip("share:Q", title="% of queries"),
                     alt.Tooltip("value:Q", title=f"{measure} at least", format=".4f")],
            **colors,
        )
        .add_params(pick)
        .properties(width=width, height=220 if width == WIDE else 170)
    )  # fmt: skip


def differences(rows: Rows, marks: Mapping[str, Mark], pair: tuple[str, str], measure: str, limit: float) -> Any:
    """Paired differences a - b, sorted: above the line a is better, below it b; the dashed rule is the mean.

    Args:
        rows: place, query, text, difference, better.
        marks: how retrievers are drawn.
        pair: a and b.
        measure: the axis' title.
        limit: of the axis, the same for all pairs.
    """
    a, b = pair
    y = alt.Y("difference:Q", title=None).scale(domain=[-limit, limit]).axis(format="+.2~f", tickCount=5)
    base = alt.Chart(_data(rows), title=alt.TitleParams(f"{a} − {b}"))
    colors = alt.Color("better:N", legend=None).scale(domain=[a, b, "neither"],
                                                     range=[marks[a].color, marks[b].color, RULE.light])  # fmt: skip
    tips = [alt.Tooltip("query:N"), alt.Tooltip("text:N"), alt.Tooltip("difference:Q", title=measure, format="+.4f")]
    bars = base.mark_bar().encode(
        x=alt.X("place:O", title=None).axis(None).scale(paddingInner=0.25 if len(rows) <= 60 else 0),
        y=y, color=colors, tooltip=tips,
    )  # fmt: skip
    zero = base.mark_rule(color=MUTED.light).encode(y=alt.datum(0))
    mean = base.mark_rule(color=INK.light, strokeDash=[4, 3], strokeWidth=1.5).encode(y="mean(difference):Q")
    return alt.layer(bars, zero, mean).properties(width=NARROW - 20, height=150)


def strips(boxes: Rows, points: Rows, marks: Mapping[str, Mark], measure: str, width: int) -> Any:
    """The distribution: box of the quartiles, mean as a bar, and every query a point where there are not too many.

    Args:
        boxes: retriever, min, q25, median, q75, max, mean.
        points: retriever, query, text, value, spread (-1 to 1); may be empty.
        marks: how retrievers are drawn.
        measure: the axis' title.
        width: in pixels.
    """
    colors = _by_retriever(marks, legend=False)
    y = alt.Y("retriever:N", sort=list(marks), title=None).axis(labelColor=INK.light)
    base = alt.Chart(_data(boxes)).encode(y=y)
    tips = [alt.Tooltip(f"{part}:Q", format=".4f") for part in ("min", "q25", "median", "q75", "max", "mean")]
    whisker = base.mark_rule(color=MUTED.light).encode(x=alt.X("min:Q", title=measure), x2="max:Q")
    box = base.mark_bar(height=20, opacity=0.18).encode(
        x="q25:Q", x2="q75:Q", color=colors["color"], tooltip=["retriever:N", *tips]
    )
    median = base.mark_tick(thickness=2, height=20, color=INK.light).encode(x="median:Q")
    mean = base.mark_point(shape="diamond", size=60, filled=True, color=INK.light, opacity=1).encode(x="mean:Q")
    dots = (
        alt.Chart(_data(points))
        .mark_point(filled=True, size=26, opacity=0.75)
        .encode(
            y=y, x="value:Q", yOffset=alt.YOffset("spread:Q").scale(domain=[-1.6, 1.6]),
            tooltip=["retriever:N", "query:N", "text:N", alt.Tooltip("value:Q", title=measure, format=".4f")],
            **colors,
        )
    )  # fmt: skip
    layers = [whisker, box, *([dots] if points else []), median, mean]
    return alt.layer(*layers).properties(width=width - 60, height=alt.Step(38))


def ranks(rows: Rows, bars: Rows, marks: Mapping[str, Mark], most: int) -> Any:
    """The rank diagram: average ranks, and bars over those that the tests do not separate.

    Args:
        rows: retriever, rank, place (its row).
        bars: low, high, place.
        marks: how retrievers are drawn.
        most: how many retrievers there are.
    """
    x = alt.X("rank:Q", title="average rank (1 is best)").scale(domain=[1, most], nice=False).axis(tickCount=most)
    y = alt.Y("place:Q", axis=None).scale(domain=[0, most + len(bars) + 1], reverse=True)
    base = alt.Chart(_data(rows)).encode(x=x, y=y)
    point = base.mark_point(filled=True, size=100, opacity=1).encode(
        tooltip=["retriever:N", alt.Tooltip("rank:Q", format=".3f")], **_by_retriever(marks, legend=False)
    )
    name = base.mark_text(align="left", dx=10, fontSize=13, color=INK.light).encode(text="retriever:N")
    joined = alt.Chart(_data(bars)).mark_rule(strokeWidth=5, strokeCap="round", color=MUTED.light).encode(
        x=alt.X("low:Q").scale(domain=[1, most]), x2="high:Q", y=y
    )  # fmt: skip
    return alt.layer(joined, point, name).properties(width=WIDE - 140, height=20 * (most + len(bars)) + 10)


def trade_off(rows: Rows, edge: Rows, marks: Mapping[str, Mark], axis: str, measure: str) -> Any:
    """Quality against a price, with the frontier: what nothing else beats on both.

    Args:
        rows: retriever, price, mean, low, high.
        edge: price, mean: the corners of the frontier, cheapest first.
        marks: how retrievers are drawn.
        axis: the price's title.
        measure: the quality's title.
    """
    prices = [row["price"] for row in rows]
    spread = min(prices) > 0 and max(prices) / min(prices) > 20
    kind = alt.Scale(type="log", nice=True) if spread else alt.Scale(zero=False, nice=True, padding=24)
    x = alt.X("price:Q", title=axis, scale=kind).axis(grid=True, tickCount=4, format="~s")
    y = alt.Y("mean:Q", title=measure).scale(zero=False, padding=10)
    base = alt.Chart(_data(rows)).encode(x=x)
    frontier = (
        alt.Chart(_data(edge))
        .mark_line(color=MUTED.light, strokeDash=[4, 3], interpolate="step-after")
        .encode(x=x, y=y)
    )
    bar = base.mark_rule(opacity=0.5).encode(
        y=alt.Y("low:Q", title=measure).scale(zero=False), y2="high:Q", color=_by_retriever(marks, False)["color"]
    )
    point = base.mark_point(filled=True, size=100, opacity=1).encode(
        y=y, tooltip=["retriever:N", alt.Tooltip("price:Q", title=axis), alt.Tooltip("mean:Q", format=".4f")],
        **_by_retriever(marks, False),
    )  # fmt: skip
    name = base.mark_text(align="left", dx=8, dy=-8, fontSize=12, color=INK.light).encode(y=y, text="retriever:N")
    return alt.layer(frontier, bar, point, name).properties(width=NARROW + 20, height=220)


def stages(rows: Rows, order: Sequence[str]) -> Any:
    """Where a query's time goes: the median of each stage, stacked.

    Args:
        rows: retriever, stage, p50, p95, p99.
        order: of the retrievers.
    """
    names = list(dict.fromkeys(row["stage"] for row in rows))
    tips = ["retriever:N", "stage:N", *(alt.Tooltip(f"{p}:Q", title=f"{p} (ms)", format=".3~f")
                                        for p in ("p50", "p95", "p99"))]  # fmt: skip
    return (
        alt.Chart(_data(rows))
        .mark_bar(height=18)
        .encode(
            y=alt.Y("retriever:N", sort=list(order), title=None).axis(labelColor=INK.light),
            x=alt.X("p50:Q", title="median, ms a query").axis(grid=True),
            color=alt.Color("stage:N").scale(domain=names, range=[s.light for s in SERIES[: len(names)]]),
            order="place:Q",
            tooltip=tips,
        )
        .properties(width=WIDE - 120, height=alt.Step(30))
    )
