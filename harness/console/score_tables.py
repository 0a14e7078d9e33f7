"""Tables of scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.console.columns import (
    COLUMN_GAP,
    TextColumn,
    build_grid,
    columns_that_fit,
    measure_heading,
    split_table,
    text_line,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.report.index import IndexEntry

SummaryRow = Mapping[str, Any]
"""A row of summary.csv."""


def folders_table(
    entries: Sequence[IndexEntry], *, width: int
) -> Iterator[RenderableType]:
    """Results folders, a line each: date, data, what leads on which measure.

    Args:
        entries: newest first.
        width: cells of the terminal.
    """
    failed = any(entry.manifest.failed for entry in entries)
    first = [next(iter(entry.means.items()), ("no labels", None)) for entry in entries]
    yield build_grid(
        columns_that_fit(
            [
                TextColumn(
                    "folder",
                    [entry.folder for entry in entries],
                    left_aligned=True,
                    wraps=True,
                ),
                TextColumn(
                    "date",
                    [entry.manifest.started[:10] for entry in entries],
                    left_aligned=True,
                    drop_rank=2,
                ),
                TextColumn(
                    "data",
                    [entry.manifest.dataset.path for entry in entries],
                    left_aligned=True,
                    wraps=True,
                    drop_rank=4,
                ),
                TextColumn(
                    "queries",
                    [f"{entry.manifest.dataset.scored:,}" for entry in entries],
                    drop_rank=3,
                ),
                TextColumn(
                    "measure",
                    [
                        measure_heading(entry.primary).replace("\n", "")
                        for entry in entries
                    ],
                    left_aligned=True,
                    drop_rank=1,
                ),
                TextColumn(
                    "highest",
                    [name for name, _ in first],
                    left_aligned=True,
                    wraps=True,
                ),
                TextColumn("mean", [score_cell(mean) for _, mean in first]),
                *(
                    [
                        TextColumn(
                            "failed",
                            [f"{len(entry.manifest.failed):,}" for entry in entries],
                        )
                    ]
                    if failed
                    else []
                ),
            ],
            width,
        )
    )


def means_table(
    summary: Sequence[SummaryRow], *, width: int
) -> Iterator[RenderableType]:
    """Means, a line a measure and a column a run; where the runs have no room side by side, a line a run.

    Args:
        summary: rows with retriever, measure and mean.
        width: cells of the terminal.
    """
    by_cell = {(row["retriever"], row["measure"]): row["mean"] for row in summary}
    names, measures = (
        list(dict.fromkeys(row[key] for row in summary))
        for key in ("retriever", "measure")
    )
    beside = [
        TextColumn("", measures, left_aligned=True),
        *(
            TextColumn(name, [score_cell(by_cell.get((name, one))) for one in measures])
            for name in names
        ),
    ]
    if sum(column.width for column in beside) + COLUMN_GAP * len(names) <= width:
        yield build_grid(beside)
        return
    yield from split_table(
        TextColumn("", names, left_aligned=True, wraps=True),
        [
            TextColumn(
                measure_heading(one),
                [score_cell(by_cell.get((name, one))) for name in names],
            )
            for one in measures
        ],
        width,
    )


def query_scores_table(
    scores: Sequence[SummaryRow], run: str, *, width: int
) -> Iterator[RenderableType]:
    """The scores of one run, a line a query and a column a measure; what has no room beside comes beneath.

    Args:
        scores: rows with query_id, measure and value.
        run: its name.
        width: cells of the terminal.
    """
    by_cell = {(row["query_id"], row["measure"]): row["value"] for row in scores}
    ids = list(dict.fromkeys(row["query_id"] for row in scores))
    queries = TextColumn("query", ids, left_aligned=True, wraps=True)
    yield text_line(run, "bold")
    yield from split_table(
        queries,
        [
            TextColumn(
                measure_heading(measure),
                [score_cell(by_cell[query, measure]) for query in ids],
            )
            for measure in dict.fromkeys(row["measure"] for row in scores)
        ],
        width,
    )


def score_cell(value: float | None, digits: int = 4) -> str:
    """A mean or a score; a dash where it is undefined.

    >>> score_cell(0.5), score_cell(None), score_cell(float("nan"))
    ('0.5000', '–', '–')
    """
    return "–" if value is None or value != value else f"{value:.{digits}f}"
