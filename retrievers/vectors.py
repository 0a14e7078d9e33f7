"""Vectors as Parquet parts in a folder or on object storage: written by many machines, read by a run.

    <root>/vectors/<fingerprint>/<role>/<name>.parquet

A part holds the vectors of some texts, sorted by key; its name is the SHA-256 of its keys, so that the same texts
always have the same name and writing a part twice does no harm. A part appears whole or not at all: on a file system
it is written under a temporary name and renamed, on object storage an upload becomes visible when it is complete.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

import numpy as np
import numpy.typing as npt

from retrievers.cache import keys
from retrievers.errors import BackendError, InputError, Problem
from retrievers.types import Counts, Embedded, Role, Vectors

if TYPE_CHECKING:
    from pyarrow import Table
    from pyarrow.fs import FileSystem

KEY_BYTES = 32
REMEDY = "pip install pyarrow"
Keys = npt.NDArray[np.void]
"""(n,) of 32 bytes each."""


class Root(NamedTuple):
    """Where parts lie: a file system and a path on it."""

    filesystem: FileSystem
    path: str
    url: str
    """As the user wrote it, for messages."""

    def folder(self, fingerprint: str, role: Role) -> str:
        """Return the folder of one encoder's vectors of one role."""
        return f"{self.path}/vectors/{quote(fingerprint, safe='')}/{role}"


class Rows(NamedTuple):
    """The rows of one part, or of several, in the order of the request."""

    positions: npt.NDArray[np.intp]
    """Places in the list of keys that was asked for."""
    embedded: Embedded


def open_root(url: str) -> Root:
    """Open a folder, or what a URL names: `s3://`, `gs://`, `file://` by pyarrow, any other scheme by fsspec.

    Raises:
        InputError: pyarrow or the scheme's package is not installed, or the URL cannot be read.
    """
    try:
        from pyarrow import fs
    except ImportError:
        raise InputError(Problem(url, "needs pyarrow", REMEDY)) from None
    if "://" not in url:
        return Root(fs.LocalFileSystem(), str(Path(url).expanduser().absolute()), url)
    try:
        filesystem, path = fs.FileSystem.from_uri(url)
    except (ValueError, NotImplementedError, OSError) as failure:
        try:
            import fsspec

            other, path = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as missing:
            raise InputError(Problem(url, f"cannot be opened: {failure}", str(missing))) from None
        filesystem = fs.PyFileSystem(fs.FSSpecHandler(other))
    return Root(filesystem, path.rstrip("/"), url)


def part_keys(fingerprint: str, role: Role, texts: Sequence[str]) -> Keys:
    """Return the 32-byte key of each text: the cache's 16-byte key, then 16 bytes of SHA-256 of the same.

    The first half lets a part be taken over into a cache, which keeps no texts either.

    >>> part_keys("f", "query", ["a"]) == part_keys("f", "document", ["a"])
    array([False])
    """
    start = hashlib.sha256(f"{fingerprint}\0{role}\0".encode())
    halves = []
    for text, cache_key in zip(texts, keys(fingerprint, role, texts), strict=True):
        digest = start.copy()
        digest.update(text.encode("utf-8", "surrogatepass"))
        halves.append(cache_key + digest.digest()[: KEY_BYTES - len(cache_key)])
    return np.frombuffer(b"".join(halves), dtype=f"V{KEY_BYTES}")


def part_name(part: Keys) -> str:
    """Return the name of the part that holds these distinct keys: the SHA-256 of the sorted keys, in hexadecimal."""
    return hashlib.sha256(b"".join(sorted(part.tolist()))).hexdigest()


