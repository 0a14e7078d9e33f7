"""Tables by their usual names.

The files, sheets or tables are called `documents.*` or `corpus.*`, `queries.*` or `questions.*`, `labels.*`, `qrels.*`
or `judgments.*`, or as the experiment says. Queries may carry their labels themselves, and documents may be a folder of
text files.

A reference may be one table, too: a file of rows, or a folder in which `datasets` or the hub keeps its shards. Such a
folder has splits (`test-00000-of-00001.parquet`, or a folder `test` of Arrow files, as `save_to_disk` writes them), and
folders of splits, which are configurations.
"""

from collections.abc import Iterator
from functools import partial

from harness.dataset.columns import Columns
from harness.dataset.file import File, Files
from harness.dataset.judgment import JUDGMENTS_FILE
from harness.dataset.labels import Labels
from harness.dataset.listing import file_named
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers import trec
from harness.dataset.readers.dataset_folder import (
    DOCUMENT_TABLE_STEMS,
    LABEL_TABLE_STEMS,
    QUERY_TABLE_STEMS,
    find_table,
    open_documents,
    rows_under_names,
    search_folder,
)
from harness.dataset.readers.shards import list_table_files, shard_of
from harness.dataset.reference import DatasetReference
from harness.dataset.rows import PLAIN_TEXT_SUFFIXES, TABLE_SUFFIXES, read_file_rows
from harness.dataset.source import FunctionSource, SourceLocation
from harness.dataset.table_source import TableSource, rows_of_files
from harness.dataset.usual_names import usual_column
from retrievers.errors import InputError, Problem


def matches(reference: DatasetReference, files: Files) -> bool:
    """Whether a folder or archive holds a table of queries or labels by one of the usual names, or one is declared."""
    if reference.documents is not None and list_table_files(
        reference, files, PLAIN_TEXT_SUFFIXES
    ):
        return True  # one table, with its documents elsewhere
    if files and (reference.documents or reference.labels):
        return True
    top = {name: file for name, file in files.items() if "/" not in name}
    if files and reference.queries:
        if find_table(top, DOCUMENT_TABLE_STEMS) is not None or any(
            not name.endswith(".json") for name in reference.queries
        ):
            return True
        return any(
            _has_columns(files[name]) for name in reference.queries if name in files
        )
    if trec.find_qrels_files(top) and trec.find_topic_files(top):
        return True
    asked = find_table(top, QUERY_TABLE_STEMS, PLAIN_TEXT_SUFFIXES) or find_table(
        top, LABEL_TABLE_STEMS
    )
    if asked is None or asked.name != "queries.json":
        return asked is not None
    return (
        _has_columns(asked)
        or find_table(top, DOCUMENT_TABLE_STEMS) is not None
        or find_table(top, LABEL_TABLE_STEMS) is not None
    )


def _has_columns(file: File) -> bool:
    """Whether a file of JSON has rows with other keys than `queries.json` beside Markdown, or lists them under one."""
    first = next((row for _, row in read_file_rows(file, ReadProblems())), {})
    listed = file.read().lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{")
    return bool(first) and (
        listed or usual_column("query", tuple(first)) not in (None, "query")
    )


def read(reference: DatasetReference, files: Files) -> FunctionSource:
    """Open the tables of a folder or of a file that holds some, or one table, and what the reference names beside it.

    Raises:
        InputError: something that is named, or that there must be, is not there.
    """
    if reference.split is not None and not any(map(shard_of, files)):
        raise InputError(
            Problem(
                "dataset.split",
                "these tables have no splits",
                "name a file: queries = …",
            )
        )
    lone = (
        list_table_files(reference, files, PLAIN_TEXT_SUFFIXES)
        if reference.documents
        else []
    )
    folder, files = search_folder(
        reference, {} if lone and not reference.scheme else files
    )
    top = {name: file for name, file in files.items() if "/" not in name}
    queries = [*lone, *(file_named(files, name, folder) for name in reference.queries)]
    queries = (
        queries
        or trec.find_topic_files(top)
        or [
            file
            for file in [find_table(top, QUERY_TABLE_STEMS, PLAIN_TEXT_SUFFIXES)]
            if file is not None
        ]
    )
    labels = (
        file_named(files, reference.labels, folder)
        if reference.labels
        else None
        if lone
        else find_table(top, LABEL_TABLE_STEMS)
    )
    qrels = (
        [labels]
        if labels and trec.is_qrels(labels)
        else trec.find_qrels_files(top)
        if not labels and not lone
        else []
    )
    labels = None if qrels else labels
    if not queries and labels is None:
        remedy = "name the file: queries = …; or call it queries.csv, .tsv, .jsonl, .json, .parquet or .xlsx"
        raise InputError(Problem(str(folder), "holds no table of queries", remedy))
    asked = queries or [labels] if labels else queries
    apart = bool(qrels) or (labels is not None and bool(queries))
    part = reference.columns.get("query", "title")
    in_topics = bool(queries) and all(map(trec.is_topics, queries)) and bool(qrels)
    own = rows_under_names(
        reference,
        ("id", "query", "") if apart else ("query", "document", "grade", ""),
        *asked,
    )
    judged = (
        rows_under_names(
            reference, ("query_id", "document", "grade", ""), *filter(None, [labels])
        )
        if apart
        else None
    )
    source = TableSource(
        rows_of_files(),
        partial(trec.topic_rows, queries, part) if in_topics else own,
        partial(trec.qrels_rows, qrels) if qrels else judged,
        Columns(
            {} if in_topics else reference.columns, header=reference.header is True
        ),
    )
    taken = frozenset(
        file.path for file in (*asked, *qrels, labels) if file is not None
    )
    documents = (
        file_named(files, reference.documents, folder)
        if reference.documents in files
        else find_table(top, DOCUMENT_TABLE_STEMS)
    )
    left = [
        name
        for name, file in top.items()
        if file.suffix in TABLE_SUFFIXES
        and name != JUDGMENTS_FILE
        and file.path not in taken
        and file != documents
    ]

    def labels_read(
        problems: ReadProblems,
    ) -> Iterator[tuple[SourceLocation, str, Labels]]:
        found = None
        for found in source.labels(problems):
            yield found
        for name in (
            left if found is None else ()
        ):  # one of them may hold the labels under a name of its own
            problems.note("unread-table", name)

    return FunctionSource(
        open_documents(reference, folder, files, taken), source.queries, labels_read
    )
