"""Data in memory: dicts, lists and frames as documents, queries, labels and runs.

A row or text without an id gets its position as id: the index of a frame, else 0, 1, 2 and so on.
"""

import math
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from harness.dataset import Labels, reference_of, trec
from harness.dataset.columns import Columns, recognised
from harness.dataset.load import open_source
from harness.dataset.rows import PLAIN, SUFFIXES, File, Row
from harness.dataset.source import (
    WHOLE,
    Findings,
    Parts,
    Source,
    SourceLocation,
    grade_of,
    named_twice,
)
from harness.dataset.table_source import RowSource, TableSource, rows_of
from harness.dataset.trec import Qrels
from harness.english import counted
from retrievers.errors import InputError, Problem
from retrievers.ids import document_id, id_column
from retrievers.runs import RunScores, read_run

QUERY = ("query_id", "query-id", "qid", "q_id", "query")
DOCUMENT = (
    "doc_id",
    "corpus-id",
    "corpus_id",
    "docno",
    "docid",
    "document_id",
    "document",
)
SCORE = ("score",)
GRADE = ("relevance", "grade", "label", "score", "rel")
SHAPES = "{id: text}, a list of texts, a frame with id and text, or a path"
Value = TypeVar("Value")
OpenSource = Callable[[Mapping[str, str]], Source]
"""Opens a data set with declared columns."""


def source_of(documents: Any, queries: Any, qrels: Any) -> OpenSource:
    """Return the opener of a data set in memory; each part may also be a path.

    Args:
        documents: {id: text}, texts, {id: {"title": …, "text": …}}, rows, or a frame with id, text and title.
        queries: the same; None: those of the path in `documents`.
        qrels: see `judgments_of`, or a table of labels; None: those in the rows of the queries, if any.

    Raises:
        InputError: one of them has another type.
    """
    if documents is None or (queries is None and not _is_path(documents)):
        raise InputError(
            Problem("documents" if documents is None else "queries", "is None", SHAPES)
        )
    table = rows_of(File(Path(qrels))) if _is_table(qrels) else None
    judgments = None if qrels is None or table else judgments_of(qrels, by_place=True)

    def opened(columns: Mapping[str, str]) -> Source:
        labels = table or (None if judgments is None else rows_of())
        asked = _opened(
            documents if queries is None else queries, "queries", labels, columns
        )
        parts = Parts(
            _opened(documents, "documents", None, columns).documents,
            asked.queries,
            asked.labels,
        )
        if table is not None:
            return parts._replace(
                labels=TableSource(rows_of(), rows_of(), table, Columns(columns)).labels
            )
        return (
            parts
            if judgments is None
            else parts._replace(labels=partial(_labels, parts, judgments, qrels))
        )

    opened({})  # other types are refused here
    return opened


def _labels(
    source: Source, judgments: Qrels, qrels: Any, problems: Findings
) -> Iterator[tuple[SourceLocation, str, Labels]]:
    """The labels; a list is in the order of the queries."""
    names: dict[str, str] = {}
    if isinstance(qrels, list | tuple):
        ids = [query.id for _, query in source.queries(Findings())]
        if len(ids) != len(qrels):
            what = f"{len(qrels):,} lists of labels for {len(ids):,} queries"
            problems.wrong(
                "qrels",
                what,
                "give one list for each query, in the order of the queries",
            )
            return
        names = {str(place): id_ for place, id_ in enumerate(ids)}
    for query, grades in judgments.items():
        yield (
            SourceLocation(Path("qrels")),
            names.get(query, query),
            Labels(grades=grades),
        )


def _opened(
    given: Any, where: str, labels: RowSource | None, columns: Mapping[str, str]
) -> Source:
    """Documents or queries: rows of any type, or the data set of a path or a name."""
    if _is_path(given) and not _is_table(given):
        reference = reference_of(given if isinstance(given, str) else Path(given))
        return open_source(replace(reference, columns=columns))[1]
    rows = rows_of(File(Path(given))) if _is_path(given) else _rows(given, where)
    return TableSource(rows, rows, labels, Columns(columns))


def _is_path(given: Any) -> bool:
    return isinstance(given, str | PathLike)


def _is_table(given: Any) -> bool:
    return (
        _is_path(given)
        and File(Path(given)).suffix in (*SUFFIXES, *PLAIN)
        and Path(given).is_file()
    )


