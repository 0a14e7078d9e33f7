"""A collection of Qdrant Edge.

That engine runs in this process, and stores on disk. `points.py` has filters and
vectors in its form; `qdrant.py` is the store of Qdrant's client.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from retrievers.conditions import QueryFilters
from retrievers.errors import InputError, Problem
from retrievers.facts import CollectionFacts
from retrievers.ragged import AnyVectors, VectorForm, unit_rows
from retrievers.ranking import Ranking
from retrievers.store import Store
from retrievers.stores import points
from retrievers.stores.open import StoreOpening

if TYPE_CHECKING:
    import qdrant_edge
    from filelock import BaseFileLock

MIN_SEGMENT_POINTS = 4096
"""Points of a segment, at least."""
EDGE_UPSERT_BATCH = 256
"""Points of one call."""
EDGE_SEARCH_BATCH = 256
"""Queries of one call."""
UNLIMITED_SEGMENT = 2**40
"""More points than any collection has."""
SPARE_DISK_BYTES = 64 * 2**20
"""Bytes that must stay free, since the engine allocates space in advance."""
POINT_OVERHEAD_BYTES = 110
"""Bytes of a point on disk, in addition to its vector."""
NOTES_FILE = "notes.json"
IDS_FILE = "ids.json"
"""The documents' ids, in the order of the points' numbers."""


class EdgeStore(Store):
    """One collection in a folder of its own.

    It is built in a temporary folder, which is moved when it is complete.

    The engine searches the segments of a collection in parallel, but leaves all points
    in one segment until told to optimise. So an exact collection gets as many segments
    as there are processors (of MIN_SEGMENT_POINTS at least, more if documents have
    several passages); the last needs no optimising. An approximate one is indexed as a
    whole, since a graph of all points is searched faster than several. One of sparse
    vectors, or of vectors of tokens, stays one segment: the engine wants a segment's
    size in kilobytes in advance, and these vectors differ in length.

    A point's id is its number, and the document ids are in a file of their own: the
    engine needs a third less time to store such points than those with ids of 128 bits
    and a payload, and returns deep rankings twice as fast.

    A folder with the collection's name is a finished collection, whatever happened to
    the process that built it. The collection is locked against other processes while it
    is open, since the engine writes to its files even when it only reads.
    """

    def __init__(self, opening: StoreOpening) -> None:
        """Set the collection; raise InputError if the engine is not installed."""
        if importlib.util.find_spec("qdrant_edge") is None:
            problem = (
                f"the edge store, for {opening.documents} documents, "
                "needs the package qdrant-edge-py"
            )
            remedy = "pip install qdrant-edge-py, or name another store"
            raise InputError(Problem("store", problem, remedy))
        self._options = opening.options
        self._documents = opening.documents
        self._form: VectorForm = opening.form
        self._vector_name: str | None = None
        if opening.form == "sparse":
            self._vector_name = points.SPARSE_VECTOR_NAME
        self._segment_size = self._choose_segment_size()
        self._folder = opening.folder / opening.collection
        self._unfinished_folder = opening.folder / f"{opening.collection}.unfinished"
        self._lock: BaseFileLock | None = None
        self._shard: qdrant_edge.EdgeShard | None = None
        self._ids: list[str] = []
        self._segment_points = 0
        """Points in the segment that is being filled."""

    def _choose_segment_size(self) -> int:
        """Return how many points a segment has, at most."""
        if self.approximate or self._form != "dense":
            return UNLIMITED_SEGMENT
        points_per_core = math.ceil(self._documents / (os.cpu_count() or 1))
        return max(MIN_SEGMENT_POINTS, points_per_core)

    @property
    def approximate(self) -> bool:
        """Whether a graph or compressed vectors are set."""
        return self._options.approximate

    @property
    def facts(self) -> CollectionFacts:
        """The size of an approximate collection, and how much of it is indexed."""
        if not self.approximate:
            return CollectionFacts()
        with self._open_engine() as shard:
            info = shard.info()
            return CollectionFacts(
                points=info.points_count, indexed_points=info.indexed_vectors_count
            )

    def finished(self) -> dict[str, tuple[str, ...]] | None:
        """Return the notes stored with a complete collection; None for any other."""
        with points.explain_engine_errors(self._folder):
            # Folders of earlier versions lack it: points had their documents' ids.
            if not (self._folder / IDS_FILE).exists():
                return None
        # Opened now, so that the time of a search does not include it.
        with self._open_engine():
            notes_text = (self._folder / NOTES_FILE).read_text(encoding="utf-8")
            notes = json.loads(notes_text)
            return {kind: tuple(ids) for kind, ids in notes.items()}

    def create(self, dimensions: int, *, anew: bool = False) -> None:
        """Create an empty collection; a finished one stays until `finish`.

        An unfinished one is removed in any case, whether `anew` or not.
        """
        import qdrant_edge as edge

        self.close()
        self._ids = []
        self._segment_points = 0
        segment_kb = self._segment_size * dimensions * 4 // 1024
        config = edge.EdgeConfig(
            **_vectors_arguments(self._form, dimensions),
            hnsw_config=edge.HnswIndexConfig(
                m=self._options.m,
                ef_construct=self._options.ef_construct,
                full_scan_threshold=1 if self._options.m else UNLIMITED_SEGMENT,
            ),
            quantization_config=_quantization_config(self._options.quantization),
            optimizers=edge.EdgeOptimizersConfig(
                default_segment_number=1,
                indexing_threshold=1,
                max_segment_size=min(segment_kb, UNLIMITED_SEGMENT),
            ),
            # An unfinished collection is built again: there is nothing to replay.
            wal_enabled=False,
        )
        with points.explain_engine_errors(self._folder):
            self._acquire_lock()
            shutil.rmtree(self._unfinished_folder, ignore_errors=True)
            self._unfinished_folder.mkdir()
            self._check_disk_space(dimensions)
            self._shard = edge.EdgeShard.create(str(self._unfinished_folder), config)

    def _check_disk_space(self, dimensions: int) -> None:
        """Raise InputError if the collection may not fit on the disk.

        Optimising copies a segment, up to twice. If a mapped file cannot grow, the
        process dies. Vectors that differ in length, sparse ones and those of tokens,
        are not counted: their size is not known yet.
        """
        segment_points = min(self._segment_size, self._documents)
        stored_points = self._documents + 2 * segment_points
        vector_bytes = 4 * dimensions if self._form == "dense" else 0
        point_bytes = vector_bytes + POINT_OVERHEAD_BYTES
        needed_bytes = SPARE_DISK_BYTES + point_bytes * stored_points
        free_bytes = shutil.disk_usage(self._folder.parent).free
        if free_bytes < needed_bytes:
            problem = (
                f"needs {needed_bytes / 1e6:,.0f} MB of disk, "
                f"and {free_bytes / 1e6:,.0f} MB are free"
            )
            remedy = "free disk space, then run again"
            raise InputError(Problem(f"store {self._folder}", problem, remedy))

    def upsert(
        self,
        ids: Sequence[str],
        vectors: AnyVectors,
        fields: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Add points, which are numbered in their order."""
        import qdrant_edge as edge

        payloads: list[points.Payload | None] = [None] * len(ids)
        for i, document_fields in enumerate(fields):
            pairs = points.field_pairs(document_fields)
            payloads[i] = {points.FIELDS_PAYLOAD_KEY: pairs}
        start = 0
        with self._open_engine() as shard:
            if fields and not self._ids:
                create_index = edge.UpdateOperation.create_field_index(
                    points.FIELDS_PAYLOAD_KEY, edge.PayloadSchemaType.Keyword
                )
                shard.update(create_index)
            while start < len(ids):
                if self._segment_points == self._segment_size:
                    shard.optimize()
                    self._segment_points = 0
                room = self._segment_size - self._segment_points
                stop = min(start + EDGE_UPSERT_BATCH, len(ids), start + room)
                batch = self._engine_points(
                    vectors[start:stop], payloads[start:stop], len(self._ids) + start
                )
                shard.update(edge.UpdateOperation.upsert_points(batch))
                self._segment_points += stop - start
                start = stop
        self._ids += ids

    def _engine_points(
        self,
        vectors: AnyVectors,
        payloads: Sequence[points.Payload | None],
        first_number: int,
    ) -> list[qdrant_edge.Point]:
        """Return points with consecutive numbers."""
        import qdrant_edge as edge

        point_vectors = points.engine_vectors(edge, unit_rows(vectors), _as_view)
        if self._vector_name:
            point_vectors = [{self._vector_name: vector} for vector in point_vectors]
        numbers = range(first_number, first_number + len(payloads))
        rows = zip(numbers, point_vectors, payloads, strict=True)
        return [edge.Point(*row) for row in rows]

    def finish(self, notes: Mapping[str, Sequence[str]]) -> None:
        """Build the index, store the notes, and rename the folder."""
        import qdrant_edge as edge

        with self._open_engine() as shard:
            if self.approximate:
                shard.optimize()
            shard.flush()
            stored_count = shard.count(edge.CountRequest(exact=True))
            points.check_point_count(len(self._ids), stored_count)
            # An id that occurs twice has two points here, since points are numbered.
            points.check_point_count(len(self._ids), len(set(self._ids)))
            shard.close()
            self._shard = None
            notes_table = {kind: list(ids) for kind, ids in notes.items()}
            self._write_json(NOTES_FILE, notes_table)
            self._write_json(IDS_FILE, self._ids)
            shutil.rmtree(self._folder, ignore_errors=True)
            self._unfinished_folder.rename(self._folder)
        # Opened now, so that the time of a search does not include it.
        with self._open_engine():
            pass

    def _write_json(self, name: str, content: object) -> None:
        """Write a file in the unfinished folder."""
        json_text = json.dumps(content, ensure_ascii=False)
        (self._unfinished_folder / name).write_text(json_text, encoding="utf-8")

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
        import qdrant_edge as edge

        params = points.search_params(edge, self._options, exact=exact)
        filters: list[edge.Filter | None] = [None] * len(vectors)
        for i, filter_values in enumerate(query_filters):
            filters[i] = points.payload_filter(edge, filter_values)

        def search(positions: list[int], requested: int) -> Iterator[points.EngineHits]:
            for start in range(0, len(positions), EDGE_SEARCH_BATCH):
                batch = positions[start : start + EDGE_SEARCH_BATCH]
                query_vectors = points.engine_vectors(
                    edge, unit_rows(vectors[batch]), _as_view
                )
                requests = [
                    edge.QueryRequest(
                        limit=requested,
                        query=edge.Query.Nearest(vector, using=self._vector_name),
                        filter=filters[position],
                        params=params,
                    )
                    for position, vector in zip(batch, query_vectors, strict=True)
                ]
                yield from self._query_hits(requests)

        return points.search_past_ties(search, vectors, limit)

    def _query_hits(
        self, requests: list[qdrant_edge.QueryRequest]
    ) -> Iterator[points.EngineHits]:
        """Yield the engine's hits for each request."""
        import qdrant_edge as edge

        with self._open_engine() as shard:
            hit_lists: Any = shard.query_batch(edge.QueryBatchRequest(requests))
        for hits in hit_lists:
            doc_ids = [self._ids[hit.id] for hit in hits]
            yield points.EngineHits(doc_ids, [hit.score for hit in hits])

    def close(self) -> None:
        """Release the collection, so that another process may open it."""
        if self._shard is not None:
            self._shard.close()
        if self._lock is not None:
            self._lock.release()
        self._shard = None
        self._lock = None

    def _acquire_lock(self) -> None:
        """Lock the collection; raise InputError if another process uses it."""
        from filelock import FileLock, Timeout

        if self._lock is not None:
            return
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        # One lock per process: its retrievers may search one collection in several
        # ways.
        lock = FileLock(
            f"{self._folder}.lock", timeout=0, is_singleton=True, thread_local=False
        )
        try:
            lock.acquire()
        except Timeout:
            remedy = "wait until it is done, or set another folder"
            raise InputError(
                Problem(f"store {self._folder}", "another process uses it", remedy)
            ) from None
        self._lock = lock

    @contextmanager
    def _open_engine(self) -> Iterator[qdrant_edge.EdgeShard]:
        """Give the open engine, and convert its errors; opened if it is closed."""
        import qdrant_edge as edge

        with points.explain_engine_errors(self._folder):
            if self._shard is None:
                self._acquire_lock()
                ids_text = (self._folder / IDS_FILE).read_text(encoding="utf-8")
                self._ids = json.loads(ids_text)
                self._shard = edge.EdgeShard.load(str(self._folder))
            yield self._shard


