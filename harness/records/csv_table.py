"""A CSV table with typed columns.

Columns are read back with their types. Texts that a spreadsheet would run as formulas
stay text, and no character begins a new row. `table_schema` has the columns of each
file.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from harness.records.jsonl import new_text_file
from harness.records.table_schema import ANY_TABLE, TABLE_SCHEMAS, TableSchema
from retrievers.ids import CONTROL_CHARACTERS

CELL_FORMULA = re.compile(r"""(^|[;,\t])('*)(?=\s*"?(?:=|[+@-][^;,\t]*[(|!]))""")
"""The start of a cell that a spreadsheet would run as a formula."""
ESCAPED_FORMULA = re.compile(r"""(^|[;,\t])'('*)(?=\s*"?(?:=|[+@-][^;,\t]*[(|!]))""")
"""Such a start after the apostrophe by which `escape_cell` escapes it."""
TableColumns = Mapping[str, Sequence[Any]]
"""A table: name of a column -> its values."""
TEXT_COLUMNS = ("retriever", "query_id", "measure", "a", "b", "stage", "family")
"""Columns of texts whose empty cell is the empty text; in others it is NaN."""
NUMBER_COLUMNS = frozenset(
    {
        "value",
        "count",
        "mean",
        "ci_low",
        "ci_high",
        "std",
        "min",
        "q25",
        "median",
        "q75",
        "max",
        "n",
        "zeros",
        "wins",
        "ties",
        "losses",
        "mean_difference",
        "w_plus",
        "w_minus",
        "statistic",
        "effect_size",
        "p_value",
        "p_adjusted",
        "p_minimum",
        "p_minimum_adjusted",
        "p_randomization",
        "p_randomization_adjusted",
        "p_wilcoxon",
        "p_wilcoxon_adjusted",
        "clusters",
        "calls",
        "texts",
        "cached",
        "tokens",
        "usd",
        "seconds",
        "p50_ms",
        "p95_ms",
        "p99_ms",
    }
)
"""Columns of numbers; every other column is text."""
LARGEST_INTEGER = 2**63 - 1
"""Larger numbers do not fit the 64 bits of a column."""
FIRST_LINE = 2
"""The line of a file in which the first row is."""


def escape_cell(text: str) -> str:
    r"""Return a text in the form for a CSV file.

    A spreadsheet runs a cell that begins with an equals sign, or with a sign and has a
    call. If it splits lines at semicolons, or at commas in spite of quotation marks,
    this can happen within a text, too.
    An apostrophe makes it text. Control characters become spaces: some readers end a
    row at each of them.

    >>> escape_cell("=HYPERLINK(1)"), escape_cell("a;@SUM(1)")
    ("'=HYPERLINK(1)", "a;'@SUM(1)")
    >>> escape_cell("-abc123"), escape_cell("a\rb")
    ('-abc123', 'a b')
    """
    return CELL_FORMULA.sub(r"\1'\2", CONTROL_CHARACTERS.sub(" ", text))


def unescape_cell(cell: str) -> str:
    """Return the text from which `escape_cell` made a cell, but for control characters.

    >>> [unescape_cell(escape_cell(text)) for text in ("=1", "'=1", "don't")]
    ['=1', "'=1", "don't"]
    """
    return ESCAPED_FORMULA.sub(r"\1\2", cell)


def write_table(folder: Path, name: str, table: TableColumns) -> None:
    """Write a CSV file.

    Numbers in full precision, line feeds, empty cells for undefined values, and no text
    that a spreadsheet would run.

    Args:
        folder: of the results.
        name: of the file, without its suffix.
        table: its columns, all of one length.
    """
    columns: list[list[Any]] = []
    for column, cells in table.items():
        if column in NUMBER_COLUMNS:
            columns.append(_number_cells(cells))
        else:
            columns.append(_text_cells(cells))
    with new_text_file(folder / f"{name}.csv") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*columns, strict=True))


def _number_cells(numbers: Iterable[Any]) -> list[Any]:
    """Return the cells of a column of numbers: all with a point, or none.

    None and NaN are empty cells.
    """
    cells = [None if _is_undefined(number) else number for number in numbers]
    if all(isinstance(cell, int | np.integer) for cell in cells):
        return cells
    return [None if cell is None else float(cell) for cell in cells]


def _is_undefined(number: Any) -> bool:
    """Whether a number is None or NaN, which is not equal to itself."""
    return number is None or bool(number != number)


