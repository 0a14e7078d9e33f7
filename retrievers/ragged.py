"""Vectors of which texts have unequal numbers: sparse ones, and one vector for each token."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

Form = Literal["dense", "sparse", "multivector"]
"""How a text is represented: by a vector, by the numbers of one that are not 0, or by a vector for each token."""
_DENSE = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class _Ragged:
    """Vectors of which texts have unequal numbers, in the order of their texts."""

    starts: npt.NDArray[np.int64]
    """(n + 1,): where the numbers, or tokens, of each text begin, and where the last end."""

    dimensions: int
    """Numbers of a vector."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def shape(self) -> tuple[int, int]:
        """Texts, dimensions."""
        return len(self), self.dimensions


@dataclass(frozen=True, slots=True, eq=False)
class SparseVectors(_Ragged):
    """Vectors of which only the numbers that are not 0 are kept, in the order of their texts."""

    indices: npt.NDArray[np.int32]
    """(numbers,): the dimension of each number, ascending within a text."""
    values: npt.NDArray[np.float32]
    """(numbers,): none is 0."""

    @classmethod
    def of(cls, whole: npt.NDArray[Any]) -> Self:
        """Keep the numbers of (n, dimensions) that are not 0.

        >>> SparseVectors.of(np.array([[0, 2, 0], [1, 0, 3]])).indices.tolist()
        [1, 0, 2]
        """
        rows, columns = np.nonzero(whole)
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(whole)))])
        values = np.asarray(whole[rows, columns], dtype=np.float32)
        return cls(starts.astype(np.int64), whole.shape[1], columns.astype(np.int32), values)

    def __getitem__(self, rows: slice | Sequence[int] | npt.NDArray[Any]) -> Self:
        positions, starts = _taken(self.starts, rows)
        return type(self)(starts, self.dimensions, self.indices[positions], self.values[positions])

    def rows(self) -> Iterator[tuple[npt.NDArray[np.int32], _DENSE]]:
        """Yield the dimensions and the values of each text."""
        for start, end in pairwise(self.starts.tolist()):
            yield self.indices[start:end], self.values[start:end]


@dataclass(frozen=True, slots=True, eq=False)
class TokenVectors(_Ragged):
    """A vector for each token of a text that the model scores, in the order of the texts."""

    values: _DENSE
    """(tokens, dimensions)."""

    @classmethod
    def of(cls, texts: Sequence[npt.NDArray[Any]]) -> Self:
        """Put the (tokens, dimensions) of each text together; there is at least one text.

        >>> TokenVectors.of([np.ones((2, 3)), np.ones((1, 3))]).starts.tolist()
        [0, 2, 3]
        """
        starts = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        values = np.concatenate(texts).astype(np.float32, copy=False)
        return cls(starts, values.shape[1], values)

    def __getitem__(self, rows: slice | Sequence[int] | npt.NDArray[Any]) -> Self:
        positions, starts = _taken(self.starts, rows)
        return type(self)(starts, self.dimensions, self.values[positions])

    def rows(self) -> Iterator[_DENSE]:
        """Yield the vectors of each text."""
        for start, end in pairwise(self.starts.tolist()):
            yield self.values[start:end]


AnyVectors: TypeAlias = _DENSE | SparseVectors | TokenVectors


def form_of(vectors: AnyVectors) -> Form:
    """Return the form of some vectors.

    >>> form_of(np.zeros((1, 2), dtype=np.float32))
    'dense'
    """
    if isinstance(vectors, SparseVectors):
        return "sparse"
    return "multivector" if isinstance(vectors, TokenVectors) else "dense"


def dense(vectors: AnyVectors) -> _DENSE:
    """Return vectors that can only be dense ones here; raises TypeError for others."""
    if isinstance(vectors, SparseVectors | TokenVectors):
        raise TypeError(f"{form_of(vectors)} vectors where dense ones are wanted")
    return vectors


def joined(parts: Sequence[AnyVectors]) -> AnyVectors:
    """Put vectors of one form and of equal dimensions together, at least one part."""
    first = parts[0]
    if isinstance(first, SparseVectors):
        sparse = [part for part in parts if isinstance(part, SparseVectors)]
        indices, values = (np.concatenate([getattr(part, name) for part in sparse]) for name in ("indices", "values"))
        return SparseVectors(_starts(sparse), first.dimensions, indices, values)
    if isinstance(first, TokenVectors):
        tokens = [part for part in parts if isinstance(part, TokenVectors)]
        return TokenVectors(_starts(tokens), first.dimensions, np.concatenate([part.values for part in tokens]))
    return np.concatenate([dense(part) for part in parts])


