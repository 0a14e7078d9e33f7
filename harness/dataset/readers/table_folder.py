"""Tables of queries with their labels.

The tables are files of a folder or an archive, or sheets of a workbook, in any form
that `rows.py` reads. They have the usual names (`dataset_folder.py`), or the reference
names them. The labels may be in the table of queries, or in a table of their own; both
may also be in TREC's form, as topics and qrels (`trec_rows.py`).

A reference may also be one table (`shards.py`) that names where its documents are.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.dataset.columns import Columns
from harness.dataset.file import File, Files
from harness.dataset.query_tables import DOCUMENT_TABLE_STEMS, MARKDOWN_QUERIES
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers import trec, trec_rows
from harness.dataset.readers.dataset_folder import (
    LABEL_TABLE_STEMS,
    QUERY_TABLE_STEMS,
    DatasetFolder,
    find_folder,
    find_table,
    is_table,
    open_documents,
    table_rows,
    top_files,
)
from harness.dataset.readers.shards import list_table_files, parse_shard
from harness.dataset.reference import DatasetReference
from harness.dataset.row import NO_ROW
from harness.dataset.rows import PLAIN_TEXT_SUFFIXES, read_file_rows
from harness.dataset.settings import NAMED_QUERIES
from harness.dataset.source import FunctionSource, PlacedLabels
from harness.dataset.table_source import RowSource, TableSource, rows_of_files
from harness.dataset.usual_names import usual_column
from harness.english import first_names
from retrievers.errors import InputError, Problem
from retrievers.remedy import Option, Setting, compose_remedy

BLANK_BYTES = b"\xef\xbb\xbf \r\n\t"
"""What may be before the first character of a JSON file: a byte order mark, space."""
QUERY_COLUMNS = ("id", "query", "")
"""The columns of a table of queries without a header: see `File.header`."""
LABEL_COLUMNS = ("query_id", "document", "grade", "")
"""The same of a table of labels."""
LABELLED_QUERY_COLUMNS = ("query", "document", "grade", "")
"""The same of a table of queries with their labels."""


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The files that hold the queries and the labels of a data set."""

    queries: Sequence[File]
    labels: Sequence[File] = ()
    """Empty if the labels are in the files of queries."""
    queries_are_topics: bool = False
    """Whether the queries are in TREC's form."""
    labels_are_qrels: bool = False
    """Whether the labels are in TREC's form."""
    queries_are_labels: bool = False
    """Whether the queries are in the table of labels."""

    @property
    def paths(self) -> frozenset[Path]:
        """The paths of all files."""
        return frozenset(file.path for file in (*self.queries, *self.labels))


def matches(reference: DatasetReference, files: Files) -> bool:
    """Whether a folder or an archive has a table of queries or labels.

    Its name is a usual one, or the reference names it.

    Raises:
        InputError: which of several tables is meant is unknown.
    """
    if reference.documents is not None and list_table_files(
        reference, files, PLAIN_TEXT_SUFFIXES
    ):
        return True  # one table, with its documents elsewhere
    if not files:
        return False
    if reference.documents or reference.labels:
        return True
    if reference.queries:
        return _named_queries_match(reference, files)
    return _usual_names_match(top_files(files))


def _named_queries_match(reference: DatasetReference, files: Files) -> bool:
    """Whether the files of queries that are named are tables, not Markdown's."""
    if find_table(top_files(files), DOCUMENT_TABLE_STEMS) is not None:
        return True
    if not all(name.endswith(".json") for name in reference.queries):
        return True
    return any(
        _has_table_rows(files[name]) for name in reference.queries if name in files
    )


def _usual_names_match(files: Files) -> bool:
    """Whether there is a table of queries or labels by a usual name."""
    if trec.find_qrels_files(files) and trec.find_topic_files(files):
        return True
    table = find_table(files, QUERY_TABLE_STEMS, PLAIN_TEXT_SUFFIXES)
    if table is None:
        return find_table(files, LABEL_TABLE_STEMS) is not None
    if table.name != MARKDOWN_QUERIES or _has_table_rows(table):
        return True
    if find_table(files, DOCUMENT_TABLE_STEMS) is not None:
        return True
    return find_table(files, LABEL_TABLE_STEMS) is not None


def _has_table_rows(file: File) -> bool:
    """Whether a JSON file has rows other than those of `queries.json` in Markdown.

    Such rows are listed under a key, or have their query under a key other than
    `query`.
    """
    content = file.read().lstrip(BLANK_BYTES)
    first_row = next(iter(read_file_rows(file, ReadProblems())), NO_ROW)
    if not first_row.cells:
        return False
    if content.startswith(b"{"):
        return True
    return usual_column("query", first_row.column_names) not in (None, "query")


