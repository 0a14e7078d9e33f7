"""The costs of retrievers as columns of the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.console.columns import TextColumn

if TYPE_CHECKING:
    from harness.evaluation.costs import RetrieverCost

NOT_MEASURED = "–"
UNKNOWN_PRICE = "?"
NO_VECTORS = ""


class CostCells(NamedTuple):
    """The costs of one retriever as text."""

    p95: str
    price: str
    size: str


def cost_columns(
    retrievers: Sequence[str],
    costs: Mapping[str, RetrieverCost],
    foot: Sequence[str] = (),
) -> list[TextColumn]:
    """Return p95 of a query, dollars for a million queries, and bytes of vectors.

    Without p95 if no latency was measured, and without bytes if there are no vectors.

    Args:
        retrievers: one per row.
        costs: of the retrievers that finished; the cells of the others are empty.
        foot: cells below the rows.
    """
    rows = [_cost_cells(costs.get(retriever)) for retriever in retrievers]
    columns: list[TextColumn] = []
    if any(cost.p95 is not None for cost in costs.values()):
        p95_cells = [row.p95 for row in rows]
        columns.append(TextColumn("p95\nms", [*p95_cells, *foot], drop_rank=1))
    price_cells = [row.price for row in rows]
    columns.append(TextColumn("$/million\nqueries", [*price_cells, *foot], drop_rank=2))
    size_cells = [row.size for row in rows]
    if any(size_cells):
        columns.append(TextColumn("vectors", [*size_cells, *foot], drop_rank=3))
    return columns


def _cost_cells(cost: RetrieverCost | None) -> CostCells:
    """Return the costs of one retriever as texts; empty if it has no row of costs."""
    from harness.report.numbers import (
        byte_size_text,
        dollars_text,
        milliseconds_number,
    )

    if cost is None:
        return CostCells("", "", "")
    p95 = NOT_MEASURED if cost.p95 is None else milliseconds_number(cost.p95)
    price = UNKNOWN_PRICE
    if cost.usd_per_million is not None:
        price = dollars_text(cost.usd_per_million)
    size = NO_VECTORS
    if cost.vector_bytes is None:
        size = NOT_MEASURED
    elif cost.vector_bytes:
        size = byte_size_text(cost.vector_bytes)
    return CostCells(p95, price, size)
