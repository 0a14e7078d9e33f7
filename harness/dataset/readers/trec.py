"""TREC collections.

A collection has documents, `<DOC>` … `</DOC>`; topics, which are its queries,
`<top>` … `</top>` or a line each of id, tab and text; and qrels, its judgments, lines
of `query iteration document grade`. The files have the usual names, which are the
constants below, or the reference names them: `documents`, `queries`, `labels`.

The query is the title of a topic, or the part that columns = { query = "desc" } names.
"""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import NamedTuple

from harness.dataset.columns import Columns
from harness.dataset.file import File, Files
from harness.dataset.listing import file_named, listing_name
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers.tagged_text import opening_tag
from harness.dataset.readers.trec_rows import (
    document_rows,
    first_line_of,
    qrels_rows,
    topic_rows,
)
from harness.dataset.reference import DatasetReference
from harness.dataset.source import FormatReader
from harness.dataset.table_source import TableSource
from harness.dataset.text_rows import read_lines
from harness.dataset.written_values import parse_grade
from harness.english import first_names
from retrievers.errors import InputError, Problem
from retrievers.remedy import Option, Setting, compose_remedy

TREC_SUFFIXES = (".trec", ".sgml", ".sgm", ".xml", ".txt", ".dat", "")


class UsualNames(NamedTuple):
    """The usual names of the files that are one part of a collection."""

    stems: tuple[str, ...]
    """The file's name up to its first dot, or the name of the top folder it is in."""
    suffixes: tuple[str, ...]


DOCUMENT_NAMES = UsualNames(
    ("documents", "docs", "corpus", "collection"), TREC_SUFFIXES
)
TOPIC_NAMES = UsualNames(("topics", "queries"), (*TREC_SUFFIXES, ".topics", ".tsv"))
QRELS_NAMES = UsualNames(("qrels", "qrel"), (*TREC_SUFFIXES, ".qrels", ".tsv"))
DEFAULT_SPLIT = "test"
"""The split whose qrels are read, if no split is requested and a file has this one."""


def _matches(reference: DatasetReference, files: Files) -> bool:
    """Whether a folder or an archive has documents, topics and qrels in TREC's form.

    The first file of documents, and judgments that the reference names, are looked
    into: they may be tables.

    Raises:
        InputError: the documents have TREC's form, but a file of topics or judgments
            that the reference names is not there.
    """
    try:
        documents = _document_files(reference, files)
    except InputError:
        return False  # the reader of tables says that they are missing
    if not documents or not opening_tag("doc").match(first_line_of(documents[0])):
        return False
    topics = _topic_files(reference, files)
    if not topics or any(file.suffix not in TOPIC_NAMES.suffixes for file in topics):
        return False
    if reference.labels:
        return all(map(is_qrels, _qrels_files(reference, files)))
    return bool(_qrels_files(reference, files))


def _read(reference: DatasetReference, files: Files) -> TableSource:
    """Open the collection.

    A split chooses among the files of qrels; the topics of all files are read.

    Raises:
        InputError: a part, or a file that the reference names, is missing; or no file
            of qrels has the split.
    """
    folder = reference.folder
    documents = _document_files(reference, files)
    qrels = _qrels_files(reference, files)
    topics = _topic_files(reference, files)
    parts = {"documents": documents, "topics": topics, "qrels": qrels}
    missing_parts = [part for part, part_files in parts.items() if not part_files]
    if missing_parts:
        raise InputError([_missing_part(part, str(folder)) for part in missing_parts])
    if not reference.labels:
        qrels = _qrels_of_split(qrels, reference)
    topic_part = Columns(reference.columns).declared_name("query") or "title"
    return TableSource(
        document_rows=partial(document_rows, documents),
        query_rows=partial(topic_rows, topics, topic_part),
        label_rows=partial(qrels_rows, qrels),
    )


def _document_files(reference: DatasetReference, files: Files) -> list[File]:
    """Return the file of documents that is named, or all files of the folder named.

    If the reference names neither, those with a usual name; empty if there are none.

    Raises:
        InputError: there is no file and no folder with the name in the reference.
    """
    if not reference.documents:
        return _files_with_names(files, DOCUMENT_NAMES)
    name = listing_name(reference.documents)
    in_folder = [file for path, file in files.items() if path.startswith(f"{name}/")]
    return in_folder or [file_named(files, name, reference.folder)]


