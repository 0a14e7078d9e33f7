"""A collection of Qdrant, in this process or on a server.

`connection.py` opens the client and tries requests again, `points.py` has ids, filters
and vectors in the engine's form; `edge.py` is the store of Qdrant Edge.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from retrievers.conditions import FilterValues, QueryFilters
from retrievers.errors import BackendError
from retrievers.facts import CollectionFacts
from retrievers.ragged import (
    AnyVectors,
    RaggedVectors,
    SparseVectors,
    VectorForm,
    unit_rows,
)
from retrievers.ranking import Ranking
from retrievers.services.concurrency import completed
from retrievers.store import Store
from retrievers.stores import points
from retrievers.stores.connection import Connection, collection_notes
from retrievers.stores.local_ids import read_document_ids
from retrievers.stores.open import StoreOpening
from retrievers.stores.options import MEMORY_LOCATION
from retrievers.stores.qdrant_config import index_arguments, vectors_arguments
from retrievers.stores.request_batches import split_requests

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

LOCAL_BATCH = 1024
"""Points, or queries, of one request to the engine in this process."""
SERVER_UPSERT_BATCH = 256
"""Points of one request to a server."""
SERVER_SEARCH_BATCH = 32
"""Queries of one request to a server."""
SERVER_CONCURRENCY = 4
"""Requests to a server at once: it works while the last answer is read, which takes
half as long as a search."""
INDEX_POLL_SECONDS = 0.5
"""Seconds between two checks whether a server has indexed all points."""
MAX_INDEX_POLLS = 10
"""Checks of a server that reports to be done and has not indexed all: its counts come a
little later."""
AnswerType = TypeVar("AnswerType")


class QdrantStore(Store):
    """One collection, marked complete in its own metadata.

    An upload to a server that was interrupted is continued.

    Unit vectors are stored, and compared by their dot product, which is the cosine.
    Under `Distance.COSINE` the engine in this process would normalise its vectors again
    at each query, in place, so that rankings would depend on earlier queries (by one
    unit in the last place).
    """

    always_exact = True
    """In this process the client compares all vectors. A server has an index: for a
    server's URL `StoreOptions` does not read this."""

    def __init__(self, opening: StoreOpening) -> None:
        self.collection = opening.collection
        self._options = opening.options
        self._form: VectorForm = opening.form
        self._connection = Connection(
            opening.options, opening.collection, opening.meter
        )
        self._is_continued = False
        """Whether an interrupted upload is continued."""
        self._added = 0
        """Points that `upsert` was given, also if an earlier upload had stored them."""
        self._document_ids: dict[models.ExtendedPointId, str] | None = None
        """The document of each point of an engine in this process, read at the first
        search; None before, and always on a server."""

    @property
    def approximate(self) -> bool:
        """Whether a graph or compressed vectors are set."""
        return self._options.approximate

    @property
    def facts(self) -> CollectionFacts:
        """The server's version; for an approximate collection also its index."""
        if not self._options.on_server:
            return CollectionFacts()
        info = self._info()
        server = f"Qdrant {self._connection.version}"
        if info is None or not self.approximate:
            return CollectionFacts(server=server)
        status = info.optimizer_status
        config = info.config
        return CollectionFacts(
            server=server,
            points=info.points_count or 0,
            indexed_points=info.indexed_vectors_count or 0,
            optimizer=str(getattr(status, "error", status)),
            indexing_threshold_kb=config.optimizer_config.indexing_threshold or 0,
            full_scan_threshold_kb=config.hnsw_config.full_scan_threshold,
        )

    def finished(self) -> dict[str, tuple[str, ...]] | None:
        """Return the notes stored with a complete collection; None for any other."""
        info = self._info()
        return None if info is None else collection_notes(info)

    def create(self, dimensions: int, *, anew: bool = False) -> None:
        """Create the collection, or continue an unfinished one on a server if not anew.

        Any other collection with its name is removed first.
        """
        self._added = 0
        self._document_ids = None
        info = self._info()
        self._is_continued = False
        if info is not None:
            is_unfinished = collection_notes(info) is None
            self._is_continued = self._options.on_server and is_unfinished and not anew
            if self._is_continued:
                return
            self._connection.remove(self.collection)
        arguments = {
            **vectors_arguments(
                self._form, dimensions, on_disk=self._options.on_server or None
            ),
            **index_arguments(self._options),
        }
        try:
            self._connection.call(
                lambda client: client.create_collection(self.collection, **arguments)
            )
        except BackendError:
            # The collection may have been created, and only the answer was lost.
            if self._info() is None:
                raise

    def upsert(
        self,
        ids: Sequence[str],
        vectors: AnyVectors,
        fields: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Add points, or replace those with the same document id.

        A server receives several requests at a time.
        """
        self._document_ids = None
        if self._options.on_server and fields and not self._added:
            self._create_field_index()
        payloads: list[points.Payload] = [{"id": doc_id} for doc_id in ids]
        for payload, document_fields in zip(payloads, fields, strict=bool(fields)):
            pairs = points.field_pairs(document_fields)
            payload[points.FIELDS_PAYLOAD_KEY] = pairs
        units = unit_rows(vectors)

        def send(batch: slice) -> None:
            self._send_points(units[batch], payloads[batch])

        self._send_batches(send, units, SERVER_UPSERT_BATCH)
        self._added += len(ids)

    def _create_field_index(self) -> None:
        """Create the index of fields, without which no graph is built for filters."""
        from qdrant_client.models import PayloadSchemaType

        self._connection.call(
            lambda client: client.create_payload_index(
                self.collection, points.FIELDS_PAYLOAD_KEY, PayloadSchemaType.KEYWORD
            )
        )

    def finish(self, notes: Mapping[str, Sequence[str]]) -> None:
        """Wait until all points are indexed, count them, and mark the collection.

        Raises:
            BackendError: other points are stored than were added, or indexing failed.
        """
        from qdrant_client.models import HnswConfigDiff

        if self._options.defer_graph:
            graph = HnswConfigDiff(m=self._options.m)
            self._connection.call(
                lambda client: client.update_collection(
                    self.collection, hnsw_config=graph
                )
            )
        self._wait_for_index()
        stored = self._connection.call(
            lambda client: client.count(self.collection, exact=True)
        )
        points.check_point_count(self._added, stored.count)
        stored_notes = {kind: list(ids) for kind, ids in notes.items()}
        self._connection.call(
            lambda client: client.update_collection(
                self.collection, metadata={"finished": stored_notes}
            )
        )
        if not self._options.on_server and self._options.location != MEMORY_LOCATION:
            # Vectors that are read back have other float noise: they must be searched
            # now, as in every later run.
            self.close()

    def search(
        self,
        vectors: AnyVectors,
        limit: int,
        *,
        exact: bool = False,
        query_filters: QueryFilters = (),
    ) -> list[Ranking]:
        """Return one ranking per query vector: the best `limit` points.

        Ties at the limit are resolved.
        """
        units = unit_rows(vectors)
        if self._document_ids is None and not self._options.on_server:
            self._document_ids = read_document_ids(self._connection, self.collection)

        def search(positions: list[int], requested: int) -> list[points.EngineHits]:
            filters = [query_filters[i] for i in positions] if query_filters else []
            return self._search_engine(
                units[positions], filters, requested, exact=exact
            )

        return points.search_past_ties(search, vectors, limit)

    def close(self) -> None:
        """Release the collection; another process may open its folder."""
        self._connection.close()

    def _send_batches(
        self, send: Callable[[slice], AnswerType], vectors: AnyVectors, max_texts: int
    ) -> list[AnswerType]:
        """Return the answer to each batch of vectors, in their order.

        Args:
            send: sends one batch.
            vectors: all vectors.
            max_texts: texts of one request to a server, at most.
        """
        if not self._options.on_server:
            return [send(batch) for batch in split_requests(vectors, LOCAL_BATCH)]
        batches = list(split_requests(vectors, max_texts))
        answers: dict[int, AnswerType] = dict(
            completed(
                lambda i, _: send(batches[i]),
                range(len(batches)),
                width=SERVER_CONCURRENCY,
            )
        )
        return [answers[i] for i in range(len(batches))]

    def _send_points(
        self, units: AnyVectors, payloads: Sequence[points.Payload]
    ) -> None:
        """Add some points, unless an interrupted upload has added them already."""
        from qdrant_client import models

        point_ids: list[models.ExtendedPointId] = [
            points.point_id(payload["id"]) for payload in payloads
        ]
        if self._is_continued:
            records = self._connection.call(
                lambda client: client.retrieve(
                    self.collection, point_ids, with_payload=False
                )
            )
            if len(records) == len(point_ids):
                return
        if self._options.on_server or isinstance(units, RaggedVectors):
            vectors: Any = points.engine_vectors(models, units, np.ndarray.tolist)
            if isinstance(units, SparseVectors):
                vectors = {points.SPARSE_VECTOR_NAME: vectors}
            batch = models.Batch(
                ids=point_ids, vectors=vectors, payloads=list(payloads)
            )
            self._connection.call(
                lambda client: client.upsert(self.collection, batch, wait=True)
            )
        else:  # the engine in this process accepts a matrix
            self._connection.call(
                lambda client: client.upload_collection(
                    self.collection, units, list(payloads), point_ids, wait=True
                )
            )

    def _wait_for_index(self) -> None:
        """Wait until the engine has indexed all points; one in this process is done."""
        from qdrant_client.models import CollectionStatus, OptimizersConfigDiff

        unchanged_config = OptimizersConfigDiff()
        # With a threshold of the experiment, small segments may stay without index.
        polls_left = 0
        if self.approximate and self._options.indexing_threshold is None:
            polls_left = MAX_INDEX_POLLS
        while True:
            info = self._info()
            if info is None or info.status == CollectionStatus.RED:
                reason = info.optimizer_status if info else "it is gone"
                raise BackendError(
                    f"{self._connection.address} collection {self.collection}: "
                    f"indexing failed: {reason}"
                )
            if info.status == CollectionStatus.GREEN:
                indexed = info.indexed_vectors_count or 0
                if not polls_left or indexed >= (info.points_count or 0):
                    return
                polls_left -= 1
            if info.status == CollectionStatus.GREY:
                # A server that was restarted indexes at its next update.
                self._connection.call(
                    lambda client: client.update_collection(
                        self.collection, optimizers_config=unchanged_config
                    )
                )
            time.sleep(INDEX_POLL_SECONDS)

    def _search_engine(
        self, units: AnyVectors, filters: QueryFilters, limit: int, *, exact: bool
    ) -> list[points.EngineHits]:
        """Return the engine's hits for each query."""

        def send(batch: slice) -> list[points.EngineHits]:
            batch_filters: Sequence[FilterValues | None] = filters[batch]
            requests = self._query_requests(
                units[batch], batch_filters, limit, exact=exact
            )
            return self._connection.call(
                lambda client: self._query_hits(client, requests)
            )

        batches = self._send_batches(send, units, SERVER_SEARCH_BATCH)
        return [hits for batch in batches for hits in batch]

    def _query_requests(
        self,
        units: AnyVectors,
        filters: Sequence[FilterValues | None],
        limit: int,
        *,
        exact: bool,
    ) -> list[models.QueryRequest]:
        """Return the requests of some queries."""
        from qdrant_client import models

        # The engine in this process compares all, and would warn of parameters.
        params = None
        if self._options.on_server:
            params = points.search_params(models, self._options, exact=exact)
        is_sparse = isinstance(units, SparseVectors)
        requests = []
        query_vectors = points.engine_vectors(models, units, np.ndarray.tolist)
        for query, filter_values in zip(
            query_vectors, filters or [None] * len(query_vectors), strict=True
        ):
            payload_filter = None
            if filter_values is not None:
                payload_filter = points.payload_filter(models, filter_values)
            request = models.QueryRequest(
                query=query,
                limit=limit,
                params=params,
                with_payload=["id"] if self._options.on_server else False,
                with_vector=False,
                using=points.SPARSE_VECTOR_NAME if is_sparse else None,
                filter=payload_filter,
            )
            requests.append(request)
        return requests

    def _query_hits(
        self, client: QdrantClient, requests: list[models.QueryRequest]
    ) -> list[points.EngineHits]:
        """Return the client's hits for each request."""
        responses = client.query_batch_points(self.collection, requests)
        hits = []
        # Strict, since an answer that is missing would shift those of other queries.
        for _, response in zip(requests, responses, strict=True):
            doc_ids = [self._document_id(point) for point in response.points]
            scores = [point.score for point in response.points]
            hits.append(points.EngineHits(doc_ids, scores))
        return hits

    def _document_id(self, point: models.ScoredPoint) -> str:
        """Return the document of a hit, which a server sends with the hit."""
        if self._document_ids is not None:
            return self._document_ids[point.id]
        document_id: str = (point.payload or {})["id"]
        return document_id

    def _info(self) -> models.CollectionInfo | None:
        """Return the state of the collection; None if there is none."""
        exists = self._connection.call(
            lambda client: client.collection_exists(self.collection)
        )
        if not exists:
            return None
        return self._connection.call(
            lambda client: client.get_collection(self.collection)
        )
