"""What the retrievers cost: money, time and memory, each with all that it is made of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from harness.records import Results

PER_QUERY = ("embed-queries", "search", "fuse", "rerank")
"""The stages that every query passes; the others are passed once by the corpus."""
PAID = ("openai", "bedrock")


class Stage(NamedTuple):
    """The latency of one stage of one query, in milliseconds."""

    stage: str
    p50: float
    p95: float
    p99: float


class Cost(NamedTuple):
    """What one retriever costs, with all that it is made of; None where it was not measured."""

    usd: float
    """Dollars that this run spent."""
    usd_per_million: float | None
    """Dollars for a million queries."""
    stages: tuple[Stage, ...]
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


def costs_of(results: Results) -> dict[str, Cost]:
    """Return the cost of each retriever that finished."""
    blocks = {block["name"]: block for block in results.manifest["resolved"]["retrievers"]}
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for row in results.costs.to_dict("records"):
        rows.setdefault(row["retriever"], []).append({str(key): value for key, value in row.items()})
    return {name: _cost(name, blocks, rows, results.manifest) for name in results.retrievers}


def parts(name: str, blocks: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Return a retriever and all that it is made of, each once, itself first.

    >>> parts("h", {"h": {"of": ["a", "b"]}, "a": {}, "b": {"of": "a"}})
    ('h', 'a', 'b')
    """
    of = blocks[name].get("of") or ()
    inner = (part for other in ((of,) if isinstance(of, str) else of) for part in parts(other, blocks))
    return tuple(dict.fromkeys((name, *inner)))


def frontier(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the (price, quality) that no other point beats on both, cheapest first.

    >>> frontier([(1, 0.5), (2, 0.4), (3, 0.6)])
    [(1, 0.5), (3, 0.6)]
    """
    kept: list[tuple[float, float]] = []
    for price, quality in sorted(points, key=lambda point: (point[0], -point[1])):
        if not kept or quality > kept[-1][1]:
            kept.append((price, quality))
    return kept


def _cost(
    name: str,
    blocks: Mapping[str, Mapping[str, Any]],
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
    manifest: Mapping[str, Any],
) -> Cost:
    names = parts(name, blocks)
    made_of = [row for part in names for row in rows.get(part, ())]
    timed = {part: [row for row in rows.get(part, ()) if not math.isnan(row["p50_ms"])] for part in names}
    whole = [row for found in timed.values() for row in found] if all(timed.values()) else []
    return Cost(
        usd=math.fsum(row["usd"] for row in made_of),
        usd_per_million=_per_million([row for row in made_of if row["stage"] in PER_QUERY], _paid(name, blocks)),
        stages=_stages(whole),
        measured_at=max((str(row["measured_at"]) for row in whole), default=""),
        seconds=math.fsum(row["seconds"] for row in made_of if row["stage"] != "latency"),
        vector_bytes=_vector_bytes(names, blocks, manifest),
    )


def _stages(rows: Sequence[Mapping[str, Any]]) -> tuple[Stage, ...]:
    """The stages of one query in the order that it passes them; two searches of a fusion are one stage."""
    found: dict[str, Stage] = {}
    for row in sorted(rows, key=lambda row: PER_QUERY.index(row["stage"]) if row["stage"] in PER_QUERY else 0):
        p50, p95, p99 = row["p50_ms"], row["p95_ms"], row["p99_ms"]
        if before := found.get(row["stage"]):
            p50, p95, p99 = before.p50 + p50, before.p95 + p95, before.p99 + p99
        found[row["stage"]] = Stage(row["stage"], p50, p95, p99)
    return tuple(found.values())


def _paid(name: str, blocks: Mapping[str, Mapping[str, Any]]) -> bool:
    return any((blocks[part].get("encoder") or {}).get("kind") in PAID for part in parts(name, blocks))


def _per_million(rows: Sequence[Mapping[str, Any]], paid: bool) -> float | None:
    """Dollars of what was billed, over the texts that it was billed for; None where the cache answered all of it."""
    total = 0.0
    for row in rows:
        billed = row["texts"] - row["cached"]
        if row["usd"] > 0 and billed > 0:
            total += row["usd"] / billed * 1e6
        elif paid and row["stage"] == "embed-queries" and row["texts"] and billed <= 0:
            return None
    return total


def _vector_bytes(
    names: Sequence[str], blocks: Mapping[str, Mapping[str, Any]], manifest: Mapping[str, Any]
) -> float | None:
    total = 0.0
    for name in names:
        if blocks[name]["kind"] == "dense":
            told = manifest["retrievers"][name]["provenance"]
            if "vector_bytes" in told:
                total += float(told["vector_bytes"])
            elif "dimensions" in told:
                total += 4.0 * int(told["dimensions"]) * int(manifest["dataset"]["documents"])
            else:
                return None
    return total
