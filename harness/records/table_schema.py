"""The columns that each table of a results folder must have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

COUNT_COLUMNS = ("calls", "texts", "cached", "tokens")
LATENCY_COLUMNS = ("p50_ms", "p95_ms", "p99_ms", "measured_at")
COST_COLUMNS = (
    "retriever",
    "stage",
    *COUNT_COLUMNS,
    "usd",
    "seconds",
    *LATENCY_COLUMNS,
)
"""The columns of costs.csv; any other count is in `RetrieverQuality`."""


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The columns of one table that are read back by name."""

    required: tuple[str, ...]
    key: tuple[str, ...] = ()
    """Columns in which no two rows are the same."""
    counts: tuple[str, ...] = ()
    """Columns of whole numbers from 0."""
    amounts: tuple[str, ...] = ()
    """Columns of finite numbers from 0."""

    def refuse_header(self, header: Sequence[str]) -> None:
        """Refuse a header that lacks a column, or has one twice.

        Raises:
            ValueError: it does.
        """
        for column in self.required:
            if column not in header:
                raise ValueError(f"it has no column {column!r}")
        for column in header:
            if header.count(column) > 1:
                raise ValueError(f"it has the column {column!r} twice")


TABLE_SCHEMAS: Mapping[str, TableSchema] = {
    "scores": TableSchema(
        required=("retriever", "query_id", "measure", "value"),
        key=("retriever", "query_id", "measure"),
    ),
    "summary": TableSchema(
        required=("retriever", "measure", "mean"), key=("retriever", "measure")
    ),
    "comparisons": TableSchema(required=("measure", "a", "b")),
    "tests": TableSchema(required=("family", "measure", "a", "b")),
    "costs": TableSchema(
        required=COST_COLUMNS,
        key=("retriever", "stage"),
        counts=COUNT_COLUMNS,
        amounts=("usd", "seconds"),
    ),
}
"""Table -> its schema."""
TABLE_NAMES = tuple(TABLE_SCHEMAS)
ANY_TABLE = TableSchema(())
"""The schema of any other file, which may have any columns."""
