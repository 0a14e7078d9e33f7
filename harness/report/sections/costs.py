"""Quality against costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.evaluation.costs import RetrieverCost, retriever_costs
from harness.records import CostRow, Results
from harness.report.charts.axes import vector_size_text
from harness.report.charts.figure import Figure, draw_figure
from harness.report.charts.trade_off import CostKind, PricedMean, draw_trade_off
from harness.report.numbers import (
    milliseconds_number,
    number_text,
    score_text,
)
from harness.report.palette import UNDECIDED_SHADE, standing_shade
from harness.report.sections.approximate_search import (
    ApproximationRow,
    compare_with_exact,
)
from harness.report.sections.cost_sentences import cost_sentences
from harness.report.templates import Section
from harness.report.view import View

COST_KINDS = {
    "latency": CostKind(
        "latency", "p95 ms", "ms", lambda cost: cost.p95, milliseconds_number
    ),
    "dollars": CostKind(
        "dollars",
        "$ per million queries",
        "dollars",
        lambda cost: cost.usd_per_million,
        number_text,
    ),
    "bytes": CostKind(
        "bytes",
        "bytes of vectors",
        "bytes",
        lambda cost: cost.vector_bytes,
        vector_size_text,
    ),
}
"""In the order of the page, whose first chart is not folded."""
MAX_NAMED_DOTS = 16
"""Dots up to which all have a name; of more, those that are not worse."""
CHART_WIDTH = 568.0
"""Width of a column of the page, in pixels."""


VECTOR_UNITS = {
    "sparse": "numbers that are not 0",
    "multivector": "vectors, one a token",
}
"""Kinds of retrievers whose vectors vary in size."""


@dataclass(frozen=True, slots=True)
class VectorSize:
    """The vectors of a retriever whose vectors vary in size, as means."""

    counted: str
    """The unit of the counts."""
    per_text: float
    per_query: float
    dimensions: int
    bytes_per_document: float


@dataclass(frozen=True, slots=True)
class CostsContext:
    """The section's content."""

    costs: Mapping[str, RetrieverCost]
    sentences: list[str]
    timed: bool
    """Whether the latency of any retriever was measured."""
    plots: list[Figure]
    measured_at: str
    """The time of the last latency, as in manifests; "" without one."""
    approximations: Mapping[str, ApproximationRow]
    sizes: Mapping[str, VectorSize]
    rows: Sequence[CostRow]
    """The rows of costs.csv."""


def costs_section(view: View) -> Section[CostsContext]:
    """Quality against each measured cost, and the costs of each retriever."""
    costs = retriever_costs(view.results)
    plots: list[Figure] = []
    for kind in COST_KINDS:
        plot = _plot(view, kind, costs)
        if plot is not None:
            plots.append(plot)
    context = CostsContext(
        costs=costs,
        sentences=cost_sentences(view),
        timed=any(cost.stages for cost in costs.values()),
        plots=plots,
        measured_at=max((cost.measured_at for cost in costs.values()), default=""),
        approximations=compare_with_exact(view.results),
        sizes=vector_sizes(view.results),
        rows=view.results.cost_rows,
    )
    return Section("cost", "Cost", context, tuple(plots))


def _plot(view: View, kind: str, costs: Mapping[str, RetrieverCost]) -> Figure | None:
    """Return quality against one kind of cost.

    None if all prices are the same, or one is unknown.
    """
    cost_kind = COST_KINDS[kind]
    prices = _prices(view, costs, cost_kind)
    if len(set(prices.values())) < 2:
        return None
    means = view.evaluation.means
    dots = _priced_means(view, prices)
    points = "; ".join(
        f"{retriever}: {cost_kind.cost_text(price)}, {score_text(means[retriever])}"
        for retriever, price in prices.items()
    )
    measure = view.names[view.primary].short
    return draw_figure(
        f"tradeoff-{kind}",
        f"{measure} against {cost_kind.short_title}",
        f"{cost_kind.title} and mean {measure}: {points}.",
        lambda width: draw_trade_off(dots, cost_kind, measure, width),
        wide=CHART_WIDTH,
    )


def _priced_means(view: View, prices: Mapping[str, float]) -> list[PricedMean]:
    """Return a dot of the chart for each retriever with a mean."""
    dots: list[PricedMean] = []
    are_all_named = len(prices) <= MAX_NAMED_DOTS
    for row in view.evaluation.board.rows:
        if row.mean is None:
            continue
        shade = standing_shade(row.standing)
        dots.append(
            PricedMean(
                row.retriever,
                row.mean,
                prices[row.retriever],
                shade.light,
                is_open=shade is UNDECIDED_SHADE,
                is_named=are_all_named or row.standing != "worse",
            )
        )
    return dots


def _prices(
    view: View, costs: Mapping[str, RetrieverCost], cost_kind: CostKind
) -> dict[str, float]:
    """The cost of each retriever.

    Empty if one was not measured: it could be on the frontier.
    """
    prices: dict[str, float] = {}
    for retriever in view.ranked:
        price = cost_kind.read_cost(costs[retriever])
        if price is None:
            return {}
        prices[retriever] = price
    return prices


def vector_sizes(results: Results) -> dict[str, VectorSize]:
    """Return the retrievers whose vectors vary in size.

    They are in the order of the experiment.
    """
    records = results.manifest.resolved.retriever_by_name
    sizes: dict[str, VectorSize] = {}
    for retriever in results.retrievers:
        unit = VECTOR_UNITS.get(records[retriever].kind)
        facts = results.manifest.retrievers[retriever].provenance.vectors
        if unit is None or facts.per_text is None or facts.size_bytes is None:
            continue
        documents = results.manifest.dataset.documents
        sizes[retriever] = VectorSize(
            counted=unit,
            per_text=facts.per_text,
            per_query=facts.per_query or 0.0,
            dimensions=facts.dimensions or 0,
            bytes_per_document=facts.size_bytes / documents,
        )
    return sizes
