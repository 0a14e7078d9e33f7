"""A dense and a lexical search that Qdrant fuses by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from retrievers.bm25 import BM25Retriever
from retrievers.errors import InputError
from retrievers.meter import Meter
from retrievers.ragged import AnyVectors, dense, unit_rows
from retrievers.stores.hybrid import HybridQuery, HybridStore, SparseRow
from retrievers.types import Document, Query, Ranking, Retriever, Vectors, ranked
from retrievers.vector_search import WINDOW, Embeds


class QdrantFusionRetriever(Retriever):
    """Keeps an embedding and BM25's weights of each document in one collection, and lets Qdrant fuse the two searches.

    The weights are those of `BM25Retriever`, so that the sparse dot product is its score. Notes are those of
    `VectorRetriever`.

    Args:
        embedder: turns texts into vectors.
        bm25: makes the weights; an instance of its own.
        open_store: opens the collection, with the meter of the index.
        describe: the dimensions of the vectors -> what the manifest keeps.
    """

    def __init__(
        self,
        embedder: Embeds,
        bm25: BM25Retriever,
        open_store: Callable[[Meter], HybridStore],
        describe: Callable[[int], Mapping[str, str]] = lambda dimensions: {},
    ) -> None:
        self._embedder, self._bm25 = embedder, bm25
        self._open_store, self._describe = open_store, describe
        self._dimensions = 0
        self._store: HybridStore

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps of the models and the collection."""
        return self._describe(self._dimensions)

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Weigh the terms of the whole corpus, then embed it window by window into the collection."""
        self._store = self._open_store(meter)
        with meter.stage("index"):
            self._bm25.index(documents, Meter())
            weights = self._bm25.weights()
        row_of = {doc_id: row for row, doc_id in enumerate(self._bm25.ids)}

        def sparse(doc_id: str) -> SparseRow | None:
            if doc_id not in row_of:
                return None
            row = weights.getrow(row_of[doc_id])
            return SparseRow(row.indices.tolist(), row.data.tolist())

        for window in _windows(documents, meter):
            with meter.stage("embed-documents"):
                embedded = self._embedder.embed([document.content for document in window], "document", meter)
                meter.count(lost_tokens=int(embedded.lost.sum()))
            with meter.stage("index"):
                if not self._dimensions:
                    self._dimensions = embedded.vectors.shape[1]
                    self._store.create(self._dimensions)
                points = [
                    HybridQuery(vector, sparse(one.id))
                    for one, vector in zip(window, _units(embedded.vectors), strict=True)
                ]
                for document, point, lost in zip(window, points, embedded.lost, strict=True):
                    if lost:
                        meter.note("truncated", document.id)
                    if point.dense is None:
                        meter.note("zero-vector", document.id)
                held = [number for number, one in enumerate(points) if one.dense is not None or one.sparse is not None]
                self._store.upsert([window[number].id for number in held], [points[number] for number in held])
                meter.count(texts=len(held))
        if not self._dimensions:
            raise InputError("nothing to index: the corpus holds no document with any content")

    def search(self, queries: Sequence[Query], depth: int, meter: Meter) -> list[Ranking]:
        """Return what Qdrant fuses of the first `depth` hits of each side."""
        if not queries:
            return []
        with meter.stage("embed-queries", total=len({query.text for query in queries})):
            embedded = self._embedder.embed([query.text for query in queries], "query", meter)
            meter.count(lost_tokens=int(embedded.lost.sum()))
        for query, lost, vector in zip(queries, embedded.lost, _units(embedded.vectors), strict=True):
            if lost:
                meter.note("truncated-query", query.id)
            if vector is None:
                meter.note("zero-vector-query", query.id)
        with meter.stage("search", total=len(queries)):
            rankings = self._fused(queries, embedded.vectors, depth)
            meter.count(texts=len(queries))
        return rankings

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Answer one query, its text embedded anew; embedding and search are stages of their own."""
        with meter.stage("embed-queries"):
            vectors = self._embedder.one(query.text, "query", meter).vectors
        with meter.stage("search"):
            (ranking,) = self._fused([query], vectors, depth)
        return ranking

    def _fused(self, queries: Sequence[Query], vectors: AnyVectors, depth: int) -> list[Ranking]:
        asked = [
            HybridQuery(vector, self._sparse(query)) for query, vector in zip(queries, _units(vectors), strict=True)
        ]
        some = [number for number, one in enumerate(asked) if one.dense is not None or one.sparse is not None]
        answers = dict(zip(some, self._store.search([asked[number] for number in some], depth), strict=True))
        return [answers.get(number, ranked([], [])) for number in range(len(queries))]

    def _sparse(self, query: Query) -> SparseRow | None:
        counts = self._bm25.counts(query.text)
        return SparseRow(list(counts), [float(count) for count in counts.values()]) if counts else None


def _windows(documents: Iterable[Document], meter: Meter) -> Iterator[list[Document]]:
    """The documents that have any content, so many at once as are embedded together; the others are noted."""

    def contentful() -> Iterator[Document]:
        for document in documents:
            if document.content.strip():
                yield document
            else:
                meter.note("empty", document.id)

    stream = contentful()
    while window := list(islice(stream, WINDOW)):
        yield window


def _units(some: AnyVectors) -> list[Vectors | None]:
    """Each vector with length 1; None where it has none."""
    return [vector if vector.any() else None for vector in dense(unit_rows(some))]
