"""Grades or scores of documents in memory."""

import math
from collections.abc import Collection, Iterable, Mapping, Set
from pathlib import Path
from typing import Any, TypeVar

from harness.dataset.file import File
from harness.dataset.read_problems import ReadProblems
from harness.dataset.table_source import rows_of_files
from harness.dataset.written_values import GRADE_REMEDY, parse_grade
from harness.english import count_of
from harness.notebook.rows_in_memory import (
    is_missing_cell,
    is_path,
    is_table_file,
    read_rows_in_memory,
    repr_in_message,
)
from retrievers.errors import InputError, Problem
from retrievers.files.trec_files import Qrels, RunScores, read_qrels, read_run
from retrievers.ids import document_id, id_column

QUERY_COLUMNS = ("query_id", "query-id", "qid", "q_id", "query")
DOCUMENT_COLUMNS = (
    "doc_id",
    "corpus-id",
    "corpus_id",
    "docno",
    "docid",
    "document_id",
    "document",
)
SCORE_COLUMNS = ("score",)
GRADE_COLUMNS = ("relevance", "grade", "label", "score", "rel")


Value = TypeVar("Value")


def grades_in_memory(qrels: Any, *, by_place: bool = False) -> Qrels:
    """Labels as query id -> document id -> grade.

    Args:
        qrels: {query: {document: grade}}, {query: relevant documents} (each of grade 1), the same as a list with one
            entry per query, a frame with query_id, doc_id and relevance (default 1), a table in a file, or a TREC file.
        by_place: whether a list is in the order of the queries, whose ids are unknown here.

    Raises:
        InputError: another type, a grade that is not a whole number, or a duplicate.

    >>> grades_in_memory({"q1": {"d1": 2}, "q2": ["d2", "d3"]})
    {'q1': {'d1': 2}, 'q2': {'d2': 1, 'd3': 1}}
    >>> grades_in_memory({1.0: {7.0: 1}})
    {'1': {'7': 1}}
    """
    if is_path(qrels) and not is_table_file(qrels):
        return read_qrels(str(qrels))
    if isinstance(qrels, list | tuple) and (
        by_place or not all(isinstance(one, Mapping) and len(one) > 1 for one in qrels)
    ):
        qrels = dict(enumerate(qrels))
    judgments = _by_query(qrels, "qrels", GRADE_COLUMNS)
    if not any(judgments.values()):
        raise InputError(Problem("qrels", "there are no labels", '{"q1": {"d1": 1}}'))
    return {query: judged for query, judged in judgments.items() if judged}


def run_in_memory(source: Any, where: str) -> RunScores:
    """A run from any type that `harness.compare` takes; InputError for other types."""
    if is_path(source) and not is_table_file(source):
        return read_run(str(source))
    return _by_query(source, where, SCORE_COLUMNS)


def _by_query(
    given: Any, where: str, values: tuple[str, ...]
) -> dict[str, dict[str, Any]]:
    """The documents of each query with their values.

    Args:
        given: {query: {document: value}}, {query: documents}, a table in a file, or a frame.
        where: its place in a message.
        values: names of the value column: grades (default 1), or scores.
    """
    read = _grade if values is GRADE_COLUMNS else _score
    held: dict[str, list[tuple[Any, Any]]] = {}
    if isinstance(given, Mapping):
        table = unique_by_id(given.items(), where, "query")
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
        found[query] = unique_by_id(
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
        or (values is SCORE_COLUMNS and isinstance(held, Set))
    ):
        what, remedy = (
            "is neither a dict nor a list",
            "{document: grade}, or the relevant documents",
        )
        if values is SCORE_COLUMNS:
            what, remedy = (
                "is neither a list nor a dict",
                "documents best first, or {document: score}",
            )
        raise InputError(Problem(where, what, remedy))
    documents = list(held)
    return [
        (doc, 1 if values is GRADE_COLUMNS else len(documents) - place)
        for place, doc in enumerate(documents)
    ]


def unique_by_id(
    pairs: Iterable[tuple[Any, Value]], where: str, noun: str
) -> dict[str, Value]:
    """A table by id, as text; InputError for duplicates, such as 1 and "1"."""
    table: dict[str, Value] = {}
    for key, value in pairs:
        id_ = _id(key, where)
        if id_ in table:
            raise InputError(
                Problem(where, f"{noun} {id_!r} occurs twice", f"give each {noun} once")
            )
        table[id_] = value
    return table


def _id(value: Any, where: str) -> str:
    id_ = document_id(value)
    if id_ is None:
        raise InputError(
            Problem(
                where,
                f"{repr_in_message(value)} is not an id",
                "an id is a text or a whole number",
            )
        )
    return id_


def _grade(given: Any, document: Any, where: str) -> int:
    if (grade := parse_grade(given)) is None:
        raise InputError(
            Problem(
                where,
                f"grade {repr_in_message(given)} of document {document!r} is not a whole number",
                GRADE_REMEDY,
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
                f"{repr_in_message(given)} is not a score of document {document!r}",
                "a finite number",
            )
        )
    return number


def _columns(given: Any, where: str, values: tuple[str, ...]) -> tuple[list[Any], ...]:
    """Query, document and value of each row of a table or a frame; the default grade is 1."""
    seen = ReadProblems()
    read = (
        rows_of_files(File(Path(given)))
        if is_path(given)
        else read_rows_in_memory(given, where)
    )
    rows = [row for _, row in read(seen)]
    if seen:
        raise InputError(seen.problems)
    there = list(dict.fromkeys(name for row in rows[:1] for name in row))
    named = [
        next((name for name in names if name in there), None)
        for names in (QUERY_COLUMNS, DOCUMENT_COLUMNS, values)
    ]
    query, document, value = named
    if query is None or document is None or (value is None and values is SCORE_COLUMNS):
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
        what = f"{count_of(len(several), 'row')} with several ids, such as {repr_in_message(several[0])}"
        raise InputError(
            Problem(where, what, f"give one document a row: frame.explode({name!r})")
        )
    ids = id_column(column)
    if wrong := [cell for cell, id_ in zip(column, ids, strict=True) if id_ is None]:
        what = (
            "is without an id"
            if is_missing_cell(wrong[0])
            else f"has {repr_in_message(wrong[0])}, which is not an id"
        )
        remedy = f"in {count_of(len(wrong), 'row')}; an id is a text or a whole number"
        raise InputError(Problem(where, f"a row {what}", remedy))
    return [id_ for id_ in ids if id_ is not None]
