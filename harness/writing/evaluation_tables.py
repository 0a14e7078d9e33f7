"""An evaluation as CSV tables."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from harness.evaluation.evaluation import Evaluation
from harness.evaluation.verdict import Comparison, TestRow
from harness.records import TableColumns
from harness.scoring.scores import Scores
from harness.stats.summary import ScoreSummary
from harness.wording.verdicts import verdict_cell

CsvRows = list[dict[str, Any]]

SCORE_COLUMNS = ("retriever", "query_id", "measure", "value")
SUMMARY_FIELDS = tuple(field.name for field in fields(ScoreSummary))
COMPARISON_FIELDS = [field.name for field in fields(Comparison)]
TEST_FIELDS = [field.name for field in fields(TestRow)]
FINDING_INDEX = COMPARISON_FIELDS.index("finding")
EVALUATION_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "scores": SCORE_COLUMNS,
    "summary": ("retriever", "measure", *SUMMARY_FIELDS),
    "comparisons": (
        *COMPARISON_FIELDS[:FINDING_INDEX],
        "verdict",
        *COMPARISON_FIELDS[FINDING_INDEX + 1 :],
    ),
    "tests": (*(name for name in TEST_FIELDS if name != "finding"), "verdict"),
}
"""Table -> its columns, in their order."""


def summary_rows(summary: Mapping[str, Mapping[str, ScoreSummary]]) -> CsvRows:
    """Return the rows of summary.csv, retriever by retriever.

    Args:
        summary: measure -> retriever -> its statistics.
    """
    retrievers: dict[str, None] = {}
    for summary_by_retriever in summary.values():
        retrievers.update(dict.fromkeys(summary_by_retriever))
    rows: CsvRows = []
    for retriever in retrievers:
        for measure, summary_by_retriever in summary.items():
            if retriever in summary_by_retriever:
                statistics = asdict(summary_by_retriever[retriever])
                rows.append({"retriever": retriever, "measure": measure, **statistics})
    return rows


def comparison_rows(evaluation: Evaluation) -> CsvRows:
    """Return the rows of comparisons.csv."""
    rows: CsvRows = []
    for comparisons in evaluation.comparisons.values():
        rows += [row_cells(comparison, "comparisons") for comparison in comparisons]
    return rows


def row_cells(row: Comparison | TestRow, table: str) -> dict[str, Any]:
    """Return a comparison, or a test of another family, as a row of its table."""
    cells: dict[str, Any] = {}
    for column in EVALUATION_COLUMNS[table]:
        if column != "verdict":
            cells[column] = getattr(row, column)
        else:
            cells[column] = None if row.finding is None else verdict_cell(row.finding)
    return cells


def evaluation_tables(
    scores: Scores, evaluation: Evaluation | None
) -> dict[str, TableColumns]:
    """Return the tables of a results folder by name.

    They are empty without an evaluation, if nothing was scored.
    """
    tables: dict[str, TableColumns] = {}
    if evaluation is None:
        for table, columns in EVALUATION_COLUMNS.items():
            tables[table] = dict.fromkeys(columns, ())
        return tables
    rows_by_table = {
        "summary": summary_rows(evaluation.summary),
        "comparisons": comparison_rows(evaluation),
        "tests": [row_cells(row, "tests") for row in evaluation.tests],
    }
    tables["scores"] = _score_columns(scores)
    for table, rows in rows_by_table.items():
        tables[table] = _columns_of(rows, EVALUATION_COLUMNS[table])
    return tables


def _columns_of(rows: CsvRows, columns: tuple[str, ...]) -> TableColumns:
    cells: dict[str, list[Any]] = {column: [] for column in columns}
    for row in rows:
        for column in columns:
            cells[column].append(row[column])
    return cells


def _score_columns(scores: Scores) -> TableColumns:
    """Return the columns of scores.csv: retriever by retriever, measure by measure."""
    retrievers: list[str] = []
    query_ids: list[str] = []
    measures: list[str] = []
    values: list[float] = []
    for retriever in scores.retrievers:
        for measure, scores_by_retriever in scores.values.items():
            retrievers += [retriever] * scores.n
            query_ids += scores.ids
            measures += [measure] * scores.n
            values += scores_by_retriever[retriever].tolist()
    cells = (retrievers, query_ids, measures, values)
    return dict(zip(SCORE_COLUMNS, cells, strict=True))
