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
from retrievers.ragged import dense
from retrievers.types import Embedded, Role

if TYPE_CHECKING:
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
    vectors = np.ascontiguousarray(dense(embedded.vectors)[order], dtype="<f4").ravel()
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