def _quantization_config(
    quantization: str | None,
) -> qdrant_edge.QuantizationConfigType | None:
    """Return the engine's configuration of compressed vectors; None for full ones."""
    import qdrant_edge as edge

    if quantization == "scalar":
        return edge.ScalarQuantizationConfig(type=edge.ScalarType.Int8, quantile=0.99)
    if quantization == "product":
        return edge.ProductQuantizationConfig(compression=edge.CompressionRatio.X16)
    if quantization == "binary":
        return edge.BinaryQuantizationConfig()
    return None


def _vectors_arguments(form: VectorForm, dimensions: int) -> dict[str, Any]:
    """Return the arguments of EdgeConfig for the form of the vectors."""
    import qdrant_edge as edge

    if form == "sparse":
        sparse_params = edge.EdgeSparseVectorParams()
        return {"sparse_vectors": {points.SPARSE_VECTOR_NAME: sparse_params}}
    if form == "dense":
        dense_params = edge.EdgeVectorParams(
            size=dimensions, distance=edge.Distance.Cosine
        )
        return {"vectors": dense_params}
    token_params = edge.EdgeVectorParams(
        size=dimensions,
        distance=edge.Distance.Dot,
        multivector_config=edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim),
    )
    return {"vectors": token_params}


def _as_view(vector: Any) -> memoryview:
    """Return a vector as a view, which the engine reads faster than a list."""
    contiguous: Any = np.ascontiguousarray(vector)
    return memoryview(contiguous)
