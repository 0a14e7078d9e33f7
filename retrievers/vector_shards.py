"""Vectors as Parquet files in a folder or on object storage: written by shards of the work, read by a run.

A shard has some of the requests of a run, each distinct text in one of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from retrievers.cache import Cache, Positions, keys
from retrievers.embedding import DRIFTED, Embedder, Portion, distance, distinct_texts
from retrievers.errors import InputError, Problem
from retrievers.meter import Meter
from retrievers.ragged import flat, form_of
from retrievers.shard_file import (
    KEY_BYTES,
    REMEDY,
    ROW_GROUP,
    SUFFIX,
    Keys,
    ShardWriter,
    file_name,
    folder_of,
    open_file,
    refused,
    sortable,
)
from retrievers.storage import Storage
from retrievers.types import Embedded, Encoder, Role
from retrievers.vector_search import window_of

CACHE_KEY_BYTES = 16
GROUP = 4096
"""Texts that are looked up, embedded and written together."""
Request = tuple[str, ...]
"""Texts that are sent together."""


def vector_keys(fingerprint: str, role: Role, texts: Sequence[str]) -> Keys:
    """Return the 32-byte key of each text: the cache's 16-byte key, then 16 bytes of SHA-256 of the same.

    The first half lets a file be taken over into a cache, which keeps no texts either.

    >>> vector_keys("f", "query", ["a"]) == vector_keys("f", "document", ["a"])
    array([False])
    """
    start = hashlib.sha256(f"{fingerprint}\0{role}\0".encode())
    halves = []
    for text, cache_key in zip(texts, keys(fingerprint, role, texts), strict=True):
        digest = start.copy()
        digest.update(text.encode("utf-8", "surrogatepass"))
        halves.append(cache_key + digest.digest()[: KEY_BYTES - len(cache_key)])
    return np.frombuffer(b"".join(halves), dtype=f"V{KEY_BYTES}")


def _heads(names: npt.NDArray[np.void] | npt.NDArray[np.bytes_]) -> npt.NDArray[np.uint64]:
    """The first 8 bytes of each key as numbers in the same order, which are found in a third of the time."""
    return names.view(">u8")[:: KEY_BYTES // 8].astype(np.uint64)


class VectorShards:
    """The vectors of one encoder and role that lie in a storage; only their keys are kept in memory.

    Memory: 48 bytes a vector. Vectors are read row group by row group as they are asked for.
    """

    def __init__(self, storage: Storage, fingerprint: str, role: Role) -> None:
        """List the files and read their keys.

        Raises:
            InputError: a file does not match its name, or has another form; or two files hold unlike vectors of a text.
            BackendError: the storage cannot be read.
        """
        self._storage = storage
        self._paths = list_files(storage, fingerprint, role)
        columns = [self._keys_of(path, (fingerprint, role)) for path in self._paths]
        every = np.concatenate(columns) if columns else np.empty(0, dtype=f"V{KEY_BYTES}")
        order = np.argsort(sortable(every), kind="stable")
        self._names = sortable(every)[order]
        self._heads = _heads(self._names)
        sizes = [len(column) for column in columns]
        self._file = np.repeat(np.arange(len(columns), dtype=np.int32), sizes)[order]
        self._row = np.concatenate([np.arange(size, dtype=np.int32) for size in [0, *sizes]])[order]
        self.repeated = self._check_repeated()
        """Vectors of texts that a file before theirs holds as well."""

    def __len__(self) -> int:
        return len(self._names)

    def held(self, wanted: Keys) -> npt.NDArray[np.bool_]:
        """Return which of the keys some file holds."""
        return self._find(wanted) >= 0

    def get(self, wanted: Keys) -> tuple[Positions, Embedded]:
        """Return which of the distinct keys some file holds, as positions, and their vectors.

        Raises:
            InputError: a file is damaged, or its vectors have other dimensions than those of another.
            BackendError: the storage cannot be read.
        """
        found = self._find(wanted)
        positions = np.flatnonzero(found >= 0)
        return positions, self._read(found[positions])

    def all(self) -> Iterator[tuple[Keys, Embedded]]:
        """Yield the keys and vectors of each file, one row group at a time; errors as `get`."""
        for path in self._paths:
            with open_file(self._storage, path) as file:
                yield from file.groups()

    def _check_repeated(self) -> int:
        """Count texts that stand in several files, and refuse unlike vectors of one: they are of two models.

        Batches of other shapes round otherwise, which is no news.
        """
        again = 1 + np.flatnonzero(self._names[1:] == self._names[:-1])
        for start in range(0, len(again), ROW_GROUP):
            some = again[start : start + ROW_GROUP]
            pairs = zip(flat(self._read(some).vectors), flat(self._read(some - 1).vectors), strict=True)
            distances = [distance(ours, theirs) for ours, theirs in pairs]
            worst = int(np.argmax(distances))
            if distances[worst] > DRIFTED:
                what = f"gives a text another vector than another file does (1 - cosine = {distances[worst]:.2g})"
                raise refused(self._storage, self._paths[self._file[some[worst]]], f"{what}: they are of two models")
        return len(again)

    def _find(self, wanted: Keys) -> npt.NDArray[np.intp]:
        """Return where each key stands first among the sorted keys, -1 where it does not."""
        if not len(self):
            return np.full(len(wanted), -1, dtype=np.intp)
        names, heads, first = sortable(wanted), _heads(wanted), np.empty(len(wanted), dtype=np.intp)
        order = np.argsort(heads)
        first[order] = np.searchsorted(self._heads, heads[order])  # in order: in half the time
        near = np.minimum(first, len(self) - 1)
        alike = (self._heads[near] == heads) & (self._names[near] != names)  # keys are hashes: hardly ever
        near[alike] = np.minimum(np.searchsorted(self._names, names[alike]), len(self) - 1)
        return np.where(self._names[near] == names, near, -1)

    def _read(self, wanted: npt.NDArray[np.intp]) -> Embedded:
        """Read the vectors at some positions among the sorted keys, in their order."""
        order: list[npt.NDArray[np.intp]] = []
        pieces: list[Embedded] = []
        for number in np.unique(self._file[wanted]).tolist():
            asked = np.flatnonzero(self._file[wanted] == number)
            with open_file(self._storage, self._paths[number]) as file:
                for inside, names, embedded in file.rows(self._row[wanted[asked]].astype(np.intp)):
                    if not np.array_equal(sortable(names), self._names[wanted[asked[inside]]]):
                        raise ValueError("has changed while it was read")
                    order.append(asked[inside])
                    pieces.append(embedded)
        if not pieces:
            none = np.empty(0, dtype=np.int64)
            return Embedded(np.empty((0, 0), dtype=np.float32), none, none)
        if len({(form_of(piece.vectors), piece.vectors.shape[1]) for piece in pieces}) > 1:
            what = "its files hold vectors of several dimensions or forms"
            raise InputError(Problem(self._storage.url, what, REMEDY))
        return Embedded.of(pieces).at(np.argsort(np.concatenate(order)))

    def _keys_of(self, path: str, of: tuple[str, Role]) -> Keys:
        with open_file(self._storage, path) as file:
            names = file.keys()
            if file_name(names) != Path(path).name:
                raise ValueError("does not hold the keys that its name stands for")
            if of != (file.written("fingerprint"), file.written("role")):
                owner = file.written("fingerprint") or "no encoder"
                raise ValueError(f"is of {owner} and not of the encoder and role of its folder")
            return names


class ShardSource:
    """All vectors in a storage, as a source for an embedder; the keys of an encoder are read once."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._shards: dict[tuple[str, Role], VectorShards] = {}

    def held(self, fingerprint: str, role: Role, texts: Sequence[str]) -> set[str]:
        """Return those of the distinct texts whose vectors lie there; errors as `VectorShards`."""
        present = self._opened(fingerprint, role).held(vector_keys(fingerprint, role, texts)).tolist()
        return {text for text, is_held in zip(texts, present, strict=True) if is_held}

    def get(self, fingerprint: str, role: Role, texts: Sequence[str]) -> tuple[Positions, Embedded]:
        """Return which of the distinct texts lie there, as positions, and their vectors; errors as `VectorShards`."""
        return self._opened(fingerprint, role).get(vector_keys(fingerprint, role, texts))

    def _opened(self, fingerprint: str, role: Role) -> VectorShards:
        if (fingerprint, role) not in self._shards:
            self._shards[fingerprint, role] = VectorShards(self._storage, fingerprint, role)
        return self._shards[fingerprint, role]


