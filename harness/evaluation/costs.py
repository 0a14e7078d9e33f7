"""What a retriever costs.

And what the retrievers cost: money, time and memory, each with all that it uses.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.records import Manifest, Results
from retrievers.types import Floats

QUERY_STAGES = ("embed-queries", "search", "fuse", "rerank")
"""The stages that every query passes; the others are passed once by the corpus."""
TOKEN_PRICE_KEY = "usd_per_million_tokens"  # noqa: S105
SEARCH_PRICE_KEY = "reranker usd_per_thousand_searches"
"""The key of a model's provenance that says what it costs; a reranker's has "reranker " before it."""
FREE_SEARCH_KINDS = ("dense", "sparse", "multivector", "qdrant-fusion", "bm25")
"""Kinds that search here, for nothing; what any other retriever's search costs, only its price can tell."""


class StagePercentiles(NamedTuple):
    """The latency of one stage of one query, in milliseconds."""

    stage: str
    p50: float
    p95: float
    p99: float


class RetrieverCost(NamedTuple):
    """What one retriever costs, with all that it uses; None where it was not measured."""

    usd: float
    """Dollars that this run spent."""
    usd_per_million: float | None
    """Dollars for a million queries."""
    stages: tuple[StagePercentiles, ...]
    """Stages of a query, where latency was measured."""
    measured_at: str
    seconds: float
    """Wall time of indexing and answering in this run, without the measuring of latency."""
    vector_bytes: float | None

    @property
    def p50(self) -> float | None:
        """Sum of the stages' medians."""
        return math.fsum(stage.p50 for stage in self.stages) if self.stages else None

    @property
    def p95(self) -> float | None:
        """Sum of the stages' 95th percentiles: at most this, were the stages never slow together."""
        return math.fsum(stage.p95 for stage in self.stages) if self.stages else None


def retriever_costs(results: Results) -> dict[str, RetrieverCost]:
    """Return the cost of each retriever that finished."""
    return _costs(results.manifest, results.cost_rows)


def _costs(
    manifest: Manifest, costs: Iterable[Mapping[str, Any]]
) -> dict[str, RetrieverCost]:
    rows = defaultdict[str, list[Mapping[str, Any]]](list)
    for row in costs:
        rows[row["retriever"]].append(row)
    return {name: _cost(name, rows, manifest) for name in manifest.finished}


RetrieverPrices = Mapping[str, tuple[float, ...]]
"""Retriever -> what a query costs, in dollars and time, and what it keeps at hand: the cheapest comes first."""


def price_points(
    manifest: Manifest, costs: Iterable[Mapping[str, Any]]
) -> dict[str, tuple[float, ...]]:
    """Return what orders retrievers by what a query costs: dollars, median latency, bytes of vectors; unknown last.

    Args:
        manifest: of the run.
        costs: the rows of costs.csv.
    """
    every = _costs(manifest, costs).items()
    known = {
        name: (cost.usd_per_million, cost.p50, cost.vector_bytes)
        for name, cost in every
    }
    return {
        name: tuple(math.inf if value is None else value for value in of)
        for name, of in known.items()
    }


