"""Vectors in fewer bytes: a byte a dimension, or a bit, and back to the numbers that they stand for."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from retrievers.types import Vectors

NumberFormat = Literal["int8", "binary", "binary-dot"]
Codes = npt.NDArray[np.uint8]
LEVELS = 256


class ValueRanges(NamedTuple):
    """Where the 256 levels of each dimension lie."""

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
    """Return each number's level; what lies outside of what was calibrated gets the nearest one.

    >>> buckets = calibrated(np.array([[0.0], [255.0]], dtype=np.float32))
    >>> to_bytes(np.array([[-3], [0.5], [254.5], [300]], dtype=np.float32), buckets).ravel().tolist()
    [0, 1, 255, 255]
    """
    levels = np.floor((vectors - buckets.starts) / buckets.steps)
    return np.asarray(np.clip(levels, 0, LEVELS - 1), dtype=np.uint8)


def from_bytes(codes: Codes, buckets: ValueRanges) -> Vectors:
    """Return the middle of each level: what a level stands for with the smallest error."""
    return np.asarray((codes + np.float32(0.5)) * buckets.steps + buckets.starts, dtype=np.float32)


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
