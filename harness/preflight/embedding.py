"""The texts that a run embeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.build.built_retriever import BuiltRetriever
from harness.dataset import Dataset
from harness.experiment import StoredVectorsConfig
from retrievers.cache import Cache
from retrievers.dense import Dense
from retrievers.embedder import (
    Embedder,
    EmbeddingForecast,
    sort_distinct_passages,
    split_windows,
)
from retrievers.files.parquet_vectors import import_vectors
from retrievers.texts.chunking import Chunk, passages_in_context
from retrievers.types import Query, Role


def import_stored_vectors(
    vectors: StoredVectorsConfig | None, built: Iterable[BuiltRetriever], cache: Cache
) -> None:
    """Copy the vectors that `[vectors]` names into the cache; raises InputError where there are none."""
    if vectors is not None:
        roles: tuple[Role, ...] = ("document", "query")
        denses = [dense for one in built for dense in one.dense_parts]
        encoders = [
            encoder
            for dense in denses
            for encoder in (dense.encoder, dense.reduction.native_encoder)
        ]
        names = {
            encoder.fingerprint_for(role)
            for encoder in encoders
            if encoder is not None
            for role in roles
        }
        import_vectors(cache, vectors.location, sorted(names))


def forecast_embedding(
    embedder: Embedder, dataset: Dataset, chunks: Chunk | None, queries: Sequence[Query]
) -> dict[Role, EmbeddingForecast]:
    """Count what embedding documents and queries would take, window by window as they are embedded.

    A text that is in two windows counts in both: the figures are then a little too high.
    """
    read = passages_in_context(
        dataset.documents(), chunks, contextual=embedder.encoder.contextual
    )
    contents = (
        (piece.text, whole) if whole and chunks else (piece.content, whole)
        for piece, whole in read
    )
    distinct = map(
        sort_distinct_passages, split_windows(contents, embedder.encoder.form)
    )
    parts = [embedder.forecast_passages(window, "document") for window in distinct]
    nothing = EmbeddingForecast(0, 0, 0, 0, exact=True)
    texts, cached, calls, tokens, _ = (
        sum(column) for column in zip(nothing, *parts, strict=True)
    )
    whole = EmbeddingForecast(
        texts, cached, calls, tokens, exact=all(one.exact for one in parts)
    )
    return {
        "document": whole,
        "query": embedder.forecast((query.text for query in queries), "query"),
    }


def has_user_chunker(dense: Dense) -> bool:
    """Whether the user's own function cuts the documents: `check` does not run it."""
    return dense.chunks is not None and bool(dense.chunks.call)


WARM_UP_QUERIES = 3
"""Queries that are answered first and not counted."""


def latency_queries(
    queries: Sequence[Query], sample: int
) -> tuple[Sequence[Query], Sequence[Query]]:
    """Return the queries that are asked first and not counted, and those that are timed: evenly spread over all."""
    count = min(sample, len(queries))
    chosen = [queries[i * len(queries) // count] for i in range(count)]
    return chosen[:WARM_UP_QUERIES], chosen