def pareto_frontier(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the (price, quality) that no other point beats on both, cheapest first.

    >>> pareto_frontier([(1, 0.5), (2, 0.4), (3, 0.6), (4, 0.6)])
    [(1, 0.5), (3, 0.6)]
    """
    kept: list[tuple[float, float]] = []
    for price, quality in sorted(points, key=lambda point: (point[0], -point[1])):
        if not kept or quality > kept[-1][1]:
            kept.append((price, quality))
    return kept


def _cost(
    name: str, rows: Mapping[str, Sequence[Mapping[str, Any]]], manifest: Manifest
) -> RetrieverCost:
    parts = manifest.resolved.retriever_with_parts(name)
    made_of = [row for part in parts for row in rows.get(part, ())]
    timed = [row for row in made_of if not math.isnan(row["p50_ms"])]
    whole = timed if {row["retriever"] for row in timed} == {*parts} else []
    per_million = [
        _per_million(row, manifest) for row in made_of if row["stage"] in QUERY_STAGES
    ]
    known = [usd for usd in per_million if usd is not None]
    return RetrieverCost(
        usd=math.fsum(row["usd"] for row in made_of),
        usd_per_million=math.fsum(known) if len(known) == len(per_million) else None,
        stages=_stages(whole),
        measured_at=max((str(row["measured_at"]) for row in whole), default=""),
        seconds=math.fsum(
            row["seconds"] for row in made_of if row["stage"] != "latency"
        ),
        vector_bytes=_vector_bytes(parts, manifest),
    )


def _stages(rows: Sequence[Mapping[str, Any]]) -> tuple[StagePercentiles, ...]:
    """The stages of one query in the order that it passes them; two searches of a fusion are one stage."""
    stages: dict[str, Floats] = {}
    for row in sorted(
        rows,
        key=lambda row: (
            QUERY_STAGES.index(row["stage"]) if row["stage"] in QUERY_STAGES else 0
        ),
    ):
        own = np.array(
            [row[name] for name in ("p50_ms", "p95_ms", "p99_ms")], dtype=np.float64
        )
        stages[row["stage"]] = own + stages.get(row["stage"], 0.0)
    return tuple(
        StagePercentiles(name, *times.tolist()) for name, times in stages.items()
    )


def _per_million(row: Mapping[str, Any], manifest: Manifest) -> float | None:
    """Dollars that one stage takes for a million queries; None where that is not known.

    What was billed is shared out over the texts that it was billed for. Where the cache or parts answered all of them,
    the tokens that they remember are multiplied by the price.
    """
    stage, name, queries = row["stage"], row["retriever"], manifest.dataset.queries
    if stage == "fuse" or (
        stage == "search"
        and manifest.resolved.retriever_tables[name]["kind"] in FREE_SEARCH_KINDS
    ):
        return 0.0  # what its encoder costs is of another stage
    counts = manifest.ledger.retrievers[name].counts.get(stage, {})
    texts = row["texts"] or (
        queries if stage == "search" else 0
    )  # another system need not count what it is asked
    billed = texts - row["cached"]
    # The texts of a reranker are pairs, of which a query has many.
    of_a_query = texts / queries if stage == "rerank" and queries else 1
    if row["usd"] > 0 and billed > 0:
        return float(row["usd"] / billed * of_a_query * 1e6)
    if not texts:
        return 0.0
    search = manifest.retrievers[name].provenance.get(SEARCH_PRICE_KEY)
    if stage == "rerank" and search is not None:
        return float(search) / 1e3 * 1e6
    price = _price(name, stage, manifest)
    if not price:
        return price
    tokens = row["tokens"] + counts.get("cached_tokens", 0)
    return float(tokens / texts * of_a_query * price) if tokens else None


def _price(retriever: str, stage: str, manifest: Manifest) -> float | None:
    """Dollars for a million tokens that a stage of a retriever takes; None where it is not known."""
    stated = manifest.retrievers[retriever].provenance.get(
        f"reranker {TOKEN_PRICE_KEY}" if stage == "rerank" else TOKEN_PRICE_KEY
    )
    try:
        return None if stated is None else float(stated)
    except ValueError:
        return None


def _vector_bytes(parts: Sequence[str], manifest: Manifest) -> float | None:
    total = 0.0
    for part in parts:
        facts = manifest.retrievers[part].provenance
        if "vector_bytes" in facts:
            total += float(facts["vector_bytes"])
        elif manifest.resolved.retriever_tables[part]["kind"] == "dense":
            total += (
                4.0
                * float(facts.get("dimensions", math.nan))
                * manifest.dataset.documents
            )
    return None if math.isnan(total) else total
