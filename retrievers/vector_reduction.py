"""Shorter vectors computed from an encoder's."""

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
"""A cut vector and the service's own with at least this cosine count as the same."""
_VERIFICATION_REMEDY = (
    "(proof = false takes the cut vectors as they are; "
    "or write a retriever with these encoder.dimensions)"
)


@dataclass(frozen=True, slots=True)
class VectorReduction:
    """How vectors are computed from an encoder's."""

    dimensions: int | None = None
    """Leading numbers of each vector that are kept; None for all."""
    quantization: NumberFormat | None = None
    native_encoder: Encoder | None = None
    """The encoder's model at the smaller size; cutting must give the same vectors."""
    derived_from: str = ""
    """The retriever with the full vectors."""


def cut_vectors(embedded: Embedded, dimensions: int) -> Embedded:
    """Return vectors of their leading numbers, at length 1."""
    leading_numbers = as_dense(embedded.vectors)[:, :dimensions]
    return embedded._replace(vectors=unit_rows(leading_numbers))


def verification_texts(texts: Iterable[str]) -> list[str]:
    """Return the texts that are embedded at the smaller size: the first 20 that differ.

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
    """Return the lowest cosine between cut vectors and the service's own.

    Args:
        cut: vectors at length 1, of the same texts as the native ones.
        native: the service's own vectors of the smaller size, at length 1.

    Raises:
        BackendError: the vectors differ.
    """
    difference = f"vectors of {native.shape[1]}"
    if native.shape == cut.shape:
        lowest_cosine = _lowest_cosine(cut, native)
        if lowest_cosine > MIN_VERIFIED_COSINE:
            return lowest_cosine
        difference = f"others (the least cosine is {lowest_cosine:.4f})"
    raise BackendError(
        f"cutting to {cut.shape[1]} dimensions differs from the service's own vectors "
        f"of that size: it gave {difference} for {len(cut)} texts "
        f"{_VERIFICATION_REMEDY}"
    )


def _lowest_cosine(a: DenseVectors, b: DenseVectors) -> float:
    """Return the lowest cosine between the rows of two matrices, at most 1."""
    cosines = np.einsum("ij,ij->i", a.astype(np.float64), b)
    return min(float(cosines.min()), 1.0)
