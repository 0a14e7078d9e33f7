"""Vectors of every form as a column of Arrow, whose type says which form they have.

dense         fixed_size_list<float32, d>
multivector   list<fixed_size_list<float32, d>>: a vector for each token
sparse        list<struct<index: int32, value: float32>>; d stands in the table's metadata
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from retrievers.ragged import AnyVectors, SparseVectors, TokenVectors
from retrievers.types import Vectors

if TYPE_CHECKING:
    from pyarrow import Array, ChunkedArray


def column_of(vectors: AnyVectors) -> Array:
    """Return the vectors of some texts, (n,)."""
    import pyarrow as pa

    if isinstance(vectors, SparseVectors):
        numbers = pa.StructArray.from_arrays(
            [pa.array(vectors.indices, pa.int32()), pa.array(vectors.values, pa.float32())], ["index", "value"]
        )
        return pa.LargeListArray.from_arrays(pa.array(vectors.starts), numbers)
    values = vectors.values if isinstance(vectors, TokenVectors) else vectors
    rows = pa.FixedSizeListArray.from_arrays(pa.array(np.ravel(values), pa.float32()), values.shape[1])
    return pa.LargeListArray.from_arrays(pa.array(vectors.starts), rows) if isinstance(vectors, TokenVectors) else rows


def vectors_of(column: ChunkedArray, dimensions: int) -> AnyVectors:
    """Read what `column_of` gave.

    Args:
        column: (n,)
        dimensions: that sparse vectors have; of the others their type tells it.

    Raises:
        ValueError: the column is of no form, some text has no vector, or a number is not finite, is 0 in a sparse
            vector, or stands beyond its dimensions.
    """
    import pyarrow as pa

    rows = column.combine_chunks()
    if rows.null_count:
        raise ValueError("some texts have no vector")
    if pa.types.is_fixed_size_list(rows.type):
        return _matrix(rows)
    if not pa.types.is_list(rows.type) and not pa.types.is_large_list(rows.type):
        raise ValueError(_NO_FORM)
    offsets = rows.offsets.to_numpy().astype(np.int64)
    starts = offsets - offsets[0] if len(offsets) else np.zeros(1, dtype=np.int64)
    inside = rows.flatten()
    if pa.types.is_fixed_size_list(inside.type):
        return TokenVectors(starts, _matrix(inside))
    if inside.type != pa.struct([("index", pa.int32()), ("value", pa.float32())]) or inside.null_count:
        raise ValueError(_NO_FORM)
    indices, values = (_numbers(part) for part in inside.flatten())
    if dimensions < 1 or (len(indices) and not 0 <= indices.min() <= indices.max() < dimensions):
        raise ValueError("its sparse vectors have numbers beyond their dimensions")
    if not np.isfinite(values).all() or not values.all():
        raise ValueError("its sparse vectors have numbers that are 0 or not finite")
    text = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    if (np.diff(indices)[np.diff(text) == 0] < 1).any():
        raise ValueError("its sparse vectors name their dimensions in no order")
    return SparseVectors(starts, indices, values, dimensions)


_NO_FORM = "its vectors are no lists of 32-bit floats"


def _matrix(rows: Array) -> Vectors:
    """Return the numbers of fixed-size lists, (n, d)."""
    import pyarrow as pa

    if rows.type.value_type != pa.float32() or rows.null_count:
        raise ValueError(_NO_FORM)
    values: Vectors = _numbers(rows.flatten()).reshape(len(rows), rows.type.list_size)
    if not values.shape[1] or not np.isfinite(values).all():
        raise ValueError("holds a vector that is empty or not finite")
    return values


def _numbers(values: Array) -> npt.NDArray[Any]:
    if values.null_count:
        raise ValueError("some vectors lack numbers")
    numbers: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return numbers
