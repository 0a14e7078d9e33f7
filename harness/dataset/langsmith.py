"""Examples of a LangSmith data set, JSON Lines or JSON: `inputs`, `outputs`, `metadata` (langsmith 0.15.0).

The SDK fixes no keys within these: the question is the only text of `inputs`, or the one called question, query or
input; the references stand in `outputs`, or in `metadata`, as `reference_context_ids`, `document_ids` or `doc_ids`, or
as `reference_contexts` or `contexts`. Other keys are declared:
columns = { query = "inputs.ask", relevant = "outputs.ids", reference = "outputs.answer" }.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from harness.dataset.columns import Columns
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
from harness.dataset.source import Findings, Place
from harness.dataset.tables import rows_of
from retrievers.errors import Problem
from retrievers.types import Query

QUESTIONS = ("question", "query", "input", "user_input")
IDS = ("reference_context_ids", "document_ids", "doc_ids")
CONTEXTS = ("reference_contexts", "contexts")


def matches(reference: DatasetReference) -> bool:
    """Whether the reference is a file whose rows are examples."""
    row = first_row(reference)
    return isinstance(row.get("inputs"), dict) and "outputs" in row


def read(reference: DatasetReference) -> ContextSource:
    """Open the examples; the documents lie where the reference says."""
    read_row = partial(read_example, parts=("inputs", "outputs"), columns=Columns(reference.columns))
    return source_of(reference, rows_of(export_of(reference)), read_row)


def read_example(
    row: Row, place: Place, name: str, problems: Findings, *, parts: tuple[str, str], columns: Columns
) -> ReferencedQuestion | None:
    """Read one example.

    Args:
        row: the example.
        place: where it stands.
        name: the query's id, where the example has none.
        problems: where complaints go.
        parts: what it calls its inputs and its outputs.
        columns: declared keys, as paths.
    """
    given, expected, metadata = (_table(row, part, place, problems) for part in (*parts, "metadata"))
    question = columns.value("query", row) if "query" in columns.declared else _question(given)
    if not isinstance(question, str):
        there = ", ".join(map(str, given)) or "nothing"
        remedy = f'{parts[0]} holds {there}; say which: columns = {{ query = "{parts[0]}.…" }}'
        problems.append(Problem(str(place), "the question cannot be told", remedy))
        return None
    fields = {str(key): str(value) for key, value in metadata.items() if isinstance(value, str | int | float)}
    id_ = row.get("id")
    answer = columns.value("reference", row) if "reference" in columns.declared else expected.get("reference")
    reference = read_reference(answer, expected.get("claims"), place, problems)
    query = Query(id_ if isinstance(id_, str) and id_ else name, question, fields, reference)
    if "relevant" in columns.declared:
        return ReferencedQuestion(
            query, ids_of(columns.value("relevant", row), columns.declared["relevant"], place, problems)
        )
    keys = {**metadata, **expected}
    ids = next((key for key in IDS if key in keys), None)
    contexts = next((key for key in CONTEXTS if key in keys), None)
    if ids is None and contexts is None:
        remedy = f'say where: columns = {{ relevant = "{parts[1]}.…" }}'
        problems.append(Problem(str(place), "it has no reference contexts and no ids of documents", remedy))
        return None
    return ReferencedQuestion(
        query,
        ids_of(keys[ids], ids, place, problems) if ids else (),
        texts_of(keys[contexts], contexts, place, problems) if contexts else (),
    )


def _question(given: Mapping[str, Any]) -> object:
    named = next((given[key] for key in QUESTIONS if isinstance(given.get(key), str)), None)
    texts = [value for value in given.values() if isinstance(value, str)]
    return named or (texts[0] if len(texts) == 1 else None)


def _table(row: Row, part: str, place: Place, problems: Findings) -> Mapping[str, Any]:
    value = row.get(part)
    if value is None or isinstance(value, dict):
        return value or {}
    problems.append(Problem(str(place), f"{part!r} is not an object", "as the SDK writes it"))
    return {}
