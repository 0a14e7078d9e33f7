"""What each retriever costs in money, time, memory.

A retriever's cost includes that of all that it uses.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.records import Manifest, Results
from retrievers.types import Floats

QUERY_STAGES = ("embed-queries", "search", "fuse", "rerank")
"""The stages of every query; the other stages are of the corpus, and run once."""
TOKEN_PRICE_KEY = "usd_per_million_tokens"  # noqa: S105
"""The key of a model's price in the provenance.

A reranker's has "reranker " before it.
"""
SEARCH_PRICE_KEY = "reranker usd_per_thousand_searches"
FREE_SEARCH_KINDS = ("dense", "sparse", "multivector", "qdrant-fusion", "bm25")
"""Kinds that search here, for nothing; any other search may have a price."""


class StagePercentiles(NamedTuple):
    """The latency of one stage of one query, in milliseconds."""

    stage: str
    p50: float
    p95: float
    p99: float


class RetrieverCost(NamedTuple):
    """The cost of one retriever, with all that it uses; None if not measured."""

    usd: float
    """Dollars that this run spent."""
    usd_per_million: float | None
    """Dollars for a million queries."""
    stages: tuple[StagePercentiles, ...]
    """Stages of a query, if latency was measured."""
    measured_at: str
    seconds: float
    """Wall time of indexing and searching in this run, without measuring latency."""
    vector_bytes: float | None

    @property
    def p50(self) -> float | None:
        """Sum of the stages' medians."""
        return math.fsum(stage.p50 for stage in self.stages) if self.stages else None

    @property
    def p95(self) -> float | None:
        """Sum of the stages' 95th percentiles, an upper bound.

        It assumes that all stages are slow for the same queries.
        """
        return math.fsum(stage.p95 for stage in self.stages) if self.stages else None


def retriever_costs(results: Results) -> dict[str, RetrieverCost]:
    """Return the cost of each retriever that finished."""
    return _finished_costs(results.manifest, results.cost_rows)


def _finished_costs(
    manifest: Manifest, costs: Iterable[Mapping[str, Any]]
) -> dict[str, RetrieverCost]:
    rows = defaultdict[str, list[Mapping[str, Any]]](list)
    for row in costs:
        rows[row["retriever"]].append(row)
    return {name: _retriever_cost(name, rows, manifest) for name in manifest.finished}


RetrieverPrices = Mapping[str, tuple[float, ...]]
"""Retriever -> dollars, time of a query, and bytes in memory: the cheapest is first."""


def price_points(
    manifest: Manifest, costs: Iterable[Mapping[str, Any]]
) -> dict[str, tuple[float, ...]]:
    """Return the numbers that order retrievers by their price.

    These are the dollars and the median latency of a query, and the bytes of vectors;
    unknown ones are infinite.

    Args:
        manifest: of the run.
        costs: the rows of costs.csv.
    """
    points: dict[str, tuple[float, ...]] = {}
    for retriever, cost in _finished_costs(manifest, costs).items():
        prices = (cost.usd_per_million, cost.p50, cost.vector_bytes)
        points[retriever] = tuple(map(_or_infinite, prices))
    return points


def _or_infinite(price: float | None) -> float:
    return math.inf if price is None else price


def _retriever_cost(
    name: str, rows: Mapping[str, Sequence[Mapping[str, Any]]], manifest: Manifest
) -> RetrieverCost:
    """Return one retriever's cost.

    Args:
        name: the retriever.
        rows: retriever -> its rows of costs.csv.
        manifest: of the run.
    """
    parts = manifest.resolved.retriever_with_parts(name)
    part_rows: list[Mapping[str, Any]] = []
    for part in parts:
        part_rows += rows.get(part, ())
    timed_rows = [row for row in part_rows if not math.isnan(row["p50_ms"])]
    if {row["retriever"] for row in timed_rows} != {*parts}:
        timed_rows = []  # latency is known only if that of every part is
    seconds = [row["seconds"] for row in part_rows if row["stage"] != "latency"]
    return RetrieverCost(
        usd=math.fsum(row["usd"] for row in part_rows),
        usd_per_million=_usd_per_million(part_rows, manifest),
        stages=_stage_percentiles(timed_rows),
        measured_at=max((str(row["measured_at"]) for row in timed_rows), default=""),
        seconds=math.fsum(seconds),
        vector_bytes=_vector_bytes(parts, manifest),
    )


