"""A retriever by vectors over any embedder and any store, and a reranker alone, without
a run around them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np

from retrievers.bm25 import BM25
from retrievers.cache import Cache
from retrievers.conditions import Condition
from retrievers.dense import Dense
from retrievers.meter import Meter
from retrievers.reranked import Reranked
from retrievers.resources import Corpus, Resources
from retrievers.texts.chunking import Chunk
from retrievers.types import Document, Embedded, Encoder, Reranker, Store


class Numbers(Encoder):
    """Embeds a text as the numbers that a function gives of it; of its 4 tokens, `lost`
    are not read.
    """

    fingerprint, lasting = "numbers", False

    def __init__(
        self,
        row: Callable[[str], Sequence[float]],
        lost: Callable[[str], int] = lambda text: 0,
    ) -> None:
        self._row, self._lost = row, lost

    def embed(self, texts, role, call):
        assert all(text.strip() for text in texts)
        vectors = np.array(
            [self._row(text) for text in texts], dtype=np.float32
        ).reshape(-1, len(self._row("")))
        return Embedded(
            vectors,
            np.full(len(texts), 4),
            np.array([self._lost(text) for text in texts], dtype=np.int64),
        )


class OverStore(Dense):
    """Searches what an encoder gives in a store that is opened when the corpus is
    indexed.
    """

    def __init__(
        self,
        encoder: Encoder,
        open_store: Callable[[Meter], Store],
        *,
        fresh: bool = False,
        chunks: Chunk | None = None,
        conditions: Sequence[Condition] = (),
    ) -> None:
        super().__init__(encoder, chunk=chunks, conditions=conditions)
        self._open, self._anew = open_store, fresh

    @property
    def _fresh(self) -> bool:
        return self._anew

    def _open_collection(self, documents: Iterable[Document], meter: Meter) -> Store:
        return self._open(meter)


def reranking(
    reranker: Reranker,
    cache: Cache,
    contents: Callable[[Collection[str]], Mapping[str, Document]],
) -> Reranked:
    """A reranker with its cache and its documents; nothing finds for it."""
    reranked = Reranked(BM25(), reranker)
    reranked.setup(Resources(Corpus(lambda: iter(()), 0, contents), cache))
    return reranked
