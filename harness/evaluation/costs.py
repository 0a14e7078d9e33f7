"""What each retriever costs in money, time, memory.

It is computed from the stages in costs.csv, and the prices and sizes in the manifest.
A retriever's cost includes that of all that it uses; what is unknown of a part is
unknown of the whole.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from harness.records import CostRow, Manifest, Results
from retrievers.types import Floats, Price

QUERY_STAGES = ("embed-queries", "search", "fuse", "rerank")
"""The stages that a query of a user passes; no other stage counts in its price."""
PRICE_KEYS = {"embed-queries": "encoder.price", "rerank": "rerank.price"}
"""Stage of a query -> the key that states its price."""
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
    """Dollars that were spent for its rankings; of reused ones in an earlier run."""
    usd_per_million: float | None
    """Dollars for a million queries."""
    stages: tuple[StagePercentiles, ...]
    """Stages of a query; empty without latency."""
    measured_at: str
    """When the last of the stages was timed; "" without latency."""
    seconds: float
    """Wall time of all stages but that of measuring latency, in the run of `usd`."""
    vector_bytes: float | None
    """Bytes that searching its vectors needs in memory; 0 without vectors.

    Other indexes are not measured. None if those of a dense part are unknown.
    """
    price_keys: tuple[str, ...] = ()
    """Keys of the experiment that would state prices that are unknown."""
    is_cached: bool = False
    """Whether its latency is unknown because the cache had all of a stage."""

    @property
    def p50(self) -> float | None:
        """Sum of the stages' medians, which stands for a query's; None if untimed."""
        return math.fsum(stage.p50 for stage in self.stages) if self.stages else None

    @property
    def p95(self) -> float | None:
        """Sum of the stages' 95th percentiles, which stands for that of a query.

        It is, if the same queries are slow in all stages. Else it is mostly too high,
        and may be too low where slow queries are rare.
        """
        return math.fsum(stage.p95 for stage in self.stages) if self.stages else None


class PricePoint(NamedTuple):
    """What a query costs in each respect; infinite if unknown.

    Points are compared in the order of the fields: dollars decide before bytes. Times
    are not compared: their noise would order retrievers that are equally fast.
    """

    usd_per_million: float
    """Dollars for a million queries."""
    vector_bytes: float


RetrieverPrices = Mapping[str, PricePoint]
"""Retriever -> its price: the least is the cheapest."""


def retriever_costs(results: Results) -> dict[str, RetrieverCost]:
    """Return the cost of each retriever that finished."""
    return _finished_costs(results.manifest, results.cost_rows)


def price_points(manifest: Manifest, costs: Iterable[CostRow]) -> dict[str, PricePoint]:
    """Return retriever -> the dollars and bytes that order equally good retrievers.

    Args:
        manifest: of the run.
        costs: of its stages.
    """
    return {
        retriever: PricePoint(
            _or_infinite(cost.usd_per_million),
            _or_infinite(cost.vector_bytes),
        )
        for retriever, cost in _finished_costs(manifest, costs).items()
    }


def cheapest_of(prices: Mapping[str, float | None]) -> str | None:
    """Return the retriever with the lowest price.

    None if several have it, if a price is unknown, or without prices.

    Args:
        prices: retriever -> dollars for a million queries.

    >>> cheapest_of({"a": 2.0, "b": 1.0}), cheapest_of({"a": 0.0, "b": 0.0})
    ('b', None)
    """
    dollars = [math.inf if price is None else price for price in prices.values()]
    if not dollars or math.inf in dollars or dollars.count(min(dollars)) > 1:
        return None
    return min(prices, key=lambda name: prices[name] or 0.0)


def fastest_of(costs: Mapping[str, RetrieverCost]) -> str | None:
    """Return the retriever that is faster than every other beyond the spread of times.

    It is if its 95th percentile is below the median of each other; None if no
    retriever's is, or if there is only one.

    Args:
        costs: of retrievers; one without a measured latency may be the fastest.
    """
    for name, cost in costs.items():
        others = [other for other_name, other in costs.items() if other_name != name]
        if others and all(is_clearly_faster(cost, other) for other in others):
            return name
    return None


def is_clearly_faster(cost: RetrieverCost, other: RetrieverCost) -> bool:
    """Whether one's 95th percentile is below the other's median."""
    return cost.p95 is not None and other.p50 is not None and cost.p95 < other.p50


def _or_infinite(price: float | None) -> float:
    return math.inf if price is None else price


def _finished_costs(
    manifest: Manifest, costs: Iterable[CostRow]
) -> dict[str, RetrieverCost]:
    rows = defaultdict[str, list[CostRow]](list)
    for row in costs:
        rows[row.retriever].append(row)
    return {name: _retriever_cost(name, rows, manifest) for name in manifest.finished}


def _retriever_cost(
    name: str, rows: Mapping[str, Sequence[CostRow]], manifest: Manifest
) -> RetrieverCost:
    """Return one retriever's cost.

    Args:
        name: the retriever.
        rows: retriever -> its rows of costs.csv.
        manifest: of the run.
    """
    parts = manifest.resolved.retriever_with_parts(name)
    part_rows: list[CostRow] = []
    for part in parts:
        part_rows += rows.get(part, ())
    timed_rows = [row for row in part_rows if row.latency is not None]
    if {row.retriever for row in timed_rows} != {*parts}:
        timed_rows = []  # latency is known only if that of every part is
    dates = [row.latency.measured_at for row in timed_rows if row.latency is not None]
    return RetrieverCost(
        usd=math.fsum(row.usd for row in part_rows),
        usd_per_million=_usd_per_million(part_rows, manifest),
        stages=_stage_percentiles(timed_rows),
        measured_at=max(dates, default=""),
        seconds=math.fsum(row.seconds for row in part_rows if row.stage != "latency"),
        vector_bytes=_vector_bytes(parts, manifest),
        price_keys=tuple(dict.fromkeys(_price_keys(part_rows, manifest))),
        is_cached=not timed_rows and _is_from_cache(part_rows, manifest),
    )


def _price_keys(rows: Sequence[CostRow], manifest: Manifest) -> Iterator[str]:
    """Yield the keys that would state unknown prices; a search has none."""
    for row in rows:
        is_unknown = row.stage in PRICE_KEYS and (
            _stage_usd_per_million(row, manifest) is None
        )
        if is_unknown:
            yield PRICE_KEYS[row.stage]


def _is_from_cache(rows: Sequence[CostRow], manifest: Manifest) -> bool:
    """Whether nothing was timed because the cache had all of a stage of queries.

    With a table of latency, what is missing was switched off (`sample = 0`), or failed.
    """
    if "latency" in manifest.experiment.options:
        return False
    return any(
        row.stage in QUERY_STAGES
        and row.latency is None
        and 0 < row.texts <= row.cached
        for row in rows
    )


def _stage_percentiles(rows: Sequence[CostRow]) -> tuple[StagePercentiles, ...]:
    """Return the times of one query's stages in their order.

    The times of two searches of a fusion are added.
    """
    times: dict[str, Floats] = {}
    for row in sorted(rows, key=_stage_order):
        if row.latency is not None:
            percentiles = np.array(row.latency[:3], dtype=np.float64)
            times[row.stage] = percentiles + times.get(row.stage, 0.0)
    return tuple(
        StagePercentiles(stage, *stage_times.tolist())
        for stage, stage_times in times.items()
    )


def _stage_order(row: CostRow) -> int:
    return QUERY_STAGES.index(row.stage) if row.stage in QUERY_STAGES else 0


def _usd_per_million(rows: Sequence[CostRow], manifest: Manifest) -> float | None:
    """Return the dollars for a million queries; None if a stage's are unknown."""
    prices: list[float] = []
    for row in rows:
        if row.stage in QUERY_STAGES:
            usd = _stage_usd_per_million(row, manifest)
            if usd is None:
                return None
            prices.append(usd)
    return math.fsum(prices)


