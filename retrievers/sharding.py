"""Embedding in shards: the requests of a run, each distinct text in one of them, written as Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from retrievers.embedding import Embedder, distinct_texts
from retrievers.meter import Meter
from retrievers.ragged import joined, numbers_of
from retrievers.shard_file import FileWriter
from retrievers.storage import Storage
from retrievers.types import Embedded, Encoder, Role
from retrievers.vector_search import window_of
from retrievers.vector_shards import VectorShards, put_file, vector_keys

GROUP = 4096
"""Texts that are looked up, embedded and written together."""
FILE_NUMBERS = 1 << 26
"""Numbers of a file, about: 256 MiB. A shard has one file, unless its vectors are more."""

Request = tuple[str, ...]
"""Texts that are sent together."""


class Writing(NamedTuple):
    """What became of some requests."""

    texts: int
    """Distinct texts."""
    present: int
    """Of them, those whose vectors lay there already."""
    parts: int
    """Files that were written."""


def planned_requests(
    encoder: Encoder, windows: Iterable[Sequence[str]], role: Role, planned: set[bytes]
) -> Iterator[Request]:
    """Yield the requests that a run would send with an empty cache, in its order.

    Args:
        encoder: packs texts into requests.
        windows: the texts as a run meets them; requests are planned within each.
        role: of the texts.
        planned: the keys of the texts that stand in a request already; those of the requests yielded are added.
    """
    for window in windows:
        texts = distinct_texts(window)
        names = vector_keys(encoder.fingerprint_for(role), role, texts).tolist()
        for request in encoder.batches(texts, role):
            new = [i for i in request if names[i] not in planned]
            planned.update(names[i] for i in new)
            if new:
                yield tuple(texts[i] for i in new)


def write_shard(embedder: Embedder, role: Role, storage: Storage, requests: Iterable[Request], meter: Meter) -> Writing:
    """Embed the texts of some requests whose vectors do not lie in a storage yet, and write them as one file.

    What was answered before a request failed for good is written too.

    Args:
        embedder: an encoder with its cache, in which each answer is kept at once.
        role: of the texts.
        storage: where the file goes, and what is listed once, first; errors as `VectorShards`.
        requests: texts, each in one request.
        meter: where counts go.

    Raises:
        BackendError: a request failed for good, or a file cannot be written.
    """
    fingerprint = embedder.encoder.fingerprint_for(role)
    present = VectorShards(storage, fingerprint, role)
    file = _Filling(storage, fingerprint, role)
    asked = absent = 0
    try:
        for group in _groups(requests, min(GROUP, window_of(embedder.encoder.form))):
            wanted = [some for request in group if (some := _without(request, present, fingerprint, role))]
            texts = [text for request in wanted for text in request]
            asked, absent = asked + sum(map(len, group)), absent + len(texts)
            ends = np.cumsum([0, *map(len, wanted)]).tolist()
            plan = [range(start, end) for start, end in pairwise(ends)]
            try:
                for positions, embedded, _ in embedder.answered(texts, lambda plan=plan: plan, role, meter):  # type: ignore[misc]
                    file.take([texts[i] for i in positions.tolist()], embedded)
            finally:
                file.write_group()
    finally:
        file.put()
    return Writing(asked, asked - absent, file.written)


class _Filling:
    """The file that is being filled, group by group; put into the storage when it is full, and at the end."""

    def __init__(self, storage: Storage, fingerprint: str, role: Role) -> None:
        self._storage, self._fingerprint, self._role = storage, fingerprint, role
        self._texts: list[str] = []
        self._pieces: list[Embedded] = []
        self._writer: FileWriter | None = None
        self._numbers = 0
        self.written = 0
        """Files."""

    def take(self, texts: Sequence[str], embedded: Embedded) -> None:
        """Take vectors of texts."""
        self._texts += texts
        self._pieces.append(embedded)

    def write_group(self) -> None:
        """Write what was taken, if anything was, as one row group."""
        if not self._texts:
            return
        vectors, tokens, truncated = zip(*self._pieces, strict=True)
        whole = Embedded(joined(vectors), np.concatenate(tokens), np.concatenate(truncated))
        names = vector_keys(self._fingerprint, self._role, self._texts)
        self._texts, self._pieces = [], []
        self._writer = self._writer or FileWriter(self._fingerprint, self._role)
        self._writer.add(names, whole)
        self._numbers += numbers_of(whole.vectors)
        if self._numbers >= FILE_NUMBERS:
            self.put()

    def put(self) -> None:
        """Put the file into the storage, if there is one."""
        writer, self._writer, self._numbers = self._writer, None, 0  # once, also where it cannot be written
        if writer is not None:
            with closing(writer):
                put_file(self._storage, self._fingerprint, self._role, writer)
            self.written += 1


def _without(request: Request, present: VectorShards, fingerprint: str, role: Role) -> Request:
    """The texts of a request that do not lie there."""
    held = present.held(vector_keys(fingerprint, role, request)).tolist()
    return tuple(text for text, is_held in zip(request, held, strict=True) if not is_held)


def _groups(requests: Iterable[Request], size: int) -> Iterator[list[Request]]:
    """Cut requests into groups of about `size` texts."""
    stream = iter(requests)
    while first := next(stream, None):
        yield [first, *islice(stream, size // len(first) - 1)] if len(first) < size else [first]