def _text_cells(texts: Iterable[Any]) -> list[Any]:
    """Return the escaped cells of a column of texts; what is no text is empty."""
    text_list = list(texts)
    cell_of = {
        text: escape_cell(text) if isinstance(text, str) else None
        for text in set(text_list)
    }
    return list(map(cell_of.__getitem__, text_list))


def read_table_columns(path: Path) -> dict[str, list[Any]]:
    """Read the columns of a table that a run wrote, NaN for undefined values.

    Raises:
        OSError: it cannot be read.
        ValueError: it is empty or no CSV file, lacks a column or has one twice, or a
            line has too few or too many cells, another kind of value, or the key of an
            earlier line.
    """
    schema = TABLE_SCHEMAS.get(path.stem, ANY_TABLE)
    header, cells = _read_cells(path)
    schema.refuse_header(header)
    columns: dict[str, list[Any]] = {}
    for index, column in enumerate(header):
        column_cells = cells[index :: len(header)]
        if column in NUMBER_COLUMNS:
            columns[column] = _parse_numbers(column_cells, column)
        else:
            columns[column] = _parse_texts(column_cells, column)
    _refuse_negative_amounts(columns, schema)
    _refuse_repeated_rows(columns, schema)
    return columns


class TableCells(NamedTuple):
    """The texts of a table."""

    header: list[str]
    cells: list[str]
    """The cells, row by row."""


def _read_cells(path: Path) -> TableCells:
    """Read the texts of a table.

    Raises:
        ValueError: it is empty or no CSV file, or a line has too few or too many cells.
    """
    cells: list[str] = []
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file)
        try:
            header = next(rows, [])
            for row in rows:
                if len(row) != len(header):
                    raise ValueError(f"line {rows.line_num} has {len(row)} cells")
                cells += row
        except csv.Error as error:
            raise ValueError(f"line {rows.line_num}: {error}") from None
    if not header:
        raise ValueError("it is empty")
    return TableCells(header, cells)


def _parse_numbers(cells: Sequence[str], column: str) -> list[Any]:
    """Return the numbers of a column.

    Raises:
        ValueError: a cell is not a number, or one with too many digits.
    """
    try:
        numbers: list[Any] = list(map(int, cells))
    except ValueError:
        return [_parse_number(cell, row, column) for row, cell in enumerate(cells)]
    for row, number in enumerate(numbers):
        if abs(number) > LARGEST_INTEGER:
            raise _cell_error(row, column, cells[row])
    return numbers


def _parse_number(cell: str, row: int, column: str) -> float:
    if not cell:
        return math.nan
    try:
        return float(cell)
    except ValueError:
        raise _cell_error(row, column, cell) from None


def _cell_error(row: int, column: str, cell: Any) -> ValueError:
    """Return the error of a cell that does not fit its column."""
    return ValueError(f"line {row + FIRST_LINE}: {column} is {cell!r:.40}")


def _refuse_negative_amounts(
    columns: Mapping[str, Sequence[Any]], schema: TableSchema
) -> None:
    """Refuse numbers that are below 0 or not finite, and counts with a fraction.

    Raises:
        ValueError: there are any.
    """
    for column in (*schema.counts, *schema.amounts):
        for row, number in enumerate(columns[column]):
            is_allowed = column in schema.amounts or float(number).is_integer()
            if not is_allowed or not 0 <= number < math.inf:
                raise _cell_error(row, column, number)


def _refuse_repeated_rows(
    columns: Mapping[str, Sequence[Any]], schema: TableSchema
) -> None:
    """Refuse two rows with the same key.

    Raises:
        ValueError: there are any.
    """
    if not schema.key:
        return
    keys = list(zip(*(columns[column] for column in schema.key), strict=True))
    if len(set(keys)) == len(keys):
        return
    earlier_keys: set[tuple[Any, ...]] = set()
    for row, key in enumerate(keys):
        if key in earlier_keys:
            raise ValueError(f"line {row + FIRST_LINE} repeats {', '.join(key)}")
        earlier_keys.add(key)


def _parse_texts(cells: Sequence[str], column: str) -> list[Any]:
    texts: dict[str, Any] = {cell: unescape_cell(cell) for cell in set(cells)}
    texts[""] = "" if column in TEXT_COLUMNS else math.nan
    return list(map(texts.__getitem__, cells))
