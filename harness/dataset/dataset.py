"""A checked data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from harness.dataset.labels import Labels
from retrievers.types import Document, Query


@dataclass(frozen=True, slots=True)
class Dataset:
    """A checked data set; the corpus is read anew each time, never kept in memory."""

    path: str
    format: str
    queries: tuple[Query, ...]
    """The queries that are asked, in file order: those with a relevant document or with claims; all of them
    where there are no labels, or where the labels are judgments that still grow."""
    judged_queries: tuple[Query, ...]
    """All judged queries, those without a relevant document too."""
    labels: Mapping[str, Labels]
    """The labels of every judged query, by query id."""
    document_count: int
    """How many documents there are."""
    digest: str
    """SHA-256 of documents, queries and labels."""
    corpus_digest: str
    """SHA-256 of the documents alone: what an index is named after."""
    stored_queries: tuple[Query, ...] = ()
    """The queries that results keep: asked or judged, in file order."""
    data_quality: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What was counted and not refused: kind -> ids."""
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of tables: file -> column -> the kind that it was read as, "" where it is not used."""
    table_sizes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Table or folder of documents -> what it holds (rows, Markdown files) -> how many."""
    guessed_columns: Mapping[str, str] = field(default_factory=dict)
    """The column of labels that was found by its values, as it would be declared."""
    matched_by: Mapping[str, int] = field(default_factory=dict)
    """By what labels name their documents ("id", "file name", "title", "text", "field") -> how many do."""
    unknown_documents: tuple[str, ...] = ()
    """What labels name and no document is, each as often as it is named."""
    field_names: frozenset[str] = frozenset()
    """Fields that documents have."""
    representatives: Mapping[str, str] = field(default_factory=dict)
    """Where labels name a field (a page, say): document -> the first document with the same value, which stands for
    all of them in labels and rankings."""
    sample: tuple[Document, ...] = field(default=(), repr=False)
    """As many documents as the first pass was to keep."""
    documents: Callable[[], Iterator[Document]] = field(
        repr=False, default=lambda: iter(())
    )
    """A fresh pass over the corpus, in file order."""

    def texts(self, ids: Collection[str]) -> dict[str, Document]:
        """The documents with these ids, found in one pass."""
        wanted = set(ids)
        return {doc.id: doc for doc in self.documents() if doc.id in wanted}


def count_grades(labels: Iterable[Labels]) -> tuple[tuple[int, int], ...]:
    """Grade and how often it is given; empty where labels are lists."""
    counts = Counter(
        grade
        for one in labels
        if one.grades is not None
        for grade in one.grades.values()
    )
    return tuple(sorted(counts.items()))
