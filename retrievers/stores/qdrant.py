"""A collection of Qdrant."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from retrievers.conditions import FieldValues, QueryFilters
from retrievers.errors import BackendError
from retrievers.ragged import (
    AnyVectors,
    SparseVectors,
    TokenVectors,
    VectorForm,
    as_dense,
    unit_rows,
)
from retrievers.ranking import Floats, Ranking, ranked, round_scores, top_k_candidates
from retrievers.services.concurrency import completed
from retrievers.store import Store
from retrievers.stores import points
from retrievers.stores.connection import Connection, collection_notes
from retrievers.stores.open import StoreOpening
from retrievers.stores.options import MEMORY_LOCATION
from retrievers.stores.qdrant_config import index_arguments, vectors_arguments

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

LOCAL_BATCH = 1024
"""Points a request, and queries a request, to the engine in this process."""
LOCAL_READ_BATCH = 4096
"""Points that are read at once from the engine in this process, as lists of Python's numbers."""
MAX_POINT_PRODUCTS = 1 << 22
"""Products of queries and points in memory at once: 32 MB."""
SERVER_UPSERT_BATCH, SERVER_SEARCH_BATCH = 256, 32
"""Points, and queries, in one request to a server."""
MAX_REQUEST_NUMBERS = 1_280_000
"""Numbers a request, at most: as JSON below a server's default limit of 32 MB."""
SERVER_CONCURRENCY = 4
"""Requests to a server at once: it works while the answer before is read, which takes half as long as a search."""
INDEX_POLL_SECONDS = 0.5
"""Seconds between two looks at a server that indexes."""
MAX_INDEX_POLLS = 10
"""Looks at a server that says it is done and has not indexed all: what is indexed is counted a little later."""
AnswerType = TypeVar("AnswerType")


class HeldPoints(NamedTuple):
    """All points of a collection, as the engine in this process compares them."""

    ids: list[str]
    units: Floats
    """(n, dimensions), each of length 1."""
    values: FieldValues


