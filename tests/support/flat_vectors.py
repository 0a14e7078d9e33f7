"""Vectors of any form as plain rows, so that two texts' can be compared."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from retrievers.ragged import AnyVectors, SparseVectors, TokenVectors


def flat(vectors: AnyVectors) -> list[npt.NDArray[np.float32]]:
    """Return the numbers of each text as one row, so that two texts' can be compared:
    zeros, and tokens, in order.
    """
    if isinstance(vectors, SparseVectors):
        flat = np.zeros(vectors.shape, dtype=np.float32)
        flat[
            np.repeat(np.arange(len(vectors)), np.diff(vectors.starts)), vectors.indices
        ] = vectors.values
        return list(flat)
    return (
        [row.ravel() for row in vectors.rows()]
        if isinstance(vectors, TokenVectors)
        else list(vectors)
    )
