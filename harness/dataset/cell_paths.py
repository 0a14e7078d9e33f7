"""Values in the cells of a row.

A declared name may be a path into objects (`outputs.ids`), or several columns that
together are an id (`file,page`).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from harness.dataset.labels import FIELD_SEPARATOR
from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import SourceLocation
from harness.dataset.written_values import parse_cell
from retrievers.ids import document_id

NUMBER = re.compile(r"\d+")
NUMBER_LIST = re.compile(r"\s*\d+(?:\s*[,;|]\s*\d+)+\s*")
MISSING_VALUE: Any = object()
"""Returned if a row has no such value, since `None` may be a value."""


def read_texts(
    cell: object, column: str, location: SourceLocation, problems: ReadProblems
) -> tuple[str, ...]:
    """Return the texts in a cell, blank ones skipped.

    The cell is a text or a list of texts; anything else becomes a problem.
    """
    texts = parse_cell(cell)
    if texts is None:
        return ()
    if isinstance(texts, str):
        texts = [texts]
    if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
        return tuple(text for text in texts if text.strip())
    key = column.rpartition(".")[2]
    problems.add(location, f"{key!r} is not a list of texts", "a list of strings")
    return ()


def value_under(cell: Mapping[str, Any], path: str, missing: Any = None) -> Any:
    """Return the value under a key or a path of keys; `missing` if there is none.

    Of a list of objects it is the list of their values. Several paths, with commas
    between them, are the parts of one id.

    >>> value_under({"inputs": {"question": "why"}}, "inputs.question")
    'why'
    >>> value_under({"gold": [{"id": "a"}, {"id": "b"}]}, "gold.id")
    ['a', 'b']
    >>> value_under({"file": "a.pdf", "page": 3}, "file,page")
    'a.pdf#3'
    """
    if path in cell:
        return cell[path]
    if "," in path:
        paths = declared_paths(path)
        parts = [value_under(cell, part, MISSING_VALUE) for part in paths]
        if not parts or any(part is MISSING_VALUE for part in parts):
            return missing
        return _join_id_parts(parts)
    first_key, dot, inner_path = path.partition(".")
    if not dot:
        return missing
    inner_cell = parse_cell(cell.get(first_key))
    if isinstance(inner_cell, Mapping):
        return value_under(inner_cell, inner_path, missing)
    if not isinstance(inner_cell, list):
        return missing
    objects = [element for element in inner_cell if isinstance(element, Mapping)]
    inner = [value_under(element, inner_path, MISSING_VALUE) for element in objects]
    return [value for value in inner if value is not MISSING_VALUE] or missing


def declared_paths(declared: str) -> list[str]:
    """Return the columns in a declaration.

    Several columns, with commas between them, identify a document, or are one text.
    """
    return [path.strip() for path in declared.split(",") if path.strip()]


def _join_id_parts(parts: Sequence[Any]) -> Any:
    """Return the id that several values form together; None if one is not an id.

    If values are lists, the result is the list of the ids that they form together; a
    single value beside a list belongs to each of its values.

    >>> _join_id_parts(["house.pdf", "[1, 3]"])
    ['house.pdf#1', 'house.pdf#3']
    """
    # The first is the name of a document, which may have commas.
    parts = [parts[0], *map(_listed_numbers, parts[1:])]
    lengths = {len(part) for part in parts if isinstance(part, list)}
    if len(lengths) > 1:
        return [None]  # which of them belong together is unknown
    if lengths:
        columns = [
            part if isinstance(part, list) else [part] * max(lengths) for part in parts
        ]
        return [_join_id_parts(group) for group in zip(*columns, strict=True)]
    ids = [document_id(part) for part in parts]
    if None in ids:
        return None
    return FIELD_SEPARATOR.join(filter(None, ids))


def _listed_numbers(part: Any) -> Any:
    """Return the numbers that a cell lists, such as pages; another cell unchanged.

    >>> _listed_numbers("1, 3"), _listed_numbers("7.1")
    (['1', '3'], '7.1')
    """
    if not isinstance(part, str):
        return part
    if NUMBER_LIST.fullmatch(part):
        return NUMBER.findall(part)
    parsed = parse_cell(part)
    return parsed if isinstance(parsed, list) else part
