"""Vectors of every form as Qdrant Edge takes them: to make a collection, to add points, to ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from retrievers.ragged import AnyVectors, Form, SparseVectors, TokenVectors, numbers_of
from retrievers.stores.client_vectors import SPARSE

if TYPE_CHECKING:
    import qdrant_edge


def collection_of(form: Form, dimensions: int) -> dict[str, Any]:
    """Return the arguments of EdgeConfig that say what the vectors are."""
    import qdrant_edge as edge

    if form == "sparse":
        return {"sparse_vectors": {SPARSE: edge.EdgeSparseVectorParams()}}
    if form == "dense":
        return {"vectors": edge.EdgeVectorParams(size=dimensions, distance=edge.Distance.Cosine)}
    best = edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim)
    return {"vectors": edge.EdgeVectorParams(size=dimensions, distance=edge.Distance.Dot, multivector_config=best)}


def points_of(vectors: AnyVectors) -> list[Any]:
    """Return each text's vectors as a point takes them in."""
    if isinstance(vectors, SparseVectors):
        return [{SPARSE: one} for one in _values(vectors)]
    return _values(vectors)


def queries_of(vectors: AnyVectors) -> list[qdrant_edge.Query]:
    """Return what is asked for by each text's vectors."""
    import qdrant_edge as edge

    name = SPARSE if isinstance(vectors, SparseVectors) else None
    return [edge.Query.Nearest(one, using=name) for one in _values(vectors)]


def bytes_of(vectors: AnyVectors) -> int:
    """Return the bytes that the vectors take: 4 a number, and 4 for the index of a sparse one."""
    return numbers_of(vectors) * (8 if isinstance(vectors, SparseVectors) else 4)


def _values(vectors: AnyVectors) -> list[Any]:
    """Return the rows as the engine takes them in fastest: views, not lists, of floats."""
    import qdrant_edge as edge

    if isinstance(vectors, SparseVectors):
        return [edge.SparseVector(indices=one.tolist(), values=numbers.tolist()) for one, numbers in vectors.rows()]
    if isinstance(vectors, TokenVectors):
        return [[memoryview(token) for token in row] for row in vectors.rows()]
    return [memoryview(vector) for vector in np.ascontiguousarray(vectors)]
