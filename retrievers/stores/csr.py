"""Sparse vectors as a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from retrievers.conditions import QueryFilters
from retrievers.ragged import AnyVectors, SparseVectors, concatenate_vectors
from retrievers.ranking import Ranking, ranked, round_scores, top_k_candidates
from retrievers.stores.open import StoreOpening
from retrievers.stores.points import MatrixStore, positive_hits

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SPARSE_SEARCH_BATCH = 32
"""Queries whose products with all sparse vectors are in memory at once."""


class CsrStore(MatrixStore):
    """Sparse vectors as an inverted index (scipy's CSR, a row a dimension): every product is computed, in 64 bits."""

    forms = ("sparse",)

    def __init__(self, opening: StoreOpening) -> None:
        """Take what is opened: nothing of it matters here."""
        self._postings: csr_array[np.float64, tuple[int, int]]
        """(dimensions, documents)."""

    def finish(self, notes: Mapping[str, Sequence[str]]) -> None:
        """Put all points into one index; raises BackendError where an id occurs twice."""
        super().finish(notes)
        self._postings = _csr(concatenate_vectors(self._parts)).T.tocsr()
        self._parts = []

    def search(
        self,
        vectors: AnyVectors,
        limit: int,
        *,
        exact: bool = True,
        query_filters: QueryFilters = (),
    ) -> list[Ranking]:
        """Return one ranking per query vector: the best `limit` points whose product is above 0, ties resolved."""
        masks, rankings = self._values.masks(query_filters), []
        for start in range(0, len(vectors), SPARSE_SEARCH_BATCH):
            products = (
                _csr(vectors[start : start + SPARSE_SEARCH_BATCH]) @ self._postings
            ).tocsr()
            for row in range(products.shape[0]):
                inside = slice(products.indptr[row], products.indptr[row + 1])
                scores, documents = products.data[inside], products.indices[inside]
                among = scores > 0
                if masks:
                    among &= masks[start + row][documents]
                best = top_k_candidates(scores, limit, among)
                found = ranked(
                    [self._ids[i] for i in documents[best]],
                    round_scores(scores[best]),
                    limit,
                )
                rankings.append(positive_hits(found))
        return rankings


def _csr(vectors: AnyVectors) -> csr_array[np.float64, tuple[int, int]]:
    from scipy.sparse import csr_array

    if not isinstance(vectors, SparseVectors):
        raise TypeError("only sparse vectors are kept as a matrix")
    values = vectors.values.astype(
        np.float64
    )  # once, here: a product of unlike types copies the whole matrix
    return csr_array((values, vectors.indices, vectors.starts), shape=vectors.shape)
