"""Vectors of any form: dense, sparse, one for each token.

Texts have unequally many numbers in the last two: an array has those of all texts, one
after another, and `starts` says where each text's begin.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

VectorForm = Literal["dense", "sparse", "multivector"]
"""The vectors of a text: one, one without its zeros, or one for each token."""
_DENSE = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class RaggedVectors:
    """Sparse numbers, or vectors of tokens, in the order of their texts."""

    columns: ClassVar[tuple[str, ...]]
    """The arrays that have one row per number, or per token."""
    starts: npt.NDArray[np.int64]
    """(n + 1,): where each text's numbers, or tokens, begin, and where the last end."""
    values: _DENSE
    """(numbers,) without zeros for sparse vectors, else (tokens, dimensions)."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, rows: slice | Sequence[int] | npt.NDArray[Any]) -> Self:
        texts = np.arange(len(self))[rows]
        sizes = np.diff(self.starts)[texts]
        starts = row_starts(sizes)
        shifts = self.starts[:-1][texts] - starts[:-1]
        positions = np.repeat(shifts, sizes) + np.arange(starts[-1])
        columns = {name: getattr(self, name)[positions] for name in self.columns}
        return replace(self, starts=starts, **columns)

    def _rows(self) -> Iterator[slice]:
        """Yield the positions of each text's numbers, or tokens."""
        return map(slice, self.starts[:-1].tolist(), self.starts[1:].tolist())


@dataclass(frozen=True, slots=True, eq=False)
class SparseVectors(RaggedVectors):
    """Vectors without their zeros, in the order of their texts."""

    columns = "values", "indices"
    indices: npt.NDArray[np.int32]
    """(numbers,): the dimension of each number, ascending within a text."""
    dimensions: int

    @classmethod
    def from_dense(cls, vectors: npt.NDArray[Any]) -> Self:
        """Return the numbers of (n, dimensions) that are not 0.

        >>> SparseVectors.from_dense(np.array([[0, 2, 0], [1, 0, 3]])).indices.tolist()
        [1, 0, 2]
        """
        rows, columns = np.nonzero(vectors)
        return cls(
            starts=row_starts(np.bincount(rows, minlength=len(vectors))),
            values=np.asarray(vectors[rows, columns], dtype=np.float32),
            indices=columns.astype(np.int32),
            dimensions=vectors.shape[1],
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Texts, dimensions."""
        return len(self), self.dimensions

    def rows(self) -> Iterator[tuple[npt.NDArray[np.int32], _DENSE]]:
        """Yield the dimensions and the values of each text."""
        return ((self.indices[row], self.values[row]) for row in self._rows())


@dataclass(frozen=True, slots=True, eq=False)
class TokenVectors(RaggedVectors):
    """One vector per token that the model scores, in the order of the texts."""

    columns = ("values",)

    @classmethod
    def from_matrices(cls, texts: Sequence[npt.NDArray[Any]]) -> Self:
        """Join the matrices (tokens, dimensions) of one or more texts.

        >>> matrices = [np.ones((2, 3)), np.ones((1, 3))]
        >>> TokenVectors.from_matrices(matrices).starts.tolist()
        [0, 2, 3]
        """
        return cls(
            starts=row_starts([len(matrix) for matrix in texts]),
            values=np.concatenate(texts).astype(np.float32, copy=False),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Texts, dimensions of a token's vector."""
        return len(self), int(self.values.shape[1])

    def rows(self) -> Iterator[_DENSE]:
        """Yield the vectors of each text."""
        return (self.values[row] for row in self._rows())


AnyVectors: TypeAlias = _DENSE | SparseVectors | TokenVectors


def vector_form(vectors: AnyVectors) -> VectorForm:
    """Return the form of some vectors.

    >>> vector_form(np.zeros((1, 2), dtype=np.float32))
    'dense'
    """
    if isinstance(vectors, SparseVectors):
        return "sparse"
    return "multivector" if isinstance(vectors, TokenVectors) else "dense"


def as_dense(vectors: AnyVectors) -> _DENSE:
    """Return vectors that must be dense; raises TypeError for others."""
    if isinstance(vectors, RaggedVectors):
        raise TypeError(f"{vector_form(vectors)} vectors where dense ones are wanted")
    return vectors


def concatenate_vectors(parts: Sequence[AnyVectors]) -> AnyVectors:
    """Join one or more parts, which have one form and equal dimensions."""
    first = parts[0]
    if not isinstance(first, RaggedVectors):
        return np.concatenate([as_dense(part) for part in parts])
    ragged = [part for part in parts if isinstance(part, type(first))]
    starts = row_starts(np.concatenate([np.diff(part.starts) for part in ragged]))
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in ragged])
        for name in first.columns
    }
    return replace(first, starts=starts, **columns)


def count_numbers(vectors: AnyVectors) -> int:
    """Return how many numbers the vectors have, without the zeros of sparse ones."""
    return int(_values(vectors).size)


def all_finite(vectors: AnyVectors) -> bool:
    """Whether all numbers are finite."""
    return bool(np.isfinite(_values(vectors)).all())


def unit_rows(vectors: AnyVectors) -> AnyVectors:
    """Return dense vectors at length 1; zero vectors stay as they are.

    Vectors of other forms stay as they are, because their length counts. Lengths are
    computed in 64 bits: in 32 bits those of very large and very small numbers are
    infinite, or 0.

    >>> large = np.array([[3, 4], [0, 0]], dtype=np.float32) * np.float32(2**100)
    >>> unit_rows(large).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    if isinstance(vectors, RaggedVectors):
        return vectors
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0, 1, lengths), dtype=np.float32)


def nonzero_rows(vectors: AnyVectors) -> npt.NDArray[np.bool_]:
    """Return (n,): whether each text has any number that is not 0."""
    if isinstance(vectors, SparseVectors):
        return np.diff(vectors.starts) > 0
    if isinstance(vectors, TokenVectors):
        return np.fromiter(
            (row.any() for row in vectors.rows()), np.bool_, len(vectors)
        )
    return np.asarray(vectors.any(axis=1))


def _values(vectors: AnyVectors) -> _DENSE:
    return vectors.values if isinstance(vectors, RaggedVectors) else vectors


def row_starts(sizes: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return where texts of some sizes begin, and where the last ends."""
    sizes_from_zero = np.concatenate([[0], np.asarray(sizes, dtype=np.int64)])
    return np.cumsum(sizes_from_zero, dtype=np.int64)
