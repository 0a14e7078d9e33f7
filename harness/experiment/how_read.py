"""How a data set was read, in words: which files, which columns as what, how many labels."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from harness.dataset import Dataset, Labels
from harness.dataset.columns import FIELDS, NAMING, OF_DOCUMENTS
from harness.dataset.corpus import CONVERTED, REMEDY, installed
from harness.english import counted, first_few

MEANINGS = {
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
        rows = dataset.sizes.get(file, {}).get("row")
        yield f"{file}: {counted(rows, 'row')}" if rows else f"{file}:"
        names = [" ".join(name.split()) or "(no name)" for name in columns]
        width = max(map(len, names), default=0)
        of = "document" if "query" not in columns.values() and set(columns.values()) & set(OF_DOCUMENTS) else "query"
        for column, kind in zip(names, columns.values(), strict=True):
            meaning = f"kept as a field of the {of}" if kind == FIELDS else MEANINGS[kind]
            counts = _counts(dataset, kind)
            yield f"  {column:<{width}} -> {meaning}{counts and f' ({counts})'}"
    for folder, kinds in dataset.sizes.items():
        if folder not in dataset.columns and (len(kinds) > 1 or folder != dataset.path):
            (first, number), *others = sorted(kinds.items(), key=lambda kind: -kind[1])
            files = ", ".join([counted(number, f"{first} file"), *(f"{many:,} {kind}" for kind, many in others)])
            yield f"{folder}: {files} -> {counted(dataset.count, 'document')}"


def grade_counts(labels: Iterable[Labels]) -> tuple[tuple[int, int], ...]:
    """Grade and how often it is given; empty where labels are lists."""
    counts = Counter(grade for one in labels if one.grades is not None for grade in one.grades.values())
    return tuple(sorted(counts.items()))


def _counts(dataset: Dataset, kind: str) -> str:
    """A count of the labels of a kind of column; "" for what is no label."""
    if kind == "grade":
        return ", ".join(f"{grade}: {number:,}" for grade, number in grade_counts(dataset.labels.values()))
    if kind not in NAMING:
        return ""
    found, unmatched = sum(dataset.matched.values()), len(dataset.ledger.get("unmatched-context", ()))
    named = first_few([*map(repr, dict.fromkeys(dataset.unknown))])
    ways = ", ".join(f"{number:,} by {way}" for way, number in dataset.matched.items() if way != "id")
    missing = f"; not found: {named}" if named else ""
    return f"matched {found:,} of {found + len(dataset.unknown) + unmatched:,}{ways and f', {ways}'}{missing}"


def reading_line(dataset: Dataset) -> str:
    """How many of a folder's files are read, and what would read the others; "" where all are."""
    ledger = dataset.ledger
    return reading_sentence(dataset.count, ledger.get("unread-file", ()), ledger.get("unconverted-file", ()))


def reading_sentence(count: int, unread: Sequence[str], failed: Sequence[str] = ()) -> str:
    """How many files are read, and what would read the others; "" where all are.

    Args:
        count: documents that are read.
        unread: names of the files that no reader takes.
        failed: those that could not be converted.
    """
    if not unread and not failed:
        return ""
    suffixes = Counter(PurePosixPath(name).suffix.lower() or PurePosixPath(name).name for name in unread)
    parts = [f"{count:,} of {count + len(unread) + len(failed):,} files are read"]
    if unread:
        common = sorted(suffixes.items(), key=lambda item: (-item[1], item[0]))
        kinds = first_few([f"{suffix} {count:,}" for suffix, count in common])
        parts.append(f"{len(unread):,} {'is' if len(unread) == 1 else 'are'} not ({kinds})")
    if failed:
        parts.append(f"{len(failed):,} could not be converted")
    if not installed() and suffixes.keys() & CONVERTED:
        parts.append(REMEDY)
    return "; ".join(parts)
