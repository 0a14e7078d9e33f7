"""A folder of documents with its queries.

`queries.json` is a list of objects with `query` and `relevant_documents`; several such
files may have labels of several people, whose lists are merged.
"""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from harness.dataset.columns import Columns
from harness.dataset.file import File, Files
from harness.dataset.labels import label_source
from harness.dataset.merge_lists import merge_labellers
from harness.dataset.placed_row import PlacedRow
from harness.dataset.query_tables import MARKDOWN_QUERIES, find_query_table
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers.text_documents import holds_documents, read_documents
from harness.dataset.reference import DatasetReference
from harness.dataset.row import Row
from harness.dataset.rows import read_file_rows
from harness.dataset.settings import NAMED_QUERIES
from harness.dataset.source import (
    FunctionSource,
    PlacedLabels,
    SourceLocation,
)
from harness.dataset.table_source import TableSource, rows_of_files
from harness.dataset.usual_names import FIELDS_KIND
from retrievers.errors import InputError, Problem
from retrievers.remedy import Remedy

METADATA_COLUMNS = ("tags", "fields")
"""Columns of queries whose values become fields."""
LABELLER_COLUMN = "labelled_by"


def matches(_: DatasetReference, files: Files) -> bool:
    """Whether a folder or an archive has a document of this form."""
    return holds_documents(files)


def read(reference: DatasetReference, files: Files) -> FunctionSource:
    """Open a folder of documents with its files of queries.

    These are `queries.json` if the reference names none.

    Raises:
        InputError: the reference names a split.
    """
    if reference.split is not None:
        problem = "a folder of Markdown has no splits"
        raise InputError(Problem("dataset.split", problem, NAMED_QUERIES))
    names = reference.queries or (MARKDOWN_QUERIES,)
    query_files = [files.get(name, File(reference.folder / name)) for name in names]
    columns = Columns(reference.columns)
    query_rows = partial(_query_rows, query_files, columns)
    if not reference.queries and names[0] not in files:
        remedy = _missing_queries_remedy(reference.folder, files)
        query_rows = partial(_missing_queries, query_files[0], remedy)
    query_table = TableSource(
        document_rows=rows_of_files(),
        query_rows=query_rows,
        label_rows=None,
        columns=columns,
    )
    return FunctionSource(
        documents=partial(
            read_documents,
            reference.folder,
            frozenset(),
            gitignore=reference.gitignore,
            by_page=reference.pages,
        ),
        queries=query_table.queries,
        labels=partial(_read_labels, query_files, columns),
    )


class _LabellerRow(NamedTuple):
    """A row of a file of queries, with its labeller."""

    row: Row
    labeller: str
    """Who labelled it; "" if nobody is named."""


def _labeller_rows(
    file: File, columns: Columns, problems: ReadProblems
) -> Iterator[_LabellerRow]:
    """Yield the rows of a file; without an id, the number of a row is it: q0, q1, …."""
    for number, file_row in enumerate(read_file_rows(file, problems)):
        cells = dict(file_row.cells)
        if columns.name("query_id", file_row) is None:
            cells = {"id": f"q{number}", **cells}
        labeller = str(cells.pop(LABELLER_COLUMN, None) or "")
        yield _LabellerRow(Row(file_row.location, cells), labeller)


def _query_rows(
    files: Sequence[File], columns: Columns, problems: ReadProblems
) -> Iterator[Row]:
    """Yield the rows of the files of queries.

    If another labeller labelled the same query, it is yielded only once.
    """
    labellers_by_query: dict[tuple[str, str], set[str]] = {}
    for file in files:
        column_names: dict[str, None] = {}
        location = SourceLocation(file.path)
        for row, labeller in _labeller_rows(file, columns, problems):
            location = row.location
            column_names |= dict.fromkeys(row.cells)
            # Any value of JSON may be there; the reader reports those that are no text.
            id_ = PlacedRow(row, columns, problems).value("query_id")
            query = (str(id_), str(row.cells.get("query")))
            labellers = labellers_by_query.setdefault(query, set())
            is_labelled_again = _is_other_labeller(labeller, labellers)
            labellers.add(labeller)
            if not is_labelled_again:
                yield _with_metadata(row, problems)
        _note_columns_of_file(location.file, column_names, problems)


def _missing_queries(
    file: File, remedy: Remedy | str, problems: ReadProblems
) -> Iterator[Row]:
    """Yield no row: that there is no file of queries is a problem."""
    problems.add(file.path, "no such file", remedy)
    return iter(())


def _missing_queries_remedy(folder: Path, files: Files) -> Remedy | str:
    """Return what may hold the queries, or else how to get some."""
    table = find_query_table(files)
    if table is not None:
        return table.remedy()
    path = shlex.quote(folder.as_posix())
    return f"harness init {path} says what to write; without labels: harness try {path}"


def _is_other_labeller(labeller: str, labellers: Collection[str]) -> bool:
    """Whether a labeller differs from all earlier ones; all have to be known."""
    if not labeller or not labellers:
        return False
    return "" not in labellers and labeller not in labellers


def _note_columns_of_file(
    file: str, column_names: Mapping[str, None], problems: ReadProblems
) -> None:
    """Note how columns are read under their names in the file, not in `metadata`."""
    columns_used = problems.columns_used.get(file)
    if not columns_used:
        return
    file_columns: dict[str, str] = {}
    for column in column_names:
        if column == LABELLER_COLUMN:
            continue
        is_metadata = column in METADATA_COLUMNS
        kind = FIELDS_KIND if is_metadata else columns_used.get(column, "")
        file_columns[column] = kind
    problems.columns_used[file] = file_columns


def _with_metadata(row: Row, problems: ReadProblems) -> Row:
    """Return a row with its `fields` and `tags` as `metadata`."""
    fields = row.cells.get("fields", {})
    tags = row.cells.get("tags", [])
    if isinstance(tags, str):
        tags = [tags]
    cells = {
        column: cell
        for column, cell in row.cells.items()
        if column not in METADATA_COLUMNS
    }
    if not isinstance(fields, dict) or not isinstance(tags, list):
        problem = "'tags' or 'fields' cannot be read"
        problems.add(row.location, problem, "a list of words; an object of strings")
        return Row(row.location, cells)
    held_fields = cells.get("metadata")
    metadata = dict(held_fields) if isinstance(held_fields, dict) else {}
    metadata |= {key: str(field) for key, field in fields.items()}
    if tags:
        metadata["tags"] = ", ".join(map(str, tags))
    if metadata:
        cells["metadata"] = metadata
    return Row(row.location, cells)


def _read_labels(
    files: Sequence[File], columns: Columns, problems: ReadProblems
) -> Iterator[PlacedLabels]:
    """Yield the labels in `relevant_documents`.

    If several labellers labelled a query, their lists are merged.
    """
    all_labels: list[PlacedLabels] = []
    for file in files:
        all_labels += _labels_in_file(file, columns, problems)
    yield from merge_labellers(all_labels)


def _labels_in_file(
    file: File, columns: Columns, problems: ReadProblems
) -> Iterator[PlacedLabels]:
    rows: list[Row] = []
    labellers: dict[str, str] = {}  # by the place of the row
    for row, labeller in _labeller_rows(file, columns, ReadProblems()):
        labellers[str(row.location)] = labeller
        rows.append(row)
    source = TableSource(rows_of_files(), lambda _: iter(rows), None, columns)
    for location, query_id, labels in source.labels(problems):
        labelled_by = labellers[str(location)]
        signed_labels = replace(
            labels, labelled_by=labelled_by, source=label_source(labelled_by)
        )
        yield PlacedLabels(location, query_id, signed_labels)
