"""What approximate search gives up, and what it saves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from harness.records import Results
from harness.report.text import size


class Approximation(NamedTuple):
    """One approximate retriever against exact search in the same collection."""

    compared: int
    """Queries that were searched both ways."""
    recall_at_10: float
    """Share of the exact first 10 hits that the approximate search found among its own first 10."""
    recall: float
    """The same for all hits of the depth."""
    bytes: float
    """Bytes of vectors and graph that a search needs at hand."""
    exact_bytes: float
    """Bytes of the vectors in 32 bits, which exact search needs."""
    ms: float
    """Milliseconds of a query, in batches."""
    exact_ms: float
    unindexed: str = ""
    """What the engine did not do of what was asked for, in a sentence; "" where it did all, or does not say."""


def approximations(results: Results) -> dict[str, Approximation]:
    """Return the approximate retrievers, in the order of the experiment, each against exact search."""
    ledger = results.manifest.ledger.retrievers
    measured = {
        name: _approximation(results, name, counts)
        for name in results.retrievers
        if (counts := ledger[name].counts.get("search-exact")) and counts.get("exact_hits")
    }
    return {name: one for name, one in measured.items() if one is not None}


def _approximation(results: Results, name: str, counts: Mapping[str, float]) -> Approximation | None:
    facts = results.manifest.retrievers[name].provenance
    stages = {row["stage"]: row for row in results.costs.to_dict("records") if row["retriever"] == name}
    if not {"search", "search-exact"} <= stages.keys() or "vector_bytes" not in facts:
        return None

    def ms(stage: str) -> float:
        return 1e3 * float(stages[stage]["seconds"]) / int(stages[stage]["texts"])

    return Approximation(
        compared=int(stages["search-exact"]["texts"]),
        recall_at_10=counts["shared_hits_at_10"] / counts["exact_hits_at_10"],
        recall=counts["shared_hits"] / counts["exact_hits"],
        bytes=float(facts["vector_bytes"]),
        exact_bytes=4.0 * int(facts["dimensions"]) * int(facts["vectors"]),
        ms=ms("search"),
        exact_ms=ms("search-exact"),
        unindexed=_unindexed(facts),
    )


def _unindexed(facts: Mapping[str, str]) -> str:
    """Say which vectors an engine has left out of its index, since their segments are below its thresholds.

    >>> _unindexed({"points": "9", "indexed_points": "0", "dimensions": "384", "indexing_threshold_kb": "10000"})
    '9 of 9 vectors (13.8 kB) are neither in a graph nor compressed: below the threshold of 10.2 MB all are compared'
    """
    points, indexed = int(facts.get("points", 0)), int(facts.get("indexed_points", 0))
    dimensions = int(facts["dimensions"])
    indexing, full_scan = (1024 * int(facts.get(f"{name}_threshold_kb", 0)) for name in ("indexing", "full_scan"))
    if indexed < points:
        left = points - indexed
        what = f"{left:,} of {points:,} vectors ({size(4 * dimensions * left)}) are neither in a graph nor compressed"
        return f"{what}: below the threshold of {size(indexing)} all are compared" if indexing else what
    if 4 * dimensions * points < full_scan:
        whole = size(4 * dimensions * points)
        return f"no graph is searched: {whole} are below the threshold of {size(full_scan)}, all vectors are compared"
    return ""
