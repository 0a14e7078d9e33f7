"""The table costs.csv."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.records.csv_table import read_table_rows, write_table
from harness.records.manifest import Manifest
from harness.records.read_artifact import refuse_changed_file
from harness.records.run import Run, StageLatency
from harness.records.table_schema import (
    COST_COLUMNS,
    COUNT_COLUMNS,
    LATENCY_COLUMNS,
)
from retrievers.meter import StageTotals

NO_TOTALS = StageTotals(0.0, {})


def write_costs(
    folder: Path, runs: Iterable[Run], shared: Mapping[str, StageTotals]
) -> None:
    """Write costs.csv: one row for each retriever and stage.

    Args:
        folder: of the results.
        runs: the retrievers.
        shared: the stages that serve all retrievers at once, such as "judge"; their
            rows name no retriever.
    """
    columns: dict[str, list[Any]] = {name: [] for name in COST_COLUMNS}
    for run in (*runs, Run("", {}, stages=shared)):
        for stage in dict.fromkeys([*run.stages, *run.latency]):
            for name, cell in _row(run, stage).items():
                columns[name].append(cell)
    write_table(folder, "costs", columns)


def _row(run: Run, stage: str) -> dict[str, Any]:
    """Return the cells of one stage of a retriever."""
    totals = run.stages.get(stage, NO_TOTALS)
    row: dict[str, Any] = {"retriever": run.retriever, "stage": stage}
    for name in COUNT_COLUMNS:
        row[name] = int(totals.counts.get(name, 0))
    row["usd"] = totals.counts.get("usd", 0.0)
    row["seconds"] = totals.seconds
    latency = run.latency.get(stage)
    for name in LATENCY_COLUMNS:
        row[name] = None if latency is None else getattr(latency, name)
    return row


def stage_latency(row: Mapping[str, Any]) -> StageLatency | None:
    """Return the latency in a row of costs.csv; None if it was not measured."""
    if not isinstance(row["measured_at"], str):
        return None
    return StageLatency(*(row[name] for name in LATENCY_COLUMNS))


def read_latencies(
    folder: Path, manifest: Manifest
) -> dict[str, dict[str, StageLatency]]:
    """Return the latencies of a results folder: retriever -> stage -> percentiles.

    Raises:
        InputError: costs.csv was changed; OSError and ValueError: it cannot be read.
    """
    refuse_changed_file(folder, manifest, "costs.csv")
    latencies: dict[str, dict[str, StageLatency]] = {}
    for row in read_table_rows(folder / "costs.csv"):
        latency = stage_latency(row)
        if latency is not None:
            latencies.setdefault(row["retriever"], {})[row["stage"]] = latency
    return latencies