def _stage_usd_per_million(row: CostRow, manifest: Manifest) -> float | None:
    """Return the dollars of one stage for a million queries; None if unknown.

    The bill is divided by the texts that it is for. If nothing was billed, the tokens,
    also those of cached texts, are multiplied by the price.
    """
    if _is_free(row, manifest):
        return 0.0
    queries = manifest.dataset.queries
    texts = row.texts
    if not texts and row.stage == "search":
        texts = queries  # other retrievers need not count their queries
    billed_texts = texts - row.cached
    texts_per_query = 1.0
    if row.stage == "rerank" and queries:
        # Its texts are pairs, of which a query has many, in each trial.
        trials = manifest.retrievers[row.retriever].provenance.answers.trials or 1
        texts_per_query = texts / (queries * trials)
    if row.usd > 0 and billed_texts > 0:
        return row.usd / billed_texts * texts_per_query * 1e6
    return _usd_by_price(row, texts, texts_per_query, manifest) if texts else 0.0


def _usd_by_price(
    row: CostRow, texts: int, texts_per_query: float, manifest: Manifest
) -> float | None:
    """Return the dollars for a million queries of a stage that billed nothing now.

    None if the price, or the count of tokens, is unknown.
    """
    price = _stage_price(row, manifest)
    if price is None:
        return None
    if row.stage == "rerank" and price.usd_per_thousand_searches:
        return price.usd_per_thousand_searches / 1e3 * 1e6  # a query is one search
    if not price.usd_per_million_tokens:
        return 0.0
    counts = manifest.ledger.retrievers[row.retriever].counts.get(row.stage, {})
    tokens = row.tokens + counts.get("cached_tokens", 0)
    if not tokens:
        return None
    # The tokens of one query, times the dollars for a million tokens.
    return tokens / texts * texts_per_query * price.usd_per_million_tokens


def _is_free(row: CostRow, manifest: Manifest) -> bool:
    """Whether a stage costs nothing; the cost of its encoder is of another stage."""
    if row.stage != "search":
        return row.stage == "fuse"
    kind = manifest.resolved.retriever_by_name[row.retriever].kind
    return kind in FREE_SEARCH_KINDS


def _stage_price(row: CostRow, manifest: Manifest) -> Price | None:
    """Return the price of the model of a stage; None if unknown."""
    facts = manifest.retrievers[row.retriever].provenance
    if row.stage != "rerank":
        return facts.model.price
    return None if facts.reranker is None else facts.reranker.model.price


def _vector_bytes(parts: Sequence[str], manifest: Manifest) -> float | None:
    """Return the bytes of all vectors; None if those of a dense part are unknown."""
    total = 0.0
    for part in parts:
        facts = manifest.retrievers[part].provenance
        if facts.vectors.size_bytes is not None:
            total += facts.vectors.size_bytes
        elif manifest.resolved.retriever_by_name[part].kind == "dense":
            dimensions = facts.dimensions
            if dimensions is None:
                return None
            # Without a stated size, vectors are of 32-bit numbers.
            total += 4.0 * dimensions * manifest.dataset.documents
    return total
