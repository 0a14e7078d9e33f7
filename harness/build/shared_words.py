"""Queries that share no word with the corpus."""

from collections.abc import Sequence
from dataclasses import replace

from harness.build.built_retriever import BuiltRetriever, without_filter
from harness.dataset import Dataset
from retrievers.bm25 import BM25, queries_without_shared_word

UNSHARED_NOTE = "no-shared-word"
"""The kind of note under which such queries are counted."""


def unshared_queries(
    dataset: Dataset, retrievers: Sequence[BuiltRetriever]
) -> list[str]:
    """Return the ids of queries whose words are in no document.

    Words are counted as the first BM25 of an experiment counts them, else by the
    language of the documents.
    """
    bm25 = _first_bm25(retrievers)
    stemming = None if bm25 is None else bm25.stemming
    return queries_without_shared_word(dataset.queries, dataset.documents, stemming)


def note_unshared_queries(
    dataset: Dataset, retrievers: Sequence[BuiltRetriever]
) -> Dataset:
    """Return a data set with a note of such queries; a BM25 notes them itself."""
    if _first_bm25(retrievers) is not None:
        return dataset
    ids = unshared_queries(dataset, retrievers)
    if not ids:
        return dataset
    notes = {**dataset.data_quality, UNSHARED_NOTE: tuple(ids)}
    return replace(dataset, data_quality=notes)


def _first_bm25(retrievers: Sequence[BuiltRetriever]) -> BM25 | None:
    for built in retrievers:
        for part in map(without_filter, built.other_retrievers):
            if isinstance(part, BM25):
                return part
    return None
