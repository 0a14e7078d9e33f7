"""Binary tables."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.dataset.read_problems import ReadProblems, report_repeated_column
from harness.dataset.source import SourceLocation
from retrievers.errors import InputError, Problem, require_package

if TYPE_CHECKING:
    import pyarrow as pa

WORKBOOK_SUFFIXES = (".xlsx", ".xlsm", ".xls", ".ods")
"""Of workbooks."""
ROWS_PER_BATCH = 4096
"""Rows that are read at once, at most."""


def sheet_names(path: Path) -> tuple[str, ...]:
    """The names of the sheets of a workbook that hold anything.

    Raises:
        InputError: it is not a workbook, or cannot be read.
    """
    return _named(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=16)
def _named(path: Path, _: int) -> tuple[str, ...]:
    return tuple(read_sheets(path.read_bytes(), path))


def read_sheets(raw: bytes, path: Path) -> dict[str, list[list[str]]]:
    """The cells of every sheet that holds anything, by its name.

    Raises:
        InputError: it is not a workbook.
    """
    with require_package(str(path), "python-calamine", "formats"):
        import python_calamine as calamine
    try:
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(raw))
        read = {
            name: book.get_sheet_by_name(name).to_python(skip_empty_area=False)
            for name in book.sheet_names
        }
    except (
        Exception
    ) as error:  # calamine has an error of its own for each kind of workbook
        what = (
            f"is not a workbook that can be read: {' '.join(str(error).split())[:120]}"
        )
        raise InputError(
            Problem(str(path), what, "save it again, or each sheet as CSV")
        ) from None
    cells = {
        name: [list(map(_text, row)) for row in rows] for name, rows in read.items()
    }
    return {name: rows for name, rows in cells.items() if any(map(any, rows))}


def _text(cell: object) -> str:
    """A cell as text.

    >>> _text(2.0), _text(0.5), _text("a "), _text(True), _text(dt.date(2026, 1, 2))
    ('2', '0.5', 'a', 'true', '2026-01-02')
    """
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return (
        cell.isoformat() if isinstance(cell, dt.date | dt.time) else str(cell).strip()
    )


COLUMNAR_SUFFIXES = (".parquet", ".arrow", ".feather")
"""Of files that Apache Arrow reads: Parquet, and Arrow itself, as `datasets` saves to disk."""


def columnar_rows(
    path: Path, kind: str, raw: bytes | None, problems: ReadProblems
) -> Iterator[tuple[SourceLocation, Mapping[str, Any]]]:
    """Stream the rows of a file, each with its number from 1.

    Args:
        path: the file.
        kind: "Parquet" or "Arrow".
        raw: what it holds, where it is packed.
        problems: takes what cannot be read.
    """
    with require_package(str(path), "pyarrow", "formats"):
        import pyarrow as pa
    try:
        with (
            pa.memory_map(str(path)) if raw is None else pa.BufferReader(raw) as source
        ):
            names, batches = _batches(source, kind)
            if report_repeated_column(names, str(path), problems):
                return
            for number, row in enumerate(
                (row for batch in batches for row in batch.to_pylist()), 1
            ):
                yield SourceLocation(path, number), row
    except (
        pa.ArrowException,
        OSError,
        OverflowError,
        ValueError,
    ) as error:  # ValueError: of text, dates, and names
        what = f"cannot be read as {kind}: {next(iter(str(error).splitlines()), '')}"
        problems.append(
            Problem(
                str(path),
                what,
                "write it again, with strings as UTF-8, and dates and times as text",
            )
        )


def _batches(source: Any, kind: str) -> tuple[list[str], Iterable[pa.RecordBatch]]:
    """The columns and the rows of Parquet, of a stream of Arrow as `datasets` writes it, or of a file of Arrow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if kind == "Parquet":
        parquet = pq.ParquetFile(source)
        return parquet.schema_arrow.names, parquet.iter_batches(ROWS_PER_BATCH)
    is_file = source.read(6) == b"ARROW1"  # as Feather is
    source.seek(0)
    table = (
        pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
    ).read_all()
    table.validate(
        full=True
    )  # which nothing else does: places outside of the file could be read
    return table.column_names, table.to_batches(ROWS_PER_BATCH)
