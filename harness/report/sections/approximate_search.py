"""Approximate against exact search."""

from collections.abc import Mapping
from dataclasses import dataclass

from harness.records import CostRow, Results
from retrievers.types import CollectionFacts


@dataclass(frozen=True, slots=True)
class ApproximationRow:
    """An approximate retriever against exact search in the same collection."""

    compared: int
    """Queries that were searched both ways."""
    recall_at_10: float
    recall: float
    """Recall of all stored hits."""
    bytes: float
    exact_bytes: float
    ms: float
    """Milliseconds per query, searched in batches."""
    exact_ms: float
    unindexed: str
    """How many vectors are not in the index; "" for none."""


def compare_with_exact(results: Results) -> dict[str, ApproximationRow]:
    """Return the approximate retrievers that the run also searched exactly.

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
    """Return how an approximate search compares with an exact one.

    None if the run did not search both ways, or does not know the size of its vectors.
    """
    facts = results.manifest.retrievers[retriever].provenance.vectors
    stages = {row.stage: row for row in results.cost_rows if row.retriever == retriever}
    if not {"search", "search-exact"} <= stages.keys():
        return None
    if facts.size_bytes is None or facts.texts is None or facts.dimensions is None:
        return None
    bytes_per_vector = 4.0 * facts.dimensions  # of 32-bit numbers
    return ApproximationRow(
        compared=stages["search-exact"].texts,
        recall_at_10=counts["shared_hits_at_10"] / counts["exact_hits_at_10"],
        recall=counts["shared_hits"] / counts["exact_hits"],
        bytes=facts.size_bytes,
        exact_bytes=bytes_per_vector * facts.texts,
        ms=_milliseconds_per_text(stages["search"]),
        exact_ms=_milliseconds_per_text(stages["search-exact"]),
        unindexed=_unindexed(facts.collection),
    )


def _milliseconds_per_text(cost: CostRow) -> float:
    return 1e3 * cost.seconds / cost.texts


def _unindexed(collection: CollectionFacts) -> str:
    """Return how many vectors an engine left out of its index.

    It leaves out segments that are small.

    >>> print(_unindexed(CollectionFacts(points=9, indexed_points=0)))
    9 of 9 vectors are neither in a graph nor compressed: all of them are compared
    """
    unindexed = collection.unindexed_points
    if not unindexed:
        return ""
    return (
        f"{unindexed:,} of {collection.points:,} vectors are neither in a graph "
        "nor compressed: all of them are compared"
    )
