"""What is in memory: dicts, lists and frames as documents, queries, judgments and runs.

Where a row, or a text, has no id, its place stands for one: the index of a frame, else 0, 1, 2 and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from harness.dataset import trec
from harness.dataset.columns import recognised
from harness.dataset.dataset_model import Labels, reference_of
from harness.dataset.formats import open_source
from harness.dataset.rows import PLAIN, SUFFIXES, File, Row
from harness.dataset.source import WHOLE, Findings, Parts, Place, Source, named_twice
from harness.dataset.table_folder import RowSource, TableSource, rows_of
from harness.dataset.trec import Qrels
from harness.english import counted, first_few
from retrievers.errors import InputError, Problem
from retrievers.runs import RunScores, read_run
from retrievers.types import Document, Query

QUERY = ("query_id", "query-id", "qid", "q_id", "query")
DOCUMENT = ("doc_id", "corpus-id", "corpus_id", "docno", "docid", "document_id", "document")
SCORE = ("score",)
GRADE = ("relevance", "grade", "label", "score", "rel")
LARGEST_GRADE = 2**31 - 1
NAMED = 3
"""Queries that a complaint names."""
SHAPES = "{id: text}, a list of texts, a frame with id and text, or a path"
Value = TypeVar("Value")


def source_of(documents: Any, queries: Any, qrels: Any, *, drop: bool) -> Source:
    """A data set of what is in memory; each of the parts may be a path, too.

    Args:
        documents: {id: text}, texts, {id: {"title": …, "text": …}}, rows, or a frame with id, text and title.
        queries: the same; None: those of the path that `documents` is.
        qrels: see `judgments_of`, or a table of labels; None: what the rows of the queries say, else nothing.
        drop: count judgments of absent documents instead of refusing them.

    Raises:
        InputError: one of them has none of these shapes.
    """
    if documents is None or (queries is None and not _is_path(documents)):
        raise InputError(Problem("documents" if documents is None else "queries", "is None", SHAPES))
    labels = rows_of(File(Path(qrels))) if _is_table(qrels) else None if qrels is None else _no_rows
    asked = _opened(documents if queries is None else queries, "queries", labels)
    parts = Parts(_opened(documents, "documents").documents, asked.queries, asked.labels)
    if _is_table(qrels):
        return parts._replace(labels=TableSource(_no_rows, _no_rows, labels).labels)
    return parts if qrels is None else _judged(parts, judgments_of(qrels), drop=drop)


def _opened(given: Any, where: str, labels: RowSource | None = None) -> Source:
    """What holds documents or queries: rows of any shape; or what a reader opens of a path, or of a name."""
    if _is_path(given) and not _is_table(given):
        return open_source(reference_of(given if isinstance(given, str) else Path(given)))[1]
    rows = rows_of(File(Path(given))) if _is_path(given) else _rows(given, where)
    return TableSource(rows, rows, labels)


def _no_rows(problems: Findings) -> Iterator[tuple[Place, Row]]:
    return iter(())


def _is_path(given: Any) -> bool:
    return isinstance(given, str | PathLike)


def _is_table(given: Any) -> bool:
    return _is_path(given) and File(Path(given)).suffix in (*SUFFIXES, *PLAIN) and Path(given).is_file()


def _judged(source: Source, judgments: Qrels, *, drop: bool) -> Source:
    """A source with judgments: documents and queries that are not there are told in one sentence each."""
    ids: dict[str, set[str]] = {"documents": set(), "queries": set()}

    def documents(problems: Findings) -> Iterator[tuple[Place, Document]]:
        for place, document in source.documents(problems):
            ids["documents"].add(document.id)
            yield place, document

    def queries(problems: Findings) -> Iterator[tuple[Place, Query]]:
        for place, query in source.queries(problems):
            ids["queries"].add(query.id)
            yield place, query

    def labels(problems: Findings) -> Iterator[tuple[Place, str, Labels]]:
        place, kept = Place(Path("qrels")), judgments
        if not drop and not problems:
            _tell_absent(judgments, ids["documents"], ids["queries"], problems)
            kept = {} if problems else judgments
        for query, grades in kept.items():
            yield place, query, Labels(grades=grades)

    return Parts(documents, queries, labels)


def _tell_absent(judgments: Qrels, documents: set[str], queries: set[str], problems: Findings) -> None:
    """Complain of judgments of documents or queries that are not there."""
    remedy = 'correct the ids, or leave them out: relevance={"dangling": "drop"}'
    of = f"of {len(judgments):,} {'query' if len(judgments) == 1 else 'queries'}"
    strangers = [repr(query) for query in judgments if query not in queries]
    if strangers:
        problems.wrong(
            "qrels", f"{len(strangers):,} {of} are not among the queries: {first_few(strangers, NAMED)}", remedy
        )
    lost = {
        q: next(d for d in judged if d not in documents) for q, judged in judgments.items() if judged.keys() - documents
    }
    if lost:
        named = first_few([f"{query} -> {document!r}" for query, document in lost.items()], NAMED)
        problems.wrong("qrels", f"{len(lost):,} {of} name documents that are not there: {named}", remedy)


def _rows(given: Any, where: str) -> RowSource:
    """Rows with an id each, of any shape."""
    if getattr(given, "ndim", 0) == 1 and hasattr(given, "items"):  # a series of pandas
        given = dict(given.items())
    if getattr(given, "ndim", 0) == 1 and hasattr(given, "tolist"):
        given = given.tolist()
    if isinstance(given, Mapping):
        return partial(_of_items, given.items, where)
    if hasattr(given, "to_pylist"):  # a table of pyarrow
        given = given.to_pylist()
    if hasattr(given, "columns"):
        return partial(_of_frame, given, where)
    if hasattr(given, "column_names") or (isinstance(given, Sequence) and not isinstance(given, str | bytes)):
        return partial(_of_items, partial(enumerate, given), where)
    raise InputError(Problem(where, f"cannot be read: it is of type {type(given).__name__}", SHAPES))


def _of_items(
    items: Callable[[], Iterable[tuple[Any, Any]]], where: str, problems: Findings
) -> Iterator[tuple[Place, Row]]:
    """Rows of ids and what they have: a text, or a table of columns."""
    path = Path(where)
    for number, (key, value) in enumerate(items(), 1):
        if isinstance(value, str):
            yield Place(path, number), {"_id": str(key), "text": value}
        elif isinstance(value, Mapping):
            named = recognised("document_id" if where == "documents" else "query_id", tuple(value)) is not None
            yield Place(path, number), dict(value) if named else {"_id": str(key), **value}
        else:
            what = f"is not text but {_shown(value)}"
            problems.append(Problem(f"{where}[{_shown(key)}]", what, 'a text, or {"title": …, "text": …}'))


def _of_frame(frame: Any, where: str, problems: Findings) -> Iterator[tuple[Place, Row]]:
    """Rows of a frame, whichever library made it; a cell that is not there is None."""
    path, names = Path(where), [str(name) for name in frame.columns]
    if named_twice(names, where, problems):
        return
    columns = [frame[name].to_list() for name in frame.columns]
    if recognised("document_id" if where == "documents" else "query_id", tuple(names)) is None:
        index = getattr(frame, "index", None)
        names.insert(0, "_id")
        columns.insert(0, [str(one) for one in (range(len(frame)) if index is None else index)])
    for number, cells in enumerate(zip(*columns, strict=True), 1):
        kept = (None if _is_missing(cell) else cell for cell in cells)
        yield Place(path, number), dict(zip(names, kept, strict=True))


def judgments_of(qrels: Any) -> Qrels:
    """Judgments as query id -> document id -> grade.

    Args:
        qrels: {query: {document: grade}}, {query: relevant documents} (each of grade 1), the same as a list with an
            entry a query, a frame with query_id, doc_id and relevance (1 where it has none), or a TREC file.

    Raises:
        InputError: they have none of these shapes, a grade is not a whole number, or something occurs twice.

    >>> judgments_of({"q1": {"d1": 2}, "q2": ["d2", "d3"]})
    {'q1': {'d1': 2}, 'q2': {'d2': 1, 'd3': 1}}
    """
    if _is_path(qrels):
        return trec.read_qrels(str(qrels))
    if isinstance(qrels, list | tuple):
        qrels = {str(number): judged for number, judged in enumerate(qrels)}
    if isinstance(qrels, Mapping):
        tables = once(qrels.items(), "qrels", "query")
        judgments = {query: _grades(_judged_in(given, f"qrels[{query!r}]"), query) for query, given in tables.items()}
    else:
        judgments = _judgments_in(qrels)
    if not any(judgments.values()):
        raise InputError(Problem("qrels", "there is no judgment", '{"q1": {"d1": 1}}'))
    return {query: judged for query, judged in judgments.items() if judged}


def _judged_in(given: Any, where: str) -> list[tuple[Any, Any]]:
    """Documents and grades of one query."""
    if isinstance(given, Mapping):
        return list(given.items())
    if isinstance(given, Sequence | AbstractSet) and not isinstance(given, str | bytes):
        return [(document, 1) for document in _ids(given, where)]
    raise InputError(Problem(where, "is neither a dict nor a list", "{document: grade}, or the relevant documents"))


def _judgments_in(frame: Any) -> Qrels:
    """The judgments of a frame: the rows of a query, as long as they stand together, are taken at once."""
    queries, documents, grades = _columns(frame, "qrels", GRADE, 1)
    plain = _plain(documents, grades)
    judgments: Qrels = {}
    for start, end in _stretches(queries):
        query = str(queries[start])
        judged = dict(zip(documents[start:end], grades[start:end], strict=True)) if plain else {}
        if len(judged) < end - start or query in judgments:
            rows = [*judgments.get(query, {}).items(), *zip(documents[start:end], grades[start:end], strict=True)]
            judged = _grades(rows, query)
        judgments[query] = judged
    return judgments


def _plain(documents: Iterable[Any], grades: Collection[Any]) -> bool:
    """Whether ids are text and grades small whole numbers, as nearly all are: nothing has to be converted."""
    if not set(map(type, documents)) <= {str} or not set(map(type, grades)) <= {int}:
        return False
    return min(grades, default=0) >= -LARGEST_GRADE and max(grades, default=0) <= LARGEST_GRADE


def _grades(rows: Sequence[tuple[Any, Any]], query: str) -> dict[str, int]:
    """The grades of one query."""
    judged: dict[Any, Any] = dict(rows)
    if len(judged) == len(rows) and _plain(judged, judged.values()):
        return judged
    where = f"qrels[{query!r}]"
    for document, grade in rows:
        if isinstance(grade, bool) or not _whole(grade):
            what = f"grade {_shown(grade)} of document {document!r} is not a whole number"
            raise InputError(Problem(where, what, WHOLE))
    return once(((document, int(grade)) for document, grade in rows), where, "document")


def run_of(source: Any, where: str) -> RunScores:
    """A run from any of the shapes of `harness.compare`; InputError where it has none of them."""
    if _is_path(source):
        return read_run(str(source))
    if isinstance(source, Mapping):
        pairs = ((query, _hits(hits, f"{where}[{query!r}]")) for query, hits in source.items())
        return once(pairs, where, "query")
    queries, documents, scores = _columns(source, where, SCORE, None)
    rows: dict[str, list[tuple[Any, float]]] = {}
    for start, end in _stretches(queries):
        place = f"{where}[{queries[start]!r}]"
        numbers = [_number(score, place) for score in scores[start:end]]
        rows.setdefault(str(queries[start]), []).extend(zip(documents[start:end], numbers, strict=True))
    return {query: once(hits, f"{where}[{query!r}]", "document") for query, hits in rows.items()}


def once(pairs: Iterable[tuple[Any, Value]], where: str, what: str) -> dict[str, Value]:
    """A table by id, as text; InputError where an id occurs twice, as 1 and "1" do too."""
    table: dict[str, Value] = {}
    for key, value in pairs:
        if str(key) in table:
            raise InputError(Problem(where, f"{what} {str(key)!r} occurs twice", f"give each {what} once"))
        table[str(key)] = value
    return table


def _is_missing(cell: Any) -> bool:
    """Whether a cell is empty, as each library says it: None, a float that is none, NA or NaT of pandas."""
    return cell is None or (isinstance(cell, float) and cell != cell) or type(cell).__name__ in ("NAType", "NaTType")


def _whole(grade: Any) -> bool:
    """Whether a grade is a whole number that can be counted with."""
    try:
        return bool(int(grade) == grade) and abs(int(grade)) <= LARGEST_GRADE
    except (TypeError, ValueError, OverflowError):
        return False


def _shown(value: Any) -> str:
    """A value as messages show it."""
    return " ".join(repr(value).split())[:80]


def _number(score: Any, where: str) -> float:
    try:
        return float(score)
    except (TypeError, ValueError, OverflowError):
        raise InputError(Problem(where, f"{_shown(score)} is not a score", "a finite number")) from None


def _hits(hits: Any, where: str) -> dict[str, float]:
    if isinstance(hits, Mapping):
        return once(((document, _number(score, where)) for document, score in hits.items()), where, "document")
    if isinstance(hits, str | AbstractSet) or not isinstance(hits, Iterable):
        raise InputError(Problem(where, "is neither a list nor a dict", "documents best first, or {document: score}"))
    ids = list(_ids(hits, where))
    if len(set(ids)) < len(ids):
        raise InputError(Problem(where, "has a document twice", "each document once"))
    return {id_: float(len(ids) - place) for place, id_ in enumerate(ids)}


def _ids(given: Iterable[Any], where: str) -> Iterator[str]:
    """Ids as text; what is not there, or holds several things, is none."""
    for one in given:
        if _is_missing(one) or (isinstance(one, Collection) and not isinstance(one, str)):
            raise InputError(Problem(where, f"{_shown(one)} is not an id", "an id is a text or a number"))
        yield str(one)


def _columns(frame: Any, where: str, values: Sequence[str], otherwise: int | None) -> tuple[list[Any], ...]:
    """Query, document and value of each row of a frame, whichever library made it.

    Args:
        frame: what has columns.
        where: its place in a message.
        values: what the column of values may be called.
        otherwise: the value where there is no such column; None: there has to be one.
    """
    columns = [str(name) for name in getattr(frame, "columns" if hasattr(frame, "columns") else "column_names", ())]
    named = [next((name for name in names if name in columns), None) for names in (QUERY, DOCUMENT, values)]
    if None in named[:2] or (named[2] is None and otherwise is None):
        there = f"its columns are {', '.join(columns)}" if columns else f"it is of type {type(frame).__name__}"
        raise InputError(Problem(where, "is neither a dict, a file nor a frame that can be read",
                                 f"query_id, doc_id, {values[0]}; {there}"))  # fmt: skip
    lists = tuple(_list_of(frame[name]) for name in named if name is not None)
    for name, column in zip(named[:2], lists, strict=False):
        if missing := sum(map(_is_missing, column)):
            raise InputError(Problem(f"{where}[{name!r}]", f"{counted(missing, 'row')} without an id", "give each one"))
    return lists if len(lists) == 3 else (*lists, [otherwise] * len(lists[0]))


def _list_of(column: Any) -> list[Any]:
    convert = getattr(column, "to_list", None) or getattr(column, "to_pylist", None)
    return list(column) if convert is None else convert()


def _stretches(queries: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """The rows [start, end) of one query that stand together."""
    column = np.array(queries, dtype=object)
    ends: list[int] = [*(np.flatnonzero(column[1:] != column[:-1]) + 1).tolist(), len(column)]
    start = 0
    for end in ends:
        if end > start:
            yield start, end
        start = end
