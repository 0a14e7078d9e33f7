"""Collections kept by qdrant-client: in memory or in a folder."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from retrievers.errors import InputError, Problem
from retrievers.ragged import AnyVectors, Form, SparseVectors, TokenVectors, unit_rows
from retrievers.stores.client_vectors import collection_of, name_of, points_of, queries_of, requests
from retrievers.stores.options import MEMORY, Opening
from retrievers.stores.points import (
    EngineHits,
    count_matches,
    engine_errors,
    engine_hits,
    filter_of,
    hits_of,
    past_ties,
    payloads,
    point_id,
)
from retrievers.types import Ranking, Vectors, Wanted

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

BATCH = 1024
"""Points a request, and queries a request."""
Notes = Mapping[str, Sequence[str]]


class Matching(NamedTuple):
    """The points that a filter leaves."""

    ids: list[str]
    units: Vectors
    """(n, dimensions), each of length 1."""


class QdrantStore:
    """One collection, searched exactly.

    Cosine is the dot product of unit vectors, and so it is kept here: under `Distance.COSINE` the client normalises
    its vectors again at each query, in place, so that the answer to a question would depend on those asked before
    (by one unit in the last place). A folder holds one collection in a folder of its own, since the client locks and
    loads a folder as a whole.
    """

    approximate = False

    def __init__(self, location: str, collection: str, form: Form = "dense") -> None:
        self.location = location
        self.collection = collection
        self._form: Form = form
        self._client: QdrantClient | None = None
        self._added = 0

    def finished(self) -> dict[str, tuple[str, ...]] | None:
        """Return the notes kept with the collection if it is there and complete, else None."""
        if self.location == MEMORY or not self._folder.exists():
            return None
        client = self._open()
        if not client.collection_exists(self.collection):
            return None
        metadata = client.get_collection(self.collection).config.metadata or {}
        if "finished" not in metadata:
            return None
        return {kind: tuple(ids) for kind, ids in metadata["finished"].items()}

    def create(self, dimensions: int, *, anew: bool = True) -> None:
        """Make the collection anew and empty."""
        from qdrant_client.models import Distance

        client = self._open()
        self._added = 0
        if client.collection_exists(self.collection):
            client.delete_collection(self.collection)
        client.create_collection(self.collection, **collection_of(self._form, dimensions, Distance.DOT))

    def upsert(self, ids: Sequence[str], vectors: AnyVectors, fields: Sequence[Mapping[str, str]] = ()) -> None:
        """Add points, or replace those with the same document id."""
        from qdrant_client.models import Batch

        client = self._open()
        units, kept = unit_rows(vectors), payloads(ids, fields)
        with engine_errors(self.location), _quiet():
            for batch in requests(units, BATCH):
                points, some = list(map(point_id, ids[batch])), units[batch]
                if isinstance(some, SparseVectors | TokenVectors):
                    whole = Batch(ids=list(points), vectors=points_of(some), payloads=kept[batch])
                    client.upsert(self.collection, whole, wait=True)
                else:
                    client.upload_collection(self.collection, vectors=some, ids=points, payload=kept[batch], wait=True)
        self._added += len(ids)

    def finish(self, notes: Notes) -> None:
        """Mark the collection complete and keep the notes with it."""
        count_matches(self._added, self._open().count(self.collection, exact=True).count)
        kept = {kind: list(ids) for kind, ids in notes.items()}
        self._open().update_collection(self.collection, metadata={"finished": kept})
        if self.location != MEMORY:
            self.close()  # what is read back has other float noise: search that now, as every later run will

    def search(
        self, vectors: AnyVectors, limit: int, *, exact: bool = True, wanted: Sequence[Wanted] = ()
    ) -> list[Ranking]:
        """Return one ranking per query vector: the best `limit` points, ties at the limit resolved."""
        units = unit_rows(vectors)
        if wanted and not isinstance(units, SparseVectors | TokenVectors):
            return past_ties(partial(self._ask_matching, units, wanted, {}), len(vectors), limit)

        def ask(positions: list[int], size: int) -> Iterator[EngineHits]:
            return self._ask(units[positions], [wanted[i] for i in positions] if wanted else (), size)

        return hits_of(vectors, past_ties(ask, len(vectors), limit))

    def close(self) -> None:
        """Let go of the collection; a folder is free for another process."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _ask_matching(
        self, units: Vectors, wanted: Sequence[Wanted], held: dict[Wanted, Matching], positions: list[int], size: int
    ) -> Iterator[EngineHits]:
        """Answer from the points that the engine's payload filter leaves.

        The client goes through all payloads in Python for each request (25 microseconds a point), so it is asked once
        for each filter and not for each query; an exact search of what it leaves is one product with a matrix.
        """
        for position in positions:
            one = wanted[position]
            if one not in held:
                held[one] = self._matching(one, units.shape[1])
            scores = held[one].units @ units[position]
            best = np.argsort(-scores)[:size]
            yield EngineHits([held[one].ids[i] for i in best.tolist()], scores[best].tolist())

    def _matching(self, wanted: Wanted, dimensions: int) -> Matching:
        with engine_errors(self.location):
            client = self._open()
            records, _ = client.scroll(
                self.collection,
                scroll_filter=filter_of(wanted),
                limit=client.count(self.collection, exact=True).count,
                with_payload=True,
                with_vectors=True,
            )
        units = np.array([one.vector for one in records], np.float32).reshape(-1, dimensions)
        return Matching([(one.payload or {})["id"] for one in records], units)

    def _ask(self, vectors: AnyVectors, wanted: Sequence[Wanted], limit: int) -> Iterator[EngineHits]:
        from qdrant_client.models import QueryRequest

        for batch in requests(vectors, BATCH):
            some = queries_of(vectors[batch])
            filters = [*map(filter_of, wanted[batch])] if wanted else [None] * len(some)
            asked = [
                QueryRequest(query=one, limit=limit, with_payload=True, using=name_of(vectors), filter=only)
                for one, only in zip(some, filters, strict=True)
            ]
            with engine_errors(self.location):
                responses = self._open().query_batch_points(self.collection, asked)
            yield from map(engine_hits, responses)

    @property
    def _folder(self) -> Path:
        return Path(self.location).expanduser() / self.collection

    def _open(self) -> QdrantClient:
        if self._client is None:
            from qdrant_client import QdrantClient

            with engine_errors(self.location), _quiet():
                try:
                    self._client = (
                        QdrantClient(MEMORY) if self.location == MEMORY else QdrantClient(path=str(self._folder))
                    )
                except RuntimeError as error:  # all that the client says where the folder is locked
                    remedy = "wait until it is done, or name another folder"
                    raise InputError(Problem(f"store {self._folder}", "another process uses it", remedy)) from error
        return self._client


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the client's advice against more than 20,000 points: `StoreOptions.resolved` heeds it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Local mode is not recommended")
        yield


def opened(opening: Opening) -> QdrantStore:
    """Return the collection in memory, or in the folder that the location names."""
    return QdrantStore(opening.location, opening.collection, opening.form)
