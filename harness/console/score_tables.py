"""Tables of scores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

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

    from harness.report.results_listing import IndexEntry
    from harness.scoring.scores import ScoreRow
    from harness.stats.summary import ScoreSummary


SummaryByMeasure = Mapping[str, Mapping[str, "ScoreSummary"]]
"""Measure -> retriever -> its statistics."""


def folders_table(
    entries: Sequence[IndexEntry], *, width: int
) -> Iterator[RenderableType]:
    """Results folders, one line each: date, data, the leader on its measure.

    Args:
        entries: newest first.
        width: cells of the terminal.
    """
    leaders: list[str] = []
    means: list[str] = []
    for entry in entries:
        # The highest mean is the first; without labels there are no means.
        leader, mean = next(iter(entry.means.items()), ("no labels", None))
        leaders.append(leader)
        means.append(score_cell(mean))
    manifests = [entry.manifest for entry in entries]
    columns = [
        TextColumn(
            "folder",
            [entry.folder for entry in entries],
            left_aligned=True,
            wraps=True,
        ),
        TextColumn(
            "date",
            [manifest.started[:10] for manifest in manifests],
            left_aligned=True,
            drop_rank=2,
        ),
        TextColumn(
            "data",
            [manifest.dataset.path for manifest in manifests],
            left_aligned=True,
            wraps=True,
            drop_rank=4,
        ),
        TextColumn(
            "queries",
            [f"{entry.queries:,}" for entry in entries],
            drop_rank=3,
        ),
        TextColumn(
            "measure",
            [measure_heading(entry.primary).replace("\n", "") for entry in entries],
            left_aligned=True,
            drop_rank=1,
        ),
        TextColumn("highest", leaders, left_aligned=True, wraps=True),
        TextColumn("mean", means),
    ]
    if any(manifest.failed for manifest in manifests):
        failed = [f"{len(manifest.failed):,}" for manifest in manifests]
        columns.append(TextColumn("failed", failed))
    yield build_grid(columns_that_fit(columns, width))


def means_table(summary: SummaryByMeasure, *, width: int) -> Iterator[RenderableType]:
    """Means, one line per measure and one column per run.

    If the runs have no room side by side, one line per run.

    Args:
        summary: of the retrievers.
        width: cells of the terminal.
    """
    means = {
        (retriever, measure): row.mean
        for measure, rows in summary.items()
        for retriever, row in rows.items()
    }
    retrievers = summarized_retrievers(summary)
    measures = list(summary)
    by_measure = [TextColumn("", measures, left_aligned=True)]
    for retriever in retrievers:
        cells = [score_cell(means.get((retriever, measure))) for measure in measures]
        by_measure.append(TextColumn(retriever, cells))
    gaps = COLUMN_GAP * len(retrievers)
    if sum(column.width for column in by_measure) + gaps <= width:
        yield build_grid(by_measure)
        return
    measure_columns: list[TextColumn] = []
    for measure in measures:
        cells = [score_cell(means.get((name, measure))) for name in retrievers]
        measure_columns.append(TextColumn(measure_heading(measure), cells))
    names = TextColumn("", retrievers, left_aligned=True, wraps=True)
    yield from split_table(names, measure_columns, width)


def summarized_retrievers(summary: SummaryByMeasure) -> list[str]:
    """Return the retrievers that have a mean on any measure."""
    retrievers: dict[str, None] = {}
    for rows in summary.values():
        retrievers.update(dict.fromkeys(rows))
    return list(retrievers)


def query_scores_table(
    scores: Sequence[ScoreRow], run: str, *, width: int
) -> Iterator[RenderableType]:
    """The scores of one run, one line per query and one column per measure.

    Columns without room are in a table below.

    Args:
        scores: of the run.
        run: its name.
        width: cells of the terminal.
    """
    values = {(row.query_id, row.measure): row.value for row in scores}
    query_ids = list(dict.fromkeys(row.query_id for row in scores))
    columns: list[TextColumn] = []
    for measure in dict.fromkeys(row.measure for row in scores):
        cells = [score_cell(values[query_id, measure]) for query_id in query_ids]
        columns.append(TextColumn(measure_heading(measure), cells))
    queries = TextColumn("query", query_ids, left_aligned=True, wraps=True)
    yield text_line(run, "bold")
    yield from split_table(queries, columns, width)


def score_cell(score: float | None, digits: int = 4) -> str:
    """A mean or a score; a dash if it is undefined.

    >>> score_cell(0.5), score_cell(None), score_cell(float("nan"))
    ('0.5000', '–', '–')
    """
    if score is None or math.isnan(score):
        return "–"
    return f"{score:.{digits}f}"
