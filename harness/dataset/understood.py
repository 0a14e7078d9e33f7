"""What the columns of tables were taken for and what files were read, as `init` and `check` print it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from harness.dataset.columns import FIELDS, NAMING, OF_DOCUMENTS
from harness.dataset.dataset_model import Dataset, Labels
from harness.english import counted

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
    "": "not used",
}
NAMED = 5
"""So many ids are named."""


def column_lines(dataset: Dataset) -> Iterator[str]:
    """Every table with its rows and all its columns: what each was taken for, what the labels came to; and folders."""
    for file, columns in dataset.columns.items():
        rows = dataset.sizes.get(file, {}).get("row")
        yield f"{file}: {counted(rows, 'row')}" if rows else f"{file}:"
        width = max((len(" ".join(name.split())) for name in columns), default=0)
        of = "document" if "query" not in columns.values() and set(columns.values()) & set(OF_DOCUMENTS) else "query"
        for column, kind in ((" ".join(name.split()), kind) for name, kind in columns.items()):
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
    """What the labels of a kind of column came to; "" for what is no label."""
    if kind == "grade":
        return ", ".join(f"{grade}: {number:,}" for grade, number in grade_counts(dataset.labels.values()))
    if kind not in NAMING:
        return ""
    found, unmatched = sum(dataset.matched.values()), len(dataset.ledger.get("unmatched-context", ()))
    named = ", ".join(map(repr, dict.fromkeys(dataset.unknown[:NAMED])))
    ways = ", ".join(f"{number:,} by {way}" for way, number in dataset.matched.items() if way != "id")
    missing = f"; not found: {named}{', …' if len(dataset.unknown) > NAMED else ''}" if named else ""
    return f"matched {found:,} of {found + len(dataset.unknown) + unmatched:,}{ways and f', {ways}'}{missing}"
