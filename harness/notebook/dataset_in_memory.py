"""A data set in memory.

A row or text without an id gets its position as id: the index of a frame, else 0, 1, 2 and so on.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from harness.dataset import Labels, parse_reference
from harness.dataset.choose_reader import open_source
from harness.dataset.columns import Columns
from harness.dataset.file import File
from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import FunctionSource, Source, SourceLocation
from harness.dataset.table_source import RowSource, TableSource, rows_of_files
from harness.notebook.document_values import grades_in_memory
from harness.notebook.rows_in_memory import (
    DOCUMENT_SHAPES,
    is_path,
    is_table_file,
    read_rows_in_memory,
)
from retrievers.errors import InputError, Problem
from retrievers.files.trec_files import Qrels

OpenSource = Callable[[Mapping[str, str]], Source]
"""Opens a data set with declared columns."""


def source_in_memory(documents: Any, queries: Any, qrels: Any) -> OpenSource:
    """Return the opener of a data set in memory; each part may also be a path.

    Args:
        documents: {id: text}, texts, {id: {"title": …, "text": …}}, rows, or a frame with id, text and title.
        queries: the same; None: those of the path in `documents`.
        qrels: see `judgments_of`, or a table of labels; None: those in the rows of the queries, if any.

    Raises:
        InputError: one of them has another type.
    """
    if documents is None or (queries is None and not is_path(documents)):
        raise InputError(
            Problem(
                "documents" if documents is None else "queries",
                "is None",
                DOCUMENT_SHAPES,
            )
        )
    table = rows_of_files(File(Path(qrels))) if is_table_file(qrels) else None
    judgments = (
        None if qrels is None or table else grades_in_memory(qrels, by_place=True)
    )

    def opened(columns: Mapping[str, str]) -> Source:
        labels = table or (None if judgments is None else rows_of_files())
        asked = _opened(
            documents if queries is None else queries, "queries", labels, columns
        )
        parts = FunctionSource(
            _opened(documents, "documents", None, columns).documents,
            asked.queries,
            asked.labels,
        )
        if table is not None:
            return parts._replace(
                labels=TableSource(
                    rows_of_files(), rows_of_files(), table, Columns(columns)
                ).labels
            )
        return (
            parts
            if judgments is None
            else parts._replace(labels=partial(_labels, parts, judgments, qrels))
        )

    opened({})  # other types are refused here
    return opened


def _labels(
    source: Source, judgments: Qrels, qrels: Any, problems: ReadProblems
) -> Iterator[tuple[SourceLocation, str, Labels]]:
    """The labels; a list is in the order of the queries."""
    names: dict[str, str] = {}
    if isinstance(qrels, list | tuple):
        ids = [query.id for _, query in source.queries(ReadProblems())]
        if len(ids) != len(qrels):
            what = f"{len(qrels):,} lists of labels for {len(ids):,} queries"
            problems.add(
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
    if is_path(given) and not is_table_file(given):
        reference = parse_reference(given if isinstance(given, str) else Path(given))
        return open_source(replace(reference, columns=columns))[1]
    rows = (
        rows_of_files(File(Path(given)))
        if is_path(given)
        else read_rows_in_memory(given, where)
    )
    return TableSource(rows, rows, labels, Columns(columns))
