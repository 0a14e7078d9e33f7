"""Tables of databases, through SQLAlchemy: `sqlite:///help.db?table=articles`, `postgresql://…?sql=SELECT …`.

Nothing is ever written: SQLite's files are opened for reading only, and nothing is committed elsewhere. `${NAME}` of a
URL is put in as the database is asked.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.dataset.archives import missing
from harness.dataset.json_rows import Row
from retrievers.errors import InputError, Problem
from retrievers.opening import filled, without_user

MAGIC = b"SQLite format 3\0"
AT_ONCE = 4096
"""Rows that are fetched at once."""


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


def selected_rows(url: str, selected: str) -> Iterator[Row]:
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
    try:
        import sqlalchemy
    except ImportError:
        raise InputError(missing(without_user(url), "sqlalchemy", "sql")) from None
    try:
        where = sqlalchemy.make_url(filled(url))
        if where.get_backend_name() == "sqlite":
            place = Path(where.database or "")
            if not is_sqlite(place):
                what = "is no database of SQLite" if place.exists() else "no such file"
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
