"""Sparse vectors as an inverted index in memory: every product that is not 0 is computed, in 64 bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from retrievers.bm25 import candidates
from retrievers.errors import BackendError
from retrievers.filters import FieldValues
from retrievers.ragged import AnyVectors, SparseVectors, joined
from retrievers.stores.options import Opening
from retrievers.stores.points import above_zero
from retrievers.types import FilterValues, Ranking, Store, ranked, rounded

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SEARCH = 32
"""Queries whose products with all documents are held at once."""


class CsrStore(Store):
    """One collection of sparse vectors as scipy's CSR, a row a dimension; made anew in each run."""

    forms = ("sparse",)

    def __init__(self, opening: Opening) -> None:
        """Take what is opened: nothing of it matters here."""
        self._ids: list[str] = []
        self._parts: list[AnyVectors] = []
        self._fields: list[Mapping[str, str]] = []
        self._values: FieldValues
        self._postings: csr_array[np.float64, tuple[int, int]]
        """(dimensions, documents)."""

    def create(self, dimensions: int, *, anew: bool = False) -> None:
        """Make the collection anew and empty."""
        self._ids, self._parts, self._fields = [], [], []

    def upsert(self, ids: Sequence[str], vectors: AnyVectors, fields: Sequence[Mapping[str, str]] = ()) -> None:
        """Add points, whose ids are new."""
        self._ids += ids
        self._fields += fields
        self._parts.append(vectors)

    def finish(self, notes: Mapping[str, Sequence[str]]) -> None:
        """Put all points into one index; raises BackendError where an id stands twice."""
        if len(set(self._ids)) < len(self._ids):
            raise BackendError("a document's id stands twice")
        self._postings = _csr(joined(self._parts)).T.tocsr()
        self._values = FieldValues({name for own in self._fields for name in own})
        for own in self._fields:
            self._values.add(own)
        self._parts = []

    def search(
        self, vectors: AnyVectors, limit: int, *, exact: bool = True, wanted: Sequence[FilterValues] = ()
    ) -> list[Ranking]:
        """Return one ranking per query vector: the best `limit` points whose product is above 0, ties resolved."""
        masks = {one: self._values.matching(one) for one in set(wanted)}
        rankings = []
        for start in range(0, len(vectors), SEARCH):
            products = (_csr(vectors[start : start + SEARCH]) @ self._postings).tocsr()
            for row in range(products.shape[0]):
                inside = slice(products.indptr[row], products.indptr[row + 1])
                scores, documents = products.data[inside], products.indices[inside]
                if wanted:
                    kept = masks[wanted[start + row]][documents]
                    scores, documents = scores[kept], documents[kept]
                best = candidates(scores, limit)
                rankings.append(
                    above_zero(ranked([self._ids[i] for i in documents[best]], rounded(scores[best]), limit))
                )
        return rankings


def _csr(vectors: AnyVectors) -> csr_array[np.float64, tuple[int, int]]:
    from scipy.sparse import csr_array

    if not isinstance(vectors, SparseVectors):
        raise TypeError("only sparse vectors are kept as a matrix")
    values = vectors.values.astype(np.float64)  # once, here: a product of unlike types copies the whole matrix
    return csr_array((values, vectors.indices, vectors.starts), shape=vectors.shape)
