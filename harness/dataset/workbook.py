"""Sheets of workbooks (Excel, OpenDocument) as rows of text, as a table of text would have them."""

from __future__ import annotations

import datetime as dt
import io
import zipfile
from functools import lru_cache
from pathlib import Path

from harness.dataset.archives import TRUST, missing, unpacked_size
from retrievers.errors import InputError, Problem

SUFFIXES = (".xlsx", ".xlsm", ".xls", ".ods")


def sheets_on_disk(path: Path) -> tuple[str, ...]:
    """The names of the sheets of a workbook that hold anything.

    Raises:
        InputError: it is no workbook, or cannot be read.
    """
    return _named(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=16)
def _named(path: Path, _: int) -> tuple[str, ...]:
    return tuple(sheets(path.read_bytes(), path))


def sheets(raw: bytes, path: Path) -> dict[str, list[list[str]]]:
    """The cells of every sheet that holds anything, by its name.

    Raises:
        InputError: it is no workbook, or unpacks to far more than it takes.
    """
    try:
        import python_calamine as calamine
    except ImportError:
        raise InputError(missing(str(path), "python-calamine", "formats")) from None
    if unpacked_size(raw):
        raise InputError(Problem(str(path), "unpacks to far more than text would", TRUST))
    try:
        if zipfile.is_zipfile(io.BytesIO(raw)):
            with zipfile.ZipFile(io.BytesIO(raw)) as archive:
                if damaged := archive.testzip():  # or larger than the archive says
                    raise zipfile.BadZipFile(f"{damaged} is damaged")
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(raw))
        read = {name: book.get_sheet_by_name(name).to_python(skip_empty_area=False) for name in book.sheet_names}
    except Exception as error:  # calamine has an error of its own for each kind of workbook
        what = f"is no workbook that can be read: {' '.join(str(error).split())[:120]}"
        raise InputError(Problem(str(path), what, "save it again, or each sheet as CSV")) from None
    cells = {name: [list(map(_text, row)) for row in rows] for name, rows in read.items()}
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
    return cell.isoformat() if isinstance(cell, dt.date | dt.time) else str(cell).strip()
