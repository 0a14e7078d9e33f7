"""Collections on a Qdrant server or cluster, over REST or gRPC, through the public client only."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from retrievers.errors import BackendError, InputError, Problem
from retrievers.meter import Meter
from retrievers.parallel import answers
from retrievers.ragged import AnyVectors, Form, unit_rows
from retrievers.remote.redaction import shown
from retrievers.stores.client_vectors import collection_of, kept_as, name_of, points_of, queries_of, requests, wanted_as
from retrievers.stores.connection import Connection
from retrievers.stores.options import Opening, StoreOptions
from retrievers.stores.points import (
    FIELDS,
    EngineHits,
    Payload,
    answers_of,
    count_matches,
    filter_of,
    hits_of,
    past_ties,
    payloads,
    point_id,
)
from retrievers.types import Ranking, Wanted

if TYPE_CHECKING:
    from qdrant_client import models

UPSERT = 256
SEARCH = 32
"""Points, and queries, a request: below a server's default limit of 32 MB up to 5,000 dimensions."""
PARALLEL = 4
GREEN_EVERY = 0.5


class ServerStore:
    """One collection on a server, marked complete in its own metadata; an upload cut short is taken up again.

    The server is asked for its version first, and refused where the client does not support it.
    """

    def __init__(self, options: StoreOptions, collection: str, meter: Meter, form: Form = "dense") -> None:
        self.approximate = options.approximate
        self._options = options
        self._collection = collection
        self._form: Form = form
        self._connection = Connection(options.location or "", options.api_key, meter)
        self._resumed = False
        self._added = 0

    def finished(self) -> dict[str, tuple[str, ...]] | None:
        """Return the notes kept with the collection if it is there and complete, else None."""
        info = self._info()
        return _notes(info) if info else None

    def create(self, dimensions: int, *, anew: bool = False) -> None:
        """Make the collection, or take up the unfinished one that is there unless it is to be made `anew`."""
        from qdrant_client import QdrantClient, models

        self._added = 0
        info = self._info()
        self._resumed = not anew and info is not None and _notes(info) is None
        if info and self._resumed:
            self._check_same(info, dimensions)
            return
        if info:
            self._connection.call(lambda client: client.delete_collection(self._collection))
        links = 0 if self._options.defer_graph else self._options.m
        graph = models.HnswConfigDiff(m=links, ef_construct=self._options.ef_construct)
        make = partial(
            QdrantClient.create_collection,
            collection_name=self._collection,
            **collection_of(self._form, dimensions, models.Distance.COSINE, on_disk=True),
            hnsw_config=graph,
            quantization_config=_quantization(self._options.quantization),
            shard_number=self._options.shards,
            replication_factor=self._options.replication,
        )
        try:
            self._connection.call(make)
        except BackendError:
            if self._info() is None:  # otherwise it was made, and only the answer was lost
                raise

    def upsert(self, ids: Sequence[str], vectors: AnyVectors, fields: Sequence[Mapping[str, str]] = ()) -> None:
        """Add points, or replace those with the same document id, several requests at a time."""
        from qdrant_client.models import PayloadSchemaType

        if fields and not self._added:  # a graph is built for filters only where the index of the payload is there
            keyword = PayloadSchemaType.KEYWORD
            self._connection.call(lambda client: client.create_payload_index(self._collection, FIELDS, keyword))
        kept = payloads(ids, fields)
        batches = list(requests(vectors, UPSERT))
        for _ in answers(lambda some, _: self._upsert(ids[some], vectors[some], kept[some]), batches, width=PARALLEL):
            pass
        self._added += len(ids)

    def finish(self, notes: Mapping[str, Sequence[str]]) -> None:
        """Wait until the server has indexed all points, count them, and mark the collection complete."""
        from qdrant_client.models import CollectionStatus, HnswConfigDiff, OptimizersConfigDiff

        if self._options.defer_graph:
            graph = HnswConfigDiff(m=self._options.m)
            self._connection.call(lambda client: client.update_collection(self._collection, hnsw_config=graph))
        nothing = OptimizersConfigDiff()
        while (info := self._info()) and info.status in (CollectionStatus.YELLOW, CollectionStatus.GREY):
            if info.status == CollectionStatus.GREY:  # a server that was started again indexes at its next update
                self._connection.call(lambda c: c.update_collection(self._collection, optimizers_config=nothing))
            time.sleep(GREEN_EVERY)
        if info is None or info.status == CollectionStatus.RED:
            raise BackendError(f"{self._where}: indexing failed: {info.optimizer_status if info else 'it is gone'}")
        held = self._connection.call(lambda client: client.count(self._collection, exact=True))
        count_matches(self._added, held.count)
        kept = {kind: list(ids) for kind, ids in notes.items()}
        self._connection.call(lambda client: client.update_collection(self._collection, metadata={"finished": kept}))

    def search(
        self, vectors: AnyVectors, limit: int, *, exact: bool = False, wanted: Sequence[Wanted] = ()
    ) -> list[Ranking]:
        """Return one ranking per query vector: the best `limit` points, ties at the limit resolved."""
        from qdrant_client import QdrantClient, models

        if exact or not self.approximate:
            params = models.SearchParams(exact=True)
        else:
            rescored = models.QuantizationSearchParams(rescore=True, oversampling=self._options.oversampling)
            params = models.SearchParams(
                hnsw_ef=self._options.ef, quantization=rescored if self._options.quantization else None
            )

        filters: list[models.Filter | None] = [*map(filter_of, wanted)] or [None] * len(vectors)
        name = name_of(vectors)

        def ask(positions: list[int], size: int) -> Iterator[EngineHits]:
            some = vectors[positions]
            for batch in requests(some, SEARCH):
                asked = [
                    models.QueryRequest(
                        query=query, limit=size, params=params, with_payload=True, using=name, filter=filters[at]
                    )
                    for at, query in zip(positions[batch], queries_of(unit_rows(some[batch])), strict=True)
                ]

                def send(client: QdrantClient, asked: list[models.QueryRequest] = asked) -> list[EngineHits]:
                    return answers_of(client.query_batch_points(self._collection, asked), len(asked))

                yield from self._connection.call(send)

        return hits_of(vectors, past_ties(ask, len(vectors), limit))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _upsert(self, ids: Sequence[str], vectors: AnyVectors, kept: Sequence[Payload]) -> None:
        from qdrant_client.models import Batch

        points: list[models.ExtendedPointId] = list(map(point_id, ids))
        if self._resumed:
            there = self._connection.call(lambda client: client.retrieve(self._collection, points, with_payload=False))
            if len(there) == len(points):
                return
        batch = Batch(ids=points, vectors=points_of(unit_rows(vectors)), payloads=list(kept))
        self._connection.call(lambda client: client.upsert(self._collection, batch, wait=True))

    def _info(self) -> models.CollectionInfo | None:
        if not self._connection.call(lambda client: client.collection_exists(self._collection)):
            return None
        return self._connection.call(lambda client: client.get_collection(self._collection))

    def _check_same(self, info: models.CollectionInfo, dimensions: int) -> None:
        kept = kept_as(info.config.params)
        wanted = wanted_as(self._form, dimensions, "Cosine" if self._form == "dense" else "Dot")
        if kept != wanted:
            raise InputError(
                Problem(
                    self._where,
                    f"the collection has {kept}, not {wanted}",
                    "it was not made by this program: delete it, or use another server",
                )
            )

    @property
    def _where(self) -> str:
        return f"{shown(self._options.location or '')} collection {self._collection}"


def _notes(info: models.CollectionInfo) -> dict[str, tuple[str, ...]] | None:
    kept = (info.config.metadata or {}).get("finished")
    return None if kept is None else {kind: tuple(ids) for kind, ids in kept.items()}


def _quantization(kind: str | None) -> Any:
    from qdrant_client import models

    if kind == "scalar":
        scalar = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
        return models.ScalarQuantization(scalar=scalar)
    if kind == "product":
        product = models.ProductQuantizationConfig(compression=models.CompressionRatio.X16, always_ram=True)
        return models.ProductQuantization(product=product)
    if kind == "binary":
        return models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True))
    return None


def opened(opening: Opening) -> ServerStore:
    """Return the collection of a server; nothing is connected before its first use."""
    return ServerStore(opening.options, opening.collection, opening.meter, opening.form)
