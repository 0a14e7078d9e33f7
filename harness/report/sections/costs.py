"""Quality against costs."""

from collections.abc import Mapping

from harness.evaluation.costs import RetrieverCost, pareto_frontier, retriever_costs
from harness.records import Results
from harness.report.charts.figure import Figure, draw_figure
from harness.report.charts.trade_off import CostKind, PricedMean, draw_trade_off
from harness.report.numbers import number_text, score_text
from harness.report.sections.approximate_search import compare_with_exact
from harness.report.templates import Section, TemplateRow
from harness.report.view import View

COST_KINDS = {
    "latency": CostKind(
        "latency",
        "p95 of a query's latency (ms)",
        "ms",
        lambda cost: cost.p95,
        "Fastest",
    ),
    "dollars": CostKind(
        "dollars",
        "dollars per million queries",
        "dollars",
        lambda cost: cost.usd_per_million,
        "Cheapest",
    ),
    "bytes": CostKind(
        "bytes", "bytes of vectors", "bytes", lambda cost: cost.vector_bytes, "Smallest"
    ),
}
"""In the order of the page: the first that was measured for all retrievers is drawn first."""


def costs_section(view: View) -> Section:
    """Quality against each measured cost, and the costs of each retriever."""
    costs = retriever_costs(view.results)
    plots = [
        plot for key in COST_KINDS if (plot := _plot(view, key, costs)) is not None
    ]
    context = {
        "costs": costs,
        "timed": any(cost.stages for cost in costs.values()),
        "plots": plots,
        "measured_at": max((cost.measured_at for cost in costs.values()), default=""),
        "approximations": compare_with_exact(view.results),
        "sizes": vector_sizes(view.results),
        "rows": view.results.cost_rows,
    }
    return Section("tradeoffs", "Cost and speed", context, tuple(plots))


def _priced(
    view: View, costs: Mapping[str, RetrieverCost], price: CostKind
) -> dict[str, float]:
    """The cost of each retriever; empty if one was not measured: it could be on the frontier."""
    prices = {name: price.read_cost(costs[name]) for name in view.ranked}
    priced = {name: value for name, value in prices.items() if value is not None}
    return priced if len(priced) == len(prices) else {}


def _plot(view: View, key: str, costs: Mapping[str, RetrieverCost]) -> Figure | None:
    price = COST_KINDS[key]
    priced = _priced(view, costs, price)
    if len(set(priced.values())) < 2:
        return None
    means, name = view.evaluation.means, view.names[view.primary]
    edge = pareto_frontier((value, means[r]) for r, value in priced.items())
    dots = []
    for r, row in view.evaluation.summary[view.primary].items():
        low, high = (
            means[r] if end is None else end for end in (row.ci_low, row.ci_high)
        )
        dots.append(PricedMean(r, means[r], low, high, priced[r]))
    points = "; ".join(
        f"{r}: {number_text(value)}, {score_text(means[r])}"
        for r, value in priced.items()
    )
    return draw_figure(
        f"tradeoff-{key}",
        f"{name.short} against {price.short_title}",
        f"{price.title} and mean {name.short}: {points}.",
        lambda width: draw_trade_off(dots, edge, view.colors, price, width),
    )


VECTOR_UNITS = {
    "sparse": ("nonzeros", "numbers that are not 0"),
    "multivector": ("tokens", "vectors, one a token"),
}
"""Kind -> the key of the manifest, and the unit."""


def vector_sizes(results: Results) -> dict[str, TemplateRow]:
    """Return the retrievers whose vectors vary in size, in the order of the experiment."""
    sizes: dict[str, TemplateRow] = {}
    for name in results.retrievers:
        facts = results.manifest.retrievers[name].provenance
        key, counted = VECTOR_UNITS.get(
            results.manifest.resolved.retriever_tables[name]["kind"], ("", "")
        )
        if f"{key}_per_text" in facts:
            sizes[name] = {
                "counted": counted,
                "per_text": float(facts[f"{key}_per_text"]),
                "per_query": float(facts[f"{key}_per_query"]),
                "dimensions": int(facts["dimensions"]),
                "bytes_per_document": float(facts["vector_bytes"])
                / results.manifest.dataset.documents,
            }
    return sizes
