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
    """Sparse vectors as an inverted index: scipy's CSR, one row per dimension.

    Every product is computed, in 64 bits.
    """

    forms = ("sparse",)
    always_exact = True
    in_process = True
    sparse_number_bytes = 12  # 8 of the number, 4 of its index

    def __init__(self, opening: StoreOpening) -> None:
        """Create an empty store; it needs nothing of the opening."""
        self._postings: csr_array[np.float64, tuple[int, int]]
        """(dimensions, documents)."""

    def finish(self, notes: Mapping[str, Sequence[str]]) -> None:
        """Build the index; raise BackendError if an id occurs twice."""
        super().finish(notes)
        self._postings = _csr_matrix(concatenate_vectors(self._parts)).T.tocsr()
        self._parts = []

    def search(
        self,
        vectors: AnyVectors,
        limit: int,
        *,
        exact: bool = True,
        query_filters: QueryFilters = (),
    ) -> list[Ranking]:
        """Return one ranking per query vector, with points whose product is above 0.

        It has the best `limit` points, ties resolved.
        """
        masks = self._field_values.masks(query_filters)
        rankings = []
        for start in range(0, len(vectors), SPARSE_SEARCH_BATCH):
            queries = _csr_matrix(vectors[start : start + SPARSE_SEARCH_BATCH])
            products = (queries @ self._postings).tocsr()
            for row in range(products.shape[0]):
                columns = slice(products.indptr[row], products.indptr[row + 1])
                scores = products.data[columns]
                documents = products.indices[columns]
                matches = scores > 0
                if masks:
                    matches &= masks[start + row][documents]
                best = top_k_candidates(scores, limit, matches)
                doc_ids = [self._ids[i] for i in documents[best]]
                ranking = ranked(doc_ids, round_scores(scores[best]), limit)
                rankings.append(positive_hits(ranking))  # rounding may have made zeros
        return rankings


def _csr_matrix(vectors: AnyVectors) -> csr_array[np.float64, tuple[int, int]]:
    """Return sparse vectors as a matrix of 64-bit floats.

    A product of unlike types would copy the whole matrix each time.
    """
    from scipy.sparse import csr_array

    if not isinstance(vectors, SparseVectors):
        raise TypeError("only sparse vectors are kept as a matrix")
    values = vectors.values.astype(np.float64)
    return csr_array((values, vectors.indices, vectors.starts), shape=vectors.shape)