class Imported(NamedTuple):
    """What was copied of one encoder and role."""

    fingerprint: str
    role: Role
    rows: int
    """Texts."""
    repeated: int
    """Vectors of texts that another file holds as well."""


def import_into(cache: Cache, storage: Storage) -> list[Imported]:
    """Copy all vectors in a storage into a cache, file by file; a row that is there and whole stays.

    Raises:
        InputError: a file is damaged, does not match its name or others, or has the key of another model's row.
        BackendError: the storage cannot be read, or the cache not be written.
    """
    imported: list[Imported] = []
    for fingerprint, role in stored(storage):
        shards = VectorShards(storage, fingerprint, role)
        for names, embedded in shards.all():
            cache.put(fingerprint, [name[:CACHE_KEY_BYTES] for name in names.tolist()], embedded, replace=False)
        imported.append(Imported(fingerprint, role, len(shards) - shards.repeated, shards.repeated))
    return imported


def list_files(storage: Storage, fingerprint: str, role: Role) -> list[str]:
    """Return the paths of one encoder's files, sorted; none where nothing was written.

    Raises:
        InputError: what is named like a file of vectors is not a file, or a link that leads out of the storage.
        BackendError: the storage cannot be listed.
    """
    from pyarrow import fs

    folder = folder_of(storage, fingerprint, role)
    files = {path: is_file for path, is_file in _listed(storage, folder) if path.endswith(SUFFIX)}
    if isinstance(storage.filesystem, fs.LocalFileSystem):  # of links that lead to nothing Arrow says nothing
        inside = Path(storage.path, "vectors").resolve()
        named = Path(folder).glob(f"*{SUFFIX}")
        files |= {str(one): False for one in named if not one.exists() or not one.resolve().is_relative_to(inside)}
    for path, is_file in sorted(files.items()):
        if not is_file:
            what = "is named like a file of vectors, and is not a file, or a link that leads out of the storage"
            raise InputError(Problem(storage.where(path), what, "remove it"))
    return sorted(files)


