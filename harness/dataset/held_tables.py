"""Tables that a library reads: Parquet and Arrow, sheets of workbooks, and databases, through SQLAlchemy.

Sheets (Excel, OpenDocument) give rows of text, as a table of text would have them. A database is named by a URL:
`sqlite:///help.db?table=articles` or `postgresql://…?sql=SELECT …`. Nothing is ever written: SQLite's files are opened
for reading only, and nothing is committed elsewhere. `${NAME}` of a URL is put in as the database is asked.
"""

from __future__ import annotations

import datetime as dt
import decimal
import io
import re
import sqlite3
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.dataset.archives import FREE, RATIO, TRUST, regular, unpacked_size
from harness.dataset.source import Complaints, Place, named_twice
from retrievers.errors import InputError, Problem, needing
from retrievers.placeholders import expand, without_user

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


SUFFIXES = (".xlsx", ".xlsm", ".xls", ".ods")
"""Of workbooks."""
MAGIC = b"SQLite format 3\0"
AT_ONCE = 4096
"""Rows that are read at once, at most."""


def sheets_on_disk(path: Path) -> tuple[str, ...]:
    """The names of the sheets of a workbook that hold anything.

    Raises:
        InputError: it is not a workbook, or cannot be read.
    """
    return _named(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=16)
def _named(path: Path, _: int) -> tuple[str, ...]:
    return tuple(sheets(path.read_bytes(), path))


def sheets(raw: bytes, path: Path) -> dict[str, list[list[str]]]:
    """The cells of every sheet that holds anything, by its name.

    Raises:
        InputError: it is not a workbook, or unpacks to far more than it takes.
    """
    with needing(str(path), "python-calamine", "formats"):
        import python_calamine as calamine
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
        what = f"is not a workbook that can be read: {' '.join(str(error).split())[:120]}"
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


def is_url(text: str) -> bool:
    """Whether a text names a database, or what is selected of it."""
    return "://" in text


def is_sqlite(path: Path) -> bool:
    """Whether a file is a database of SQLite, by its first bytes."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def parted(url: str) -> tuple[str, str]:
    """A URL without what it selects, and that: the name of a table, a SELECT, or "".

    >>> parted("sqlite:///help.db?table=articles"), parted("sqlite://h/d?timeout=3&sql=SELECT a, 'b&c' FROM t")
    (('sqlite:///help.db', 'articles'), ('sqlite://h/d?timeout=3', "SELECT a, 'b&c' FROM t"))
    """
    found = re.match(r"(.*?)[?&](?:sql|table)=(.*)", url, re.DOTALL)
    return (found[1], found[2]) if found else (url, "")


def tables(url: str) -> list[str]:
    """The names of the tables and views of a database.

    Raises:
        InputError: the database cannot be read.
    """
    with _connected(url) as connection:
        import sqlalchemy

        found = sqlalchemy.inspect(connection)
        return sorted([*found.get_table_names(), *found.get_view_names()])


def selected_rows(url: str, selected: str) -> Iterator[Mapping[str, Any]]:
    """Stream the rows of a table, or of a SELECT.

    Raises:
        InputError: the database cannot be read.
    """
    with _connected(url) as connection:
        quote = connection.dialect.identifier_preparer.quote
        is_query = " " in selected.strip()
        statement = selected if is_query else f"SELECT * FROM {'.'.join(map(quote, selected.split('.')))}"  # noqa: S608
        streamed = connection.execution_options(stream_results=True).exec_driver_sql(statement)
        for row in streamed.mappings().yield_per(AT_ONCE):
            yield {name: _plain(value) for name, value in row.items()}


@contextmanager
def _connected(url: str) -> Iterator[Any]:
    with needing(without_user(url), "sqlalchemy", "sql"):
        import sqlalchemy
    try:
        where = sqlalchemy.make_url(expand(url))
        if where.get_backend_name() == "sqlite":
            place = Path(where.database or "")
            if not is_sqlite(place):
                what = "is not a database of SQLite" if place.exists() else "no such file"
                raise InputError(Problem(place.as_posix(), what, "a path is seen from the working directory"))
            read_only = f"{place.resolve().as_uri()}?mode=ro"
            options = {"creator": lambda: sqlite3.connect(read_only, uri=True)}
        else:
            options = {}
        engine = sqlalchemy.create_engine(where, poolclass=sqlalchemy.NullPool, **options)
        with engine.connect() as connection:
            yield connection
    except (sqlalchemy.exc.SQLAlchemyError, ModuleNotFoundError) as error:
        said = " ".join(str(getattr(error, "orig", None) or error).split())[:200]
        remedy = "see that the URL is right, its driver is installed and the database answers"
        raise InputError(Problem(without_user(url), f"cannot be read: {said}", remedy)) from None


def _plain(value: object) -> object:
    """A value as JSON would have it: dates as text, decimals as numbers."""
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


COLUMNAR = (".parquet", ".arrow", ".feather")
"""Of files that Apache Arrow reads: Parquet, and Arrow itself, as `datasets` saves to disk."""
FEWEST = 16
"""Rows at once, however large their values may be."""
LARGEST_BATCH = 256 << 20
"""Bytes of them, at most, if every value were as large as all of its column's distinct values together."""


