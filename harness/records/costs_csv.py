"""The table costs.csv."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.records.csv_table import write_table
from harness.records.run import Run
from retrievers.meter import StageTotals

COST_COLUMNS = (
    "retriever",
    "stage",
    "calls",
    "texts",
    "cached",
    "tokens",
    "usd",
    "seconds",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "measured_at",
)
"""The columns of costs.csv; any other count goes to the ledger."""


def write_costs(
    folder: Path, runs: Iterable[Run], shared: Mapping[str, StageTotals]
) -> None:
    """Write costs.csv: one row per retriever and stage, in calls, tokens, dollars and seconds.

    Args:
        folder: of the results.
        runs: the retrievers.
        shared: the stages that serve all retrievers at once, such as "judge"; their rows name no retriever.
    """
    rows = []
    for run in (*runs, Run("", {}, stages=shared)):
        for stage in dict.fromkeys([*run.stages, *run.latency]):
            totals = run.stages.get(stage, StageTotals(0.0, {}))
            counts = [
                int(totals.counts.get(key, 0))
                for key in ("calls", "texts", "cached", "tokens")
            ]
            spent = (totals.counts.get("usd", 0.0), totals.seconds)
            rows.append(
                (
                    run.retriever,
                    stage,
                    *counts,
                    *spent,
                    *run.latency.get(stage, (None,) * 4),
                )
            )
    write_table(
        folder,
        "costs",
        {name: [row[place] for row in rows] for place, name in enumerate(COST_COLUMNS)},
    )
