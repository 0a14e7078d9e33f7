"""Approximate against exact search."""

from collections.abc import Mapping

from harness.records import Results
from harness.report.templates import TemplateRow


def compare_with_exact(results: Results) -> dict[str, TemplateRow]:
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
) -> TemplateRow | None:
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
