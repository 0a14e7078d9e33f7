"""Tables of documents, queries and labels in any form of `rows.py`, their columns declared or recognised.

The files, sheets or tables are called `documents.*` or `corpus.*`, `queries.*` or `questions.*`, `labels.*`, `qrels.*`
or `judgments.*`, or as the experiment says. Queries may carry their labels themselves, and documents may be a folder of
text files.

A reference may be one table, too: a file of rows, or a folder in which `datasets` or the hub keeps its shards. Such a
folder has splits (`test-00000-of-00001.parquet`, or a folder `test` of Arrow files, as `save_to_disk` writes them), and
folders of splits, which are configurations.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

from harness.dataset import judgments, markdown_folder, trec
from harness.dataset.columns import Columns, recognised
from harness.dataset.dataset_model import DatasetReference, Labels
from harness.dataset.files import (
    File,
    Files,
    holds_files,
    is_zip,
    listing,
    pick,
    straight,
)
from harness.dataset.rows import PLAIN, SUFFIXES, Row, read_rows
from harness.dataset.source import Findings, Parts, SourceLocation, split_among
from harness.dataset.table_source import RowSource, TableSource, rows_of
from retrievers.errors import InputError, Problem
from retrievers.types import Document

DOCUMENTS = ("documents", "corpus", "docs", "passages")
QUERIES = ("queries", "questions", "topics")
LABELS = ("labels", "qrels", "judgments", "judgements", "relevance")

SHARD = re.compile(
    r"(?:(?P<folder>.+)/)??(?:(?P<saved>[^/]+)/data-\d{5}-of-\d{5}\.arrow|"
    rf"(?P<split>[^/]+?)-\d{{5}}-of-\d{{5}}(?:{'|'.join(map(re.escape, SUFFIXES))}))"
)
SAVED = "data"
"""What `save_to_disk` calls its shards, and what the hub calls the folder of a data set's only configuration."""


def matches(reference: DatasetReference, files: Files) -> bool:
    """Whether a folder or archive holds a table of queries or labels by one of the usual names, or one is declared."""
    if reference.documents is not None and table_files(reference, files, PLAIN):
        return True  # one table, with its documents elsewhere
    if files and (reference.documents or reference.labels):
        return True
    top = {name: file for name, file in files.items() if "/" not in name}
    if files and reference.queries:
        if named(top, DOCUMENTS) is not None or any(
            not name.endswith(".json") for name in reference.queries
        ):
            return True
        return any(
            _has_columns(files[name]) for name in reference.queries if name in files
        )
    if trec.qrels_files(top) and trec.topic_files(top):
        return True
    asked = named(top, QUERIES, PLAIN) or named(top, LABELS)
    if asked is None or asked.name != "queries.json":
        return asked is not None
    return (
        _has_columns(asked)
        or named(top, DOCUMENTS) is not None
        or named(top, LABELS) is not None
    )


