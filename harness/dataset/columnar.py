"""Binary tables: workbooks, Parquet, Arrow."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.dataset.file import File
from harness.dataset.read_problems import ReadProblems, report_repeated_column
from harness.dataset.row import Row
from harness.dataset.source import SourceLocation
from retrievers.errors import InputError, Problem, require_package

if TYPE_CHECKING:
    import pyarrow as pa

WORKBOOK_SUFFIXES = (".xlsx", ".xlsm", ".xls", ".ods")
COLUMNAR_SUFFIXES = (".parquet", ".arrow", ".feather")
"""Suffixes of files that Apache Arrow reads: Parquet, and Arrow itself."""
ROWS_PER_BATCH = 4096
"""Rows, at most, that are read at once."""
ARROW_FILE_SIGNATURE = b"ARROW1"
"""The first bytes of a file of Arrow, which Feather is; a stream has none."""
MAX_REASON_LENGTH = 120
"""Characters of a library's error that a message repeats."""


def sheet_names(path: Path) -> tuple[str, ...]:
    """Return the names of the sheets of a workbook that are not empty.

    Raises:
        InputError: it is not a workbook, cannot be read, or the extra is missing.
        OSError: there is no such file.
    """
    return _cached_sheet_names(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=16)
def _cached_sheet_names(path: Path, _modified: int) -> tuple[str, ...]:
    return tuple(read_sheets(File(path).read(), path))


def read_sheets(raw: bytes, path: Path) -> dict[str, list[list[str]]]:
    """Return the cells of every sheet that is not empty, by its name.

    Raises:
        InputError: it is not a workbook, or the extra is missing.
    """
    with require_package(str(path), "python-calamine", "formats"):
        import python_calamine as calamine
    cells_by_sheet: dict[str, list[list[Any]]] = {}
    try:
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(raw))
        for sheet_name in book.sheet_names:
            sheet = book.get_sheet_by_name(sheet_name)
            rows = sheet.to_python(skip_empty_area=False)
            _fill_merged_rows(rows, sheet.merged_cell_ranges or ())
            cells_by_sheet[sheet_name] = rows
    except Exception as error:  # calamine has one for each kind of workbook
        reason = " ".join(str(error).split())[:MAX_REASON_LENGTH]
        problem = f"is not a workbook that can be read: {reason}"
        remedy = "save it again, or each sheet as CSV"
        raise InputError(Problem(str(path), problem, remedy)) from None
    texts_by_sheet: dict[str, list[list[str]]] = {}
    for sheet_name, rows in cells_by_sheet.items():
        texts = [list(map(_cell_text, row)) for row in rows]
        if any(map(any, texts)):
            texts_by_sheet[sheet_name] = texts
    return texts_by_sheet


def _fill_merged_rows(
    rows: list[list[Any]], merged: Iterable[tuple[tuple[int, int], tuple[int, int]]]
) -> None:
    """Write the value of a cell that spans several rows into each of them.

    Cells that are merged with others of their row stay: a title spans columns.
    """
    for (first_row, column), (last_row, last_column) in merged:
        if column != last_column:
            continue
        for row in rows[first_row + 1 : last_row + 1]:
            if column < len(row):
                row[column] = rows[first_row][column]


def _cell_text(cell: object) -> str:
    """Return a cell as text.

    >>> _cell_text(2.0), _cell_text(0.5), _cell_text("a "), _cell_text(True)
    ('2', '0.5', 'a', 'true')
    >>> _cell_text(dt.date(2026, 1, 2))
    '2026-01-02'
    """
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, dt.date | dt.time):
        return cell.isoformat()
    return str(cell).strip()


def columnar_rows(
    path: Path, kind: str, raw: bytes | None, problems: ReadProblems
) -> Iterator[Row]:
    """Yield the rows of a file, each with its number from 1.

    Args:
        path: the file.
        kind: "Parquet" or "Arrow".
        raw: the content, if the file is packed.
        problems: takes the problem of a file that cannot be read.
    """
    with require_package(str(path), "pyarrow", "formats"):
        import pyarrow as pa
    unreadable = (
        pa.ArrowException,
        OSError,
        OverflowError,
        ValueError,  # of text, dates and names
    )
    try:
        with (
            pa.memory_map(str(path)) if raw is None else pa.BufferReader(raw) as source
        ):
            table = _open_table(source, kind)
            if report_repeated_column(table.columns, str(path), problems):
                return
            number = 0
            for batch in table.batches:
                for cells in batch.to_pylist():
                    number += 1
                    yield Row(SourceLocation(path, number), cells)
    except unreadable as error:
        reason = next(iter(str(error).splitlines()), "")
        remedy = "write it again, with strings as UTF-8, and dates and times as text"
        problems.add(path, f"cannot be read as {kind}: {reason}", remedy)


class _ColumnarTable(NamedTuple):
    columns: list[str]
    batches: Iterable[pa.RecordBatch]


def _open_table(source: Any, kind: str) -> _ColumnarTable:
    """Open Parquet, a stream of Arrow (as `datasets` writes it) or a file of Arrow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if kind == "Parquet":
        parquet = pq.ParquetFile(source)
        batches = parquet.iter_batches(ROWS_PER_BATCH)
        return _ColumnarTable(parquet.schema_arrow.names, batches)
    is_file = source.read(len(ARROW_FILE_SIGNATURE)) == ARROW_FILE_SIGNATURE
    source.seek(0)
    reader = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
    table = reader.read_all()
    # Without this check, offsets could lead outside of the file.
    table.validate(full=True)
    return _ColumnarTable(table.column_names, table.to_batches(ROWS_PER_BATCH))
