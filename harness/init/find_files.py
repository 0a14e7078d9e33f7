"""The files of a new data set.

Only a folder of Markdown needs a search for its files of queries: the reader of any
other format knows them, or `harness init` names them.
"""

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from harness.dataset import DatasetReference, detect_format, list_reference
from harness.dataset.file import File
from harness.dataset.query_tables import (
    MARKDOWN_QUERIES,
    QueryTable,
    find_query_table,
)
from harness.dataset.readers.text_documents import list_documents
from harness.dataset.text_rows import read_json
from harness.dataset.usual_names import usual_column
from harness.english import count_of
from harness.wording.reading import reading_sentence
from retrievers.errors import InputError, Problem


class DatasetFiles(NamedTuple):
    """A data set with its files of queries."""

    reference: DatasetReference
    repeated_files: list[str]
    """Files that are ignored, since other files have queries with the same ids."""


def find_files(reference: DatasetReference) -> DatasetFiles:
    """Return a data set with its files of labelled queries.

    A reference that names its files or a split, or is no folder of Markdown, is
    returned unchanged; so is one whose only queries are in a `queries.json` without
    labels.

    Raises:
        InputError: a folder of Markdown has no file of queries, or no document that can
            be read here.
    """
    unchanged = DatasetFiles(reference, [])
    names = (reference.documents, reference.queries, reference.labels)
    if any(names) or reference.split or reference.format not in (None, "markdown"):
        return unchanged
    if reference.scheme or not reference.folder.is_dir():
        return unchanged
    folder = reference.folder
    files = list_reference(reference)
    if detect_format(reference, files) != "markdown":
        return unchanged
    documents, unread_files = list_documents(files)
    unread = reading_sentence(len(documents), unread_files)
    if not documents:
        raise InputError(Problem(str(folder), "holds no documents", unread))
    query_files = _find_query_files(folder)
    if not query_files.labelled:
        if (folder / MARKDOWN_QUERIES).is_file():
            return unchanged  # queries without labels
        table = find_query_table(files)
        raise InputError(
            _undeclared_queries(folder, table)
            if table is not None
            else _missing_labels(folder, documents, unread)
        )
    queries = tuple(query_files.labelled)
    if queries == (MARKDOWN_QUERIES,):
        queries = ()
    return DatasetFiles(replace(reference, queries=queries), query_files.repeated)


class _QueryFiles(NamedTuple):
    """The files of labelled queries in a folder, by their names."""

    labelled: list[str]
    repeated: list[str]
    """Files with ids of queries that other files have as well."""


def _find_query_files(folder: Path) -> _QueryFiles:
    """Return the files of labelled queries, queries.json first, then the largest."""
    ids = {file.name: _labelled_ids(file) for file in sorted(folder.glob("*.json"))}
    query_files = _QueryFiles([], [])
    all_ids: set[str] = set()
    for name in sorted(
        ids, key=lambda name: (name != MARKDOWN_QUERIES, -len(ids[name]))
    ):
        if not ids[name]:
            continue
        is_repeated = not all_ids.isdisjoint(ids[name])
        if is_repeated:
            query_files.repeated.append(name)
        else:
            query_files.labelled.append(name)
            all_ids |= ids[name]
    return query_files


def _labelled_ids(file: Path) -> set[str]:
    """Return the ids of the queries in a file; empty if it has no labels.

    A query without an id counts under its position: q0, q1, and so on.
    """
    try:
        rows = read_json(File(file))
    except InputError:
        # It counts as labelled, so that the reader reports its problem.
        return {"q0"} if file.name == MARKDOWN_QUERIES else set()
    if not isinstance(rows, list):
        return set()
    ids: set[str] = set()
    has_labels = False
    for number, row in enumerate(rows):
        if isinstance(row, dict):
            id_column = usual_column("query_id", tuple(row))
            ids.add(str(row[id_column]) if id_column else f"q{number}")
            has_labels = has_labels or "relevant_documents" in row
    return ids if has_labels else set()


def _undeclared_queries(folder: Path, table: QueryTable) -> str:
    command = shlex.join(["harness", "init", str(folder), "--queries", table.path])
    return (
        f"{folder}: no file of queries is declared, but {table.path!r} has a column "
        f"{table.column!r}\n"
        f"if it holds the queries: {command}"
    )


def _missing_labels(folder: Path, documents: Sequence[str], unread: str) -> str:
    """Return the message that a folder has documents and no query, with ways on."""
    query = {"query": "what someone would ask", "relevant_documents": documents[:2]}
    example = json.dumps([query], ensure_ascii=False)
    unread_line = f"{unread}\n" if unread else ""
    return (
        f"{folder}: {count_of(len(documents), 'document')}, but no query\n"
        f"{unread_line}"
        f"write {folder / 'queries.json'}: for each query, "
        "the documents that answer it, best first:\n"
        f"  {example}\n"
        f"or {folder / 'queries.txt'} with one query per line, "
        "to be judged later (docs/labels.md);\n"
        "a search log or another table is named queries.csv, "
        ".tsv, .jsonl or .parquet\n"
        "write 20 to 50 real queries, "
        f"then run: harness init {shlex.quote(str(folder))}\n"
        f"or start without labels: harness try {shlex.quote(str(folder))}"
    )
