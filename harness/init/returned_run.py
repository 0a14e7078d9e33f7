"""A column of returned documents as a run."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.dataset import (
    Dataset,
    DatasetReference,
    DeclaredColumn,
    read_returned_documents,
)
from harness.dataset.columns import declared_field_names
from harness.dataset.usual_names import FIELDS_KIND
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import explain_write_errors
from retrievers.files.trec_files import write_trec_run
from retrievers.ranking import ranked
from retrievers.types import Ranking

RUN_KIND = "run"
"""Declares a column of what a system returned: --columns run=sources."""


def declared_run_column(reference: DatasetReference) -> str:
    """Return the column that is declared as a run; empty if none is."""
    for column in reference.columns:
        if column.kind == RUN_KIND:
            return column.column
    return ""


def without_run_column(reference: DatasetReference) -> DatasetReference:
    """Return a data set in which the column of a run holds no labels."""
    outer_column = declared_run_column(reference).partition(".")[0]
    names = [*declared_field_names(reference.columns), outer_column]
    columns = [
        column
        for column in reference.columns
        if column.kind not in (RUN_KIND, FIELDS_KIND)
    ]
    columns.append(DeclaredColumn(FIELDS_KIND, ",".join(names)))
    return replace(reference, columns=tuple(columns))


def write_returned_run(
    reference: DatasetReference, dataset: Dataset, column: str, path: Path
) -> None:
    """Write the documents in a column as a new TREC run.

    Raises:
        InputError: no row has such documents, or the file exists or cannot be written.
    """
    documents = read_returned_documents(reference, dataset, column)
    if not any(documents.values()):
        problem = f"no row has documents in the column {column!r}"
        raise InputError(Problem(reference.name, problem, "--columns run=NAME"))
    remedy = "remove it, or name another experiment with --output"
    with explain_write_errors(path, remedy):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(exist_ok=False)
    rankings = {query_id: _in_order(ids) for query_id, ids in documents.items()}
    write_trec_run(path, rankings, tag="production")


def _in_order(ids: Sequence[str]) -> Ranking:
    """Return documents, best first, as a ranking."""
    return ranked(ids, [float(len(ids) - position) for position in range(len(ids))])
