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
EVALUATION_COLUMNS = {
    "scores": ("retriever", "query_id", "measure", "value"),
    "summary": ("retriever", "measure", *(one.name for one in fields(ScoreSummary))),
    "comparisons": tuple(
        "verdict" if one.name == "finding" else one.name for one in fields(Comparison)
    ),
    "tests": (
        *(one.name for one in fields(TestRow) if one.name != "finding"),
        "verdict",
    ),
}
"""Table -> its columns, in their order."""


def summary_rows(summary: Mapping[str, Mapping[str, ScoreSummary]]) -> CsvRows:
    """The rows of summary.csv, retriever by retriever."""
    return [
        {"retriever": name, "measure": measure, **asdict(of[name])}
        for name in dict.fromkeys(name for of in summary.values() for name in of)
        for measure, of in summary.items()
        if name in of
    ]


def comparison_rows(evaluation: Evaluation) -> CsvRows:
    """The rows of comparisons.csv."""
    return [
        row_cells(row, "comparisons")
        for rows in evaluation.comparisons.values()
        for row in rows
    ]


def row_cells(row: Comparison | TestRow, table: str) -> dict[str, Any]:
    """A comparison as a row of comparisons.csv, or a test of another family as one of tests.csv."""
    verdict = None if row.finding is None else verdict_cell(row.finding)
    return {
        name: verdict if name == "verdict" else getattr(row, name)
        for name in EVALUATION_COLUMNS[table]
    }


def evaluation_tables(
    scores: Scores, evaluation: Evaluation | None
) -> dict[str, TableColumns]:
    """Return the tables of a results folder by name; empty without an evaluation, for which nothing was scored."""
    if evaluation is None:
        return {
            name: dict.fromkeys(columns, ())
            for name, columns in EVALUATION_COLUMNS.items()
        }
    rows = {
        "summary": summary_rows(evaluation.summary),
        "comparisons": comparison_rows(evaluation),
        "tests": [row_cells(row, "tests") for row in evaluation.tests],
    }
    columns = {
        name: {key: [row[key] for row in of] for key in EVALUATION_COLUMNS[name]}
        for name, of in rows.items()
    }
    parts = [(name, measure) for name in scores.retrievers for measure in scores.values]
    every = {
        "retriever": [name for name, _ in parts for _ in scores.ids],
        "query_id": list(scores.ids) * len(parts),
        "measure": [measure for _, measure in parts for _ in scores.ids],
        "value": [
            value
            for name, measure in parts
            for value in scores.values[measure][name].tolist()
        ],
    }
    return {"scores": every, **columns}
