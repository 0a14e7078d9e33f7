"""How data were read, in words."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from harness.dataset.convert import CONVERTED_SUFFIXES, CONVERTER_REMEDY, can_convert
from harness.dataset.dataset import Dataset, count_grades
from harness.dataset.usual_names import (
    DOCUMENT_KINDS,
    DOCUMENT_NAMING_KINDS,
    FIELDS_KIND,
)
from harness.english import count_of, first_names

COLUMN_PHRASES = {
    "document_id": "the document's id",
    "title": "the document's title",
    "text": "the document's text",
    "query_id": "the query's id",
    "query": "the query's text",
    "label_query": "the query's id",
    "label_document": "the relevant document",
    "relevant": "the relevant documents",
    "contexts": "passages of the relevant documents",
    "grade": "its grade",
    "spans": "its labelled characters",
    "reference": "the reference answer",
    "claims": "the claims of a right answer",
    "history": "what was said before the query",
    "exclude": "documents left out of the query's ranking",
    "": "not used",
}
"""Kind of column -> what it is read as, in words."""
PLAIN_COLUMNS = frozenset({"_id", "id", "text", "title", "query_id", "doc_id"})
"""Names of columns that say by themselves what they are read as."""
UNREAD_KINDS = ("", FIELDS_KIND)
"""Kinds of columns that are not used, or kept as fields."""


def guessed_column_lines(dataset: Dataset) -> Iterator[str]:
    """Yield what columns are read as, for each table whose names do not all say it."""
    for table in dataset.tables:
        kinds = [column.kind for column in table.columns]
        used = [column for column in table.columns if column.kind not in UNREAD_KINDS]
        if PLAIN_COLUMNS.issuperset(column.name for column in used):
            continue
        meanings = [
            f"{column.name} -> {_column_meaning(column.kind, kinds)}" for column in used
        ]
        yield f"{table.file}: {', '.join(meanings)}"


def column_lines(dataset: Dataset) -> Iterator[str]:
    """Yield a line for every table, column and folder.

    A table is shown with its number of rows, a column with its meaning and how many of
    its labels matched, a folder with its number of files.
    """
    for table in dataset.tables:
        rows = dataset.table_sizes.get(table.file, {}).get("row")
        yield f"{table.file}: {count_of(rows, 'row')}" if rows else f"{table.file}:"
        columns = [
            " ".join(column.name.split()) or "(no name)" for column in table.columns
        ]
        width = max(map(len, columns), default=0)
        kinds = [column.kind for column in table.columns]
        for column, kind in zip(columns, kinds, strict=True):
            meaning = _column_meaning(kind, kinds)
            counts = _label_counts(dataset, kind)
            suffix = f" ({counts})" if counts else ""
            yield f"  {column:<{width}} -> {meaning}{suffix}"
    files = {table.file for table in dataset.tables}
    for folder, file_counts in dataset.table_sizes.items():
        is_single_data_file = len(file_counts) == 1 and folder == dataset.path
        if folder not in files and not is_single_data_file:
            documents = count_of(dataset.document_count, "document")
            yield f"{folder}: {_file_counts(file_counts)} -> {documents}"


def _column_meaning(kind: str, kinds: Sequence[str]) -> str:
    """Return what a column of a table with these kinds of columns is read as."""
    if kind != FIELDS_KIND:
        return COLUMN_PHRASES[kind]
    has_documents = bool(set(kinds) & set(DOCUMENT_KINDS))
    row = "document" if has_documents and "query" not in kinds else "query"
    return f"kept as a field of the {row}"


def _file_counts(file_counts: Mapping[str, int]) -> str:
    """Return how many files of each kind a folder has, the most frequent first."""
    kinds = sorted(file_counts, key=file_counts.__getitem__, reverse=True)
    first, *others = kinds
    counts = [count_of(file_counts[first], f"{first} file")]
    counts += [f"{file_counts[kind]:,} {kind}" for kind in others]
    return ", ".join(counts)


def _label_counts(dataset: Dataset, kind: str) -> str:
    """Return the counts of labels to show at a column; "" if its kind has none.

    They are of the whole data set.
    """
    if kind == "grade":
        grades = count_grades(dataset.labels.values())
        return ", ".join(f"{grade}: {number:,}" for grade, number in grades)
    if kind not in DOCUMENT_NAMING_KINDS:
        return ""
    matched = sum(dataset.matched_by.values())
    unmatched_contexts = len(dataset.data_quality.get("unmatched-context", ()))
    unknown_documents = dict.fromkeys(dataset.unknown_documents)
    total = matched + len(dataset.unknown_documents) + unmatched_contexts
    counts = [f"matched {matched:,} of {total:,}"]
    for way, number in dataset.matched_by.items():
        if way != "id":
            counts.append(f"{number:,} by {way}")
    text = ", ".join(counts)
    names = first_names([*map(repr, unknown_documents)])
    return f"{text}; not found: {names}" if names else text


def reading_line(dataset: Dataset) -> str:
    """Return how many of a folder's files are read, and how to read the others.

    "" if all are read.
    """
    # Pages of a file may be documents of their own; rows are of tables.
    read_files = 0
    for sizes in dataset.table_sizes.values():
        read_files += sum(sizes.values()) - sizes.get("row", 0)
    return reading_sentence(
        read_files,
        dataset.data_quality.get("unread-file", ()),
        dataset.data_quality.get("unconverted-file", ()),
    )


def reading_sentence(
    count: int, unread: Sequence[str], failed: Sequence[str] = ()
) -> str:
    """Return how many files are read, and how to read the others; "" if all are.

    Args:
        count: files that are read.
        unread: names of the files in formats that are not supported.
        failed: those that could not be converted.
    """
    if not unread and not failed:
        return ""
    total = count + len(unread) + len(failed)
    parts = [f"{count:,} of {total:,} files are read"]
    suffixes = Counter(map(_suffix, unread))
    if unread:
        by_frequency = sorted(suffixes, key=lambda suffix: (-suffixes[suffix], suffix))
        kinds = first_names(
            [f"{suffix} {suffixes[suffix]:,}" for suffix in by_frequency]
        )
        verb = "is" if len(unread) == 1 else "are"
        parts.append(f"{len(unread):,} {verb} not ({kinds})")
    if failed:
        parts.append(f"{len(failed):,} could not be converted")
    if not can_convert() and suffixes.keys() & CONVERTED_SUFFIXES:
        parts.append(CONVERTER_REMEDY)
    return "; ".join(parts)


def _suffix(name: str) -> str:
    """Return the suffix of a file; its name if it has none."""
    path = PurePosixPath(name)
    return path.suffix.lower() or path.name


QUALITY_PHRASES = {
    "empty-document": "empty documents: never embedded, never retrieved",
    "duplicate-text": "documents with the text of another",
    "unanswerable-query": (
        "queries without an answer: searched, and measured by Abstain "
        "and by their scores"
    ),
    "no-relevant-document": "labelled queries without a relevant document: not scored",
    "unjudged-query": "queries without labels: not searched",
    "unlabelled-query": (
        "queries without labels: searched, not scored (except by claims)"
    ),
    "judged-elsewhere": "labels of queries that are not in this data set",
    "replaced-labels": (
        "queries whose labels in the files are replaced by judgments.jsonl"
    ),
    "changed-text": (
        "labels whose query or document has changed since: judge these pairs again"
    ),
    "dangling-document": "labels of documents that do not exist: dropped",
    "dangling-exclusion": "documents to leave out that do not exist: dropped",
    "lost-query": "queries all of whose labels name no document",
    "dangling-query": "labels of queries that do not exist: dropped",
    "repeated-row": "rows that repeat an earlier query: searched once",
    "repeated-label": "rows that name a query and a document again: counted once",
    "clicked-label": "queries whose labels are clicks, not grades",
    "blank-query": "queries without text: not searched",
    "document-without-key": (
        "documents without the fields that labels use: no label can name them"
    ),
    "unread-file": "files that cannot be read",
    "folder-file": "files about the folder, or with queries: no documents",
    "hidden-file": "hidden files and folders: not read",
    "ignored-file": "files that .gitignore names, or node_modules: not read",
    "unread-table": (
        "tables that are not read, although no query has labels: "
        'name one (labels = "…")'
    ),
    "unconverted-file": "files that could not be converted",
    "unmatched-context": "reference contexts that match no document",
    "placeholder-query": (
        "queries on so many rows that they may be placeholders: each counts once"
    ),
    "found-labels": "columns read as labels, because of their names",
}
"""Kind of count of the data -> what is counted, after the number."""