def _rows(given: Any, where: str) -> RowSource:
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
        SHAPES
        if where in ("documents", "queries")
        else "a dict, a file, or a frame with query_id and doc_id"
    )
    raise InputError(
        Problem(where, f"cannot be read: it is of type {type(given).__name__}", shapes)
    )


def _of_items(
    items: Callable[[], Iterable[tuple[Any, Any]]], where: str, problems: Findings
) -> Iterator[tuple[SourceLocation, Row]]:
    """Rows of ids with a text or columns."""
    path = Path(where)
    for number, (key, value) in enumerate(items(), 1):
        if isinstance(value, str):
            yield SourceLocation(path, number), {"_id": key, "text": value}
        elif isinstance(value, Mapping):
            named = (
                recognised(
                    "document_id" if where == "documents" else "query_id", tuple(value)
                )
                is not None
            )
            yield (
                SourceLocation(path, number),
                dict(value) if named else {"_id": key, **value},
            )
        else:
            what = f"is not text but {_shown(value)}"
            problems.append(
                Problem(
                    f"{where}[{_shown(key)}]",
                    what,
                    'a text, or {"title": …, "text": …}',
                )
            )


def _of_frame(
    frame: Any, where: str, problems: Findings
) -> Iterator[tuple[SourceLocation, Row]]:
    """Rows of a frame of any library; a missing cell is None."""
    path, names = Path(where), [str(name) for name in frame.columns]
    if named_twice(names, where, problems):
        return
    columns = [frame[name].to_list() for name in frame.columns]
    if (
        recognised("document_id" if where == "documents" else "query_id", tuple(names))
        is None
    ):
        index = getattr(frame, "index", None)
        names.insert(0, "_id")
        columns.insert(0, [*(range(len(frame)) if index is None else index)])
    for number, cells in enumerate(zip(*columns, strict=True), 1):
        kept = (None if _is_missing(cell) else cell for cell in cells)
        yield SourceLocation(path, number), dict(zip(names, kept, strict=True))


def judgments_of(qrels: Any, *, by_place: bool = False) -> Qrels:
    """Labels as query id -> document id -> grade.

    Args:
        qrels: {query: {document: grade}}, {query: relevant documents} (each of grade 1), the same as a list with one
            entry per query, a frame with query_id, doc_id and relevance (default 1), a table in a file, or a TREC file.
        by_place: whether a list is in the order of the queries, whose ids are unknown here.

    Raises:
        InputError: another type, a grade that is not a whole number, or a duplicate.

    >>> judgments_of({"q1": {"d1": 2}, "q2": ["d2", "d3"]})
    {'q1': {'d1': 2}, 'q2': {'d2': 1, 'd3': 1}}
    >>> judgments_of({1.0: {7.0: 1}})
    {'1': {'7': 1}}
    """
    if _is_path(qrels) and not _is_table(qrels):
        return trec.read_qrels(str(qrels))
    if isinstance(qrels, list | tuple) and (
        by_place or not all(isinstance(one, Mapping) and len(one) > 1 for one in qrels)
    ):
        qrels = dict(enumerate(qrels))
    judgments = _by_query(qrels, "qrels", GRADE)
    if not any(judgments.values()):
        raise InputError(Problem("qrels", "there are no labels", '{"q1": {"d1": 1}}'))
    return {query: judged for query, judged in judgments.items() if judged}


def run_of(source: Any, where: str) -> RunScores:
    """A run from any type that `harness.compare` takes; InputError for other types."""
    if _is_path(source) and not _is_table(source):
        return read_run(str(source))
    return _by_query(source, where, SCORE)


def _by_query(
    given: Any, where: str, values: tuple[str, ...]
) -> dict[str, dict[str, Any]]:
    """The documents of each query with their values.

    Args:
        given: {query: {document: value}}, {query: documents}, a table in a file, or a frame.
        where: its place in a message.
        values: names of the value column: grades (default 1), or scores.
    """
    read = _grade if values is GRADE else _score
    held: dict[str, list[tuple[Any, Any]]] = {}
    if isinstance(given, Mapping):
        table = once(given.items(), where, "query")
        held = {
            query: _held(documents, f"{where}[{query!r}]", values)
            for query, documents in table.items()
        }
    else:
        for query, document, value in zip(*_columns(given, where, values), strict=True):
            held.setdefault(query, []).append((document, value))
    found = {}
    for query, pairs in held.items():
        place = f"{where}[{query!r}]"
        found[query] = once(
            ((doc, read(value, doc, place)) for doc, value in pairs), place, "document"
        )
    return found