def _usd_per_million(
    rows: Sequence[Mapping[str, Any]], manifest: Manifest
) -> float | None:
    """Return the dollars for a million queries; None if a stage's are unknown."""
    prices: list[float] = []
    for row in rows:
        if row["stage"] in QUERY_STAGES:
            usd = _stage_usd_per_million(row, manifest)
            if usd is None:
                return None
            prices.append(usd)
    return math.fsum(prices)


def _stage_percentiles(
    rows: Sequence[Mapping[str, Any]],
) -> tuple[StagePercentiles, ...]:
    """Return the stages of one query in their order.

    The times of two searches of a fusion are added.
    """
    times: dict[str, Floats] = {}
    for row in sorted(rows, key=_stage_order):
        stage = row["stage"]
        percentiles = [row["p50_ms"], row["p95_ms"], row["p99_ms"]]
        row_times = np.array(percentiles, dtype=np.float64)
        times[stage] = row_times + times.get(stage, 0.0)
    return tuple(
        StagePercentiles(stage, *stage_times.tolist())
        for stage, stage_times in times.items()
    )


def _stage_order(row: Mapping[str, Any]) -> int:
    return QUERY_STAGES.index(row["stage"]) if row["stage"] in QUERY_STAGES else 0


def _stage_usd_per_million(row: Mapping[str, Any], manifest: Manifest) -> float | None:
    """Return the dollars of one stage for a million queries; None if unknown.

    The bill is divided by the texts that it is for. If all texts were cached, or in
    parts of the index, their number of tokens is multiplied by the price.
    """
    stage = row["stage"]
    retriever = row["retriever"]
    if _is_free(stage, retriever, manifest):
        return 0.0
    queries = manifest.dataset.queries
    texts = row["texts"]
    if not texts and stage == "search":
        texts = queries  # other retrievers need not count their queries
    billed_texts = texts - row["cached"]
    # The texts of a reranker are pairs, of which a query has many.
    texts_per_query = texts / queries if stage == "rerank" and queries else 1
    if row["usd"] > 0 and billed_texts > 0:
        return float(row["usd"] / billed_texts * texts_per_query * 1e6)
    if not texts:
        return 0.0
    search_price = manifest.retrievers[retriever].provenance.get(SEARCH_PRICE_KEY)
    if stage == "rerank" and search_price is not None:
        return float(search_price) / 1e3 * 1e6
    price = _token_price(retriever, stage, manifest)
    if not price:
        return price
    counts = manifest.ledger.retrievers[retriever].counts.get(stage, {})
    tokens = row["tokens"] + counts.get("cached_tokens", 0)
    return float(tokens / texts * texts_per_query * price) if tokens else None


def _is_free(stage: str, retriever: str, manifest: Manifest) -> bool:
    """Whether a stage costs nothing; the cost of its encoder is of another stage."""
    if stage != "search":
        return stage == "fuse"
    return manifest.resolved.retriever_tables[retriever]["kind"] in FREE_SEARCH_KINDS


def _token_price(retriever: str, stage: str, manifest: Manifest) -> float | None:
    """Return the dollars for a million tokens of a stage; None if unknown."""
    key = f"reranker {TOKEN_PRICE_KEY}" if stage == "rerank" else TOKEN_PRICE_KEY
    price = manifest.retrievers[retriever].provenance.get(key)
    if price is None:
        return None
    try:
        return float(price)
    except ValueError:
        return None


def _vector_bytes(parts: Sequence[str], manifest: Manifest) -> float | None:
    """Return the bytes of all vectors; None if those of a part are unknown."""
    total = 0.0
    for part in parts:
        provenance = manifest.retrievers[part].provenance
        if "vector_bytes" in provenance:
            total += float(provenance["vector_bytes"])
        elif manifest.resolved.retriever_tables[part]["kind"] == "dense":
            dimensions = float(provenance.get("dimensions", math.nan))
            total += 4.0 * dimensions * manifest.dataset.documents
    return None if math.isnan(total) else total