def write_part(root: Root, fingerprint: str, role: Role, part: Keys, embedded: Embedded) -> str:
    """Write the vectors of some distinct texts as one part, whole or not at all, and return its path.

    Args:
        root: where parts lie.
        fingerprint: of the encoder.
        role: of the texts.
        part: (n,) the texts' keys.
        embedded: their vectors, in the same order.

    Raises:
        BackendError: the part cannot be written.
    """
    import pyarrow as pa
    from pyarrow import parquet

    order = np.asarray(sorted(range(len(part)), key=part.tolist().__getitem__), dtype=np.intp)
    dimensions = embedded.vectors.shape[1]
    vectors = np.ascontiguousarray(embedded.vectors[order], dtype="<f4").ravel()
    table = pa.table(
        {
            "key": pa.array(part[order].tolist(), type=pa.binary(KEY_BYTES)),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors), dimensions),
            "tokens": pa.array(embedded.tokens[order]),
            "lost": pa.array(embedded.lost[order]),
        }
    )
    folder = root.folder(fingerprint, role)
    path = f"{folder}/{part_name(part)}.parquet"
    try:
        root.filesystem.create_dir(folder, recursive=True)
        # An object store shows an upload when it is complete; a file system shows every byte, so the name comes last.
        renames = _renames(root)
        aside = f"{folder}/.{uuid.uuid4().hex}.part" if renames else path
        try:
            with root.filesystem.open_output_stream(aside) as stream:
                parquet.write_table(table, stream, write_page_checksum=True, compression="zstd")
            if renames:
                root.filesystem.move(aside, path)
        except BaseException:
            if renames:
                _remove(root, aside)
            raise
    except OSError as failure:
        raise BackendError(f"{root.url}: a part cannot be written: {failure}") from None
    return path


def list_parts(root: Root, fingerprint: str, role: Role) -> list[str]:
    """Return the paths of one encoder's parts, sorted; none where nothing was written.

    Raises:
        BackendError: the place cannot be listed.
    """
    from pyarrow import fs

    try:
        entries = root.filesystem.get_file_info(fs.FileSelector(root.folder(fingerprint, role), allow_not_found=True))
    except OSError as failure:
        raise BackendError(f"{root.url}: parts cannot be listed: {failure}") from None
    return sorted(entry.path for entry in entries if entry.is_file and entry.base_name.endswith(".parquet"))


