"""Collections that are matrices in memory, compared as a whole: sparse vectors, and vectors in fewer bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from retrievers.filters import FieldValues
from retrievers.ragged import AnyVectors, SparseVectors, dense, joined, unit_rows
from retrievers.ranking import top_k_candidates
from retrievers.stores import Opening
from retrievers.stores.points import above_zero, count_matches
from retrievers.types import Filters, Floats, Ranking, Store, Vectors, ranked, rounded

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NumberFormat = Literal["int8", "binary", "binary-dot"]
Codes = npt.NDArray[np.uint8]
LEVELS = 256
SEARCH = 32
"""Queries whose products with all sparse vectors are in memory at once."""
PRODUCTS = 1 << 24
"""Products of queries and codes in memory at once: 128 MB."""


class _Points(Store):
    """The ids and fields of one collection's points, and their vectors in parts, as a kind of store keeps them."""

    _ids: list[str]
    _values: FieldValues
    _parts: list[Any]

    def create(self, dimensions: int, *, anew: bool = False) -> None:
        """Make the collection anew and empty."""
        self._ids, self._values, self._parts = [], FieldValues(), []

    def upsert(
        self,
        ids: Sequence[str],
        vectors: AnyVectors,
        fields: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Add points, whose ids are new."""
        self._ids += ids
        for own in fields:
            self._values.add(own)
        self._parts.append(self._kept(vectors))

    def _kept(self, vectors: AnyVectors) -> Any:
        """What is kept of some vectors."""
        return vectors

    def finish(self, notes: Mapping[str, Sequence[str]]) -> None:
        """Put all points into one matrix; raises BackendError where an id occurs twice."""
        count_matches(len(self._ids), len(set(self._ids)))


class CsrStore(_Points):
    """Sparse vectors as an inverted index (scipy's CSR, a row a dimension): every product is computed, in 64 bits."""

    forms = ("sparse",)

    def __init__(self, opening: Opening) -> None:
        """Take what is opened: nothing of it matters here."""
        self._postings: csr_array[np.float64, tuple[int, int]]
        """(dimensions, documents)."""

    def finish(self, notes: Mapping[str, Sequence[str]]) -> None:
        """Put all points into one index; raises BackendError where an id occurs twice."""
        super().finish(notes)
        self._postings = _csr(joined(self._parts)).T.tocsr()
        self._parts = []

    def search(
        self,
        vectors: AnyVectors,
        limit: int,
        *,
        exact: bool = True,
        wanted: Filters = (),
    ) -> list[Ranking]:
        """Return one ranking per query vector: the best `limit` points whose product is above 0, ties resolved."""
        masks, rankings = self._values.masks(wanted), []
        for start in range(0, len(vectors), SEARCH):
            products = (_csr(vectors[start : start + SEARCH]) @ self._postings).tocsr()
            for row in range(products.shape[0]):
                inside = slice(products.indptr[row], products.indptr[row + 1])
                scores, documents = products.data[inside], products.indices[inside]
                among = scores > 0
                if masks:
                    among &= masks[start + row][documents]
                best = top_k_candidates(scores, limit, among)
                found = ranked(
                    [self._ids[i] for i in documents[best]],
                    rounded(scores[best]),
                    limit,
                )
                rankings.append(above_zero(found))
        return rankings


class QuantizedStore(_Points):
    """One collection of codes, a byte a dimension or a bit; nothing of the full vectors is kept.

    Scores are cosines of what the codes mean: of int8 between the query's own numbers and each document's levels;
    of binary between the bits of both, which is 1 - 2 x Hamming distance / dimensions; of binary-dot between the
    query's own numbers and each document's bits (1 or -1). The levels of int8 are between the smallest and the largest
    number of each dimension among the documents that are added first.
    """

    def __init__(self, quantization: NumberFormat) -> None:
        self._quantization = quantization
        self._dimensions = 0
        self._buckets: ValueRanges | None = None

    def create(self, dimensions: int, *, anew: bool = False) -> None:
        """Begin anew, with no document."""
        super().create(dimensions)
        self._dimensions, self._buckets = dimensions, None

    def _kept(self, vectors: AnyVectors) -> Codes:
        """Return the codes of documents; of int8 the first of them decide the levels."""
        units = dense(unit_rows(vectors))
        if self._quantization != "int8":
            return to_bits(units)
        if self._buckets is None and len(units):
            self._buckets = calibrated(units)
        return (
            to_bytes(units, self._buckets)
            if self._buckets
            else np.empty(units.shape, dtype=np.uint8)
        )

    def search(
        self,
        vectors: AnyVectors,
        limit: int,
        *,
        exact: bool = True,
        wanted: Filters = (),
    ) -> list[Ranking]:
        """Return one ranking per query vector: the best `limit` documents, ties at the limit resolved."""
        masks, asked, answers = (
            self._values.masks(wanted),
            dense(unit_rows(vectors)),
            list[Ranking](),
        )
        if self._quantization == "binary":
            asked = from_bits(to_bits(asked), self._dimensions)
        size = max(1, PRODUCTS // max(1, len(self._ids)))
        for start in range(0, len(asked), size):
            parts = [
                self._scores(asked[start : start + size], codes)
                for codes in self._parts
            ]
            for at, scores in enumerate(np.concatenate(parts, axis=1), start):
                best = top_k_candidates(scores, limit, masks[at] if masks else None)
                answers.append(
                    ranked([self._ids[i] for i in best], rounded(scores[best]), limit)
                )
        return answers

    def _scores(self, asked: Vectors, codes: Codes) -> Floats:
        """(queries, documents)."""
        if self._buckets is not None:
            return np.asarray(
                asked @ from_bytes(codes, self._buckets).T, dtype=np.float64
            )
        products = (asked @ from_bits(codes, self._dimensions).T).astype(np.float64)
        lengths = (
            self._dimensions
            if self._quantization == "binary"
            else np.sqrt(self._dimensions)
        )
        return np.asarray(products / lengths)


def _csr(vectors: AnyVectors) -> csr_array[np.float64, tuple[int, int]]:
    from scipy.sparse import csr_array

    if not isinstance(vectors, SparseVectors):
        raise TypeError("only sparse vectors are kept as a matrix")
    values = vectors.values.astype(
        np.float64
    )  # once, here: a product of unlike types copies the whole matrix
    return csr_array((values, vectors.indices, vectors.starts), shape=vectors.shape)


class ValueRanges(NamedTuple):
    """The 256 levels of each dimension."""

    starts: Vectors
    """(dimensions,): half a step below the smallest number."""
    steps: Vectors
    """(dimensions,): from one level to the next; 1 where all numbers are the same."""


def calibrated(vectors: Vectors) -> ValueRanges:
    """Return the levels of each dimension: the smallest number is the middle of the first, the largest of the last.

    `quantize_embeddings` of sentence-transformers 6.0 has the same steps with both numbers on the edge of a level,
    where noise of 1e-7 in an embedding moves them to another.

    Args:
        vectors: (n, dimensions), n at least 1.
    """
    smallest = vectors.min(axis=0)
    steps = (vectors.max(axis=0) - smallest) / np.float32(LEVELS - 1)
    steps = np.where(steps == 0, np.float32(1), steps)
    return ValueRanges(smallest - steps / 2, steps)


def to_bytes(vectors: Vectors, buckets: ValueRanges) -> Codes:
    """Return each number's level; values outside the calibrated range get the nearest one.

    >>> buckets = calibrated(np.array([[0.0], [255.0]], dtype=np.float32))
    >>> to_bytes(np.array([[-3], [0.5], [254.5], [300]], dtype=np.float32), buckets).ravel().tolist()
    [0, 1, 255, 255]
    """
    levels = np.floor((vectors - buckets.starts) / buckets.steps)
    return np.asarray(np.clip(levels, 0, LEVELS - 1), dtype=np.uint8)


def from_bytes(codes: Codes, buckets: ValueRanges) -> Vectors:
    """Return the middle of each level: what a level stands for with the smallest error."""
    return np.asarray(
        (codes + np.float32(0.5)) * buckets.steps + buckets.starts, dtype=np.float32
    )


def to_bits(vectors: Vectors) -> Codes:
    """Return a bit a dimension, 1 for what is above 0, eight in a byte and the rest of the last one 0.

    >>> to_bits(np.array([[0.5, -1, 0, 2]], dtype=np.float32)).tolist()
    [[144]]
    """
    return np.packbits(vectors > 0, axis=1)


def from_bits(codes: Codes, dimensions: int) -> Vectors:
    """Return 1 for each bit that is set and -1 for each other."""
    return np.unpackbits(codes, axis=1, count=dimensions).astype(np.float32) * 2 - 1


def bytes_a_vector(quantization: NumberFormat, dimensions: int) -> int:
    """Return the bytes of one vector.

    >>> bytes_a_vector("int8", 100), bytes_a_vector("binary", 100)
    (100, 13)
    """
    return dimensions if quantization == "int8" else -(-dimensions // 8)
