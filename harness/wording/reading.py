"""How data were read, in words."""

from collections import Counter
from collections.abc import Iterator, Sequence
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
    "reference": "the reference answer",
    "claims": "the claims of a right answer",
    "history": "what was said before the query",
    "": "not used",
}


def column_lines(dataset: Dataset) -> Iterator[str]:
    """Every table with its rows and all its columns: what each was read as, how many labels; and folders."""
    for file, columns in dataset.columns.items():
        rows = dataset.table_sizes.get(file, {}).get("row")
        yield f"{file}: {count_of(rows, 'row')}" if rows else f"{file}:"
        names = [" ".join(name.split()) or "(no name)" for name in columns]
        width = max(map(len, names), default=0)
        of = (
            "document"
            if "query" not in columns.values()
            and set(columns.values()) & set(DOCUMENT_KINDS)
            else "query"
        )
        for column, kind in zip(names, columns.values(), strict=True):
            meaning = (
                f"kept as a field of the {of}"
                if kind == FIELDS_KIND
                else COLUMN_PHRASES[kind]
            )
            counts = _counts(dataset, kind)
            yield f"  {column:<{width}} -> {meaning}{counts and f' ({counts})'}"
    for folder, kinds in dataset.table_sizes.items():
        if folder not in dataset.columns and (len(kinds) > 1 or folder != dataset.path):
            (first, number), *others = sorted(kinds.items(), key=lambda kind: -kind[1])
            files = ", ".join(
                [
                    count_of(number, f"{first} file"),
                    *(f"{many:,} {kind}" for kind, many in others),
                ]
            )
            yield f"{folder}: {files} -> {count_of(dataset.document_count, 'document')}"


def _counts(dataset: Dataset, kind: str) -> str:
    """A count of the labels of a kind of column; "" for what is no label."""
    if kind == "grade":
        return ", ".join(
            f"{grade}: {number:,}"
            for grade, number in count_grades(dataset.labels.values())
        )
    if kind not in DOCUMENT_NAMING_KINDS:
        return ""
    found, unmatched = (
        sum(dataset.matched_by.values()),
        len(dataset.data_quality.get("unmatched-context", ())),
    )
    named = first_names([*map(repr, dict.fromkeys(dataset.unknown_documents))])
    ways = ", ".join(
        f"{number:,} by {way}"
        for way, number in dataset.matched_by.items()
        if way != "id"
    )
    missing = f"; not found: {named}" if named else ""
    return f"matched {found:,} of {found + len(dataset.unknown_documents) + unmatched:,}{ways and f', {ways}'}{missing}"


def reading_line(dataset: Dataset) -> str:
    """How many of a folder's files are read, and what would read the others; "" where all are."""
    ledger = dataset.data_quality
    return reading_sentence(
        dataset.document_count,
        ledger.get("unread-file", ()),
        ledger.get("unconverted-file", ()),
    )


def reading_sentence(
    count: int, unread: Sequence[str], failed: Sequence[str] = ()
) -> str:
    """How many files are read, and what would read the others; "" where all are.

    Args:
        count: documents that are read.
        unread: names of the files that no reader takes.
        failed: those that could not be converted.
    """
    if not unread and not failed:
        return ""
    suffixes = Counter(
        PurePosixPath(name).suffix.lower() or PurePosixPath(name).name
        for name in unread
    )
    parts = [f"{count:,} of {count + len(unread) + len(failed):,} files are read"]
    if unread:
        common = sorted(suffixes.items(), key=lambda item: (-item[1], item[0]))
        kinds = first_names([f"{suffix} {count:,}" for suffix, count in common])
        parts.append(
            f"{len(unread):,} {'is' if len(unread) == 1 else 'are'} not ({kinds})"
        )
    if failed:
        parts.append(f"{len(failed):,} could not be converted")
    if not can_convert() and suffixes.keys() & CONVERTED_SUFFIXES:
        parts.append(CONVERTER_REMEDY)
    return "; ".join(parts)


QUALITY_PHRASES = {
    "empty-document": "empty documents: never embedded, never retrieved",
    "duplicate-text": "documents with the text of another",
    "unanswerable-query": "queries without an answer: searched, and measured by Abstain and by their scores",
    "no-relevant-document": "labelled queries without a relevant document: in no mean",
    "unjudged-query": "queries without labels: not searched",
    "unlabelled-query": "queries without labels: searched, but in no mean except those of claims",
    "judged-elsewhere": "labels of queries that are not in this data set",
    "replaced-labels": "queries whose labels in the files are replaced by judgments.jsonl",
    "changed-text": "labels whose query or document has changed since: judge these pairs again",
    "dangling-document": "labels of documents that do not exist: dropped",
    "dangling-query": "labels of queries that do not exist: dropped",
    "repeated-row": "rows that repeat an earlier query: searched once",
    "repeated-label": "rows that name a query and a document again: counted once",
    "clicked-label": "queries whose labels are clicks, not grades",
    "blank-query": "queries without text: not searched",
    "document-without-key": "documents without the fields that labels use: no label can name them",
    "unread-file": "files that cannot be read",
    "unread-table": "tables that are not read, although no query has labels: name one with --labels",
    "unconverted-file": "files that could not be converted",
    "unmatched-context": "reference contexts that match no document",
    "placeholder-query": "queries on so many rows that they may be placeholders: each counts once",
    "found-labels": "columns read as labels, since their values name documents",
}
