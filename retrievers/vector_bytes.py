"""Vectors of any form as bytes."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from retrievers.ragged import (
    AnyVectors,
    RaggedVectors,
    SparseVectors,
    TokenVectors,
    VectorForm,
    row_starts,
)

HEADER_BYTES = 4
"""Bytes of the dimensions, with which every vector begins that is not dense."""


def to_bytes(vectors: AnyVectors) -> list[bytes]:
    """Return the bytes of each text, little-endian, which `from_bytes` reads.

    A dense text is its numbers. Any other begins with its dimensions, 4 bytes, so that
    a text without a number has bytes too; then follow the numbers of all its tokens,
    or the indices of its numbers and the numbers.
    """
    if not isinstance(vectors, RaggedVectors):
        return [vector.tobytes() for vector in np.asarray(vectors, dtype="<f4")]
    header = vectors.shape[1].to_bytes(HEADER_BYTES, "little")
    if isinstance(vectors, TokenVectors):
        return [header + matrix.astype("<f4").tobytes() for matrix in vectors.rows()]
    return [
        header + indices.astype("<i4").tobytes() + values.astype("<f4").tobytes()
        for indices, values in vectors.rows()
    ]


def from_bytes(form: VectorForm, rows: Sequence[bytes]) -> AnyVectors:
    """Read the bytes of `to_bytes`; (0, 0) dense vectors without any rows.

    Raises:
        ValueError: the rows are not of one form and of equal dimensions.
    """
    if not rows:
        return np.empty((0, 0), dtype="<f4")
    if form == "dense":
        if len({len(row) for row in rows}) > 1:
            raise ValueError("vectors of several dimensions")
        return np.frombuffer(b"".join(rows), dtype="<f4").reshape(len(rows), -1)
    dimensions = _read_dimensions(rows)
    bodies = [row[HEADER_BYTES:] for row in rows]
    bytes_per_vector = 8 if form == "sparse" else 4 * dimensions
    if not dimensions or any(len(body) % bytes_per_vector for body in bodies):
        raise ValueError("vectors of several dimensions")
    starts = row_starts([len(body) // bytes_per_vector for body in bodies])
    if form == "sparse":
        return _read_sparse(starts, bodies, dimensions)
    numbers = np.frombuffer(b"".join(bodies), "<f4")
    return TokenVectors(starts, numbers.reshape(-1, dimensions))


def _read_sparse(
    starts: npt.NDArray[np.int64], bodies: Sequence[bytes], dimensions: int
) -> SparseVectors:
    """Return sparse vectors, whose bytes are indices and then numbers."""
    index_bytes = b"".join(body[: len(body) // 2] for body in bodies)
    value_bytes = b"".join(body[len(body) // 2 :] for body in bodies)
    indices = np.frombuffer(index_bytes, "<i4")
    values = np.frombuffer(value_bytes, "<f4")
    if len(indices) and not 0 <= indices.min() <= indices.max() < dimensions:
        raise ValueError("sparse vectors with numbers beyond their dimensions")
    return SparseVectors(starts, values, indices, dimensions)


def _read_dimensions(rows: Sequence[bytes]) -> int:
    """Return the dimensions that all rows begin with; 0 if they differ."""
    headers = {row[:HEADER_BYTES] for row in rows}
    if len(headers) > 1:
        return 0
    return int.from_bytes(headers.pop(), "little")