class Parts:
    """The vectors of one encoder and role that lie under a root; only their keys are kept in memory.

    Memory: 48 bytes a vector. Vectors are read part by part as they are asked for.
    """

    def __init__(self, root: Root, fingerprint: str, role: Role) -> None:
        """List the parts and read their keys.

        Raises:
            InputError: a part does not match its name, or has not the columns of a part.
            BackendError: the place cannot be read.
        """
        self._root = root
        self._paths = list_parts(root, fingerprint, role)
        columns = [self._keys_of(path) for path in self._paths]
        numbers = [np.full(len(column), number) for number, column in enumerate(columns)]
        every = np.concatenate(columns) if columns else np.empty(0, dtype=f"V{KEY_BYTES}")
        # Unsigned big-endian words sort as the bytes do; NumPy cannot sort bytes that hold zeros.
        words = every.view(">u8").reshape(-1, KEY_BYTES // 8)
        order = np.lexsort(words.T[::-1])
        self._words = words[order].astype(np.uint64)
        self._part = (np.concatenate(numbers) if numbers else np.empty(0, dtype=np.int64))[order]

    def __len__(self) -> int:
        return len(self._words)

    def held(self, wanted: Keys) -> npt.NDArray[np.bool_]:
        """Return which of the keys some part holds."""
        return self._places(wanted) >= 0

    def get(self, wanted: Keys) -> Rows:
        """Read the vectors of those of the distinct keys that some part holds.

        Raises:
            InputError: a part is damaged, or its vectors have other dimensions than those of another part.
        """
        places = self._places(wanted)
        numbers = np.where(places >= 0, self._part[places] if len(self) else -1, -1)
        positions: list[npt.NDArray[np.intp]] = []
        pieces: list[Embedded] = []
        for number in np.unique(numbers[numbers >= 0]).tolist():
            asked = np.flatnonzero(numbers == number)
            positions.append(asked)
            pieces.append(self._rows(self._paths[number], wanted[asked]))
        if len({piece.vectors.shape[1] for piece in pieces}) > 1:
            raise InputError(Problem(self._root.url, "its parts hold vectors of several dimensions", _REMEDY))
        if not pieces:
            none = np.empty(0, dtype=np.int64)
            return Rows(np.empty(0, dtype=np.intp), Embedded(np.empty((0, 0), dtype=np.float32), none, none))
        return Rows(np.concatenate(positions), Embedded(*map(np.concatenate, zip(*pieces, strict=True))))

    def _places(self, wanted: Keys) -> npt.NDArray[np.intp]:
        """Return where each key stands among the sorted keys, -1 where it does not."""
        places = np.full(len(wanted), -1, dtype=np.intp)
        if not len(self):
            return places
        words = wanted.view(">u8").reshape(-1, KEY_BYTES // 8).astype(np.uint64)
        start = np.searchsorted(self._words[:, 0], words[:, 0])
        near = np.minimum(start, len(self) - 1)
        equal = (self._words[near] == words).all(axis=1)
        places[equal] = near[equal]
        # Keys that share their first 8 bytes with another are rare: each is looked for by itself.
        for row in np.flatnonzero(~equal & (self._words[near, 0] == words[:, 0])).tolist():
            end = np.searchsorted(self._words[:, 0], words[row, 0], side="right")
            rows = range(int(start[row]), int(end))
            places[row] = next((i for i in rows if (self._words[i] == words[row]).all()), -1)
        return places

    def _keys_of(self, path: str) -> Keys:
        import pyarrow as pa

        column = self._read(path, ["key"]).column("key")
        if column.type != pa.binary(KEY_BYTES):
            raise InputError(Problem(path, f"its keys are no {KEY_BYTES} bytes each", _REMEDY))
        part = np.frombuffer(b"".join(column.to_pylist()), dtype=f"V{KEY_BYTES}")
        if part_name(part) != Path(path).stem:
            raise InputError(Problem(path, "does not hold the keys that its name stands for", _REMEDY))
        return part

    def _rows(self, path: str, wanted: Keys) -> Embedded:
        """Read some rows of one part, in the order of the keys."""
        import pyarrow as pa

        table = self._read(path, ["key", "vector", "tokens", "lost"])
        kind = table.column("vector").type
        if not pa.types.is_fixed_size_list(kind) or kind.value_type != pa.float32():
            raise InputError(Problem(path, "its vectors are no lists of 32-bit floats of one length", _REMEDY))
        place = {key: row for row, key in enumerate(table.column("key").to_pylist())}
        rows = [place[key] for key in wanted.tolist()]
        values = table.column("vector").combine_chunks().flatten().to_numpy(zero_copy_only=False)
        vectors: Vectors = values.reshape(len(table), -1)[rows]
        if not vectors.shape[1] or not np.isfinite(vectors).all():
            raise InputError(Problem(path, "holds a vector that is empty or not finite", _REMEDY))
        counts: list[Counts] = [table.column(name).to_numpy()[rows].astype(np.int64) for name in ("tokens", "lost")]
        return Embedded(vectors, *counts)

    def _read(self, path: str, columns: list[str]) -> Table:
        from pyarrow import ArrowException, parquet

        try:
            return parquet.read_table(
                path, columns=columns, filesystem=self._root.filesystem, page_checksum_verification=True
            )
        except FileNotFoundError as failure:
            raise BackendError(f"{path} was there and is gone: {failure}") from None
        except (OSError, ArrowException) as failure:
            raise InputError(Problem(path, f"is damaged: {failure}", _REMEDY)) from None


_REMEDY = "remove the part, and embed its texts again"


def stored(root: Root) -> Iterator[tuple[str, Role]]:
    """Yield (fingerprint, role) of all vectors under a root."""
    from pyarrow import fs

    try:
        entries = root.filesystem.get_file_info(
            fs.FileSelector(f"{root.path}/vectors", allow_not_found=True, recursive=True)
        )
    except OSError as failure:
        raise BackendError(f"{root.url}: parts cannot be listed: {failure}") from None
    folders = {tuple(entry.path.split("/")[-3:-1]) for entry in entries if entry.path.endswith(".parquet")}
    for fingerprint, role in sorted(folders):
        yield unquote(fingerprint), "query" if role == "query" else "document"


def _renames(root: Root) -> bool:
    """Whether what is being written can be seen before it is complete, as on every file system."""
    from pyarrow import fs

    return not isinstance(root.filesystem, (fs.S3FileSystem, fs.GcsFileSystem, fs.PyFileSystem))


def _remove(root: Root, path: str) -> None:
    """Remove what was half written; where that fails too, it stays under a name that is never read."""
    with suppress(OSError):
        root.filesystem.delete_file(path)