class QdrantStore(Store):
    """One collection, marked complete in its own metadata; an upload to a server that was cut short is taken up again.

    Cosine is the dot product of unit vectors, and so it is kept: under `Distance.COSINE` the engine in this process
    normalises its vectors again at each query, in place, so that the answer to a question would depend on those asked
    before (by one unit in the last place).
    """

    def __init__(self, opening: StoreOpening) -> None:
        self.collection = opening.collection
        self._options = opening.options
        self._form: VectorForm = opening.form
        self._connection = Connection(
            opening.options, opening.collection, opening.meter
        )
        self._resumed = False
        self._added = 0
        self._held: HeldPoints | None = None
        """Once they were searched here."""

    @property
    def approximate(self) -> bool:
        """Whether a graph or compressed vectors were asked for."""
        return self._options.approximate

    @property
    def facts(self) -> Mapping[str, str]:
        """The server's version; of an approximate collection how much of it is indexed, and from what size on."""
        if not self._options.on_server:
            return {}
        info = self._info()
        facts = {"server": f"Qdrant {self._connection.version}"}
        if info is None or not self.approximate:
            return facts
        status = info.optimizer_status
        return {
            **facts,
            "points": str(info.points_count or 0),
            "indexed_points": str(info.indexed_vectors_count or 0),
            "optimizer": str(getattr(status, "error", status)),
            "indexing_threshold_kb": str(
                info.config.optimizer_config.indexing_threshold or 0
            ),
            "full_scan_threshold_kb": str(info.config.hnsw_config.full_scan_threshold),
        }

    def finished(self) -> dict[str, tuple[str, ...]] | None:
        """Return the notes kept with the collection if it is there and complete, else None."""
        info = self._info()
        return None if info is None else collection_notes(info)

    def create(self, dimensions: int, *, anew: bool = False) -> None:
        """Make the collection, or take up the unfinished one on a server unless it is to be made `anew`."""
        from qdrant_client import QdrantClient

        self._added, self._held = 0, None
        info = self._info()
        self._resumed = (
            self._options.on_server
            and not anew
            and info is not None
            and collection_notes(info) is None
        )
        if self._resumed:
            return
        if info is not None:
            self._connection.remove(self.collection)
        how = {
            **vectors_arguments(
                self._form, dimensions, on_disk=self._options.on_server or None
            ),
            **index_arguments(self._options),
        }
        make = partial(
            QdrantClient.create_collection, collection_name=self.collection, **how
        )
        try:
            self._connection.call(make)
        except BackendError:
            if (
                self._info() is None
            ):  # otherwise it was made, and only the answer was lost
                raise

    def upsert(
        self,
        ids: Sequence[str],
        vectors: AnyVectors,
        fields: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Add points, or replace those with the same document id; to a server several requests at a time."""
        from qdrant_client.models import PayloadSchemaType

        self._held = None
        if self._options.on_server and fields and not self._added:
            how = (
                points.FIELDS_PAYLOAD_KEY,
                PayloadSchemaType.KEYWORD,
            )  # a graph is built for filters only where their index is
            self._connection.call(
                lambda client: client.create_payload_index(self.collection, *how)
            )
        held = [
            {points.FIELDS_PAYLOAD_KEY: points.field_pairs(own)} for own in fields
        ] or [{}] * len(ids)
        payloads = [
            {"id": doc_id, **own} for doc_id, own in zip(ids, held, strict=True)
        ]
        units = unit_rows(vectors)
        self._each(
            lambda some: self._send(units[some], payloads[some]),
            units,
            SERVER_UPSERT_BATCH,
        )
        self._added += len(ids)

    def finish(self, notes: Mapping[str, Sequence[str]]) -> None:
        """Wait until all points are indexed, count them, and mark the collection complete."""
        from qdrant_client.models import HnswConfigDiff

        if self._options.defer_graph:
            graph = HnswConfigDiff(m=self._options.m)
            self._connection.call(
                lambda client: client.update_collection(
                    self.collection, hnsw_config=graph
                )
            )
        self._wait_for_index()
        held = self._connection.call(
            lambda client: client.count(self.collection, exact=True)
        )
        points.check_point_count(self._added, held.count)
        kept = {kind: list(ids) for kind, ids in notes.items()}
        self._connection.call(
            lambda client: client.update_collection(
                self.collection, metadata={"finished": kept}
            )
        )
        if not self._options.on_server and self._options.location != MEMORY_LOCATION:
            self.close()  # what is read back has other float noise: search that now, as every later run will

    def search(
        self,
        vectors: AnyVectors,
        limit: int,
        *,
        exact: bool = False,
        query_filters: QueryFilters = (),
    ) -> list[Ranking]:
        """Return one ranking per query vector: the best `limit` points, ties at the limit resolved."""
        units = unit_rows(vectors)
        read = query_filters or self._options.location == MEMORY_LOCATION
        if read and self._form == "dense" and not self._options.on_server:
            return list(
                self._nearest(as_dense(units).astype(np.float64), limit, query_filters)
            )

        def ask(positions: list[int], size: int) -> list[points.EngineHits]:
            return self._ask(
                units[positions],
                [query_filters[i] for i in positions if query_filters],
                size,
                exact=exact,
            )

        return points.search_past_ties(ask, vectors, limit)

    def close(self) -> None:
        """Let go of the collection; a folder is free for another process."""
        self._connection.close()

    def _each(
        self, send: Callable[[slice], AnswerType], vectors: AnyVectors, most: int
    ) -> list[AnswerType]:
        """What is answered to some vectors and others, to so many at most at a time."""
        if not self._options.on_server:
            return [send(some) for some in _requests(vectors, LOCAL_BATCH)]
        found = completed(
            lambda one, _: send(one[1]),
            enumerate(_requests(vectors, most)),
            width=SERVER_CONCURRENCY,
        )
        return [answer for _, answer in sorted(found, key=lambda one: one[0][0])]

    def _send(self, units: AnyVectors, payloads: Sequence[points.Payload]) -> None:
        from qdrant_client import models

        uuids: list[models.ExtendedPointId] = [
            points.point_id(one["id"]) for one in payloads
        ]
        if self._resumed:
            there = self._connection.call(
                lambda client: client.retrieve(
                    self.collection, uuids, with_payload=False
                )
            )
            if len(there) == len(uuids):
                return
        if self._options.on_server or isinstance(units, SparseVectors | TokenVectors):
            values: Any = points.engine_vectors(models, units, np.ndarray.tolist)
            values = (
                {points.SPARSE_VECTOR_NAME: values}
                if isinstance(units, SparseVectors)
                else values
            )
            batch = models.Batch(ids=uuids, vectors=values, payloads=list(payloads))
            self._connection.call(
                lambda client: client.upsert(self.collection, batch, wait=True)
            )
        else:  # the engine in this process takes a matrix as it is
            self._connection.call(
                lambda client: client.upload_collection(
                    self.collection, units, list(payloads), uuids, wait=True
                )
            )

    def _wait_for_index(self) -> None:
        """Wait until the engine has done what is asked for; an engine in this process has nothing to do."""
        from qdrant_client.models import CollectionStatus, OptimizersConfigDiff

        nothing = OptimizersConfigDiff()
        looks = (
            MAX_INDEX_POLLS
            if self.approximate and self._options.indexing_threshold is None
            else 0
        )
        while True:
            info = self._info()
            if info is None or info.status == CollectionStatus.RED:
                what = info.optimizer_status if info else "it is gone"
                raise BackendError(
                    f"{self._connection.address} collection {self.collection}: indexing failed: {what}"
                )
            if info.status == CollectionStatus.GREEN:
                if not looks or (info.indexed_vectors_count or 0) >= (
                    info.points_count or 0
                ):
                    return
                looks -= 1
            if (
                info.status == CollectionStatus.GREY
            ):  # a server that was started again indexes at its next update
                self._connection.call(
                    lambda c: c.update_collection(
                        self.collection, optimizers_config=nothing
                    )
                )
            time.sleep(INDEX_POLL_SECONDS)

    def _ask(
        self, units: AnyVectors, wanted: QueryFilters, size: int, *, exact: bool
    ) -> list[points.EngineHits]:
        from qdrant_client import models

        # The engine in this process compares everything, and would warn of parameters.
        params = (
            points.search_params(models, self._options, exact=exact)
            if self._options.on_server
            else None
        )
        name = points.SPARSE_VECTOR_NAME if isinstance(units, SparseVectors) else None

        def send(some: slice) -> list[points.EngineHits]:
            queries = points.engine_vectors(models, units[some], np.ndarray.tolist)
            filters = [points.payload_filter(models, one) for one in wanted[some]] or [
                None
            ] * len(queries)
            asked = [
                models.QueryRequest(
                    query=one,
                    limit=size,
                    params=params,
                    with_payload=["id"],
                    using=name,
                    filter=only,
                )
                for one, only in zip(queries, filters, strict=True)
            ]

            def answered(client: QdrantClient) -> list[points.EngineHits]:
                found = zip(
                    asked,
                    client.query_batch_points(self.collection, asked),
                    strict=True,
                )
                hits = [
                    [((one.payload or {})["id"], one.score) for one in response.points]
                    for _, response in found
                ]
                return [
                    points.EngineHits(
                        [doc for doc, _ in one], [score for _, score in one]
                    )
                    for one in hits
                ]

            return self._connection.call(answered)

        return [
            hits
            for some in self._each(send, units, SERVER_SEARCH_BATCH)
            for hits in some
        ]

    def _nearest(
        self, units: Floats, limit: int, wanted: QueryFilters
    ) -> Iterator[Ranking]:
        """Rank the points that the engine in this process holds, those that match where anything is wanted.

        Asked itself, it takes three times as long, for an object of Python a hit, and a copy of all vectors a query;
        its filter goes through all payloads in Python. One product for many queries takes a twentieth of one for each:
        its last bits depend on who asks beside, so that the best hits are multiplied again, each for itself.
        """
        self._held = held = self._held or self._read(units.shape[1])
        masks = held.values.masks(wanted)
        size = max(1, MAX_POINT_PRODUCTS // max(1, len(held.ids)))
        for start in range(0, len(units), size):
            for at, scores in enumerate(
                units[start : start + size] @ held.units.T, start
            ):
                some = top_k_candidates(scores, limit, masks[at] if masks else None)
                own = np.einsum("ij,j->i", held.units[some], units[at])
                yield ranked([held.ids[i] for i in some], round_scores(own), limit)

    def _read(self, dimensions: int) -> HeldPoints:
        """Read all points from the engine, with 64 bits, as it compares them itself."""
        ids, parts, values, offset = list[str](), list[Floats](), FieldValues(), None
        while not parts or offset is not None:
            page = {"limit": LOCAL_READ_BATCH, "offset": offset, "with_vectors": True}
            records, offset = self._connection.call(
                lambda client, page=page: client.scroll(self.collection, **page)  # type: ignore[misc]
            )
            for payload in (one.payload or {} for one in records):
                ids.append(payload["id"])
                values.add(
                    dict(map(json.loads, payload.get(points.FIELDS_PAYLOAD_KEY, ())))
                )
            parts.append(
                np.array([one.vector for one in records], np.float64).reshape(
                    -1, dimensions
                )
            )
        return HeldPoints(ids, np.concatenate(parts), values)

    def _info(self) -> models.CollectionInfo | None:
        if not self._connection.call(
            lambda client: client.collection_exists(self.collection)
        ):
            return None
        return self._connection.call(
            lambda client: client.get_collection(self.collection)
        )


def _requests(vectors: AnyVectors, most: int) -> Iterator[slice]:
    """Split vectors into requests of at most so many texts, and of at most NUMBERS numbers unless a text has more."""
    starts = (
        vectors.starts
        if isinstance(vectors, SparseVectors | TokenVectors)
        else np.arange(len(vectors) + 1)
    )
    ends = starts * (2 if isinstance(vectors, SparseVectors) else vectors.shape[1])
    start = 0
    while start < len(vectors):
        fitting = (
            int(np.searchsorted(ends, ends[start] + MAX_REQUEST_NUMBERS, side="right"))
            - 1
        )
        stop = min(max(fitting, start + 1), start + most, len(vectors))
        yield slice(start, stop)
        start = stop
