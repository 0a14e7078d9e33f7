"""Queries that share no word with the corpus."""

from collections.abc import Sequence
from dataclasses import replace

from harness.build.built_retriever import BuiltRetriever
from harness.dataset import Dataset
from retrievers.bm25 import BM25, queries_without_shared_word

UNSHARED_NOTE = "no-shared-word"
"""The kind of note under which such queries are counted."""


def unshared_queries(
    dataset: Dataset, retrievers: Sequence[BuiltRetriever]
) -> list[str]:
    """Return the ids of queries whose words are in no document.

    Words are those that the first BM25 of an experiment searches with, perhaps also of
    the history; else those of the query alone, by the language of the documents.
    """
    queries = list(dataset.queries)
    stemming = None
    for built in retrievers:
        bm25 = _bm25_in(built)
        if bm25 is not None:
            queries = built.conversation_queries(queries)
            stemming = bm25.stemming
            break
    return queries_without_shared_word(queries, dataset.documents, stemming)


def note_unshared_queries(
    dataset: Dataset, retrievers: Sequence[BuiltRetriever]
) -> Dataset:
    """Return a data set with a note of such queries; a BM25 notes them itself."""
    if any(_bm25_in(built) is not None for built in retrievers):
        return dataset
    ids = unshared_queries(dataset, retrievers)
    if not ids:
        return dataset
    notes = {**dataset.data_quality, UNSHARED_NOTE: tuple(ids)}
    return replace(dataset, data_quality=notes)


def _bm25_in(built: BuiltRetriever) -> BM25 | None:
    """Return the first part of a retriever that is BM25; None if none is."""
    bm25_parts = [part for part in built.other_retrievers if isinstance(part, BM25)]
    return bm25_parts[0] if bm25_parts else None
