"""Vectors of every form as qdrant-client takes them: to make a collection, to add points, to ask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from retrievers.ragged import AnyVectors, Form, SparseVectors, TokenVectors

if TYPE_CHECKING:
    from qdrant_client.models import CollectionParams, Distance

SPARSE = "sparse"
"""The name of a collection's sparse vectors, which have to have one."""
NUMBERS = 1_280_000
"""Numbers a request, at most: below a server's default limit of 32 MB as JSON."""


def collection_of(form: Form, dimensions: int, cosine: Distance, *, on_disk: bool | None = None) -> dict[str, Any]:
    """Return the arguments of `create_collection` that say what its vectors are.

    Args:
        form: of the vectors.
        dimensions: of a text's vector, or of a token's.
        cosine: what stands for the cosine of dense vectors; the others are compared by their dot product.
        on_disk: whether a server reads the vectors from disk.
    """
    from qdrant_client import models

    if form == "sparse":
        return {"vectors_config": {}, "sparse_vectors_config": {SPARSE: models.SparseVectorParams()}}
    if form == "dense":
        return {"vectors_config": models.VectorParams(size=dimensions, distance=cosine, on_disk=on_disk)}
    best = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    dot = models.Distance.DOT
    params = models.VectorParams(size=dimensions, distance=dot, on_disk=on_disk, multivector_config=best)
    return {"vectors_config": params}


def points_of(vectors: AnyVectors) -> Any:
    """Return the vectors of some points, for a Batch."""
    queries = queries_of(vectors)
    return {SPARSE: queries} if isinstance(vectors, SparseVectors) else queries


def queries_of(vectors: AnyVectors) -> list[Any]:
    """Return what is asked for by each text's vectors."""
    from qdrant_client.models import SparseVector

    if isinstance(vectors, SparseVectors):
        return [SparseVector(indices=indices.tolist(), values=values.tolist()) for indices, values in vectors.rows()]
    if isinstance(vectors, TokenVectors):
        return [row.tolist() for row in vectors.rows()]
    whole: list[Any] = vectors.tolist()
    return whole


def name_of(vectors: AnyVectors) -> str | None:
    """Return the name of the vectors that a query is compared with, None where they have none."""
    return SPARSE if isinstance(vectors, SparseVectors) else None


def requests(vectors: AnyVectors, most: int) -> Iterator[slice]:
    """Split vectors into requests of at most so many texts, and of at most NUMBERS numbers unless a text has more."""
    if not isinstance(vectors, SparseVectors | TokenVectors):
        yield from (slice(start, start + most) for start in range(0, len(vectors), most))
        return
    width = vectors.dimensions if isinstance(vectors, TokenVectors) else 2
    ends = vectors.starts * width
    start = 0
    while start < len(vectors):
        fitting = int(np.searchsorted(ends, ends[start] + NUMBERS, side="right")) - 1
        stop = min(max(fitting, start + 1), start + most, len(vectors))
        yield slice(start, stop)
        start = stop


def kept_as(params: CollectionParams) -> str:
    """Say what the vectors of a collection are, in the words of `wanted_as`."""
    vectors: Any = params.vectors
    if SPARSE in (params.sparse_vectors or {}):
        return wanted_as("sparse", 0, "")
    form: Form = "multivector" if getattr(vectors, "multivector_config", None) else "dense"
    return wanted_as(form, getattr(vectors, "size", None), getattr(vectors, "distance", None))


def wanted_as(form: Form, dimensions: int | None, cosine: str | None) -> str:
    """Say what vectors are.

    >>> wanted_as("dense", 8, "Cosine"), wanted_as("sparse", 0, "")
    ('dense vectors of 8 dimensions and distance Cosine', 'sparse vectors')
    """
    return "sparse vectors" if form == "sparse" else f"{form} vectors of {dimensions} dimensions and distance {cosine}"
