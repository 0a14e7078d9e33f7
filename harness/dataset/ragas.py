"""Test sets of Ragas, JSON Lines, JSON, CSV or Parquet: `user_input` with `reference_contexts` or their ids.

The shape is SingleTurnSample's (ragas 0.4.3, `dataset_schema.py`); conversations of several turns are refused.
"""

from __future__ import annotations

from harness.dataset.contexts import (
    ContextSource,
    ReferencedQuestion,
    export_of,
    first_row,
    ids_of,
    source_of,
    texts_of,
)
from harness.dataset.expected import read_reference
from harness.dataset.reference import DatasetReference
from harness.dataset.rows import Row
from harness.dataset.source import Findings, Place, parse_json
from harness.dataset.tables import rows_of
from retrievers.errors import Problem
from retrievers.types import Query

FIELDS = ("synthesizer_name", "persona_name", "query_style", "query_length")


def matches(reference: DatasetReference) -> bool:
    """Whether the reference is a file whose rows are samples of Ragas."""
    row = first_row(reference)
    return "user_input" in row and bool({"reference_contexts", "reference_context_ids"} & row.keys())


def read(reference: DatasetReference) -> ContextSource:
    """Open the test set; the documents lie where the reference says."""
    return source_of(reference, rows_of(export_of(reference)), read_row)


def read_row(row: Row, place: Place, name: str, problems: Findings) -> ReferencedQuestion | None:
    """Read one sample."""
    text = row.get("user_input")
    if not isinstance(text, str):
        what = "'user_input' is missing" if text is None else "'user_input' is no text"
        problems.append(Problem(str(place), what, "samples of a single turn are read, conversations are not"))
        return None
    ids = ids_of(_listed(row.get("reference_context_ids")), "reference_context_ids", place, problems)
    contexts = texts_of(_listed(row.get("reference_contexts")), "reference_contexts", place, problems)
    fields = {key: str(row[key]) for key in FIELDS if row.get(key)}
    reference = read_reference(row.get("reference"), row.get("claims"), place, problems)
    return ReferencedQuestion(Query(name, text, fields, reference), ids, contexts)


def _listed(cell: object) -> object:
    """A list as it is; one that a CSV file holds as JSON or as Python's repr is read."""
    if not isinstance(cell, str):
        return cell
    if not cell.strip():
        return None
    try:
        return parse_json(cell)
    except ValueError:
        pass
    import ast

    try:
        return ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return cell