def stored(storage: Storage) -> list[tuple[str, Role]]:
    """Return (fingerprint, role) of all vectors in a storage.

    Raises:
        InputError: no vectors lie there.
        BackendError: the storage cannot be listed.
    """
    listed = _listed(storage, f"{storage.path}/vectors", recursive=True)
    paths = [path.split("/") for path, _ in listed if path.endswith(SUFFIX)]
    if not paths:
        raise _nothing(storage)
    folders = sorted({(path[-3], path[-2]) for path in paths})
    return [(unquote(fingerprint), "query" if role == "query" else "document") for fingerprint, role in folders]


def check_filled(storage: Storage) -> None:
    """Refuse a storage without vectors: where its place is mistyped, a run would embed, and pay for, everything anew.

    Raises:
        InputError: no vectors lie there, of any encoder.
        BackendError: the storage cannot be listed.
    """
    if not _listed(storage, f"{storage.path}/vectors"):
        raise _nothing(storage)


def _listed(storage: Storage, folder: str, *, recursive: bool = False) -> list[tuple[str, bool]]:
    """Return what lies in a folder, by path, and whether it is a file; nothing where there is no folder."""
    from pyarrow import fs

    selector = fs.FileSelector(folder, allow_not_found=True, recursive=recursive)
    entries = storage.ask("files cannot be listed", lambda: storage.filesystem.get_file_info(selector))
    return [(entry.path, entry.is_file) for entry in entries]


def _nothing(storage: Storage) -> InputError:
    return InputError(Problem(storage.url, "holds no vectors", "name the place that `harness embed --to` wrote to"))


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


def _without(request: Request, present: VectorShards, fingerprint: str, role: Role) -> Request:
    """The texts of a request that do not lie there."""
    held = present.held(vector_keys(fingerprint, role, request)).tolist()
    return tuple(text for text, is_held in zip(request, held, strict=True) if not is_held)


def _groups(requests: Iterable[Request], size: int) -> Iterator[list[Request]]:
    """Cut requests into groups of about `size` texts."""
    stream = iter(requests)
    while first := next(stream, None):
        yield [first, *islice(stream, size // len(first) - 1)] if len(first) < size else [first]
