"""Collections kept by qdrant-client: in memory or in a folder."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from retrievers.errors import InputError, Problem
from retrievers.stores.options import MEMORY
from retrievers.stores.points import Found, count_matches, engine_errors, found, past_ties, point_id
from retrievers.types import Ranking, Vectors

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

BATCH = 1024
"""Points a request, and queries a request."""
Notes = Mapping[str, Sequence[str]]


class QdrantStore:
    """One collection, searched exactly.

    Cosine is the dot product of unit vectors, and so it is kept here: under `Distance.COSINE` the client normalises
    its vectors again at each query, in place, so that the answer to a question would depend on those asked before
    (by one unit in the last place). A folder holds one collection in a folder of its own, since the client locks and
    loads a folder as a whole.
    """

    approximate = False

    def __init__(self, location: str, collection: str) -> None:
        self.location = location
        self.collection = collection
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

    def create(self, dimensions: int) -> None:
        """Make the collection anew and empty."""
        from qdrant_client.models import Distance, VectorParams

        client = self._open()
        self._added = 0
        if client.collection_exists(self.collection):
            client.delete_collection(self.collection)
        client.create_collection(self.collection, VectorParams(size=dimensions, distance=Distance.DOT))

    def upsert(self, ids: Sequence[str], vectors: Vectors) -> None:
        """Add points, or replace those with the same document id."""
        client = self._open()
        units = _units(vectors)
        with engine_errors(self.location), _quiet():
            for start in range(0, len(ids), BATCH):
                some = ids[start : start + BATCH]
                client.upload_collection(
                    self.collection,
                    vectors=units[start : start + BATCH],
                    ids=list(map(point_id, some)),
                    payload=[{"id": doc_id} for doc_id in some],
                    wait=True,
                )
        self._added += len(ids)

    def finish(self, notes: Notes) -> None:
        """Mark the collection complete and keep the notes with it."""
        count_matches(self._added, self._open().count(self.collection, exact=True).count)
        kept = {kind: list(ids) for kind, ids in notes.items()}
        self._open().update_collection(self.collection, metadata={"finished": kept})
        if self.location != MEMORY:
            self.close()  # what is read back has other float noise: search that now, as every later run will

    def search(self, vectors: Vectors, limit: int, *, exact: bool = True) -> list[Ranking]:
        """Return one ranking per query vector: the best `limit` points, ties at the limit resolved."""
        return past_ties(self._ask, vectors, limit)

    def close(self) -> None:
        """Let go of the collection; a folder is free for another process."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _ask(self, vectors: Vectors, limit: int) -> Iterator[Found]:
        from qdrant_client.models import QueryRequest

        for start in range(0, len(vectors), BATCH):
            some = _units(vectors[start : start + BATCH]).tolist()
            requests = [QueryRequest(query=vector, limit=limit, with_payload=True) for vector in some]
            with engine_errors(self.location):
                responses = self._open().query_batch_points(self.collection, requests)
            yield from map(found, responses)

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


def _units(vectors: Vectors) -> Vectors:
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / norms, dtype=np.float32)
