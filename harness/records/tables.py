"""The CSV tables of a results folder: written in full precision, read with their types, known by their digests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.records.run import COSTS, Run
from retrievers.meter import StageTotals

if TYPE_CHECKING:
    import pandas as pd

LEADING = {
    "scores": ("retriever", "query_id", "measure", "value"),
    "summary": ("retriever", "measure", "count", "mean"),
    "comparisons": ("measure", "a", "b", "n", "mean_difference", "p_value", "p_adjusted", "verdict"),
    "tests": ("family", "measure", "a", "b", "p_value"),
    "costs": ("retriever", "stage", "seconds"),
}
"""Table -> columns without which it cannot be used."""
TEXT_COLUMNS = ("retriever", "query_id", "measure", "a", "b", "stage", "family")
"""Read back as text, whatever they look like: query ids are often numbers."""


def write_table(folder: Path, name: str, table: pd.DataFrame) -> None:
    """Write a CSV file: full precision, line feeds, empty cells for what is undefined."""
    table.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")


def write_costs(folder: Path, runs: Iterable[Run]) -> None:
    """Write costs.csv: one row per retriever and stage, in calls, tokens, dollars and seconds."""
    import pandas as pd

    rows = []
    for run in runs:
        for stage in dict.fromkeys([*run.stages, *run.latency]):
            totals = run.stages.get(stage, StageTotals(0.0, {}))
            latency = run.latency.get(stage, (None,) * 4)
            counts = [int(totals.counts.get(name, 0)) for name in ("calls", "texts", "cached", "tokens")]
            rows.append((run.retriever, stage, *counts, totals.counts.get("usd", 0.0), totals.seconds, *latency))
    write_table(folder, "costs", pd.DataFrame(rows, columns=list(COSTS)))


def read_costs(folder: Path) -> list[dict[str, Any]]:
    """Read the rows of a results folder's costs.csv; OSError or ValueError where it cannot be read."""
    rows = read_table(folder / "costs.csv").to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def read_table(path: Path) -> pd.DataFrame:
    """Read a table; OSError or ValueError where it cannot be read, or lacks a column that is needed."""
    import pandas as pd

    header = pd.read_csv(path, nrows=0).columns
    if absent := [column for column in LEADING[path.stem] if column not in header]:
        raise ValueError(f"{path.name} has no column {', '.join(absent)}")
    texts = {column: str for column in TEXT_COLUMNS if column in header}
    return pd.read_csv(path, dtype=texts, keep_default_na=False, na_values={c: [""] for c in header if c not in texts})


def table_digests(folder: Path) -> dict[str, str]:
    """Return file name -> SHA-256 of every table in a results folder, for the manifest."""
    names = [f"{name}.csv" for name in LEADING]
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
