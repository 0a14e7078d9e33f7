"""Retrieval by embedding: documents and queries become vectors, a store finds the nearest."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

import numpy as np
import numpy.typing as npt

from retrievers.chunking import Chunks, best_passages, document_of, passages
from retrievers.errors import InputError
from retrievers.meter import Meter
from retrievers.types import Document, Embedded, Query, Ranking, Role, Store, Vectors, ranked

WINDOW = 16_384
"""Texts embedded together: requests are planned within a window, so that they do not depend on the cache."""

COMPARED = 100
"""Queries for which an approximate search is compared with an exact one."""

Embed = Callable[[Sequence[str], Role], Embedded]


class DenseRetriever:
    """Answers with the documents whose vectors lie nearest to the query's by cosine.

    Blank documents are never embedded, and vectors of length zero have no cosine: neither is ever retrieved, and a
    query with such a vector retrieves nothing. All are noted: "empty", "zero-vector", and "truncated" where the
    model did not read a text to its end (of passages: any of a document's).

    Args:
        embed: texts, none of them blank, to vectors in the same order; normally through the cache.
        store: where the vectors go.
        meter: where counts and times go.
        fresh: make the collection anew even where a finished one is there.
        chunks: cut documents into passages; a document then has its best passage's score.
    """

    def __init__(
        self, embed: Embed, store: Store, meter: Meter, *, fresh: bool = False, chunks: Chunks | None = None
    ) -> None:
        self.embed = embed
        self.fresh = fresh
        self.chunks = chunks
        self.store = store
        self.meter = meter
        self.dimensions = 0
        """Of the vectors; known once queries were embedded."""

    def index(self, documents: Iterable[Document]) -> None:
        """Embed the corpus window by window into the store, or use the finished collection that is there."""
        notes = None if self.fresh else self.store.finished()
        if notes is None:
            notes = self._build(documents)
        for kind, ids in notes.items():
            for document_id in ids:
                self.meter.note(kind, document_id)

    def search(self, queries: Sequence[Query], depth: int) -> list[Ranking]:
        """Return one ranking of at most `depth` hits per query, in the order of the queries."""
        if not queries:
            return []
        with self.meter.stage("embed-queries", total=len(queries)):
            embedded = self.embed([query.text for query in queries], "query")
            self.meter.count(lost_tokens=int(embedded.lost.sum()))
        self.dimensions = embedded.vectors.shape[1]
        directed = _with_direction(embedded.vectors)
        for query, lost, has_direction in zip(queries, embedded.lost, directed, strict=True):
            if lost:
                self.meter.note("truncated", query.id)
            if not has_direction:
                self.meter.note("zero-vector", query.id)
        asked = embedded.vectors[directed]
        with self.meter.stage("search", total=len(queries)):
            found = self.nearest(asked, depth)
            self.meter.count(texts=len(queries))
        if self.store.approximate:
            self._compare_with_exact(asked[:COMPARED], found[:COMPARED], depth)
        answers = iter(found)
        return [next(answers) if has_direction else ranked([], []) for has_direction in directed]

    def nearest(self, vectors: Vectors, depth: int, *, exact: bool = False) -> list[Ranking]:
        """Return the documents nearest to each query vector (queries, dimensions)."""
        search = partial(self.store.search, exact=exact)
        return best_passages(search, vectors, depth) if self.chunks else search(vectors, depth)

    def _compare_with_exact(self, vectors: Vectors, found: Sequence[Ranking], depth: int) -> None:
        """Count how many of the exact hits an approximate search found, among the first 10 and within the depth."""
        with self.meter.stage("search-exact", total=len(vectors)):
            exact = self.nearest(vectors, depth, exact=True)
            self.meter.count(texts=len(vectors))
            for name, cutoff in (("hits_at_10", 10), ("hits", depth)):
                pairs = [(set(a.doc_ids[:cutoff]), set(b.doc_ids[:cutoff])) for a, b in zip(found, exact, strict=True)]
                self.meter.count(
                    **{
                        f"exact_{name}": sum(len(b) for _, b in pairs),
                        f"shared_{name}": sum(len(a & b) for a, b in pairs),
                    }
                )

    def _build(self, documents: Iterable[Document]) -> dict[str, list[str]]:
        notes: dict[str, list[str]] = {"empty": [], "truncated": [], "zero-vector": []}
        expected = operator.length_hint(documents) or None
        created = False
        for window in _windows(self._texts(documents, notes["empty"])):
            with self.meter.stage("embed-documents", total=expected):
                embedded = self.embed([document.content for document in window], "document")
                self.meter.count(lost_tokens=int(embedded.lost.sum()))
            notes["truncated"] += _ids(window, embedded.lost > 0)
            directed = _with_direction(embedded.vectors)
            notes["zero-vector"] += _ids(window, ~directed)
            with self.meter.stage("index", total=expected):
                if not created:
                    self.store.create(embedded.vectors.shape[1])
                    created = True
                self.store.upsert([window[i].id for i in np.flatnonzero(directed)], embedded.vectors[directed])
                self.meter.count(texts=int(directed.sum()))
        if not created:
            raise InputError("nothing to index: the corpus holds no document with any content")
        with self.meter.stage("index"):
            self.store.finish(notes)
        return notes

    def _texts(self, documents: Iterable[Document], empty: list[str]) -> Iterator[Document]:
        """Yield what is embedded: documents or their passages; blank ones go to the list."""
        for document in documents:
            if not document.content.strip():
                empty.append(document.id)
            elif self.chunks is None:
                yield document
            else:
                yield from passages(document, self.chunks)


def _ids(window: Sequence[Document], chosen: npt.NDArray[np.bool_]) -> list[str]:
    """Return the ids of the chosen documents, or of those that have a chosen passage."""
    return list(dict.fromkeys(document_of(window[i].id) for i in np.flatnonzero(chosen).tolist()))


def _windows(documents: Iterable[Document]) -> Iterator[list[Document]]:
    stream = iter(documents)
    while window := list(islice(stream, WINDOW)):
        yield window


def _with_direction(vectors: Vectors) -> npt.NDArray[np.bool_]:
    return np.asarray(vectors.any(axis=1))
