"""Vectors in fewer bytes."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from retrievers.conditions import QueryFilters
from retrievers.embedded import DenseVectors
from retrievers.ragged import AnyVectors, as_dense, unit_rows
from retrievers.ranking import Floats, Ranking, ranked, round_scores, top_k_candidates
from retrievers.stores.points import MatrixStore

NumberFormat = Literal["int8", "binary", "binary-dot"]
VectorCodes = npt.NDArray[np.uint8]
BYTE_LEVELS = 256
"""Levels that one byte can hold."""
MAX_CODE_PRODUCTS = 1 << 24
"""Products of queries and codes of one batch: 128 MB, twice while parts are joined."""


class QuantizedStore(MatrixStore):
    """One collection of codes, one byte or bit per dimension, without full vectors.

    Scores are cosines between decoded vectors: for binary between the bits of both,
    which is 1 - 2 x Hamming distance / dimensions; for binary-dot between the query's
    own numbers and each document's bits (1 or -1). For int8 it is the dot product of
    the query at length 1 with each document's decoded numbers, whose length is only
    about 1. The levels that these can have are between the smallest and the largest
    number of each dimension in the first `upsert` that is not empty, which has the
    first texts that are embedded together; later numbers outside are at the nearest
    level. All codes are compared, whatever `exact` is.
    """

    def __init__(self, quantization: NumberFormat) -> None:
        self._quantization = quantization
        self._dimensions = 0
        self._levels: DimensionLevels | None = None

    def create(self, dimensions: int, *, anew: bool = False) -> None:
        """Start an empty collection."""
        super().create(dimensions)
        self._dimensions = dimensions
        self._levels = None

    def _encode(self, vectors: AnyVectors) -> VectorCodes:
        """Return the codes of documents; the first of int8 define the levels."""
        units = as_dense(unit_rows(vectors))
        if self._quantization != "int8":
            return quantize_to_bits(units)
        if self._levels is None and len(units):
            self._levels = calibrate_levels(units)
        if self._levels is None:
            return np.empty(units.shape, dtype=np.uint8)
        return quantize_to_bytes(units, self._levels)

    def search(
        self,
        vectors: AnyVectors,
        limit: int,
        *,
        exact: bool = True,
        query_filters: QueryFilters = (),
    ) -> list[Ranking]:
        """Return one ranking per query vector: the best `limit` documents.

        Ties at the limit are resolved.
        """
        masks = self._field_values.masks(query_filters)
        queries = as_dense(unit_rows(vectors))
        if self._quantization == "binary":
            queries = dequantize_bits(quantize_to_bits(queries), self._dimensions)
        rankings = []
        batch_size = max(1, MAX_CODE_PRODUCTS // max(1, len(self._ids)))
        for start in range(0, len(queries), batch_size):
            batch = queries[start : start + batch_size]
            score_parts = [self._scores(batch, codes) for codes in self._parts]
            for i, scores in enumerate(np.concatenate(score_parts, axis=1), start):
                best = top_k_candidates(scores, limit, masks[i] if masks else None)
                doc_ids = [self._ids[row] for row in best]
                rankings.append(ranked(doc_ids, round_scores(scores[best]), limit))
        return rankings

    def _scores(self, queries: DenseVectors, codes: VectorCodes) -> Floats:
        """Return the scores (queries, documents)."""
        length = 1.0
        if self._levels is not None:  # int8
            vectors = dequantize_bytes(codes, self._levels)
        else:  # numbers of 1 and -1: their length is the root of how many there are
            vectors = dequantize_bits(codes, self._dimensions)
            length = np.sqrt(self._dimensions)
            if self._quantization == "binary":  # the query, too
                length = self._dimensions
        # One query at a time: a product of several adds up in another order, and a
        # score would depend on the others of the batch.
        products = np.stack([vectors @ query for query in queries])
        return np.asarray(products.astype(np.float64) / length)


class DimensionLevels(NamedTuple):
    """The 256 levels of each dimension."""

    starts: DenseVectors
    """(dimensions,): half a step below the smallest number."""
    steps: DenseVectors
    """(dimensions,): from one level to the next; 1 if all numbers are the same."""


def calibrate_levels(vectors: DenseVectors) -> DimensionLevels:
    """Return the levels of each dimension.

    The smallest number is the middle of the first level, the largest that of the last.
    `quantize_embeddings` of sentence-transformers 6.0 has the same steps with both
    numbers on the edge of a level, where noise of 1e-7 in an embedding moves them to
    another.

    Args:
        vectors: (n, dimensions), n at least 1.
    """
    smallest = vectors.min(axis=0)
    steps = (vectors.max(axis=0) - smallest) / np.float32(BYTE_LEVELS - 1)
    steps = np.where(steps == 0, np.float32(1), steps)
    return DimensionLevels(smallest - steps / 2, steps)


def quantize_to_bytes(vectors: DenseVectors, levels: DimensionLevels) -> VectorCodes:
    """Return each number's level; numbers outside the range get the nearest one.

    >>> levels = calibrate_levels(np.array([[0.0], [255.0]], dtype=np.float32))
    >>> vectors = np.array([[-3], [0.5], [254.5], [300]], dtype=np.float32)
    >>> quantize_to_bytes(vectors, levels).ravel().tolist()
    [0, 1, 255, 255]
    """
    codes = np.floor((vectors - levels.starts) / levels.steps)
    return np.asarray(np.clip(codes, 0, BYTE_LEVELS - 1), dtype=np.uint8)


def dequantize_bytes(codes: VectorCodes, levels: DimensionLevels) -> DenseVectors:
    """Return the middle of each level, which has the smallest error."""
    middles = (codes + np.float32(0.5)) * levels.steps + levels.starts
    return np.asarray(middles, dtype=np.float32)


def quantize_to_bits(vectors: DenseVectors) -> VectorCodes:
    """Return one bit per dimension, 1 for numbers above 0, eight bits in a byte.

    Unused bits of the last byte are 0.

    >>> quantize_to_bits(np.array([[0.5, -1, 0, 2]], dtype=np.float32)).tolist()
    [[144]]
    """
    return np.packbits(vectors > 0, axis=1)


def dequantize_bits(codes: VectorCodes, dimensions: int) -> DenseVectors:
    """Return 1 for each bit that is set and -1 for each other."""
    return np.unpackbits(codes, axis=1, count=dimensions).astype(np.float32) * 2 - 1


def bytes_per_vector(quantization: NumberFormat, dimensions: int) -> int:
    """Return the bytes of one vector.

    >>> bytes_per_vector("int8", 100), bytes_per_vector("binary", 100)
    (100, 13)
    """
    return dimensions if quantization == "int8" else -(-dimensions // 8)
