"""Quality against time, money and memory; rerankers before and after; scores where nothing is the answer."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.evaluation.csv_views import (
    Cost,
    candidates_read,
    costs_of,
    frontier,
    perfect,
)
from harness.measures import parse, score
from harness.records import Results
from harness.report import charts, text
from harness.report.charts import CostKind, Figure, Section, figure
from harness.report.view import View
from harness.stats.differences import differences
from harness.stats.intervals import mean
from retrievers.types import Floats

Facts = Mapping[str, Any]
"""A row of a table, by what the template calls it."""


PRICES = {
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


def section(view: View) -> Section:
    """Quality against each measured cost, and the costs of each retriever."""
    costs = costs_of(view.results)
    plots = [plot for key in PRICES if (plot := _plot(view, key, costs)) is not None]
    context = {
        "costs": costs,
        "timed": any(cost.stages for cost in costs.values()),
        "plots": plots,
        "measured_at": max((cost.measured_at for cost in costs.values()), default=""),
        "approximations": approximations(view.results),
        "sizes": vector_sizes(view.results),
        "rows": view.results.cost_rows,
    }
    return Section("tradeoffs", "Cost and speed", context, tuple(plots))


def _priced(view: View, costs: Mapping[str, Cost], price: CostKind) -> dict[str, float]:
    """The cost of each retriever; empty if one was not measured: it could be on the frontier."""
    prices = {name: price.of(costs[name]) for name in view.ranked}
    priced = {name: value for name, value in prices.items() if value is not None}
    return priced if len(priced) == len(prices) else {}


def _plot(view: View, key: str, costs: Mapping[str, Cost]) -> Figure | None:
    price = PRICES[key]
    priced = _priced(view, costs, price)
    if len(set(priced.values())) < 2:
        return None
    means, name = view.evaluation.means, view.names[view.primary]
    edge = frontier((value, means[r]) for r, value in priced.items())
    dots = []
    for r, row in view.evaluation.summary[view.primary].items():
        low, high = (
            means[r] if end is None else end for end in (row.ci_low, row.ci_high)
        )
        dots.append(charts.Dot(r, means[r], low, high, priced[r]))
    points = "; ".join(
        f"{r}: {text.plain(value)}, {text.score(means[r])}"
        for r, value in priced.items()
    )
    return figure(
        f"tradeoff-{key}",
        f"{name.short} against {price.short}",
        f"{price.title} and mean {name.short}: {points}.",
        lambda width: charts.trade_off(dots, edge, view.colors, price, width),
    )


COUNTED = {
    "sparse": ("nonzeros", "numbers that are not 0"),
    "multivector": ("tokens", "vectors, one a token"),
}
"""Kind -> the key of the manifest, and the unit."""


def vector_sizes(results: Results) -> dict[str, Facts]:
    """Return the retrievers whose vectors vary in size, in the order of the experiment."""
    sizes: dict[str, Facts] = {}
    for name in results.retrievers:
        facts = results.manifest.retrievers[name].provenance
        key, counted = COUNTED.get(
            results.manifest.resolved.blocks[name]["kind"], ("", "")
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


def approximations(results: Results) -> dict[str, Facts]:
    """Return the approximate retrievers, in the order of the experiment, each against exact search."""
    ledger = results.manifest.ledger.retrievers
    exact = {
        name: ledger[name].counts.get("search-exact", {}) for name in results.retrievers
    }
    measured = (
        (name, _approximation(results, name, of))
        for name, of in exact.items()
        if of.get("exact_hits")
    )
    return {name: one for name, one in measured if one is not None}


def _approximation(
    results: Results, name: str, counts: Mapping[str, float]
) -> Facts | None:
    facts = results.manifest.retrievers[name].provenance
    stages = {
        row["stage"]: row for row in results.cost_rows if row["retriever"] == name
    }
    if not {"search", "search-exact"} <= stages.keys() or "vector_bytes" not in facts:
        return None

    def ms(stage: str) -> float:
        return 1e3 * float(stages[stage]["seconds"]) / int(stages[stage]["texts"])

    return {
        "compared": int(stages["search-exact"]["texts"]),
        "recall_at_10": counts["shared_hits_at_10"] / counts["exact_hits_at_10"],
        "recall": counts["shared_hits"] / counts["exact_hits"],
        "bytes": float(facts["vector_bytes"]),
        "exact_bytes": 4.0
        * int(facts["dimensions"])
        * int(facts["vectors"]),  # of 32-bit vectors
        "ms": ms("search"),
        "exact_ms": ms("search-exact"),
        "unindexed": _unindexed(facts),
    }


def _unindexed(facts: Mapping[str, str]) -> str:
    """Return how many vectors an engine left out of its index, since its segments are small.

    >>> _unindexed({"points": "9", "indexed_points": "0"})
    '9 of 9 vectors are neither in a graph nor compressed: all of them are compared'
    """
    points, indexed = int(facts.get("points", 0)), int(facts.get("indexed_points", 0))
    what = f"{points - indexed:,} of {points:,} vectors are neither in a graph nor compressed: all of them are compared"
    return what if indexed < points else ""


class Rerun(NamedTuple):
    """A retriever whose first hits were reranked."""

    before: str
    """The retriever that gave the candidates."""
    depth: int
    """Candidates that were reranked."""
    ceiling: Floats | None
    """(n,) scores of the candidates sorted by grade; None if the measure needs more than grades."""


def reranked(view: View) -> dict[str, Rerun]:
    """Reranked retriever -> its first stage, if the results include it."""
    pairs = {}
    for name in view.ranked:
        block = view.resolved.blocks[name]
        if block.get("kind") == "rerank" and block.get("of") in view.ranked:
            facts = view.manifest.retrievers[name]
            depth = candidates_read(facts.provenance) or view.resolved.depth
            pairs[name] = Rerun(
                str(block["of"]), depth, _ceiling(view, str(block["of"]), depth)
            )
    return pairs


def _ceiling(view: View, before: str, depth: int) -> Floats | None:
    measure = parse(view.primary)
    if measure.claimed or measure.own or measure.get("groups") is not None:
        return None
    best = {
        query: perfect(ranking.doc_ids, view.grades[query], depth)
        for query, ranking in view.results.answers(before)
        if query in view.grades
    }
    return score([measure], dict(view.grades), best).of(measure)


def rerankers(view: View) -> Section | None:
    """A row for each reranker; None if no reranker's first stage is in the results."""
    rows = rerun_rows(view)
    return Section("reranked", "Rerankers", {"rows": rows}) if rows else None


def rerun_rows(view: View) -> list[Facts]:
    """The rerankers by their mean, highest first."""
    rows, means = list[Facts](), view.evaluation.means
    for name, rerun in reranked(view).items():
        before, after = (
            view.scores[view.primary][rerun.before],
            view.scores[view.primary][name],
        )
        apart = differences(after, before)
        ceiling = (
            None
            if rerun.ceiling is None
            else mean(rerun.ceiling, view.table.units.weights)
        )
        of = {
            "retriever": name,
            "of": rerun.before,
            "depth": rerun.depth,
            "ceiling": ceiling,
        }
        record = {
            "better": apart.wins,
            "equal": len(after) - apart.wins - apart.losses,
            "worse": apart.losses,
        }
        rows.append(
            {**of, "before": means[rerun.before], "after": means[name], **record}
        )
    return rows


def abstention(view: View) -> Section | None:
    """Areas, floors and pairs; None if every query is answerable, or no scores can be compared between queries."""
    found = view.evaluation.abstention
    if found is None:
        return None
    floors = sorted(found.floors, key=lambda one: (-one.area, one.retriever))
    return Section("abstention", "No answer", {"found": found, "floors": floors})


PLACES = {15: section, 45: rerankers, 46: abstention}