def numbers_of(vectors: AnyVectors) -> int:
    """Return how many numbers the vectors have, those of sparse vectors that are 0 left out."""
    return int(vectors.values.size if isinstance(vectors, SparseVectors | TokenVectors) else vectors.size)


def finite(vectors: AnyVectors) -> bool:
    """Whether all numbers are."""
    values = vectors.values if isinstance(vectors, SparseVectors | TokenVectors) else vectors
    return bool(np.isfinite(values).all())


def unit_rows(vectors: AnyVectors) -> AnyVectors:
    """Return dense vectors at length 1, zeros as they are; vectors of other forms, whose length counts, stay the same.

    Lengths are computed in 64 bits: in 32 bits those of very large and very small numbers are infinite, or 0.

    >>> unit_rows(np.array([[3, 4], [0, 0]], dtype=np.float32) * np.float32(2**100)).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    if isinstance(vectors, SparseVectors | TokenVectors):
        return vectors
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0, 1, lengths), dtype=np.float32)


def with_direction(vectors: AnyVectors) -> npt.NDArray[np.bool_]:
    """Return (n,): which texts have any number that is not 0."""
    if isinstance(vectors, SparseVectors):
        return np.diff(vectors.starts) > 0
    if isinstance(vectors, TokenVectors):
        return np.asarray([bool(row.any()) for row in vectors.rows()], dtype=np.bool_)
    return np.asarray(vectors.any(axis=1))


def packed(vectors: AnyVectors) -> list[bytes]:
    """Return the bytes of each text, little-endian, which `unpacked` reads.

    A dense text: its numbers. Any other: its dimensions, 4 bytes, so that a text without a number has bytes too; then
    the numbers of all its tokens, or the indices of its numbers and the numbers.
    """
    if isinstance(vectors, SparseVectors):
        numbers = (indices.astype("<i4").tobytes() + row.astype("<f4").tobytes() for indices, row in vectors.rows())
    elif isinstance(vectors, TokenVectors):
        numbers = (row.astype("<f4").tobytes() for row in vectors.rows())
    else:
        return [vector.tobytes() for vector in np.asarray(vectors, dtype="<f4")]
    head = vectors.dimensions.to_bytes(4, "little")
    return [head + row for row in numbers]


def unpacked(form: Form, rows: Sequence[bytes]) -> AnyVectors:
    """Read what `packed` wrote, (0, 0) vectors if there are none.

    Raises:
        ValueError: the rows are not of one form and of equal dimensions.
    """
    if form == "dense" or not rows:
        if len({len(row) for row in rows}) > 1:
            raise ValueError("vectors of several dimensions")
        return np.frombuffer(b"".join(rows), dtype="<f4").reshape(len(rows), -1 if rows else 0)
    heads = {row[:4] for row in rows}
    dimensions = int.from_bytes(heads.pop(), "little") if len(heads) == 1 else 0
    width = 8 if form == "sparse" else 4 * dimensions
    if not dimensions or any((len(row) - 4) % width for row in rows):
        raise ValueError("vectors of several dimensions")
    starts = np.cumsum([0, *((len(row) - 4) // width for row in rows)], dtype=np.int64)
    if form == "multivector":
        tokens = np.frombuffer(b"".join(row[4:] for row in rows), "<f4").reshape(-1, dimensions)
        return TokenVectors(starts, dimensions, tokens)
    halves = [4 + (len(row) - 4) // 2 for row in rows]
    indices = np.frombuffer(b"".join(row[4:half] for row, half in zip(rows, halves, strict=True)), "<i4")
    values = np.frombuffer(b"".join(row[half:] for row, half in zip(rows, halves, strict=True)), "<f4")
    if len(indices) and not 0 <= indices.min() <= indices.max() < dimensions:
        raise ValueError("sparse vectors with numbers beyond their dimensions")
    return SparseVectors(starts, dimensions, indices, values)


def _taken(
    starts: npt.NDArray[np.int64], rows: slice | Sequence[int] | npt.NDArray[Any]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the positions of the numbers of some texts, and where each text's begin among them."""
    chosen = np.arange(len(starts) - 1)[rows]
    sizes = np.diff(starts)[chosen]
    new = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    positions = np.repeat(starts[:-1][chosen] - new[:-1], sizes) + np.arange(new[-1])
    return positions, new


def _starts(parts: Sequence[SparseVectors] | Sequence[TokenVectors]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part.starts) for part in parts]))]).astype(np.int64)
