"""The texts that a run embeds."""

from __future__ import annotations

from collections.abc import Sequence

from harness.dataset import Dataset
from retrievers.dense import Dense
from retrievers.embedder import (
    Embedder,
    EmbeddingForecast,
    sort_distinct_passages,
    split_windows,
)
from retrievers.texts.chunking import Chunk, passages_in_context
from retrievers.types import Query, Role


def forecast_embedding(
    embedder: Embedder, dataset: Dataset, chunks: Chunk | None, queries: Sequence[Query]
) -> dict[Role, EmbeddingForecast]:
    """Count the texts, requests and tokens of documents and of queries.

    Documents are counted window by window, as they are embedded: a text in two windows
    counts in both, so that the figures are slightly too high.

    Args:
        embedder: of one encoder, with the cache.
        dataset: its documents are embedded.
        chunks: how documents are cut; None: whole.
        queries: as the retriever searches with them.
    """
    passages = passages_in_context(
        dataset.documents(), chunks, contextual=embedder.encoder.contextual
    )
    texts = ((passage.text, passage.context) for passage in passages)
    forecasts = [
        embedder.forecast_passages(sort_distinct_passages(window), "document")
        for window in split_windows(texts, embedder.encoder.form)
    ]
    return {
        "document": _total(forecasts),
        "query": embedder.forecast((query.text for query in queries), "query"),
    }


def _total(forecasts: Sequence[EmbeddingForecast]) -> EmbeddingForecast:
    return EmbeddingForecast(
        sum(forecast.texts for forecast in forecasts),
        sum(forecast.cached for forecast in forecasts),
        sum(forecast.calls for forecast in forecasts),
        sum(forecast.tokens for forecast in forecasts),
        exact=all(forecast.exact for forecast in forecasts),
    )


def has_user_chunker(dense: Dense) -> bool:
    """Whether a function of the user cuts the documents; `check` does not run it."""
    return dense.chunks is not None and bool(dense.chunks.call)
