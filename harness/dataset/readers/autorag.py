"""AutoRAG's pair of tables: a corpus, then questions with labels in groups."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from harness.dataset.columns import Columns
from harness.dataset.file import File, Files
from harness.dataset.listing import file_named, list_files
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DatasetReference, DeclaredColumn
from harness.dataset.row import Row
from harness.dataset.source import FormatReader
from harness.dataset.table_source import TableSource, rows_of_files

AUTORAG_FILES = ("corpus.parquet", "qa.parquet")
AUTORAG_FOLDERS = ("", "data/")
"""The tables are in a folder, or in the `data` of a project."""
LABEL_COLUMN = "retrieval_gt"
AUTORAG_COLUMNS = (
    DeclaredColumn("document_id", "doc_id"),
    DeclaredColumn("text", "contents"),
    DeclaredColumn("query_id", "qid"),
    DeclaredColumn("query", "query"),
    DeclaredColumn("relevant", LABEL_COLUMN),
)
ANSWER_COLUMN = "generation_gt"
"""One of the usual names of a column of answers."""


def _find_pair(reference: DatasetReference, files: Files) -> Sequence[File]:
    """Return AutoRAG's two tables; empty if they are not there.

    The reference is their folder, their project, or one of them.
    """
    is_file = not reference.scheme and reference.folder.is_file()
    if is_file and reference.folder.name in AUTORAG_FILES:
        files = list_files(reference.folder.parent)
    for folder in AUTORAG_FOLDERS:
        paths = [f"{folder}{name}" for name in AUTORAG_FILES]
        if all(path in files for path in paths):
            return [files[path] for path in paths]
    return ()


def _read_pair(reference: DatasetReference, files: Files) -> TableSource:
    """Open the two tables.

    Labels are groups that are all needed, each of alternatives; a plain list is one
    group.
    """
    pair = _find_pair(reference, files)
    if not pair:
        pair = [file_named(files, name, reference.folder) for name in AUTORAG_FILES]
    corpus, queries = pair
    query_rows = partial(_query_rows, queries)
    columns = Columns(AUTORAG_COLUMNS, are_fixed=True)
    return TableSource(rows_of_files(corpus), query_rows, None, columns)


def _query_rows(queries: File, problems: ReadProblems) -> Iterator[Row]:
    used_columns = [ANSWER_COLUMN, *(column for _, column in AUTORAG_COLUMNS)]
    for row in rows_of_files(queries)(problems):
        cells = {
            column: cell for column, cell in row.cells.items() if column in used_columns
        }
        cells[LABEL_COLUMN] = _groups(row.cells.get(LABEL_COLUMN))
        yield Row(row.location, cells)


def _groups(labels: Any) -> Any:
    """Return labels as a list of groups if they are an id or a list of ids."""
    if isinstance(labels, str):
        return [[labels]]
    if not isinstance(labels, list):
        return labels
    has_groups = any(isinstance(group, list) for group in labels)
    return labels if has_groups else [labels]


AUTORAG = FormatReader(
    lambda reference, files: bool(_find_pair(reference, files)), _read_pair
)
"""AutoRAG 0.3.27."""
