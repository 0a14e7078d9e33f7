"""Shorter vectors made from the full vectors of an encoder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from retrievers.embedded import DenseVectors, Embedded
from retrievers.errors import BackendError
from retrievers.model import Encoder
from retrievers.ragged import as_dense, unit_rows
from retrievers.stores.quantized import NumberFormat

MAX_VERIFICATION_TEXTS = 20
"""Texts that a service embeds at the smaller size, to verify that cutting is right."""
MIN_VERIFIED_COSINE = 0.9999
"""A cut vector and the native one with at least this cosine count as the same.

Native vectors are those that the service gives if it is asked for the smaller size.
"""
_VERIFICATION_REMEDY = (
    "(proof = false skips this check; "
    "or set encoder.dimensions, so that the service cuts)"
)


@dataclass(frozen=True, slots=True)
class VectorReduction:
    """How shorter vectors are made from the full ones."""

    dimensions: int | None = None
    """Leading numbers of each vector that are kept; None for all."""
    quantization: NumberFormat | None = None
    """The format of the numbers; None: they stay as they are."""
    native_encoder: Encoder | None = None
    """Gives native vectors, which cutting must give, too."""
    derived_from: str = ""
    """The retriever with the full vectors."""


def cut_vectors(embedded: Embedded, dimensions: int) -> Embedded:
    """Keep the leading numbers of each vector, and scale it back to unit length."""
    leading_numbers = as_dense(embedded.vectors)[:, :dimensions]
    return embedded._replace(vectors=unit_rows(leading_numbers))


def verification_texts(texts: Iterable[str]) -> list[str]:
    """Return the first distinct texts, at most `MAX_VERIFICATION_TEXTS`.

    >>> verification_texts(["a", "b", "a"])
    ['a', 'b']
    """
    distinct_texts: dict[str, None] = {}
    for text in texts:
        distinct_texts[text] = None
        if len(distinct_texts) == MAX_VERIFICATION_TEXTS:
            break
    return list(distinct_texts)


def verify_cut_vectors(cut: DenseVectors, native: DenseVectors) -> float:
    """Return the lowest cosine between cut and native vectors.

    Args:
        cut: vectors at length 1, of the same texts as the native ones.
        native: vectors at length 1.

    Raises:
        BackendError: the vectors differ.
    """
    if native.shape != cut.shape:
        raise _difference(cut, f"vectors of {native.shape[1]}")
    lowest_cosine = _lowest_cosine(cut, native)
    if lowest_cosine <= MIN_VERIFIED_COSINE:
        raise _difference(cut, f"others (the least cosine is {lowest_cosine:.4f})")
    return lowest_cosine


def _difference(cut: DenseVectors, native: str) -> BackendError:
    """Return the error that a service gave other vectors, with these in words."""
    return BackendError(
        f"cutting to {cut.shape[1]} dimensions differs from the service's own vectors "
        f"of that size: the service gave {native} for {len(cut)} texts "
        f"{_VERIFICATION_REMEDY}"
    )


def _lowest_cosine(a: DenseVectors, b: DenseVectors) -> float:
    """Return the lowest cosine between the rows of two matrices, at most 1."""
    # In float64, since sums of float32 are too coarse for four nines.
    cosines = np.einsum("ij,ij->i", a.astype(np.float64), b)
    return min(float(cosines.min()), 1.0)
