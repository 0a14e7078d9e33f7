"""The table costs.csv."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from harness.records.csv_table import TableColumns, read_table_columns, write_table
from harness.records.manifest import Manifest
from harness.records.read_artifact import refuse_changed_file
from harness.records.run import Run, StageLatency
from harness.records.table_schema import COST_COLUMNS, LATENCY_COLUMNS
from retrievers.meter import StageTotals

NO_TOTALS = StageTotals(0.0, {})


class CostRow(NamedTuple):
    """What one stage of one retriever cost in a run."""

    retriever: str
    """Its name; "" for a stage that serves all retrievers at once, such as "judge"."""
    stage: str
    """A part of its work, such as "embed-queries" or "search"."""
    calls: int
    """Requests that were sent."""
    texts: int
    """Texts (of a reranker, pairs) that the stage read, also from the cache."""
    cached: int
    """Those of `texts` that came from the cache."""
    tokens: int
    """Tokens of the texts that were not cached; 0 if they are not counted."""
    usd: float
    """Dollars that were billed: 0 for what was cached or is free."""
    seconds: float
    """Wall time of the stage for the whole corpus, or all queries."""
    latency: StageLatency | None
    """Times of single queries; None, and empty cells, if they were not timed."""

    @property
    def p50_ms(self) -> float | None:
        """The median of one query's time; None if single queries were not timed."""
        return None if self.latency is None else self.latency.p50_ms

    @property
    def p95_ms(self) -> float | None:
        """The 95th percentile of one query's time, likewise."""
        return None if self.latency is None else self.latency.p95_ms

    @property
    def counts(self) -> dict[str, float]:
        """The counts of the stage that are not 0."""
        counts = {
            "calls": self.calls,
            "texts": self.texts,
            "cached": self.cached,
            "tokens": self.tokens,
            "usd": self.usd,
        }
        return {name: count for name, count in counts.items() if count}


def write_costs(
    folder: Path, runs: Iterable[Run], common_stages: Mapping[str, StageTotals]
) -> list[CostRow]:
    """Write costs.csv, one row for each retriever and stage, and return its rows.

    Args:
        folder: of the results.
        runs: the retrievers.
        common_stages: those that serve all retrievers at once.
    """
    rows: list[CostRow] = []
    for run in (*runs, Run("", {}, stages=common_stages)):
        stages = dict.fromkeys([*run.stages, *run.latency])
        rows += [_cost_row(run, stage) for stage in stages]
    columns: dict[str, list[Any]] = {name: [] for name in COST_COLUMNS}
    for row in rows:
        *cells, latency = row
        cells += latency or [None] * len(LATENCY_COLUMNS)
        for name, cell in zip(COST_COLUMNS, cells, strict=True):
            columns[name].append(cell)
    write_table(folder, "costs", columns)
    return rows


def _cost_row(run: Run, stage: str) -> CostRow:
    totals = run.stages.get(stage, NO_TOTALS)
    counts = totals.counts
    return CostRow(
        retriever=run.retriever,
        stage=stage,
        calls=int(counts.get("calls", 0)),
        texts=int(counts.get("texts", 0)),
        cached=int(counts.get("cached", 0)),
        tokens=int(counts.get("tokens", 0)),
        usd=float(counts.get("usd", 0.0)),
        seconds=totals.seconds,
        latency=run.latency.get(stage),
    )


def read_costs(path: Path) -> list[CostRow]:
    """Read costs.csv.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no such table.
    """
    return cost_rows(read_table_columns(path))


def cost_rows(columns: TableColumns) -> list[CostRow]:
    """Return the rows of costs.csv from its columns."""
    cells_by_row = zip(*(columns[name] for name in COST_COLUMNS), strict=True)
    return [_parse_row(cells) for cells in cells_by_row]


def _parse_row(cells: tuple[Any, ...]) -> CostRow:
    """Return a row from its cells, in the order of the columns."""
    retriever, stage, calls, texts, cached, tokens, usd, seconds, *timing = cells
    latency = StageLatency(*timing)
    is_timed = isinstance(latency.measured_at, str) and not math.isnan(latency.p50_ms)
    return CostRow(
        retriever=retriever,
        stage=stage,
        calls=calls,
        texts=texts,
        cached=cached,
        tokens=tokens,
        usd=usd,
        seconds=seconds,
        latency=latency if is_timed else None,
    )


def read_latencies(
    folder: Path, manifest: Manifest
) -> dict[str, dict[str, StageLatency]]:
    """Return the latencies of a results folder: retriever -> stage -> percentiles.

    Raises:
        InputError: costs.csv is missing or was changed.
        ValueError: it is no such table.
    """
    refuse_changed_file(folder, manifest, "costs.csv")
    latencies: dict[str, dict[str, StageLatency]] = {}
    for row in read_costs(folder / "costs.csv"):
        if row.latency is not None:
            latencies.setdefault(row.retriever, {})[row.stage] = row.latency
    return latencies
