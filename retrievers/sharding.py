"""Embedding in shards: the requests of a run, each distinct text in one of them, written as Parquet files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Self

import numpy as np

from retrievers.embedding import Embedder, Portion, distinct_texts
from retrievers.errors import BackendError
from retrievers.meter import Meter
from retrievers.ragged import numbers_of
from retrievers.shard_file import KEY_BYTES, Keys, column_of
from retrievers.storage import Storage
from retrievers.types import Embedded, Encoder, Role
from retrievers.vector_search import window_of
from retrievers.vector_shards import VectorShards, file_name, folder_of, vector_keys

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetWriter

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
    asked = absent = 0
    with ShardWriter(storage, fingerprint, role) as writer:
        for group in _groups(requests, min(GROUP, window_of(embedder.encoder.form))):
            wanted = [some for request in group if (some := _without(request, present, fingerprint, role))]
            texts = [text for request in wanted for text in request]
            asked, absent = asked + sum(map(len, group)), absent + len(texts)
            ends = np.cumsum([0, *map(len, wanted)]).tolist()
            plan = [range(start, end) for start, end in pairwise(ends)]
            portions: list[Portion] = []
            try:
                for portion in embedder.answered(texts, lambda plan=plan: plan, role, meter):  # type: ignore[misc]
                    portions.append(portion)
            finally:
                if portions:
                    positions, pieces, _ = zip(*portions, strict=True)
                    names = vector_keys(fingerprint, role, [texts[i] for i in np.concatenate(positions).tolist()])
                    writer.add(names, Embedded.of(pieces))
    return Writing(asked, asked - absent, len(writer.paths))


class ShardWriter:
    """Writes a file of vectors row group by row group on this machine, and puts it into a storage at the end, or full.

    Memory holds one row group, and the keys. What was added is put there also where the block ends with an error.
    """

    def __init__(self, storage: Storage, fingerprint: str, role: Role) -> None:
        self._storage, self._fingerprint, self._role = storage, fingerprint, role
        self._keys: list[Keys] = []
        self._writer: ParquetWriter | None = None
        self._content: BinaryIO
        self._numbers = 0
        self.paths: list[str] = []
        """Of the files that were put."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._put()

    def add(self, names: Keys, embedded: Embedded) -> None:
        """Write the vectors of some distinct texts as one row group.

        Raises:
            BackendError: the folder for temporary files is full, or may not be written; or the storage fails.
        """
        import pyarrow as pa
        from pyarrow import parquet

        table = pa.table(
            {
                "key": pa.array(names.tolist(), type=pa.binary(KEY_BYTES)),
                "vector": column_of(embedded.vectors),
                "tokens": pa.array(embedded.tokens.astype(np.int64)),
                "lost": pa.array(embedded.truncated_tokens.astype(np.int64)),
            },
            metadata={
                "fingerprint": self._fingerprint, "role": self._role, "dimensions": str(embedded.vectors.shape[1]),
            },
        )  # fmt: skip
        try:
            if self._writer is None:
                self._content = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it is put
                self._writer = parquet.ParquetWriter(
                    self._content, table.schema, write_page_checksum=True, compression="zstd"
                )
            self._writer.write_table(table)
        except OSError as failure:
            raise BackendError(f"a temporary file cannot be written: {failure}") from failure
        self._keys.append(names)
        self._numbers += numbers_of(embedded.vectors)
        if self._numbers >= FILE_NUMBERS:
            self._put()

    def _put(self) -> None:
        """Put the file into the storage, if there is one; raises BackendError where it cannot be written."""
        writer, self._writer, self._numbers = self._writer, None, 0  # once, also where it cannot be written
        keys, self._keys = self._keys, []
        if writer is None:
            return
        with self._content:
            writer.close()
            if keys:
                folder = folder_of(self._storage, self._fingerprint, self._role)
                path = f"{folder}/{file_name(np.concatenate(keys))}"
                self._storage.put(path, self._content)
                self.paths.append(path)


def _without(request: Request, present: VectorShards, fingerprint: str, role: Role) -> Request:
    """The texts of a request that do not lie there."""
    held = present.held(vector_keys(fingerprint, role, request)).tolist()
    return tuple(text for text, is_held in zip(request, held, strict=True) if not is_held)


def _groups(requests: Iterable[Request], size: int) -> Iterator[list[Request]]:
    """Cut requests into groups of about `size` texts."""
    stream = iter(requests)
    while first := next(stream, None):
        yield [first, *islice(stream, size // len(first) - 1)] if len(first) < size else [first]
