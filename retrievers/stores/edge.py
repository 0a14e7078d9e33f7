"""A collection of Qdrant Edge."""

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
EDGE_SEARCH_BATCH = 256
"""Points, and queries, handed over in one call."""
UNLIMITED_SEGMENT = 2**40
SPARE_DISK_BYTES = 64 * 2**20
"""Bytes that have to stay free: what the engine lays out ahead."""
NOTES_FILE, IDS_FILE = "notes.json", "ids.json"


class EdgeStore(Store):
    """One collection in a folder of its own; built in a temporary folder and moved when it is complete.

    The engine searches the segments of a collection in parallel, but leaves all points in one until told to optimise.
    So an exact collection gets as many segments as there are processors; the last needs no optimising. An
    approximate one is indexed as a whole, since a graph of all points is searched faster than several. One of sparse
    vectors, or of vectors of tokens, stays one segment: how much a segment holds is told the engine before it is known.

    A point's id is its number, and the document ids are in a file of their own: the engine takes such points in a
    third less time than with ids of 128 bits and a payload, and gives deep rankings twice as fast.

    A folder of the collection's name is a finished collection, whatever happened to the process that made it. The
    collection is locked against other processes while it is open, since the engine writes to its files even when it
    only reads.
    """

    def __init__(self, opening: StoreOpening) -> None:
        """Take what is opened; raises InputError where the engine is not installed."""
        if importlib.util.find_spec("qdrant_edge") is None:
            what = f"the edge store, for {opening.documents} documents, needs the package qdrant-edge-py"
            raise InputError(
                Problem(
                    "store", what, "pip install qdrant-edge-py, or name another store"
                )
            )
        self._options, self._documents = opening.options, opening.documents
        self._form: VectorForm = opening.form
        self._vector = points.SPARSE_VECTOR_NAME if opening.form == "sparse" else None
        """The name of the vectors, where they have one."""
        whole = self.approximate or self._form != "dense"
        self._segment = (
            UNLIMITED_SEGMENT
            if whole
            else max(
                MIN_SEGMENT_POINTS, math.ceil(self._documents / (os.cpu_count() or 1))
            )
        )
        self._folder = opening.folder / opening.collection
        self._unfinished = opening.folder / f"{opening.collection}.unfinished"
        self._lock: BaseFileLock | None = None
        self._shard: qdrant_edge.EdgeShard | None = None
        self._ids: list[str] = []
        self._in_segment = 0

    @property
    def approximate(self) -> bool:
        """Whether a graph or compressed vectors were asked for."""
        return self._options.approximate

    @property
    def facts(self) -> Mapping[str, str]:
        """How much of an approximate collection is in the graph or compressed."""
        if not self.approximate:
            return {}
        with self._engine() as shard:
            info = shard.info()
            return {
                "points": str(info.points_count),
                "indexed_points": str(info.indexed_vectors_count),
            }

    def finished(self) -> dict[str, tuple[str, ...]] | None:
        """Return the notes kept with the collection if it is there and complete, else None."""
        if not (
            self._folder / IDS_FILE
        ).exists():  # or one of before, whose points carried their documents' ids
            return None
        with (
            self._engine()
        ):  # opened now, so that the time of a search is that of searching
            kept = json.loads((self._folder / NOTES_FILE).read_text(encoding="utf-8"))
            return {kind: tuple(ids) for kind, ids in kept.items()}

    def create(self, dimensions: int, *, anew: bool = False) -> None:
        """Make the collection anew and empty, next to any finished one."""
        import qdrant_edge as edge

        self.close()
        self._ids, self._in_segment = [], 0
        m, largest = (
            self._options.m,
            min(self._segment * dimensions * 4 // 1024, UNLIMITED_SEGMENT),
        )
        scanned, efforts = 1 if m else UNLIMITED_SEGMENT, self._options.ef_construct
        config = edge.EdgeConfig(
            **_vectors(self._form, dimensions),
            hnsw_config=edge.HnswIndexConfig(
                m=m, ef_construct=efforts, full_scan_threshold=scanned
            ),
            quantization_config=_quantization(self._options.quantization),
            optimizers=edge.EdgeOptimizersConfig(
                default_segment_number=1, indexing_threshold=1, max_segment_size=largest
            ),
            wal_enabled=False,  # an unfinished collection is made anew, so there is nothing to replay
        )
        with points.explain_engine_errors(self._folder):
            self._hold()
            shutil.rmtree(self._unfinished, ignore_errors=True)
            self._unfinished.mkdir()
            # Optimising copies a segment, up to twice; where a mapped file cannot grow, the process dies.
            needed = SPARE_DISK_BYTES + (4 * dimensions + 110) * (
                self._documents + 2 * min(self._segment, self._documents)
            )
            if (free := shutil.disk_usage(self._folder.parent).free) < needed:
                what = f"needs {needed / 1e6:,.0f} MB of disk, and {free / 1e6:,.0f} MB are free"
                raise InputError(
                    Problem(
                        f"store {self._folder}", what, "free disk space, then run again"
                    )
                )
            self._shard = edge.EdgeShard.create(str(self._unfinished), config)

    def upsert(
        self,
        ids: Sequence[str],
        vectors: AnyVectors,
        fields: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Add points, which are numbered as they come."""
        import qdrant_edge as edge

        kept = (
            [{points.FIELDS_PAYLOAD_KEY: points.field_pairs(own)} for own in fields]
            if fields
            else [None] * len(ids)
        )
        start = 0
        with self._engine() as shard:
            if fields and not self._ids:
                shard.update(
                    edge.UpdateOperation.create_field_index(
                        points.FIELDS_PAYLOAD_KEY, edge.PayloadSchemaType.Keyword
                    )
                )
            while start < len(ids):
                if self._in_segment == self._segment:
                    shard.optimize()
                    self._in_segment = 0
                stop = min(
                    start + EDGE_UPSERT_BATCH,
                    len(ids),
                    start + self._segment - self._in_segment,
                )
                some = slice(start, stop)
                numbers = range(len(self._ids) + start, len(self._ids) + stop)
                values = points.engine_vectors(edge, unit_rows(vectors[some]), _row)
                values = (
                    [{self._vector: one} for one in values] if self._vector else values
                )
                rows = zip(numbers, values, kept[some], strict=True)
                shard.update(
                    edge.UpdateOperation.upsert_points(
                        [edge.Point(*row) for row in rows]
                    )
                )
                self._in_segment += stop - start
                start = stop
        self._ids += ids

    def finish(self, notes: Mapping[str, Sequence[str]]) -> None:
        """Build the index, put the collection in its place, and keep the notes with it."""
        import qdrant_edge as edge

        with self._engine() as shard:
            if self.approximate:
                shard.optimize()
            shard.flush()
            points.check_point_count(
                len(self._ids), shard.count(edge.CountRequest(exact=True))
            )
            points.check_point_count(len(self._ids), len(set(self._ids)))
            shard.close()
            self._shard = None
            for name, kept in (
                (NOTES_FILE, {kind: list(ids) for kind, ids in notes.items()}),
                (IDS_FILE, self._ids),
            ):
                (self._unfinished / name).write_text(
                    json.dumps(kept, ensure_ascii=False), encoding="utf-8"
                )
            shutil.rmtree(self._folder, ignore_errors=True)
            self._unfinished.rename(self._folder)
        with self._engine():
            pass

    def search(
        self,
        vectors: AnyVectors,
        limit: int,
        *,
        exact: bool = False,
        query_filters: QueryFilters = (),
    ) -> list[Ranking]:
        """Return one ranking per query vector: the best `limit` points, ties at the limit resolved."""
        import qdrant_edge as edge

        how = {"params": points.search_params(edge, self._options, exact=exact)}
        filters: list[edge.Filter | None] = [
            points.payload_filter(edge, one) for one in query_filters
        ] or [None] * len(vectors)

        def ask(positions: list[int], size: int) -> Iterator[points.EngineHits]:
            for start in range(0, len(positions), EDGE_SEARCH_BATCH):
                some = positions[start : start + EDGE_SEARCH_BATCH]
                values = points.engine_vectors(edge, unit_rows(vectors[some]), _row)
                asked = zip(
                    some,
                    [edge.Query.Nearest(one, using=self._vector) for one in values],
                    strict=True,
                )
                requests = [
                    edge.QueryRequest(limit=size, query=one, filter=filters[at], **how)
                    for at, one in asked
                ]
                with self._engine() as shard:
                    answers: Any = shard.query_batch(edge.QueryBatchRequest(requests))
                for found in answers:
                    yield points.EngineHits(
                        [self._ids[one.id] for one in found],
                        [one.score for one in found],
                    )

        return points.search_past_ties(ask, vectors, limit)

    def close(self) -> None:
        """Let go of the collection, so that another process may have it."""
        if self._shard is not None:
            self._shard.close()
        if self._lock is not None:
            self._lock.release()
        self._shard = self._lock = None

    def _hold(self) -> None:
        from filelock import FileLock, Timeout

        if self._lock is None:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            # One lock a process: its retrievers may search one collection in several ways.
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
    def _engine(self) -> Iterator[qdrant_edge.EdgeShard]:
        """The engine, opened if it is not; its errors become ours."""
        import qdrant_edge as edge

        with points.explain_engine_errors(self._folder):
            if self._shard is None:
                self._hold()
                self._ids = json.loads(
                    (self._folder / IDS_FILE).read_text(encoding="utf-8")
                )
                self._shard = edge.EdgeShard.load(str(self._folder))
            yield self._shard


def _quantization(kind: str | None) -> qdrant_edge.QuantizationConfigType | None:
    import qdrant_edge as edge

    known: dict[str | None, qdrant_edge.QuantizationConfigType] = {
        "scalar": edge.ScalarQuantizationConfig(
            type=edge.ScalarType.Int8, quantile=0.99
        ),
        "product": edge.ProductQuantizationConfig(
            compression=edge.CompressionRatio.X16
        ),
        "binary": edge.BinaryQuantizationConfig(),
    }
    return known.get(kind)


def _vectors(form: VectorForm, dimensions: int) -> dict[str, Any]:
    """Return the arguments of EdgeConfig that say what the vectors are."""
    import qdrant_edge as edge

    if form == "sparse":
        return {
            "sparse_vectors": {points.SPARSE_VECTOR_NAME: edge.EdgeSparseVectorParams()}
        }
    if form == "dense":
        return {
            "vectors": edge.EdgeVectorParams(
                size=dimensions, distance=edge.Distance.Cosine
            )
        }
    best = edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim)
    return {
        "vectors": edge.EdgeVectorParams(
            size=dimensions, distance=edge.Distance.Dot, multivector_config=best
        )
    }


def _row(vector: Any) -> memoryview:
    """Return a vector as the engine takes it in fastest: as a view, not as a list of floats."""
    contiguous: Any = np.ascontiguousarray(vector)
    return memoryview(contiguous)
