"""A checked data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.dataset.labels import Labels
from harness.dataset.reference import DeclaredColumn
from retrievers.types import Document, Query


class ReadColumn(NamedTuple):
    """A column of a table, and how it was read."""

    name: str
    kind: str
    """A kind of `usual_names`, such as "query_id"; empty if it is not used."""


class ReadTable(NamedTuple):
    """A table of a data set that was read."""

    file: str
    columns: tuple[ReadColumn, ...]

    def has_column(self, name: str) -> bool:
        """Whether it has a column of a name."""
        return any(column.name == name for column in self.columns)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A checked data set; the corpus is read again each time, never kept in memory.

    `load_documents`, and `stored_dataset` of results, return one in part.
    """

    path: str
    """The reference as people write it."""
    format: str
    """A key of `choose_reader.READERS_BY_FORMAT`; "memory" for Python objects."""
    queries: tuple[Query, ...]
    """The queries that are searched, in file order.

    They have a relevant document; or claims; or no labels, and an answer from which
    claims are taken; or are said to have no answer. If the data set has no labels, or
    a file of judgments, which may still grow, all queries with a text are searched.
    """
    judged_queries: tuple[Query, ...]
    """All judged queries, those without a relevant document too."""
    labels: Mapping[str, Labels]
    """The labels of every judged query, by query id."""
    document_count: int
    digest: str
    """SHA-256 of documents, queries and labels."""
    corpus_digest: str
    """SHA-256 of the documents alone: an index is named after it."""
    stored_queries: tuple[Query, ...] = ()
    """The queries that results store: searched or judged, in file order."""
    data_quality: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Kind of note, such as "duplicate-text" -> ids, paths or names that have it."""
    tables: tuple[ReadTable, ...] = ()
    """The tables that were read, with their columns."""
    table_sizes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Table -> {"row": its rows}; folder of documents -> format -> its files."""
    found_column: DeclaredColumn | None = None
    """The column of labels that was found by its name, as it would be declared."""
    matched_by: Mapping[str, int] = field(default_factory=dict)
    """How labels name documents -> how many do.

    The key is a value of `IdMatch.matched_by`, or "text", or "field".
    """
    unknown_documents: tuple[str, ...] = ()
    """The unknown ids in labels, once for each query that names them."""
    field_names: frozenset[str] = frozenset()
    """Fields that documents have."""
    representatives: Mapping[str, str] = field(default_factory=dict)
    """Each further document -> the first with the same value of the labels' field.

    If labels name a field (a page, say), that document represents the others in labels
    and rankings.
    """
    sample: tuple[Document, ...] = field(default=(), repr=False)
    """Some documents, chosen by their ids; empty if no sample was requested."""
    documents: Callable[[], Iterator[Document]] = field(
        repr=False, default=lambda: iter(())
    )
    """Starts a new pass over the corpus, in file order.

    At its end it raises DataChanged if the corpus is not the one that was checked.
    """

    def texts(self, ids: Collection[str]) -> dict[str, Document]:
        """Return the documents with these ids; unknown ids are missing.

        The pass goes on to its end, which checks the corpus.
        """
        document_ids = set(ids)
        return {doc.id: doc for doc in self.documents() if doc.id in document_ids}


def count_grades(labels: Iterable[Labels]) -> tuple[tuple[int, int], ...]:
    """Return each grade with its number of labels, the lowest grade first.

    Labels that are lists have no grades.
    """
    counts = Counter[int]()
    for query_labels in labels:
        if query_labels.grades is not None:
            counts.update(query_labels.grades.values())
    return tuple(sorted(counts.items()))
