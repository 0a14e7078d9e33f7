"""The properties of queries in properties.csv."""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from harness.records.csv_table import escape_cell, unescape_cell
from harness.records.jsonl import new_text_file
from harness.records.manifest import Manifest
from harness.records.read_artifact import refuse_changed_file, unreadable_file

PROPERTIES_FILE = "properties.csv"
PROPERTY_COLUMNS = ("query", "property", "value")
"""The columns of properties.csv."""

QUERY_LENGTH = "query length"
"""Characters of the query."""
DIGITS = "digits"
"""Whether the query has a digit."""
QUOTATION_MARKS = "quotation marks"
"""Whether the query has quotation marks."""
SCRIPT = "script"
"""The script of most of the query's letters."""
SHARED_WORDS = "shared words"
"""The share of the query's distinct words that a relevant document has; of several
documents, the one that shares most."""
RAREST_WORD = "rarest word"
"""The number of documents that have the query's rarest word."""
DOCUMENT_LENGTH = "document length"
"""Characters of the relevant document; the mean of several."""
LABELS = "labels"
"""The number of relevant documents."""
TRUNCATED_BY = "truncated by "
"""Comes before a retriever's name: whether its model read only the start of each
relevant document."""

NUMBER_PROPERTIES = (
    QUERY_LENGTH,
    SHARED_WORDS,
    RAREST_WORD,
    DOCUMENT_LENGTH,
    LABELS,
)
FLAG_PROPERTIES = (DIGITS, QUOTATION_MARKS)
TEXT_PROPERTIES = (SCRIPT,)
FLAG_CELLS = {"yes": True, "no": False}

PropertyValue = float | bool | str
"""A number, yes or no, or a text."""


class PropertyKind(Enum):
    """The type of a property's values."""

    NUMBER = "a number from 0"
    FLAG = "yes or no"
    TEXT = "a text"


@dataclass(frozen=True, slots=True)
class QueryProperty:
    """One property of one query."""

    query_id: str
    name: str
    value: PropertyValue


def property_kind(name: str) -> PropertyKind:
    """Return the type of a property's values.

    Raises:
        ValueError: there is no such property.

    >>> property_kind("truncated by minilm").name
    'FLAG'
    """
    if name in NUMBER_PROPERTIES:
        return PropertyKind.NUMBER
    if name in FLAG_PROPERTIES or name.startswith(TRUNCATED_BY):
        return PropertyKind.FLAG
    if name in TEXT_PROPERTIES:
        return PropertyKind.TEXT
    raise ValueError(f"unknown property {name!r:.40}")


def write_properties(folder: Path, properties: Iterable[QueryProperty]) -> None:
    """Write properties.csv."""
    with new_text_file(folder / PROPERTIES_FILE) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(PROPERTY_COLUMNS)
        for row in properties:
            cells = (row.query_id, row.name, value_text(row.value))
            writer.writerow(map(escape_cell, cells))


def value_text(value: PropertyValue) -> str:
    """Return a property's value as in the file; numbers are in full precision.

    >>> value_text(0.25), value_text(12.0), value_text(True)
    ('0.25', '12', 'yes')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(int(value)) if value == int(value) else repr(value)


def has_properties(manifest: Manifest) -> bool:
    """Whether a run wrote properties; earlier versions wrote none."""
    return manifest.digest_of(PROPERTIES_FILE) is not None


def read_properties(
    folder: Path, manifest: Manifest, query_ids: Collection[str]
) -> tuple[QueryProperty, ...]:
    """Read properties.csv; empty if an earlier version wrote the folder.

    Args:
        folder: the results.
        manifest: theirs.
        query_ids: the ids in labels.jsonl.

    Raises:
        InputError: the file was changed, or cannot be read.
    """
    if not has_properties(manifest):
        return ()
    refuse_changed_file(folder, manifest, PROPERTIES_FILE)
    path = folder / PROPERTIES_FILE
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return tuple(_read_rows(file, query_ids))
    except (OSError, ValueError, csv.Error) as error:
        raise unreadable_file(path, error) from None


def _read_rows(
    lines: Iterable[str], query_ids: Collection[str]
) -> Iterator[QueryProperty]:
    """Yield the rows of the file.

    Raises:
        ValueError: a line is no property of a query, or repeats an earlier one.
    """
    rows = csv.reader(lines)
    if tuple(next(rows, ())) != PROPERTY_COLUMNS:
        raise ValueError(f"line 1 is not {','.join(PROPERTY_COLUMNS)}")
    earlier: set[tuple[str, str]] = set()
    # One string for each query and property, however many rows it has.
    strings: dict[str, str] = {}
    for cells in rows:
        try:
            row = _parse_row([strings.setdefault(cell, cell) for cell in cells])
            if row.query_id not in query_ids:
                raise ValueError(f"{row.query_id!r} is not in labels.jsonl")
            if (row.query_id, row.name) in earlier:
                raise ValueError(f"repeats {row.query_id}, {row.name}")
        except ValueError as error:
            raise ValueError(f"line {rows.line_num}: {error}") from None
        earlier.add((row.query_id, row.name))
        yield row


def _parse_row(cells: list[str]) -> QueryProperty:
    """Return the property in the cells of a line.

    Raises:
        ValueError: there are too few or too many, or the value has another type.
    """
    if len(cells) != len(PROPERTY_COLUMNS):
        raise ValueError(f"it has {len(cells)} cells")
    query_id, name, text = map(unescape_cell, cells)
    return QueryProperty(query_id, name, _parse_value(name, text))


def _parse_value(name: str, text: str) -> PropertyValue:
    kind = property_kind(name)
    if kind is PropertyKind.TEXT:
        return text
    if kind is PropertyKind.FLAG:
        if text not in FLAG_CELLS:
            raise ValueError(f"value is {text!r:.40}, not {kind.value}")
        return FLAG_CELLS[text]
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ValueError(f"value is {text!r:.40}, not {kind.value}")
    return number
