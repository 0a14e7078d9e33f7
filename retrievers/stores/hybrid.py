"""Collections with a dense and a sparse vector a point, of which Qdrant itself fuses the two searches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from retrievers.fusion import FusionMethod
from retrievers.meter import Meter
from retrievers.stores.connection import Connection
from retrievers.stores.options import MEMORY, StoreOptions
from retrievers.stores.points import EngineHits, answers_of, engine_errors, point_id
from retrievers.types import Ranking, Vectors, ranked

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

Answer = TypeVar("Answer")
DENSE, SPARSE = "dense", "sparse"
POINTS, ASKED = 256, 32
"""Points, and queries, a request."""


class SparseRow(NamedTuple):
    """One sparse vector."""

    columns: list[int]
    values: list[float]


class HybridQuery(NamedTuple):
    """One query, of which either side may be missing."""

    dense: Vectors | None
    """(dimensions,), of length 1."""
    sparse: SparseRow | None


class HybridStore:
    """One collection that is made anew for each run, in memory or on a server, and searched exactly.

    Args:
        options: a server, or else memory; nothing is approximate.
        collection: its name.
        method: how Qdrant fuses what the two searches find.
        k: of reciprocal rank fusion, as Qdrant counts: 1 / (k + rank), the first rank being 0.
        meter: counts a server's retries.
    """

    def __init__(
        self, options: StoreOptions, collection: str, method: FusionMethod, k: int, *, meter: Meter | None = None
    ) -> None:
        self._options, self._collection = options, collection
        self._method, self._k = method, k
        self._connection: Connection | None = None
        if options.on_server:
            self._connection = Connection(options.location or "", options.api_key, meter or Meter())
        self._memory: QdrantClient | None = None

    def create(self, dimensions: int) -> None:
        """Make the collection anew and empty."""
        from qdrant_client import models

        # Unit vectors by their dot product: the client's cosine would normalise them in place, again and again.
        dense = {DENSE: models.VectorParams(size=dimensions, distance=models.Distance.DOT)}
        sparse = {SPARSE: models.SparseVectorParams()}
        self._call(lambda client: client.delete_collection(self._collection))
        self._call(
            lambda client: client.create_collection(
                self._collection,
                vectors_config=dense,
                sparse_vectors_config=sparse,
                shard_number=self._options.shards,
                replication_factor=self._options.replication,
            )
        )

    def upsert(self, ids: Sequence[str], queries: Sequence[HybridQuery]) -> None:
        """Add points: the two vectors of each document, as far as it has them."""
        from qdrant_client import models

        points = [
            models.PointStruct(id=point_id(doc_id), vector=_vectors(one), payload={"id": doc_id})
            for doc_id, one in zip(ids, queries, strict=True)
        ]
        for start in range(0, len(points), POINTS):
            some = points[start : start + POINTS]
            self._call(lambda client, some=some: client.upsert(self._collection, some, wait=True))  # type: ignore[misc]

    def search(self, queries: Sequence[HybridQuery], limit: int) -> list[Ranking]:
        """Return one ranking per query: what Qdrant fuses of the first `limit` hits of each side.

        All of the fused hits are asked for, so that ties among them have the order of `ranked`. Which of several hits
        of equal score one side counts among its first is the engine's choice.
        """
        answers: list[EngineHits] = []
        for start, end in pairwise([*range(0, len(queries), ASKED), len(queries)]):
            requests = [self._request(one, limit) for one in queries[start:end]]
            answers += self._call(
                lambda client, requests=requests: answers_of(  # type: ignore[misc]
                    client.query_batch_points(self._collection, requests), len(requests)
                )
            )
        return [ranked(doc_ids, scores, limit) for doc_ids, scores in answers]

    def close(self) -> None:
        """Let go of the collection."""
        for open_one in (self._connection, self._memory):
            if open_one is not None:
                open_one.close()
        self._memory = None

    def _request(self, query: HybridQuery, limit: int) -> models.QueryRequest:
        from qdrant_client import models

        # The client's own engine compares everything anyway, and would warn that it heeds no parameters.
        exact = models.SearchParams(exact=True) if self._connection is not None else None
        sides = [
            models.Prefetch(query=vector, using=name, limit=limit, params=exact if name == DENSE else None)
            for name, vector in _vectors(query).items()
        ]
        fusion: Any = models.FusionQuery(fusion=models.Fusion.DBSF)
        if self._method == "rrf":
            fusion = models.RrfQuery(rrf=models.Rrf(k=self._k))
        return models.QueryRequest(prefetch=sides, query=fusion, limit=2 * limit, with_payload=True)

    def _call(self, request: Callable[[QdrantClient], Answer]) -> Answer:
        if self._connection is not None:
            return self._connection.call(request)
        if self._memory is None:
            from qdrant_client import QdrantClient

            self._memory = QdrantClient(MEMORY)
        with engine_errors(MEMORY):
            return request(self._memory)


def _vectors(query: HybridQuery) -> dict[str, Any]:
    from qdrant_client import models

    vectors: dict[str, Any] = {}
    if query.dense is not None:
        vectors[DENSE] = np.asarray(query.dense, dtype=np.float32).tolist()
    if query.sparse is not None:
        vectors[SPARSE] = models.SparseVector(indices=query.sparse.columns, values=query.sparse.values)
    return vectors
