"""Rows of frames as of lists."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from harness.dataset.file import File
from harness.dataset.read_problems import ReadProblems, report_repeated_column
from harness.dataset.rows import PLAIN_TEXT_SUFFIXES, TABLE_SUFFIXES
from harness.dataset.source import SourceLocation, TableRow
from harness.dataset.table_source import RowSource
from harness.dataset.usual_names import usual_column
from retrievers.errors import InputError, Problem

DOCUMENT_SHAPES = "{id: text}, a list of texts, a frame with id and text, or a path"


def is_path(given: Any) -> bool:  # noqa: D103
    return isinstance(given, str | PathLike)


def is_table_file(given: Any) -> bool:  # noqa: D103
    return (
        is_path(given)
        and File(Path(given)).suffix in (*TABLE_SUFFIXES, *PLAIN_TEXT_SUFFIXES)
        and Path(given).is_file()
    )


def read_rows_in_memory(given: Any, where: str) -> RowSource:
    """Rows with an id each, of any type."""
    if getattr(given, "ndim", 0) == 1 and hasattr(given, "items"):  # a pandas series
        given = dict(given.items())
    if getattr(given, "ndim", 0) == 1 and hasattr(given, "tolist"):
        given = given.tolist()
    if isinstance(given, Mapping):
        return partial(_of_items, given.items, where)
    if hasattr(given, "to_pylist"):  # a pyarrow table
        given = given.to_pylist()
    if hasattr(given, "columns"):
        return partial(_of_frame, given, where)
    if hasattr(given, "column_names") or (
        isinstance(given, Sequence) and not isinstance(given, str | bytes)
    ):
        return partial(_of_items, partial(enumerate, given), where)
    shapes = (
        DOCUMENT_SHAPES
        if where in ("documents", "queries")
        else "a dict, a file, or a frame with query_id and doc_id"
    )
    raise InputError(
        Problem(where, f"cannot be read: it is of type {type(given).__name__}", shapes)
    )


def _of_items(
    items: Callable[[], Iterable[tuple[Any, Any]]], where: str, problems: ReadProblems
) -> Iterator[tuple[SourceLocation, TableRow]]:
    """Rows of ids with a text or columns."""
    path = Path(where)
    for number, (key, value) in enumerate(items(), 1):
        if isinstance(value, str):
            yield SourceLocation(path, number), {"_id": key, "text": value}
        elif isinstance(value, Mapping):
            named = (
                usual_column(
                    "document_id" if where == "documents" else "query_id", tuple(value)
                )
                is not None
            )
            yield (
                SourceLocation(path, number),
                dict(value) if named else {"_id": key, **value},
            )
        else:
            what = f"is not text but {repr_in_message(value)}"
            problems.append(
                Problem(
                    f"{where}[{repr_in_message(key)}]",
                    what,
                    'a text, or {"title": …, "text": …}',
                )
            )


def _of_frame(
    frame: Any, where: str, problems: ReadProblems
) -> Iterator[tuple[SourceLocation, TableRow]]:
    """Rows of a frame of any library; a missing cell is None."""
    path, names = Path(where), [str(name) for name in frame.columns]
    if report_repeated_column(names, where, problems):
        return
    columns = [frame[name].to_list() for name in frame.columns]
    if (
        usual_column(
            "document_id" if where == "documents" else "query_id", tuple(names)
        )
        is None
    ):
        index = getattr(frame, "index", None)
        names.insert(0, "_id")
        columns.insert(0, [*(range(len(frame)) if index is None else index)])
    for number, cells in enumerate(zip(*columns, strict=True), 1):
        kept = (None if is_missing_cell(cell) else cell for cell in cells)
        yield SourceLocation(path, number), dict(zip(names, kept, strict=True))


def is_missing_cell(cell: Any) -> bool:
    """Whether a cell is empty: None, NaN, pandas' NA or NaT."""
    return (
        cell is None
        or (isinstance(cell, float) and cell != cell)
        or type(cell).__name__ in ("NAType", "NaTType")
    )


def repr_in_message(value: Any) -> str:
    """A value for messages."""
    return " ".join(repr(value).split())[:80]
