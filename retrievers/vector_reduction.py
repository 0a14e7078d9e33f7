"""Smaller vectors made from the full vectors of an encoder.

Cutting a vector to its first numbers is right only for models trained for it. If a
service gives vectors of the smaller size itself, its *native* vectors, a few cut ones
are compared with them.
"""

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
"""Texts that a service embeds at the smaller size: few, because they are paid for."""
MIN_VERIFIED_COSINE = 0.9999
"""A cut vector counts as the native one if their cosine is above this.

Services round their numbers; vectors of another model or size are much farther apart.
"""
_VERIFICATION_REMEDY = (
    "(proof = false skips this check; "
    "or set encoder.dimensions, so that the service cuts)"
)
"""Both are keys of the retriever's table in an experiment file."""


@dataclass(frozen=True, slots=True)
class VectorReduction:
    """How smaller vectors are made from the full ones."""

    dimensions: int | None = None
    """Leading numbers of each vector that are kept; None for all."""
    quantization: NumberFormat | None = None
    """The format of the numbers; None for the encoder's own."""
    native_encoder: Encoder | None = None
    """The same model, which the service asks for vectors of the smaller size: a few cut
    vectors are compared with these. None: none are compared.
    """
    derived_from: str = ""
    """The retriever whose full vectors are used; "" if they are embedded anew."""


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
        native: vectors at length 1, from the service.

    Raises:
        BackendError: the vectors differ.
    """
    if native.shape != cut.shape:
        raise _differing_vectors_error(cut, f"vectors of {native.shape[1]}")
    lowest_cosine = _lowest_cosine(cut, native)
    if lowest_cosine <= MIN_VERIFIED_COSINE:
        other_vectors = f"others (the least cosine is {lowest_cosine:.4f})"
        raise _differing_vectors_error(cut, other_vectors)
    return lowest_cosine


def _differing_vectors_error(cut: DenseVectors, other_vectors: str) -> BackendError:
    """Return the error for vectors that differ; `other_vectors` describes those."""
    return BackendError(
        f"cutting to {cut.shape[1]} dimensions differs from the service's own vectors "
        f"of that size: the service gave {other_vectors} for {len(cut)} texts "
        f"{_VERIFICATION_REMEDY}"
    )


def _lowest_cosine(a: DenseVectors, b: DenseVectors) -> float:
    """Return the lowest cosine between the rows of two matrices, at most 1."""
    # In float64, since sums of float32 are too coarse for four nines.
    cosines = np.einsum("ij,ij->i", a.astype(np.float64), b)
    return min(float(cosines.min()), 1.0)
