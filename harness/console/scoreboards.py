"""Tables of scores alone: runs side by side, a run query by query, results folders. printing.py prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.console.layout import GAP, Column, fitting, grid, head_of, side_by_side, text_line
from harness.console.tables import Row

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.overview import Entry


def runs(entries: Sequence[Entry], *, width: int) -> Iterator[RenderableType]:
    """Results folders, a line each: date, data, what leads on which measure.

    Args:
        entries: newest first.
        width: cells of the terminal.
    """
    failed = any(entry.manifest.failed for entry in entries)
    first = [entry.standings[0] if entry.standings else None for entry in entries]
    yield grid(fitting([
        Column("folder", [entry.folder for entry in entries], left=True, name=True),
        Column("date", [entry.manifest.started[:10] for entry in entries], left=True, rank=2),
        Column("data", [entry.manifest.dataset.path for entry in entries], left=True, name=True, rank=4),
        Column("queries", [f"{entry.queries:,}" for entry in entries], rank=3),
        Column("measure", [head_of(entry.primary).replace("\n", "") for entry in entries], left=True, rank=1),
        Column("highest", [one.retriever if one else "nobody judged" for one in first], left=True, name=True),
        Column("mean", [_shown(one.mean if one else None) for one in first]),
        *([Column("failed", [f"{len(entry.manifest.failed):,}" for entry in entries])] if failed else []),
    ], width))  # fmt: skip


def scoreboard(summary: Sequence[Row], *, width: int) -> Iterator[RenderableType]:
    """Means, a line a measure and a column a run; where the runs have no room side by side, a line a run.

    Args:
        summary: rows with retriever, measure and mean.
        width: cells of the terminal.
    """
    by_cell = {(row["retriever"], row["measure"]): row["mean"] for row in summary}
    names, measures = (list(dict.fromkeys(row[key] for row in summary)) for key in ("retriever", "measure"))
    beside = [
        Column("", measures, left=True),
        *(Column(name, [_shown(by_cell.get((name, one))) for one in measures]) for name in names),
    ]
    if sum(column.width for column in beside) + GAP * len(names) <= width:
        yield grid(beside)
        return
    yield from side_by_side(Column("", names, left=True, name=True), [
        Column(head_of(one), [_shown(by_cell.get((name, one))) for name in names]) for one in measures
    ], width)  # fmt: skip


def by_query(scores: Sequence[Row], run: str, *, width: int) -> Iterator[RenderableType]:
    """The scores of one run, a line a query and a column a measure; what has no room beside stands beneath.

    Args:
        scores: rows with query_id, measure and value.
        run: its name.
        width: cells of the terminal.
    """
    by_cell = {(row["query_id"], row["measure"]): row["value"] for row in scores}
    ids = list(dict.fromkeys(row["query_id"] for row in scores))
    queries = Column("query", ids, left=True, name=True)
    yield text_line(run, "bold")
    yield from side_by_side(queries, [
        Column(head_of(measure), [_shown(by_cell[query, measure]) for query in ids])
        for measure in dict.fromkeys(row["measure"] for row in scores)
    ], width)  # fmt: skip


def _shown(value: float | None) -> str:
    """A mean or a score; a dash where it is undefined.

    >>> _shown(0.5), _shown(None), _shown(float("nan"))
    ('0.5000', '–', '–')
    """
    return "–" if value is None or value != value else f"{value:.4f}"
