"""What the columns of tables were taken for, as `init` and `check` print it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from harness.dataset.columns import FIELDS, LABELLING, OF_DOCUMENTS
from harness.dataset.dataset_model import Dataset, Labels

MEANINGS = {
    "document_id": "the document's id",
    "title": "the document's title",
    "text": "the document's text",
    "query_id": "the query's id",
    "query": "the query's text",
    "label_query": "the query's id",
    "label_document": "the relevant document",
    "relevant": "the relevant documents",
    "grade": "its grade",
    "reference": "the reference answer",
    "claims": "the claims of a right answer",
    "": "not used",
}
NAMED = 5
"""So many ids are named."""


def column_lines(dataset: Dataset) -> Iterator[str]:
    """Every table with all its columns: what each was taken for, and what the labels came to."""
    for file, columns in dataset.columns.items():
        yield f"{file}:"
        width = max(map(len, columns), default=0)
        of = "document" if "query" not in columns.values() and set(columns.values()) & set(OF_DOCUMENTS) else "query"
        for column, kind in columns.items():
            meaning = f"kept as a field of the {of}" if kind == FIELDS else MEANINGS[kind]
            counts = _counts(dataset, kind)
            yield f"  {column:<{width}} -> {meaning}{counts and f' ({counts})'}"


def grade_counts(labels: Iterable[Labels]) -> tuple[tuple[int, int], ...]:
    """Grade and how often it is given; empty where labels are lists."""
    counts = Counter(grade for one in labels if one.grades is not None for grade in one.grades.values())
    return tuple(sorted(counts.items()))


def _counts(dataset: Dataset, kind: str) -> str:
    """What the labels of a kind of column came to; "" for what is no label."""
    if kind == "grade":
        return ", ".join(f"{grade}: {number:,}" for grade, number in grade_counts(dataset.labels.values()))
    if kind not in LABELLING:
        return ""
    absent = [pair.rpartition(" ")[2] for pair in dataset.ledger.get("dangling-document", ())]
    found = sum(len(labels.documents) for labels in dataset.labels.values())
    named = ", ".join(map(repr, dict.fromkeys(absent[:NAMED])))
    missing = f"; not found: {named}{', …' if len(absent) > NAMED else ''}" if absent else ""
    return f"matched {found:,} of {found + len(absent):,}{missing}"
