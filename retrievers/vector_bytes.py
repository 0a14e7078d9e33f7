"""Vectors of any form as bytes."""

from collections.abc import Sequence

import numpy as np

from retrievers.ragged import (
    AnyVectors,
    RaggedVectors,
    SparseVectors,
    TokenVectors,
    VectorForm,
    row_starts,
)


def to_bytes(vectors: AnyVectors) -> list[bytes]:
    """Return the bytes of each text, little-endian, which `unpacked` reads.

    A dense text: its numbers. Any other: its dimensions, 4 bytes, so that a text without a number has bytes too; then
    the numbers of all its tokens, or the indices of its numbers and the numbers.
    """
    if not isinstance(vectors, RaggedVectors):
        return [vector.tobytes() for vector in np.asarray(vectors, dtype="<f4")]
    head = vectors.shape[1].to_bytes(4, "little")
    if isinstance(vectors, TokenVectors):
        return [head + row.astype("<f4").tobytes() for row in vectors.rows()]
    return [
        head + row.astype("<i4").tobytes() + values.astype("<f4").tobytes()
        for row, values in vectors.rows()
    ]


def from_bytes(form: VectorForm, rows: Sequence[bytes]) -> AnyVectors:
    """Read what `packed` wrote, (0, 0) vectors if there are none.

    Raises:
        ValueError: the rows are not of one form and of equal dimensions.
    """
    if form == "dense" or not rows:
        if len({len(row) for row in rows}) > 1:
            raise ValueError("vectors of several dimensions")
        return np.frombuffer(b"".join(rows), dtype="<f4").reshape(
            len(rows), -1 if rows else 0
        )
    heads = {row[:4] for row in rows}
    dimensions = int.from_bytes(heads.pop(), "little") if len(heads) == 1 else 0
    width = 8 if form == "sparse" else 4 * dimensions
    if not dimensions or any((len(row) - 4) % width for row in rows):
        raise ValueError("vectors of several dimensions")
    starts = row_starts([(len(row) - 4) // width for row in rows])
    if form == "multivector":
        return TokenVectors(
            starts,
            np.frombuffer(b"".join(row[4:] for row in rows), "<f4").reshape(
                -1, dimensions
            ),
        )
    halves = [4 + (len(row) - 4) // 2 for row in rows]
    indices = np.frombuffer(
        b"".join(row[4:half] for row, half in zip(rows, halves, strict=True)), "<i4"
    )
    values = np.frombuffer(
        b"".join(row[half:] for row, half in zip(rows, halves, strict=True)), "<f4"
    )
    if len(indices) and not 0 <= indices.min() <= indices.max() < dimensions:
        raise ValueError("sparse vectors with numbers beyond their dimensions")
    return SparseVectors(starts, values, indices, dimensions)