def _held(held: Any, where: str, values: tuple[str, ...]) -> list[tuple[Any, Any]]:
    """The documents of one query with their values; in a list they have grade 1, or descending scores."""
    if isinstance(held, Mapping):
        return list(held.items())
    if (
        isinstance(held, str | bytes)
        or not isinstance(held, Iterable)
        or (values is SCORE and isinstance(held, Set))
    ):
        what, remedy = (
            "is neither a dict nor a list",
            "{document: grade}, or the relevant documents",
        )
        if values is SCORE:
            what, remedy = (
                "is neither a list nor a dict",
                "documents best first, or {document: score}",
            )
        raise InputError(Problem(where, what, remedy))
    documents = list(held)
    return [
        (doc, 1 if values is GRADE else len(documents) - place)
        for place, doc in enumerate(documents)
    ]


def once(pairs: Iterable[tuple[Any, Value]], where: str, what: str) -> dict[str, Value]:
    """A table by id, as text; InputError for duplicates, such as 1 and "1"."""
    table: dict[str, Value] = {}
    for key, value in pairs:
        id_ = _id(key, where)
        if id_ in table:
            raise InputError(
                Problem(where, f"{what} {id_!r} occurs twice", f"give each {what} once")
            )
        table[id_] = value
    return table


def _id(value: Any, where: str) -> str:
    id_ = document_id(value)
    if id_ is None:
        raise InputError(
            Problem(
                where,
                f"{_shown(value)} is not an id",
                "an id is a text or a whole number",
            )
        )
    return id_


def _is_missing(cell: Any) -> bool:
    """Whether a cell is empty: None, NaN, pandas' NA or NaT."""
    return (
        cell is None
        or (isinstance(cell, float) and cell != cell)
        or type(cell).__name__ in ("NAType", "NaTType")
    )


def _shown(value: Any) -> str:
    """A value for messages."""
    return " ".join(repr(value).split())[:80]


def _grade(given: Any, document: Any, where: str) -> int:
    if (grade := grade_of(given)) is None:
        raise InputError(
            Problem(
                where,
                f"grade {_shown(given)} of document {document!r} is not a whole number",
                WHOLE,
            )
        )
    return grade


def _score(given: Any, document: Any, where: str) -> float:
    try:
        number = float(given)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(
            Problem(
                where,
                f"{_shown(given)} is not a score of document {document!r}",
                "a finite number",
            )
        )
    return number


def _columns(given: Any, where: str, values: tuple[str, ...]) -> tuple[list[Any], ...]:
    """Query, document and value of each row of a table or a frame; the default grade is 1."""
    seen = Findings()
    read = rows_of(File(Path(given))) if _is_path(given) else _rows(given, where)
    rows = [row for _, row in read(seen)]
    if seen:
        raise InputError(seen.problems)
    there = list(dict.fromkeys(name for row in rows[:1] for name in row))
    named = [
        next((name for name in names if name in there), None)
        for names in (QUERY, DOCUMENT, values)
    ]
    query, document, value = named
    if query is None or document is None or (value is None and values is SCORE):
        what = "is neither a dict, a file nor a frame that can be read"
        raise InputError(
            Problem(
                where,
                what,
                f"query_id, doc_id, {values[0]}; its columns are {', '.join(there)}",
            )
        )
    ids = [
        _id_column([row[name] for row in rows], f"{where}[{name!r}]", name)
        for name in (query, document)
    ]
    return (*ids, [1 if value is None else row[value] for row in rows])


def _id_column(column: list[Any], where: str, name: str) -> list[str]:
    """A column of ids; other values become a problem that shows the first."""
    if (
        set(map(type, column)) <= {str}
        and all(map(str.isascii, column))
        and all(column)
    ):
        return column
    if several := [
        cell
        for cell in column
        if isinstance(cell, Collection) and not isinstance(cell, str)
    ]:
        what = f"{counted(len(several), 'row')} with several ids, such as {_shown(several[0])}"
        raise InputError(
            Problem(where, what, f"give one document a row: frame.explode({name!r})")
        )
    ids = id_column(column)
    if wrong := [cell for cell, id_ in zip(column, ids, strict=True) if id_ is None]:
        what = (
            "is without an id"
            if _is_missing(wrong[0])
            else f"has {_shown(wrong[0])}, which is not an id"
        )
        remedy = f"in {counted(len(wrong), 'row')}; an id is a text or a whole number"
        raise InputError(Problem(where, f"a row {what}", remedy))
    return [id_ for id_ in ids if id_ is not None]
