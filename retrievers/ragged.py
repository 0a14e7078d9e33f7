"""Unequal numbers of vectors per text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

VectorForm = Literal["dense", "sparse", "multivector"]
"""What represents a text: a vector, the numbers of a vector that are not 0, or a vector for each token."""
_DENSE = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class RaggedVectors:
    """Unequal numbers of vectors per text, in the order of their texts."""

    columns: ClassVar[tuple[str, ...]]
    """The arrays that have a row for each number, or token."""
    starts: npt.NDArray[np.int64]
    """(n + 1,): where the numbers, or tokens, of each text begin, and where the last end."""
    values: _DENSE
    """Of sparse vectors (numbers,), none of them 0; else (tokens, dimensions)."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, rows: slice | Sequence[int] | npt.NDArray[Any]) -> Self:
        chosen = np.arange(len(self))[rows]
        sizes = np.diff(self.starts)[chosen]
        starts = row_starts(sizes)
        positions = np.repeat(
            self.starts[:-1][chosen] - starts[:-1], sizes
        ) + np.arange(starts[-1])
        return replace(
            self,
            starts=starts,
            **{name: getattr(self, name)[positions] for name in self.columns},
        )

    def _rows(self) -> Iterator[slice]:
        """Where the numbers, or tokens, of each text are."""
        return map(slice, self.starts[:-1].tolist(), self.starts[1:].tolist())


@dataclass(frozen=True, slots=True, eq=False)
class SparseVectors(RaggedVectors):
    """Vectors without their zeros, in the order of their texts."""

    columns = "values", "indices"
    indices: npt.NDArray[np.int32]
    """(numbers,): the dimension of each number, ascending within a text."""
    dimensions: int

    @classmethod
    def from_dense(cls, whole: npt.NDArray[Any]) -> Self:
        """Keep the numbers of (n, dimensions) that are not 0.

        >>> SparseVectors.from_dense(np.array([[0, 2, 0], [1, 0, 3]])).indices.tolist()
        [1, 0, 2]
        """
        rows, columns = np.nonzero(whole)
        values = np.asarray(whole[rows, columns], dtype=np.float32)
        return cls(
            row_starts(np.bincount(rows, minlength=len(whole))),
            values,
            columns.astype(np.int32),
            whole.shape[1],
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
    """A vector for each token of a text that the model scores, in the order of the texts."""

    columns = ("values",)

    @classmethod
    def from_matrices(cls, texts: Sequence[npt.NDArray[Any]]) -> Self:
        """Put the (tokens, dimensions) of each text together; there is at least one text.

        >>> TokenVectors.from_matrices([np.ones((2, 3)), np.ones((1, 3))]).starts.tolist()
        [0, 2, 3]
        """
        return cls(
            row_starts([len(text) for text in texts]),
            np.concatenate(texts).astype(np.float32, copy=False),
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
    """Return vectors that can only be dense ones here; raises TypeError for others."""
    if isinstance(vectors, RaggedVectors):
        raise TypeError(f"{vector_form(vectors)} vectors where dense ones are wanted")
    return vectors


def concatenate_vectors(parts: Sequence[AnyVectors]) -> AnyVectors:
    """Put vectors of one form and of equal dimensions together, at least one part."""
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
    """Return how many numbers the vectors have, those of sparse vectors that are 0 left out."""
    return int(_values(vectors).size)


def all_finite(vectors: AnyVectors) -> bool:
    """Whether all numbers are."""
    return bool(np.isfinite(_values(vectors)).all())


def unit_rows(vectors: AnyVectors) -> AnyVectors:
    """Return dense vectors at length 1, zeros as they are; vectors of other forms, whose length counts, stay the same.

    Lengths are computed in 64 bits: in 32 bits those of very large and very small numbers are infinite, or 0.

    >>> unit_rows(np.array([[3, 4], [0, 0]], dtype=np.float32) * np.float32(2**100)).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    if isinstance(vectors, RaggedVectors):
        return vectors
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0, 1, lengths), dtype=np.float32)


def nonzero_rows(vectors: AnyVectors) -> npt.NDArray[np.bool_]:
    """Return (n,): which texts have any number that is not 0."""
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
    """Where texts of some sizes begin, and where the last ends."""
    return np.cumsum(
        np.concatenate([[0], np.asarray(sizes, dtype=np.int64)]), dtype=np.int64
    )
