"""Approximate against exact search."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.records import Results


@dataclass(frozen=True, slots=True)
class ApproximationRow:
    """An approximate retriever against exact search in the same collection."""

    compared: int
    """Queries."""
    recall_at_10: float
    recall: float
    """Of all hits that were kept."""
    bytes: float
    exact_bytes: float
    ms: float
    """Of a query, in batches."""
    exact_ms: float
    unindexed: str
    """How many vectors are not in the index; "" for none."""


def compare_with_exact(results: Results) -> dict[str, ApproximationRow]:
    """Return the approximate retrievers, each against exact search.

    They are in the order of the experiment.
    """
    rows: dict[str, ApproximationRow] = {}
    for retriever in results.retrievers:
        quality = results.manifest.ledger.retrievers[retriever]
        counts = quality.counts.get("search-exact", {})
        if counts.get("exact_hits"):
            row = _approximation_row(results, retriever, counts)
            if row is not None:
                rows[retriever] = row
    return rows


def _approximation_row(
    results: Results, retriever: str, counts: Mapping[str, float]
) -> ApproximationRow | None:
    provenance = results.manifest.retrievers[retriever].provenance
    stages = {
        row["stage"]: row for row in results.cost_rows if row["retriever"] == retriever
    }
    if not {"search", "search-exact"} <= stages.keys():
        return None
    if "vector_bytes" not in provenance:
        return None
    vectors = int(provenance["vectors"])
    bytes_per_vector = 4.0 * int(provenance["dimensions"])  # of 32-bit numbers
    return ApproximationRow(
        compared=int(stages["search-exact"]["texts"]),
        recall_at_10=counts["shared_hits_at_10"] / counts["exact_hits_at_10"],
        recall=counts["shared_hits"] / counts["exact_hits"],
        bytes=float(provenance["vector_bytes"]),
        exact_bytes=bytes_per_vector * vectors,
        ms=_milliseconds_per_text(stages["search"]),
        exact_ms=_milliseconds_per_text(stages["search-exact"]),
        unindexed=_unindexed(provenance),
    )


def _milliseconds_per_text(cost_row: Mapping[str, Any]) -> float:
    return 1e3 * float(cost_row["seconds"]) / int(cost_row["texts"])


def _unindexed(provenance: Mapping[str, str]) -> str:
    """Return how many vectors an engine left out of its index.

    It leaves out segments that are small.

    >>> print(_unindexed({"points": "9", "indexed_points": "0"}))
    9 of 9 vectors are neither in a graph nor compressed: all of them are compared
    """
    points = int(provenance.get("points", 0))
    indexed = int(provenance.get("indexed_points", 0))
    if indexed >= points:
        return ""
    return (
        f"{points - indexed:,} of {points:,} vectors are neither in a graph "
        "nor compressed: all of them are compared"
    )
