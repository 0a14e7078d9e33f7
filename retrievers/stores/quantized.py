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


MAX_CODE_PRODUCTS = 1 << 24
"""Products of queries and codes in memory at once: 128 MB."""


class QuantizedStore(MatrixStore):
    """One collection of codes, a byte a dimension or a bit; nothing of the full vectors is kept.

    Scores are cosines of what the codes mean: of int8 between the query's own numbers and each document's levels;
    of binary between the bits of both, which is 1 - 2 x Hamming distance / dimensions; of binary-dot between the
    query's own numbers and each document's bits (1 or -1). The levels of int8 are between the smallest and the largest
    number of each dimension among the documents that are added first.
    """

    def __init__(self, quantization: NumberFormat) -> None:
        self._quantization = quantization
        self._dimensions = 0
        self._buckets: DimensionLevels | None = None

    def create(self, dimensions: int, *, anew: bool = False) -> None:
        """Begin anew, with no document."""
        super().create(dimensions)
        self._dimensions, self._buckets = dimensions, None

    def _kept(self, vectors: AnyVectors) -> VectorCodes:
        """Return the codes of documents; of int8 the first of them decide the levels."""
        units = as_dense(unit_rows(vectors))
        if self._quantization != "int8":
            return quantize_to_bits(units)
        if self._buckets is None and len(units):
            self._buckets = calibrate_levels(units)
        return (
            quantize_to_bytes(units, self._buckets)
            if self._buckets
            else np.empty(units.shape, dtype=np.uint8)
        )

    def search(
        self,
        vectors: AnyVectors,
        limit: int,
        *,
        exact: bool = True,
        query_filters: QueryFilters = (),
    ) -> list[Ranking]:
        """Return one ranking per query vector: the best `limit` documents, ties at the limit resolved."""
        masks, asked, answers = (
            self._values.masks(query_filters),
            as_dense(unit_rows(vectors)),
            list[Ranking](),
        )
        if self._quantization == "binary":
            asked = dequantize_bits(quantize_to_bits(asked), self._dimensions)
        size = max(1, MAX_CODE_PRODUCTS // max(1, len(self._ids)))
        for start in range(0, len(asked), size):
            parts = [
                self._scores(asked[start : start + size], codes)
                for codes in self._parts
            ]
            for at, scores in enumerate(np.concatenate(parts, axis=1), start):
                best = top_k_candidates(scores, limit, masks[at] if masks else None)
                answers.append(
                    ranked(
                        [self._ids[i] for i in best], round_scores(scores[best]), limit
                    )
                )
        return answers

    def _scores(self, asked: DenseVectors, codes: VectorCodes) -> Floats:
        """(queries, documents)."""
        if self._buckets is not None:
            return np.asarray(
                asked @ dequantize_bytes(codes, self._buckets).T, dtype=np.float64
            )
        products = (asked @ dequantize_bits(codes, self._dimensions).T).astype(
            np.float64
        )
        lengths = (
            self._dimensions
            if self._quantization == "binary"
            else np.sqrt(self._dimensions)
        )
        return np.asarray(products / lengths)


class DimensionLevels(NamedTuple):
    """The 256 levels of each dimension."""

    starts: DenseVectors
    """(dimensions,): half a step below the smallest number."""
    steps: DenseVectors
    """(dimensions,): from one level to the next; 1 where all numbers are the same."""


def calibrate_levels(vectors: DenseVectors) -> DimensionLevels:
    """Return the levels of each dimension: the smallest number is the middle of the first, the largest of the last.

    `quantize_embeddings` of sentence-transformers 6.0 has the same steps with both numbers on the edge of a level,
    where noise of 1e-7 in an embedding moves them to another.

    Args:
        vectors: (n, dimensions), n at least 1.
    """
    smallest = vectors.min(axis=0)
    steps = (vectors.max(axis=0) - smallest) / np.float32(BYTE_LEVELS - 1)
    steps = np.where(steps == 0, np.float32(1), steps)
    return DimensionLevels(smallest - steps / 2, steps)


def quantize_to_bytes(vectors: DenseVectors, buckets: DimensionLevels) -> VectorCodes:
    """Return each number's level; values outside the calibrated range get the nearest one.

    >>> buckets = calibrate_levels(np.array([[0.0], [255.0]], dtype=np.float32))
    >>> quantize_to_bytes(np.array([[-3], [0.5], [254.5], [300]], dtype=np.float32), buckets).ravel().tolist()
    [0, 1, 255, 255]
    """
    levels = np.floor((vectors - buckets.starts) / buckets.steps)
    return np.asarray(np.clip(levels, 0, BYTE_LEVELS - 1), dtype=np.uint8)


def dequantize_bytes(codes: VectorCodes, buckets: DimensionLevels) -> DenseVectors:
    """Return the middle of each level: what a level stands for with the smallest error."""
    return np.asarray(
        (codes + np.float32(0.5)) * buckets.steps + buckets.starts, dtype=np.float32
    )


def quantize_to_bits(vectors: DenseVectors) -> VectorCodes:
    """Return a bit a dimension, 1 for what is above 0, eight in a byte and the rest of the last one 0.

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
