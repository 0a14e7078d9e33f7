"""Quality against time, money and memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from harness.evaluation.costs import PER_QUERY, Cost, costs_of, frontier
from harness.report import charts, text
from harness.report.figures import Figure, Section, figure
from harness.report.trade_off_facts import approximations, vector_sizes
from harness.report.view import View

PLACE = 60

PriceOf = Callable[[Cost], float | None]

FLOOR = 0.001
"""Milliseconds below which nothing is told apart: a logarithmic axis has no 0."""
PRICES: Mapping[str, tuple[str, str, PriceOf]] = {
    "latency": ("latency", "median latency of a query (ms)", lambda cost: cost.p50),
    "dollars": ("dollars", "dollars for a million queries", lambda cost: cost.usd_per_million),
    "bytes": ("vector bytes", "bytes of vectors", lambda cost: cost.vector_bytes),
}
UNITS = {"latency": "ms", "dollars": "dollars", "bytes": "bytes"}


def section(view: View) -> Section:
    """What each retriever costs, the frontiers, and the latency stage by stage."""
    costs = costs_of(view.results)
    plots = [plot for key in PRICES if (plot := _plot(view, key, costs)) is not None]
    edges = {key: _on_frontier(view, costs, price) for key, (_, _, price) in PRICES.items()}
    timed = _stages(view, costs)
    return Section(
        "tradeoffs",
        "Cost and speed",
        {
            "costs": [(name, costs[name]) for name in view.ranked],
            "plots": plots,
            "frontiers": [(PRICES[key][0], names) for key, names in edges.items() if names],
            "stages": timed,
            "timed": any(cost.stages for cost in costs.values()),
            "measured_at": max((cost.measured_at for cost in costs.values()), default=""),
            "approximations": list(approximations(view.results).items()),
            "sizes": list(vector_sizes(view.results).items()),
            "rows": view.results.costs.to_dict("records"),
        },
        (*plots, *((timed,) if timed else ())),
    )


def _priced(view: View, costs: Mapping[str, Cost], price: PriceOf) -> dict[str, float]:
    """What each retriever costs; nothing where one was not measured: it might be what the frontier rests on."""
    prices = {name: price(costs[name]) for name in view.ranked}
    priced = {name: value for name, value in prices.items() if value is not None}
    return priced if len(priced) == len(prices) else {}


def _on_frontier(view: View, costs: Mapping[str, Cost], price: PriceOf) -> list[str]:
    """The retrievers that none other beats on both; nothing where all cost the same."""
    priced = _priced(view, costs, price)
    if len(set(priced.values())) < 2:
        return []
    edge = set(frontier((value, view.conclusion.means[name]) for name, value in priced.items()))
    return [name for name, value in priced.items() if (value, view.conclusion.means[name]) in edge]


def _plot(view: View, key: str, costs: Mapping[str, Cost]) -> Figure | None:
    short, axis, price = PRICES[key]
    priced = _priced(view, costs, price)
    if len(set(priced.values())) < 2:
        return None
    means, name = view.conclusion.means, view.names[view.primary]
    summary = view.results.summary
    edge = frontier((value, means[r]) for r, value in priced.items())
    dots = []
    for row in summary[summary["measure"] == view.primary].to_dict("records"):
        # Without an interval the point stands alone.
        low, high = (row["mean"] if math.isnan(row[end]) else row[end] for end in ("ci_low", "ci_high"))
        dots.append(charts.Dot(row["retriever"], means[row["retriever"]], low, high, price=priced[row["retriever"]]))
    says = charts.PriceAxis(axis, UNITS[key])
    points = "; ".join(f"{r}: {text.plain(value)}, {text.score(means[r])}" for r, value in priced.items())
    return figure(
        f"tradeoff-{key}",
        f"{name.short} against {short}",
        f"{axis} and mean {name.short}: {points}. On the frontier: {', '.join(_on_frontier(view, costs, price))}.",
        lambda width: charts.trade_off(dots, edge, view.marks, says, width),
    )


def _stages(view: View, costs: Mapping[str, Cost]) -> Figure | None:
    dots = [
        charts.StageDot(name, stage.stage, *(max(value, FLOOR) for value in (stage.p50, stage.p95, stage.p99)))
        for name in view.ranked
        for stage in costs[name].stages
    ]
    if not dots:
        return None
    medians = "; ".join(f"{name} {text.milliseconds(costs[name].p50)}" for name in view.ranked)
    names = [stage for stage in PER_QUERY if any(dot.stage == stage for dot in dots)]
    return figure(
        "latency",
        "Latency of a query, stage by stage: median, p95 and p99",
        f"Sums of the medians over the stages: {medians}.",
        lambda width: charts.stages(dots, view.ranked, names, width),
    )
