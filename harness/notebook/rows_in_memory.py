"""Rows of frames, lists or dicts.

A row or text without an id gets its position as id: the index of a frame, else 0, 1, 2
and so on.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from harness.dataset.file import File
from harness.dataset.read_problems import ReadProblems, report_repeated_column
from harness.dataset.row import Row
from harness.dataset.rows import PLAIN_TEXT_SUFFIXES, TABLE_SUFFIXES
from harness.dataset.source import SourceLocation
from harness.dataset.table_source import RowSource, rows_of_files
from harness.dataset.usual_names import usual_column
from retrievers.errors import InputError, Problem

DOCUMENT_SHAPES = "{id: text}, a list of texts, a frame with id and text, or a path"


def is_path(source: Any) -> bool:
    """Whether data are a path."""
    return isinstance(source, str | PathLike)


def is_table_file(source: Any) -> bool:
    """Whether data are the path of a table, or of text with one query per line."""
    if not is_path(source):
        return False
    path = Path(source)
    suffix = File(path).suffix
    return suffix in (*TABLE_SUFFIXES, *PLAIN_TEXT_SUFFIXES) and path.is_file()


def open_rows(source: Any, where: str) -> RowSource:
    """Rows of a table in a file, or of any type in memory."""
    if is_path(source):
        return rows_of_files(File(Path(source)))
    return _rows_in_memory(source, where)


def _rows_in_memory(source: Any, where: str) -> RowSource:
    """Rows with an id each, of any type.

    Args:
        source: what the user gave.
        where: the name of its argument, which stands for a file in messages.

    Raises:
        InputError: of another type.
    """
    rows = series_as_dict(source, where)
    if getattr(rows, "ndim", 0) == 1 and hasattr(rows, "tolist"):  # a numpy array
        rows = rows.tolist()
    if isinstance(rows, Mapping):
        return partial(_rows_of_items, rows.items, where)
    if hasattr(rows, "to_pylist"):  # a pyarrow table
        rows = rows.to_pylist()
    if hasattr(rows, "columns"):  # a frame of pandas or polars
        return partial(_rows_of_frame, rows, where)
    is_list = isinstance(rows, Sequence) and not isinstance(rows, str | bytes)
    if is_list or hasattr(rows, "column_names"):  # a Dataset of Hugging Face
        return partial(_rows_of_items, partial(enumerate, rows), where)
    shapes = "a dict, a file, or a frame with query_id and doc_id"
    if where in ("documents", "queries"):
        shapes = DOCUMENT_SHAPES
    problem = f"cannot be read: it is of type {type(rows).__name__}"
    raise InputError(Problem(where, problem, shapes))


def series_as_dict(source: Any, where: str) -> Any:
    """Return a series of pandas as a dict, its index as the keys; else `source`.

    Raises:
        InputError: a key of the index is there twice.
    """
    if getattr(source, "ndim", 0) != 1 or not hasattr(source, "items"):
        return source
    value_by_key = dict(source.items())
    if len(value_by_key) < len(source):
        repeated = source.index[source.index.duplicated()][0]
        problem = f"the index has {repr_in_message(repeated)} twice"
        raise InputError(Problem(where, problem, "give each key once"))
    return value_by_key


def _rows_of_items(
    items: Callable[[], Iterable[tuple[Any, Any]]], where: str, problems: ReadProblems
) -> Iterator[Row]:
    """Rows of pairs of an id with a text, or with a mapping of columns.

    An id among the columns comes before the one of the pair.
    """
    path = Path(where)
    for number, (key, content) in enumerate(items(), start=1):
        location = SourceLocation(path, number)
        if isinstance(content, str):
            yield Row(location, {"_id": key, "text": content})
        elif isinstance(content, Mapping):
            cells = {str(column): plain_cell(cell) for column, cell in content.items()}
            if not _has_id(cells, where):
                cells = {"_id": key, **cells}
            yield Row(location, cells)
        else:
            problem = f"is not text but {repr_in_message(content)}"
            remedy = 'a text, or {"title": …, "text": …}'
            key_where = f"{where}[{repr_in_message(key)}]"
            problems.append(Problem(key_where, problem, remedy))


def _has_id(columns: Iterable[str], where: str) -> bool:
    """Whether one of the columns has the ids of what an argument has."""
    kind = "document_id" if where == "documents" else "query_id"
    return usual_column(kind, tuple(columns)) is not None


def _rows_of_frame(frame: Any, where: str, problems: ReadProblems) -> Iterator[Row]:
    """Rows of a frame of any library; a missing cell is None."""
    path = Path(where)
    names = [str(column) for column in frame.columns]
    if report_repeated_column(names, where, problems):
        return
    columns = [frame[column].to_list() for column in frame.columns]
    if not _has_id(names, where):
        index = getattr(frame, "index", None)
        names.insert(0, "_id")
        columns.insert(0, list(range(len(frame)) if index is None else index))
    for number, cells in enumerate(zip(*columns, strict=True), start=1):
        row_cells = dict(zip(names, map(plain_cell, cells), strict=True))
        yield Row(SourceLocation(path, number), row_cells)


def plain_cell(cell: Any) -> Any:
    """Return a cell without values of numpy; a missing one is None."""
    if isinstance(cell, str):
        return cell
    if hasattr(cell, "tolist"):
        cell = cell.tolist()
    if isinstance(cell, list | tuple):
        return [plain_cell(element) for element in cell]
    if isinstance(cell, Mapping):
        return {key: plain_cell(element) for key, element in cell.items()}
    return None if is_missing_cell(cell) else cell


def is_missing_cell(cell: Any) -> bool:
    """Whether a cell is empty: None, NaN, pandas' NA or NaT."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(cell, float) and math.isnan(cell)


def repr_in_message(value: Any) -> str:
    """A value for messages: on one line, at most 80 characters."""
    return " ".join(repr(value).split())[:80]
