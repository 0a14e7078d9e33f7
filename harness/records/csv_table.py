"""A CSV table with typed columns.

They are read back with their types, and known by their digests. What a spreadsheet would run stays text, and no
character makes a row of its own.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.records.jsonl import new_text_file
from retrievers.ids import CONTROL_CHARACTERS

CELL_FORMULA = re.compile(r"""(^|[;,\t])('*)(?=\s*"?(?:=|[+@-][^;,\t]*[(|!]))""")
ESCAPED_FORMULA = re.compile(r"""(^|[;,\t])'('*)(?=\s*"?(?:=|[+@-][^;,\t]*[(|!]))""")
TABLE_NAMES = ("scores", "summary", "comparisons", "tests", "costs")
TableColumns = Mapping[str, Sequence[Any]]
"""A table: name of a column -> its values."""
TEXT_COLUMNS = ("retriever", "query_id", "measure", "a", "b", "stage", "family")
"""Names: read back as text, whatever they look like, and an empty one is a text too."""
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
"""TableColumns of numbers; every other column is text."""


def escape_cell(text: str) -> str:
    r"""Return a text as it is written into a CSV file.

    A spreadsheet runs what begins with an equals sign, or with a sign and holds a call; where it cuts lines at
    semicolons or tabs, also in the middle of a text. An apostrophe before it makes it text. Control characters become
    spaces: some readers end a row at each of them.

    >>> escape_cell("=HYPERLINK(1)"), escape_cell("a;@SUM(1)"), escape_cell("-abc123"), escape_cell("a\rb")
    ("'=HYPERLINK(1)", "a;'@SUM(1)", '-abc123', 'a b')
    """
    return CELL_FORMULA.sub(r"\1'\2", CONTROL_CHARACTERS.sub(" ", text))


def unescape_cell(cell: str) -> str:
    """Return the text that `as_cell` wrote.

    >>> unescape_cell(escape_cell("=1")), unescape_cell(escape_cell("'=1")), unescape_cell("don't")
    ('=1', "'=1", "don't")
    """
    return ESCAPED_FORMULA.sub(r"\1\2", cell)


def write_table(folder: Path, name: str, table: TableColumns) -> None:
    """Write a CSV file: full precision, line feeds, empty cells for what is undefined, no text that would be run."""
    columns = [
        (_numbers if column in NUMBER_COLUMNS else _texts)(values)
        for column, values in table.items()
    ]
    with new_text_file(folder / f"{name}.csv") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*columns, strict=True))


def _numbers(values: Iterable[Any]) -> list[Any]:
    """Numbers as they are written: all of a column with a point, or none; None and NaN as empty cells."""
    kept = [None if one is None or one != one else one for one in values]
    if all(isinstance(one, int | np.integer) for one in kept):
        return kept
    return [None if one is None else float(one) for one in kept]


def _texts(values: Iterable[Any]) -> list[Any]:
    """Texts as they are written, each distinct one looked at once."""
    values = list(values)
    known = {
        one: escape_cell(one) if isinstance(one, str) else None for one in set(values)
    }
    return list(map(known.__getitem__, values))


def read_table_rows(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a table that a run wrote; as `read_columns`."""
    columns = read_table_columns(path)
    return [
        dict(zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]


def read_table_columns(path: Path) -> dict[str, list[Any]]:
    """Read a table that a run wrote, NaN for what is undefined; OSError or ValueError where it cannot be read."""
    cells: list[str] = []
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        for row in rows:
            if len(row) != len(header):
                raise ValueError(f"line {rows.line_num} has {len(row)} cells")
            cells += row
    if not header:
        raise ValueError("it is empty")
    columns = {name: cells[place :: len(header)] for place, name in enumerate(header)}
    return {
        name: _read_numbers(column)
        if name in NUMBER_COLUMNS
        else _read_texts(column, name)
        for name, column in columns.items()
    }


def _read_numbers(cells: Sequence[str]) -> list[Any]:
    try:
        return list(map(int, cells))
    except ValueError:
        return [float(cell) if cell else math.nan for cell in cells]


def _read_texts(cells: Sequence[str], column: str) -> list[Any]:
    texts: dict[str, Any] = {cell: unescape_cell(cell) for cell in set(cells)}
    texts[""] = "" if column in TEXT_COLUMNS else math.nan
    return list(map(texts.__getitem__, cells))