def read(reference: DatasetReference, files: Files) -> FunctionSource:
    """Return the documents, queries and labels of a folder of tables, or of one table.

    Raises:
        InputError: a file that the reference names is not there, or a part is missing.
    """
    if reference.split is not None and not any(map(parse_shard, files)):
        problem = "these tables have no splits"
        raise InputError(Problem("dataset.split", problem, NAMED_QUERIES))
    single_table = (
        list_table_files(reference, files, PLAIN_TEXT_SUFFIXES)
        if reference.documents
        else []
    )
    folder = find_folder(reference, {} if single_table else files)
    tables = _find_files(reference, folder, single_table)
    declared_columns = () if tables.queries_are_topics else reference.columns
    source = TableSource(
        document_rows=rows_of_files(),
        query_rows=_query_rows(reference, tables),
        label_rows=_label_rows(reference, tables),
        columns=Columns(
            declared_columns,
            header=reference.header is True,
            are_labels=tables.queries_are_labels,
            where=reference.where,
        ),
    )
    unread_tables = _unread_tables(reference, folder, tables)
    return FunctionSource(
        documents=open_documents(reference, folder, tables.paths),
        queries=source.queries,
        labels=partial(_read_labels, source, unread_tables),
    )


def _find_files(
    reference: DatasetReference, folder: DatasetFolder, single_table: Sequence[File]
) -> TableFiles:
    """Return the files of queries and of labels.

    Raises:
        InputError: there are no queries.
    """
    queries = _find_queries(reference, folder, single_table)
    labels = _find_labels(reference, folder, single_table)
    labels_are_qrels = bool(labels) and all(map(trec.is_qrels, labels))
    if queries:
        return TableFiles(
            queries,
            labels,
            queries_are_topics=labels_are_qrels and all(map(trec.is_topics, queries)),
            labels_are_qrels=labels_are_qrels,
        )
    if labels and not labels_are_qrels:
        # A table of labels may hold the queries, too.
        return TableFiles(queries=labels, queries_are_labels=True)
    raise InputError(_missing_queries(reference, folder))


def _missing_queries(reference: DatasetReference, folder: DatasetFolder) -> Problem:
    sheets = [name for name, file in folder.files.items() if file.table]
    if sheets and reference.folder.is_file():
        names = first_names([*map(repr, sheets)])
        problem = f"holds {names}, and none of them is called queries"
        sheet = next((name for name in sheets if name != reference.documents), "…")
        sheet_remedy = compose_remedy(
            "name the sheet of queries: ",
            Setting("queries", sheet),
            Option(f"--queries {shlex.quote(sheet)}"),
        )
        return Problem(reference.name, problem, sheet_remedy)
    suffixes = ".tsv, .jsonl, .json, .parquet or .xlsx"
    remedy = f"name the file: queries = …; or call it queries.csv, {suffixes}"
    return Problem(str(folder.path), "holds no table of queries", remedy)


def _find_queries(
    reference: DatasetReference, folder: DatasetFolder, single_table: Sequence[File]
) -> list[File]:
    """Return the files of queries: those named, else topics, else a table."""
    named_files = [folder.file_named(name) for name in reference.queries]
    if single_table or named_files:
        return [*single_table, *named_files]
    files = top_files(folder.files)
    topics = trec.find_topic_files(files)
    if topics:
        return topics
    table = find_table(files, QUERY_TABLE_STEMS, PLAIN_TEXT_SUFFIXES)
    return [] if table is None else [table]


def _find_labels(
    reference: DatasetReference, folder: DatasetFolder, single_table: Sequence[File]
) -> list[File]:
    """Return the files of labels: the one named, else a table, else qrels."""
    if reference.labels:
        return [folder.file_named(reference.labels)]
    if single_table:
        return []
    files = top_files(folder.files)
    table = find_table(files, LABEL_TABLE_STEMS)
    if table is not None:
        return [table]
    return trec.find_qrels_files(files)


def _query_rows(reference: DatasetReference, tables: TableFiles) -> RowSource:
    """Return the rows of queries, which may have labels."""
    if tables.queries_are_topics:
        topic_part = Columns(reference.columns).declared_name("query") or "title"
        return partial(trec_rows.topic_rows, tables.queries, topic_part)
    column_names = QUERY_COLUMNS if tables.labels else LABELLED_QUERY_COLUMNS
    return table_rows(reference, tables.queries, column_names)


def _label_rows(reference: DatasetReference, tables: TableFiles) -> RowSource | None:
    """Return the rows of labels; None if they are in the tables of queries."""
    if not tables.labels:
        return None
    if tables.labels_are_qrels:
        return partial(trec_rows.qrels_rows, tables.labels)
    return table_rows(reference, tables.labels, LABEL_COLUMNS)


def _unread_tables(
    reference: DatasetReference, folder: DatasetFolder, tables: TableFiles
) -> list[str]:
    """Return the names of the tables that hold no known part of the data set."""
    files = top_files(folder.files)
    if reference.documents is not None and reference.documents in folder.files:
        documents: File | None = folder.file_named(reference.documents)
    else:
        documents = find_table(files, DOCUMENT_TABLE_STEMS)
    paths = tables.paths
    unread = []
    for name, file in files.items():
        is_read = file.path in paths or file == documents
        if is_table(name, file) and not is_read:
            unread.append(name)
    return unread


def _read_labels(
    source: TableSource, unread_tables: Sequence[str], problems: ReadProblems
) -> Iterator[PlacedLabels]:
    """Yield the labels; if there are none, note the tables that may hold them."""
    has_labels = False
    for labelled in source.labels(problems):
        has_labels = True
        yield labelled
    if not has_labels:
        for name in unread_tables:
            problems.note("unread-table", name)
