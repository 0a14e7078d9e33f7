"""Values in the cells of a row."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.dataset.labels import FIELD_SEPARATOR
from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import SourceLocation, TableRow
from harness.dataset.written_values import parse_cell
from retrievers.ids import document_id

MISSING_VALUE: Any = object()
"""Stands for what a row does not have."""


def further_fields(row: TableRow, used: Iterable[str | None]) -> dict[str, str]:
    """Further keys with plain values: those of the row, and those of its `metadata`."""
    taken = {
        "metadata",
        "",
        *used,
    }  # "": a column without a name, such as the index of pandas
    if len(row) <= len(taken) and row.keys() <= taken and "metadata" not in row:
        return {}
    metadata = row.get("metadata")
    extra = {**(metadata if isinstance(metadata, Mapping) else {}), **row}
    return {
        str(key): str(value)
        for key, value in extra.items()
        if key not in taken
        and isinstance(value, str | int | float)
        and value != ""
        and value == value
    }


def read_texts(
    cell: object, name: str, place: SourceLocation, problems: ReadProblems
) -> tuple[str, ...]:
    """A list of texts, or one; empty, after a complaint, where it is something else."""
    listed = parse_cell(cell)
    texts = [listed] if isinstance(listed, str) else [] if listed is None else listed
    if isinstance(texts, list) and all(isinstance(one, str) for one in texts):
        return tuple(one for one in texts if one.strip())
    problems.add(
        place,
        f"{name.rpartition('.')[2]!r} is not a list of texts",
        "a list of strings",
    )
    return ()


def has_path(row: TableRow, path: str) -> bool:
    """Whether a row has a key of this name, or one that a path such as `inputs.question` leads to."""
    return value_at(row, path, MISSING_VALUE) is not MISSING_VALUE


def value_at(row: TableRow, path: str, missing: Any = None) -> Any:
    """The value there; another one if there is none.

    >>> value_at({"inputs": {"question": "why"}}, "inputs.question")
    'why'
    """
    if path in row:
        return row[path]
    if "," in path:
        values = [value_at(row, one, MISSING_VALUE) for one in declared_paths(path)]
        return (
            missing
            if any(value is MISSING_VALUE for value in values)
            else _joined(values)
        )
    first, dot, rest = path.partition(".")
    held = parse_cell(row.get(first)) if dot else None
    if isinstance(held, Mapping):
        return value_at(held, rest, missing)
    inner = (
        [value_at(one, rest, MISSING_VALUE) for one in held if isinstance(one, Mapping)]
        if isinstance(held, list)
        else []
    )
    return [value for value in inner if value is not MISSING_VALUE] or missing


def declared_paths(declared: str) -> list[str]:
    """The columns that a declaration names: one, or several that together name a document, with commas between."""
    return [path.strip() for path in declared.split(",") if path.strip()]


def _joined(values: Sequence[Any]) -> Any:
    """Values that together name a document, or lists of them, as one; None where one of them is no id."""
    if all(isinstance(value, list) for value in values):
        return [_joined(parts) for parts in zip(*values, strict=False)]
    ids = [document_id(value) for value in values]
    return None if None in ids else FIELD_SEPARATOR.join(filter(None, ids))
