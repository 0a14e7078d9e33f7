"""Grades or scores of documents in memory.

`grades_in_memory` reads labels, `run_in_memory` a run: dicts, lists, frames or files
become query id -> document id -> value. They differ by what a `_ValueKind` says.
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
from typing import Any, Generic, NamedTuple, TypeVar

from harness.dataset.events import choose_label_rows
from harness.dataset.judging_columns import guessed_grades, orders_documents
from harness.dataset.read_problems import ReadProblems
from harness.dataset.row import Row
from harness.dataset.usual_names import SCORE_NAME
from harness.dataset.written_values import GRADE_REMEDY, parse_judgment
from harness.english import count_of
from harness.notebook.argument_types import check_file, check_map
from harness.notebook.rows_in_memory import (
    is_missing_cell,
    is_path,
    is_table_file,
    open_rows,
    plain_cell,
    repr_in_message,
    series_as_dict,
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
GRADE_COLUMNS = (
    "relevance",
    "grade",
    "label",
    "rating",
    "judgment",
    "judgement",
    "gain",
    "rel",
    "relevant",
    SCORE_NAME,
)

Value = TypeVar("Value")
Conditions = Mapping[str, tuple[str, ...]]
"""Column -> the values of the rows that are labels."""


class _ValueKind(NamedTuple, Generic[Value]):
    """The kind of value that documents have: a grade or a score."""

    columns: tuple[str, ...]
    """Names of its column."""
    parse: Callable[[Any, Any, str], Value]
    """Takes a value, its document and their place; the last two are for messages.

    Returns the value, or raises InputError.
    """
    default: int | None
    """The value of a document without one.

    None: a table needs the column, and a list gets values that descend.
    """
    allows_sets: bool
    """Whether the documents of a query may be without an order."""
    shape_problem: str
    """The problem of documents of another type."""
    shape_remedy: str


def parse_conditions(where: Any) -> Conditions:
    """Return the values of each column that the rows of labels have.

    Raises:
        InputError: it is no mapping, or has a column without values.

    >>> parse_conditions({"action": "click", "year": [2025, 2026]})
    {'action': ('click',), 'year': ('2025', '2026')}
    """
    check_map({} if where is None else where, "where", '{"action_name": "click"}')
    conditions: dict[str, tuple[str, ...]] = {}
    for column, required in (where or {}).items():
        is_several = isinstance(required, Iterable) and not isinstance(required, str)
        texts = map(str, required if is_several else [required])
        conditions[str(column)] = tuple(texts)
        if not conditions[str(column)]:
            problem = f"{str(column)!r} has no values"
            raise InputError(Problem("where", problem, '{"action_name": "click"}'))
    return conditions


def grades_in_memory(
    qrels: Any, *, has_query_order: bool = False, conditions: Conditions | None = None
) -> Qrels:
    """Labels as query id -> document id -> grade.

    Args:
        qrels: {query: {document: grade}}, {query: relevant documents} (each of grade
            1), the same as a list with one entry per query, a frame with query_id,
            doc_id and relevance (default 1), a table in a file, or a TREC file.
        has_query_order: whether a list is in the order of the queries, whose ids are
            unknown here; else dicts of several keys in a list are the rows of a table.
        conditions: on the rows of a table that are labels.

    Raises:
        InputError: another type, a grade that is not a whole number, a duplicate, no
            label at all, or conditions for labels that have no rows.

    >>> grades_in_memory({"q1": {"d1": 2}, "q2": ["d2", "d3"]})
    {'q1': {'d1': 2}, 'q2': {'d2': 1, 'd3': 1}}
    >>> grades_in_memory({1.0: {7.0: 1}})
    {'1': {'7': 1}}
    """
    qrels = series_as_dict(qrels, "qrels")
    is_trec_file = is_path(qrels) and not is_table_file(qrels)
    is_list = isinstance(qrels, list | tuple) and not _are_rows(qrels)
    if (has_query_order and is_in_query_order(qrels)) or is_list:
        qrels = dict(enumerate(qrels))
    if conditions and (is_trec_file or isinstance(qrels, Mapping)):
        problem = "chooses rows of a table of labels, and qrels is none"
        raise InputError(Problem("where", problem, "leave it out, or give a frame"))
    if is_trec_file:
        check_file(qrels, "qrels", "a TREC file, a table, or a dict")
        return read_qrels(str(qrels))
    grades_by_query = _values_by_query(
        qrels, "qrels", _GRADES, conditions=conditions or {}
    )
    if not any(grades_by_query.values()):
        raise InputError(Problem("qrels", "there are no labels", '{"q1": {"d1": 1}}'))
    return {query: grades for query, grades in grades_by_query.items() if grades}


def is_in_query_order(qrels: Any) -> bool:
    """Whether labels are a list with an entry for each query, in their order."""
    if not isinstance(qrels, list | tuple):
        return False
    return not qrels or not all(map(_names_query_and_document, qrels))


def _names_query_and_document(row: Any) -> bool:
    """Whether an entry of a list is a row with a query and a document."""
    if not isinstance(row, Mapping):
        return False
    names = {str(name) for name in row}
    return not names.isdisjoint(QUERY_COLUMNS) and not names.isdisjoint(
        DOCUMENT_COLUMNS
    )


def _are_rows(qrels: Iterable[Any]) -> bool:
    """Whether a list has rows of a table: dicts of several keys, at least one."""
    rows = list(qrels)
    return bool(rows) and all(isinstance(row, Mapping) and len(row) > 1 for row in rows)


def run_in_memory(source: Any, where: str) -> RunScores:
    """A run from any type that `harness.compare` takes: query -> document -> score.

    Without rankings it is empty.

    Raises:
        InputError: another type, a score that is not a finite number, or a duplicate.
    """
    if is_path(source) and not is_table_file(source):
        check_file(source, where, "a TREC file, a table, or a dict")
        return read_run(str(source))
    return _values_by_query(
        series_as_dict(source, where), where, _SCORES, conditions=None
    )


def _values_by_query(
    source: Any, where: str, kind: _ValueKind[Value], *, conditions: Conditions | None
) -> dict[str, dict[str, Value]]:
    """The documents of each query with their values.

    Args:
        source: {query: {document: value}}, {query: documents}, a table in a file, or a
            frame.
        where: its place in a message.
        kind: of the values.
        conditions: of the rows that are labels; None if they are no labels.
    """
    documents_by_query: dict[str, list[tuple[Any, Any]]] = {}
    if isinstance(source, Mapping):
        queries = unique_by_id(source, source.values(), where, noun="query")
        for query, documents in queries.items():
            query_where = f"{where}[{query!r}]"
            documents_by_query[query] = _query_documents(documents, query_where, kind)
    else:
        for query, document, value in _read_rows(source, where, kind, conditions):
            documents_by_query.setdefault(query, []).append((document, value))
    values_by_query: dict[str, dict[str, Value]] = {}
    for query, pairs in documents_by_query.items():
        query_where = f"{where}[{query!r}]"
        documents = [document for document, _ in pairs]
        parsed = (kind.parse(value, document, query_where) for document, value in pairs)
        values_by_query[query] = unique_by_id(
            documents, parsed, query_where, noun="document"
        )
    return values_by_query


def _query_documents(
    documents: Any, where: str, kind: _ValueKind[Value]
) -> list[tuple[Any, Any]]:
    """The documents of one query with their values.

    In a list they have the default; without one, scores that descend.
    """
    if isinstance(documents, Mapping):
        return list(documents.items())
    is_list = isinstance(documents, Iterable) and not isinstance(documents, str | bytes)
    if getattr(documents, "ndim", 1) == 0:  # an array of one value
        is_list = False
    if not is_list or (isinstance(documents, Set) and not kind.allows_sets):
        raise InputError(Problem(where, kind.shape_problem, kind.shape_remedy))
    listed = list(documents)
    if kind.default is not None:
        return [(document, kind.default) for document in listed]
    return [(document, len(listed) - i) for i, document in enumerate(listed)]


def unique_by_id(
    keys: Iterable[Any], contents: Iterable[Value], where: str, *, noun: str
) -> dict[str, Value]:
    """Contents by the id of their key; InputError for duplicates, such as 1 and "1"."""
    table: dict[str, Value] = {}
    for key, content in zip(keys, contents, strict=True):
        id_ = _parse_id(key, where)
        if id_ in table:
            problem = f"{noun} {id_!r} occurs twice"
            raise InputError(Problem(where, problem, f"give each {noun} once"))
        table[id_] = content
    return table


def _parse_id(value: Any, where: str) -> str:
    id_ = document_id(value)
    if id_ is None:
        problem = f"{repr_in_message(value)} is not an id"
        remedy = "an id is a text or a whole number"
        raise InputError(Problem(where, problem, remedy))
    return id_


def _parse_grade(value: Any, document: Any, where: str) -> int:
    value = plain_cell(value)
    grade = parse_judgment(value)
    if grade is None:
        problem = (
            f"grade {repr_in_message(value)} of document {document!r} "
            "is not a whole number"
        )
        raise InputError(Problem(where, problem, GRADE_REMEDY))
    return grade


def _parse_score(value: Any, document: Any, where: str) -> float:
    try:
        score = float(value)
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score):
        problem = f"{repr_in_message(value)} is not a score of document {document!r}"
        raise InputError(Problem(where, problem, "a finite number"))
    return score


_GRADES = _ValueKind[int](
    GRADE_COLUMNS,
    _parse_grade,
    default=1,
    allows_sets=True,
    shape_problem="is neither a dict nor a list",
    shape_remedy="{document: grade}, or the relevant documents",
)
_SCORES = _ValueKind[float](
    SCORE_COLUMNS,
    _parse_score,
    default=None,
    allows_sets=False,
    shape_problem="is neither a list nor a dict",
    shape_remedy="documents best first, or {document: score}",
)


def _read_rows(
    source: Any, where: str, kind: _ValueKind[Value], conditions: Conditions | None
) -> Iterator[tuple[str, str, Any]]:
    """Query, document and value of each row of a table or a frame."""
    problems = ReadProblems()
    read_rows = open_rows(source, where)
    rows = list(read_rows(problems))
    if conditions is not None:
        rows = choose_label_rows(rows, conditions, where, problems)
    if problems:
        # Here the conditions are an argument, not a key of an experiment.
        raise InputError(
            [
                problem._replace(where=problem.where.removeprefix("dataset."))
                for problem in problems.problems
            ]
        )
    if not rows:  # a frame without rows has nothing to read, whatever its columns
        return
    columns = list(rows[0].cells)
    query_column = _find_column(QUERY_COLUMNS, columns)
    document_column = _find_column(DOCUMENT_COLUMNS, columns)
    value_column = _find_column(kind.columns, columns)
    lacks_values = value_column is None and kind.default is None
    if query_column is None or document_column is None or lacks_values:
        problem = "is neither a dict, a file nor a frame that can be read"
        remedy = (
            f"query_id, doc_id, {kind.columns[0]}; its columns are {', '.join(columns)}"
        )
        raise InputError(Problem(where, problem, remedy))
    used = {query_column, document_column, value_column, *(conditions or ())}
    if kind.default is not None:
        _refuse_unused(rows, used, where, value_column)
    query_ids = _id_column(rows, query_column, where)
    document_ids = _id_column(rows, document_column, where)
    for row, query_id, doc_id in zip(rows, query_ids, document_ids, strict=True):
        value = kind.default if value_column is None else row.cells[value_column]
        yield query_id, doc_id, value


def _refuse_unused(
    rows: Sequence[Row], used: Set[str | None], where: str, grade_column: str | None
) -> None:
    """Raise InputError if unused columns may have grades of documents.

    Each of these rows would be a label, and without grades of 1. The column "score" may
    be one of grades, but may also be what orders the documents.
    """
    if grade_column not in (None, SCORE_NAME):
        return
    problems: list[Problem] = []
    for column in rows[0].cells:
        if column in used:
            continue
        cells = [row.cells.get(column) for row in rows]
        cells = [cell for cell in cells if cell is not None]
        if orders_documents(column, cells):
            problem = f"{column!r} looks like what a system returned"
            remedy = "if people judged these documents, leave it out; else it is a run"
            problems.append(Problem(where, problem, remedy))
        elif grade_column is None:
            grades = guessed_grades(column, cells, is_label=True)
            problem = f"{column!r} could hold grades{grades}, and is not used"
            remedy = f"call it {GRADE_COLUMNS[0]!r}; or leave it out"
            problems += [Problem(where, problem, remedy)] if grades else []
    if problems:
        raise InputError(problems)


def _find_column(usual_names: Iterable[str], columns: Collection[str]) -> str | None:
    """Return the first usual name that is a column."""
    return next((name for name in usual_names if name in columns), None)


def _id_column(rows: Sequence[Row], column: str, where: str) -> list[str]:
    """A column of ids; other values become a problem that shows the first."""
    column_where = f"{where}[{column!r}]"
    cells = [row.cells[column] for row in rows]
    if _are_ascii_ids(cells):
        return cells
    collections = [
        cell
        for cell in cells
        if isinstance(cell, Collection) and not isinstance(cell, str)
    ]
    if collections:
        problem = (
            f"{count_of(len(collections), 'row')} with several ids, "
            f"such as {repr_in_message(collections[0])}"
        )
        remedy = f"give one document a row: frame.explode({column!r})"
        raise InputError(Problem(column_where, problem, remedy))
    parsed = id_column(cells)
    ids = [id_ for id_ in parsed if id_ is not None]
    if len(ids) < len(cells):
        first = cells[parsed.index(None)]
        problem = f"has {repr_in_message(first)}, which is not an id"
        if is_missing_cell(first):
            problem = "is without an id"
        rows_without_id = count_of(len(cells) - len(ids), "row")
        remedy = f"in {rows_without_id}; an id is a text or a whole number"
        raise InputError(Problem(column_where, f"a row {problem}", remedy))
    return ids


def _are_ascii_ids(cells: Sequence[Any]) -> bool:
    """Whether no cell needs to be parsed: most columns are like this."""
    if not set(map(type, cells)) <= {str}:
        return False
    return all(map(str.isascii, cells)) and all(cells)