def _has_columns(file: File) -> bool:
    """Whether a file of JSON has rows with other keys than `queries.json` beside Markdown, or lists them under one."""
    first = next((row for _, row in read_rows(file, Findings())), {})
    listed = file.read().lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{")
    return bool(first) and (
        listed or recognised("query", tuple(first)) not in (None, "query")
    )


def read(reference: DatasetReference, files: Files) -> Parts:
    """Open the tables of a folder or of a file that holds some, or one table, and what the reference names beside it.

    Raises:
        InputError: something that is named, or that there must be, is not there.
    """
    if reference.split is not None and not any(map(split_of, files)):
        raise InputError(
            Problem(
                "dataset.split",
                "these tables have no splits",
                "name a file: queries = …",
            )
        )
    lone = table_files(reference, files, PLAIN) if reference.documents else []
    folder, files = looked_in(reference, {} if lone and not reference.scheme else files)
    top = {name: file for name, file in files.items() if "/" not in name}
    queries = [*lone, *(pick(files, name, folder) for name in reference.queries)]
    queries = (
        queries
        or trec.topic_files(top)
        or [file for file in [named(top, QUERIES, PLAIN)] if file is not None]
    )
    labels = (
        pick(files, reference.labels, folder)
        if reference.labels
        else None
        if lone
        else named(top, LABELS)
    )
    qrels = (
        [labels]
        if labels and trec.is_qrels(labels)
        else trec.qrels_files(top)
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
    own = _headed(
        reference,
        ("id", "query", "") if apart else ("query", "document", "grade", ""),
        *asked,
    )
    judged = (
        _headed(
            reference, ("query_id", "document", "grade", ""), *filter(None, [labels])
        )
        if apart
        else None
    )
    source = TableSource(
        rows_of(),
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
        pick(files, reference.documents, folder)
        if reference.documents in files
        else named(top, DOCUMENTS)
    )
    left = [
        name
        for name, file in top.items()
        if file.suffix in SUFFIXES
        and name != judgments.NAME
        and file.path not in taken
        and file != documents
    ]

    def labels_read(problems: Findings) -> Iterator[tuple[SourceLocation, str, Labels]]:
        found = None
        for found in source.labels(problems):
            yield found
        for name in (
            left if found is None else ()
        ):  # one of them may hold the labels under a name of its own
            problems.note("unread-table", name)

    return Parts(
        documents_of(reference, folder, files, taken), source.queries, labels_read
    )


def looked_in(
    reference: DatasetReference, files: Files
) -> tuple[Path, dict[str, File]]:
    """The folder in which the parts of a data set are looked for, and the files there that may be meant.

    Args:
        reference: where it is.
        files: those that may be meant though the reference does not name them.
    """
    folder = Path() if reference.scheme else reference.folder
    folder = folder.parent if folder.is_file() else folder
    names = [
        name
        for name in (*reference.queries, reference.documents, reference.labels)
        if name
    ]
    paths = {
        name: straight(folder / name)
        for name in (name.rpartition("#")[0] or name for name in names)
    }
    return folder, {
        **{name: File(path) for name, path in paths.items() if path.is_file()},
        **files,
    }


def documents_of(
    reference: DatasetReference,
    folder: Path,
    files: Files,
    taken: frozenset[Path] = frozenset(),
) -> Callable[[Findings], Iterator[tuple[SourceLocation, Document]]]:
    """What reads the documents of a reference: a table, else files of text.

    Args:
        reference: may name them.
        folder: where they are looked for.
        files: those that may be meant.
        taken: files that are not documents.

    Raises:
        InputError: none are there.
    """
    top = {name: file for name, file in files.items() if "/" not in name}
    place = reference.folder if not reference.scheme else folder
    table = None if reference.documents else named(top, DOCUMENTS)
    if reference.documents:
        place = straight(folder / reference.documents)
        if not (
            place.is_dir()
            or (is_zip(place) and markdown_folder.holds_documents(listing(place)))
        ):
            table = pick(files, reference.documents, folder)
    if table is not None:
        columns = Columns(reference.columns, header=reference.header is True)
        return TableSource(
            _headed(reference, ("id", "text", ""), table), rows_of(), None, columns
        ).documents
    below = (
        files
        if place == reference.path
        else listing(place)
        if place.is_dir() or reference.documents
        else {}
    )
    if not markdown_folder.holds_documents(below):
        remedy = "name the file: documents = …; or call it documents.csv, .tsv, .jsonl, .parquet or .xlsx"
        raise InputError(Problem(str(place), "holds no documents", remedy))
    return partial(markdown_folder.documents, place, taken)


def _headed(
    reference: DatasetReference, names: tuple[str, ...], *files: File
) -> RowSource:
    """The rows of files; without a header their first columns have these names, or numbers to declare."""
    header = (
        None if reference.header is not False else ("",) if reference.columns else names
    )
    return rows_of(*(replace(file, header=header) for file in files))


def named(
    files: Files, stems: Iterable[str], also: tuple[str, ...] = ()
) -> File | None:
    """The file of a listing whose name without its suffix is one of these, and which tables are read from.

    `also` are further suffixes that will do.

    Raises:
        InputError: two files have the first of these names that is there.
    """
    for stem in stems:
        found = [
            file
            for name, file in files.items()
            if (file.table or PurePosixPath(name).stem).lower() == stem
            and file.suffix in (*SUFFIXES, *also)
            and name != judgments.NAME
        ]
        if len(found) > 1:
            what = f"{found[1].name} is there as well: which of the two is meant is unknown"
            raise InputError(
                Problem(
                    str(found[0].path),
                    what,
                    "keep one, or name it under dataset, or by an option",
                )
            )
        if found:
            return found[0]
    return None


def table_files(
    reference: DatasetReference, files: Files, also: tuple[str, ...] = ()
) -> list[File]:
    """The files of the one table that a reference is; none where it is something else.

    Args:
        reference: a file with a suffix of `SUFFIXES`, a folder of shards of one split, or of the one it names.
        files: what is in the folder.
        also: further suffixes that will do for a file.

    Raises:
        InputError: several configurations or splits are there, and none is named.
    """
    if reference.scheme or not reference.folder.exists():
        return []
    if reference.folder.is_file():
        known = File(reference.folder).suffix in (*SUFFIXES, *also)
        return (
            [File(reference.folder)]
            if known and not holds_files(reference.folder)
            else []
        )
    shards = _shards(files)
    if len(shards) > 1:
        remedy = f"name the folder of one: {reference.name}/{next(iter(shards))}"
        raise InputError(
            Problem(
                reference.name, f"has the configurations {', '.join(shards)}", remedy
            )
        )
    splits = next(iter(shards.values()), {})
    return (
        splits[split_among(reference.name, splits, reference.split)] if splits else []
    )


def first_row(reference: DatasetReference, files: Files) -> Row:
    """The first row of the one table that a reference is; empty where it is none."""
    return next(
        (
            row
            for file in table_files(reference, files)
            for _, row in read_rows(file, Findings())
        ),
        {},
    )


def split_of(name: str) -> tuple[str, str] | None:
    """The folder and the split of a file of shards; None for any other file.

    >>> split_of("en/test-00000-of-00002.parquet"), split_of("test/data-00000-of-00001.arrow"), split_of("a.csv")
    (('en', 'test'), ('', 'test'), None)
    """
    shard = SHARD.fullmatch(name)
    return (shard["folder"] or "", shard["saved"] or shard["split"]) if shard else None


def _shards(files: Files) -> dict[str, dict[str, list[File]]]:
    """Configuration -> split -> files."""
    found: dict[str, dict[str, list[File]]] = {}
    for name, file in files.items():
        for folder, split in filter(None, [split_of(name)]):
            found.setdefault("" if folder == SAVED else folder, {}).setdefault(
                split, []
            ).append(file)
    return found
