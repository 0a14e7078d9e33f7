"""A data set in memory.

Documents, queries and labels, each in memory or a path, become one `Source`, which is
opened like a data set of files. `rows_in_memory` reads texts and rows, and
`document_values` reads labels.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from harness.dataset import DatasetReference, Labels, parse_reference
from harness.dataset.choose_reader import open_source
from harness.dataset.columns import Columns
from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import (
    FunctionSource,
    PlacedLabels,
    Source,
    SourceLocation,
)
from harness.dataset.table_source import RowSource, TableSource, rows_of_files
from harness.notebook.document_values import (
    Conditions,
    grades_in_memory,
    is_in_query_order,
)
from harness.notebook.rows_in_memory import (
    DOCUMENT_SHAPES,
    is_path,
    is_table_file,
    open_rows,
)
from retrievers.errors import InputError, Problem
from retrievers.files.trec_files import Qrels

LABEL_KINDS = ("query_id", "label_query", "label_document", "grade")
"""Kinds of columns that a frame of labels may have."""
OpenSource = Callable[[DatasetReference], Source]
"""Opens a data set with what a reference declares of its columns and rows."""


def source_in_memory(
    documents: Any,
    queries: Any,
    qrels: Any,
    *,
    conditions: Conditions,
    declared_kinds: Collection[str],
) -> OpenSource:
    """Return the opener of a data set in memory; each part may also be a path.

    Args:
        documents: {id: text}, texts, {id: {"title": …, "text": …}}, rows, or a frame
            with id, text and title.
        queries: the same; None: those of the path in `documents`.
        qrels: see `grades_in_memory`, or a table of labels; None: those in the rows of
            the queries, if any.
        conditions: on the rows that are labels; empty if all rows are.
        declared_kinds: kinds of columns whose names the reference declares; with one of
            labels, a frame of labels is read as a table in a file is.

    Raises:
        InputError: one of them has another type, or the labels cannot be read.
    """
    if documents is None:
        raise InputError(Problem("documents", "is None", DOCUMENT_SHAPES))
    if queries is None and not is_path(documents):
        raise InputError(Problem("queries", "is None", DOCUMENT_SHAPES))
    label_rows: RowSource | None = None
    grades: Qrels | None = None
    has_declared_columns = not set(declared_kinds).isdisjoint(LABEL_KINDS)
    is_frame = hasattr(qrels, "columns") or hasattr(qrels, "column_names")
    if is_table_file(qrels) or (has_declared_columns and is_frame):
        label_rows = open_rows(qrels, "qrels")
    elif qrels is not None:
        grades = grades_in_memory(qrels, has_query_order=True, conditions=conditions)

    def open_parts(reference: DatasetReference) -> Source:
        columns = _columns_of(reference)
        # With None the rows of queries have the labels; with no rows nothing has.
        labels_of_queries = label_rows if grades is None else rows_of_files()
        query_part = documents if queries is None else queries
        query_source = _open_part(query_part, "queries", labels_of_queries, columns)
        document_source = _open_part(documents, "documents", None, columns)
        parts = FunctionSource(
            document_source.documents, query_source.queries, query_source.labels
        )
        if label_rows is not None:
            no_rows = rows_of_files()
            table = TableSource(no_rows, no_rows, label_rows, columns)
            return parts._replace(labels=table.labels)
        if grades is None:
            return parts
        in_order = is_in_query_order(qrels)
        labels = partial(_read_labels, parts, grades, len(qrels) if in_order else None)
        return parts._replace(labels=labels)

    open_parts(DatasetReference(""))  # other types are refused here
    return open_parts


def _read_labels(
    source: Source, grades: Qrels, list_length: int | None, problems: ReadProblems
) -> Iterator[PlacedLabels]:
    """Yield the labels.

    Args:
        source: with the queries.
        grades: by query id; of a list by the position of the query.
        list_length: number of entries of a list in the order of the queries; None for
            other labels.
        problems: gets the problem that the length is wrong.
    """
    query_ids: dict[str, str] = {}
    if list_length is not None:
        ids = [query.id for _, query in source.queries(ReadProblems())]
        if len(ids) != list_length:
            problem = f"{list_length:,} lists of labels for {len(ids):,} queries"
            remedy = "give one list for each query, in the order of the queries"
            problems.add("qrels", problem, remedy)
            return
        query_ids = {str(position): id_ for position, id_ in enumerate(ids)}
    location = SourceLocation(Path("qrels"))
    for query, query_grades in grades.items():
        query_id = query_ids.get(query, query)
        yield PlacedLabels(location, query_id, Labels(grades=query_grades))


def _open_part(
    part: Any, where: str, labels: RowSource | None, columns: Columns
) -> Source:
    """Open documents or queries: rows of any type, or the data set of a path."""
    if is_path(part) and not is_table_file(part):
        reference = parse_reference(part if isinstance(part, str) else Path(part))
        return open_source(
            replace(reference, columns=columns.declared, where=columns.where)
        )[1]
    rows = open_rows(part, where)
    return TableSource(rows, rows, labels, columns)


def _columns_of(reference: DatasetReference) -> Columns:
    return Columns(reference.columns, where=reference.where)