def columnar_rows(
    path: Path, kind: str, raw: bytes | None, problems: Complaints
) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Stream the rows of a file, each with its number from 1.

    Args:
        path: the file.
        kind: "Parquet" or "Arrow".
        raw: what it holds, where it is packed.
        problems: takes what cannot be read.
    """
    with needing(str(path), "pyarrow", "formats"):
        import pyarrow as pa
    try:
        size = regular(path) if raw is None else len(raw)
        source = pa.OSFile(str(path)) if raw is None else pa.BufferReader(raw)
        with source, _opened(source, kind) as table:
            schema = table.schema_arrow if kind == "Parquet" else table.schema
            if named_twice(schema.names, str(path), problems):
                return
            number, left = 0, max(FREE, RATIO * size)
            for batch in _batches(table, kind):
                if kind == "Arrow":
                    batch.validate(full=True)  # which nothing else does: places outside of the file could be read
                left -= sum(_unpacked_bytes(column) for column in batch.columns)
                if left < 0:
                    what = "unpacks to far more than text would"
                    problems.append(Problem(str(path), what, "write it as JSON Lines, if you trust it"))
                    return
                rows: list[dict[str, Any]] = batch.to_pylist()
                for row in rows:
                    number += 1
                    yield Place(path, number), row
    except (pa.ArrowException, OSError) as error:
        what = f"cannot be read as {kind}: {str(error).splitlines()[0]}"
        problems.append(Problem(str(path), what, "fetch or write it again"))
    except UnicodeDecodeError:
        problems.append(Problem(str(path), "holds text that is not UTF-8", "write the strings as UTF-8"))
    except (OverflowError, ValueError) as error:  # what pyarrow raises of dates and of names in structs
        remedy = "write dates and times as text, or leave their column out"
        problems.append(Problem(str(path), f"holds a value that cannot be taken: {error}", remedy))


def _opened(source: Any, kind: str) -> Any:
    """A Parquet file, a stream of Arrow as `datasets` writes it, or a file of Arrow, which Feather is, too."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if kind == "Parquet":
        return pq.ParquetFile(source)
    is_file = source.read(6) == b"ARROW1"
    source.seek(0)
    return pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)


def _batches(table: Any, kind: str) -> Iterator[pa.RecordBatch]:
    """Rows that are read at once: few where a value may be large, since one that stands once may be a million rows'."""
    if kind == "Arrow":
        streamed = hasattr(table, "read_next_batch")
        yield from table if streamed else map(table.get_batch, range(table.num_record_batches))
        return
    parquet: pq.ParquetFile = table
    for number in range(parquet.num_row_groups):
        group = parquet.metadata.row_group(number)
        largest = max((group.column(i).total_uncompressed_size for i in range(group.num_columns)), default=0)
        rows = min(max(LARGEST_BATCH // max(largest, 1), FEWEST), AT_ONCE)
        yield from parquet.iter_batches(rows, row_groups=[number])


def _unpacked_bytes(column: pa.Array) -> int:
    """The bytes of a column's values, each counted as often as it stands there."""
    import pyarrow as pa

    return int((column.dictionary_decode() if pa.types.is_dictionary(column.type) else column).nbytes)
