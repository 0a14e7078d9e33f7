"""The rows of the CSV files of a results folder: views of an evaluation, for people and other tools."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from harness.evaluation.evaluation import Evaluation
from harness.evaluation.scores import Scores
from harness.evaluation.verdict import Comparison, TestRow
from harness.evaluation.wording import verdict_cell
from harness.records import TableColumns
from harness.stats.intervals import Summary

CsvRows = list[dict[str, Any]]
COLUMNS = {
    "scores": ("retriever", "query_id", "measure", "value"),
    "summary": ("retriever", "measure", *(one.name for one in fields(Summary))),
    "comparisons": tuple("verdict" if one.name == "finding" else one.name for one in fields(Comparison)),
    "tests": (*(one.name for one in fields(TestRow) if one.name != "finding"), "verdict"),
}
"""Table -> its columns, in their order."""


def summary_rows(summary: Mapping[str, Mapping[str, Summary]]) -> CsvRows:
    """The rows of summary.csv, retriever by retriever."""
    return [
        {"retriever": name, "measure": measure, **asdict(of[name])}
        for name in dict.fromkeys(name for of in summary.values() for name in of)
        for measure, of in summary.items()
        if name in of
    ]


def comparison_rows(evaluation: Evaluation) -> CsvRows:
    """The rows of comparisons.csv."""
    return [cells_of(row, "comparisons") for rows in evaluation.comparisons.values() for row in rows]


def cells_of(row: Comparison | TestRow, table: str) -> dict[str, Any]:
    """A comparison as a row of comparisons.csv, or a test of another family as one of tests.csv."""
    verdict = None if row.finding is None else verdict_cell(row.finding)
    return {name: verdict if name == "verdict" else getattr(row, name) for name in COLUMNS[table]}


def tables_of(scores: Scores, evaluation: Evaluation | None) -> dict[str, TableColumns]:
    """Return the tables of a results folder by name; empty without an evaluation, for which nothing was scored."""
    if evaluation is None:
        return {name: dict.fromkeys(columns, ()) for name, columns in COLUMNS.items()}
    rows = {
        "summary": summary_rows(evaluation.summary),
        "comparisons": comparison_rows(evaluation),
        "tests": [cells_of(row, "tests") for row in evaluation.tests],
    }
    columns = {name: {key: [row[key] for row in of] for key in COLUMNS[name]} for name, of in rows.items()}
    parts = [(name, measure) for name in scores.retrievers for measure in scores.values]
    every = {
        "retriever": [name for name, _ in parts for _ in scores.ids],
        "query_id": list(scores.ids) * len(parts),
        "measure": [measure for _, measure in parts for _ in scores.ids],
        "value": [value for name, measure in parts for value in scores.values[measure][name].tolist()],
    }
    return {"scores": every, **columns}