def _topic_files(reference: DatasetReference, files: Files) -> list[File]:
    """Return the files of topics that are named, else those with a usual name.

    Raises:
        InputError: a file that is named is not there.
    """
    folder = reference.folder
    topics = [file_named(files, path, folder) for path in reference.queries]
    return topics or _files_with_names(files, TOPIC_NAMES)


def _qrels_files(reference: DatasetReference, files: Files) -> list[File]:
    """Return the file of qrels that is named, else those with a usual name.

    Raises:
        InputError: the file that is named is not there.
    """
    if reference.labels:
        return [file_named(files, reference.labels, reference.folder)]
    return _files_with_names(files, QRELS_NAMES)


def _qrels_of_split(qrels: Sequence[File], reference: DatasetReference) -> list[File]:
    """Return the files whose names have the split as a part: `qrels.dev.txt` has dev.

    If no split is requested, those of `test`; all, if no name has it: a collection may
    have its judgments in several files. A single `qrels.txt`, which has no split, is
    read for any.

    Raises:
        InputError: no file has the split that is requested.
    """
    split = re.escape(reference.split or DEFAULT_SPLIT)
    # A part has no letter or digit beside it: `latest` is not of the split `test`.
    name_part = re.compile(rf"(?<![^\W_]){split}(?![^\W_])")
    of_split = [file for file in qrels if name_part.search(file.name)]
    if of_split or not reference.split:
        return of_split or list(qrels)
    stem = PurePosixPath(qrels[0].name).stem.lower()
    if len(qrels) == 1 and stem in QRELS_NAMES.stems:
        return list(qrels)
    file_names = first_names([file.name for file in qrels])
    problem = f"has no qrels of the split {reference.split!r}, but {file_names}"
    remedy = compose_remedy("name one: ", Setting("labels", "…"), Option("--labels"))
    raise InputError(Problem(str(reference.folder), problem, remedy))


def _missing_part(part: str, folder: str) -> Problem:
    remedy = f"a file {part}.txt, or name it in the experiment"
    return Problem(folder, f"holds no {part}", remedy)


def _files_with_names(files: Files, usual_names: UsualNames) -> list[File]:
    """Return the files with a usual name, or in a top folder with one.

    `qrels.test.txt`, `qrels/test.txt` and `qrels/a/b.txt` have the stem `qrels`.
    """
    matching_files = []
    for path, file in files.items():
        top_name, *below = PurePosixPath(path).parts
        stem = top_name if below else top_name.split(".")[0]
        if stem.lower() in usual_names.stems and file.suffix in usual_names.suffixes:
            matching_files.append(file)
    return matching_files


def find_qrels_files(files: Files) -> list[File]:
    """Return the files of judgments in TREC's form, for other readers.

    A folder of tables may have such judgments, too; there `qrels.tsv` may also be a
    table with a header, so that the name alone does not decide.
    """
    return [file for file in _files_with_names(files, QRELS_NAMES) if is_qrels(file)]


def find_topic_files(files: Files) -> list[File]:
    """Return the files of topics in TREC's form, for other readers."""
    return [file for file in _files_with_names(files, TOPIC_NAMES) if is_topics(file)]


def is_qrels(file: File) -> bool:
    """Whether the first line of a file, after comments, is a judgment of TREC."""
    lines = (line for _, line in read_lines(file, ReadProblems()))
    first_line = next((line for line in lines if not line.startswith("#")), "")
    cells = first_line.split()
    return len(cells) == 4 and parse_grade(cells[3]) is not None


def is_topics(file: File) -> bool:
    """Whether a file has topics, or lines of id, tab and text.

    Other files of queries are tables, or have a query per line without an id. The
    suffix decides, then the first line.
    """
    if file.suffix not in TOPIC_NAMES.suffixes:
        return False
    first_line = first_line_of(file).lower()
    if first_line.startswith(("<top", "<?xml")):
        return True
    id_, tab, text = first_line.partition("\t")
    if not tab or not text.strip():
        return False
    # An id without a digit, or with other characters, may be the header of a table:
    # `id`, `query_id`.
    return id_.isalnum() and not id_.isalpha()


TREC_COLLECTION = FormatReader(_matches, _read)
"""A collection in a folder or a zip archive."""
