"""Vectors as Parquet parts in a folder or on object storage: written by many machines, read by a run.

    <root>/vectors/<fingerprint>/<role>/<name>.parquet

A part holds the vectors of some texts, sorted by key; its name is the SHA-256 of its keys, so that the same texts
always have the same name and writing a part twice does no harm. It says of which encoder and role it is. A part appears
whole or not at all: on a file system it is written under a temporary name and renamed, on object storage it is put
where none is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np
import numpy.typing as npt

from retrievers.arrow import column_of
from retrievers.cache import keys
from retrievers.errors import InputError, Problem
from retrievers.roots import Root
from retrievers.types import Embedded, Role

SUFFIX = ".parquet"
KEY_BYTES = 32
Keys = npt.NDArray[np.void]
"""(n,) of 32 bytes each."""


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


def write_part(root: Root, fingerprint: str, role: Role, part: Keys, embedded: Embedded, *, paid: bool = True) -> str:
    """Write the vectors of some distinct texts as one part, whole or not at all, and return its path.

    Args:
        root: where parts lie.
        fingerprint: of the encoder.
        role: of the texts.
        part: (n,) the texts' keys.
        embedded: their vectors, in the same order.
        paid: whether they were embedded for this part; those of a cache cost nothing here.

    Raises:
        BackendError: the part cannot be written.
    """
    import pyarrow as pa
    from pyarrow import parquet

    order = np.asarray(sorted(range(len(part)), key=part.tolist().__getitem__), dtype=np.intp)
    written = {"fingerprint": fingerprint, "role": role, "dimensions": str(embedded.vectors.shape[1])}
    written |= {} if paid else {"paid": "no"}
    table = pa.table(
        {
            "key": pa.array(part[order].tolist(), type=pa.binary(KEY_BYTES)),
            "vector": column_of(embedded.vectors[order]),
            "tokens": pa.array(embedded.tokens[order].astype(np.int64)),
            "lost": pa.array(embedded.truncated_tokens[order].astype(np.int64)),
        },
        metadata=written,
    )
    path = f"{folder_of(root, fingerprint, role)}/{part_name(part)}{SUFFIX}"
    content = pa.BufferOutputStream()
    parquet.write_table(table, content, write_page_checksum=True, compression="zstd")
    with root.faults("a part cannot be written"):
        root.put(path, content.getvalue().to_pybytes())
    return path


def folder_of(root: Root, fingerprint: str, role: Role) -> str:
    """Return the folder of one encoder's vectors of one role."""
    return f"{root.path}/vectors/{quote(fingerprint, safe='')}/{role}"


def list_parts(root: Root, fingerprint: str, role: Role) -> list[str]:
    """Return the paths of one encoder's parts, sorted; none where nothing was written.

    Raises:
        InputError: what is named like a part is no file, or a link that leads out of the place.
        BackendError: the place cannot be listed.
    """
    from pyarrow import fs

    folder = folder_of(root, fingerprint, role)
    with root.faults("parts cannot be listed"):
        entries = root.filesystem.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    files = {entry.path: entry.is_file for entry in entries if entry.base_name.endswith(SUFFIX)}
    if isinstance(root.filesystem, fs.LocalFileSystem):
        files |= _no_files(folder, Path(root.path, "vectors").resolve())
    for path, is_file in sorted(files.items()):
        if not is_file:
            what = "is named like a part, and is no file, or a link that leads out of the place"
            raise InputError(Problem(root.told(path), what, "remove it"))
    return sorted(files)


def _no_files(folder: str, place: Path) -> dict[str, bool]:
    """Links on this machine that lead out of the place or to nothing, of which Arrow says nothing."""
    named = Path(folder).glob(f"*{SUFFIX}")
    return {str(path): False for path in named if not path.exists() or not path.resolve().is_relative_to(place)}


def stored(root: Root) -> list[tuple[str, Role]]:
    """Return (fingerprint, role) of all vectors under a root.

    Raises:
        InputError: no vectors lie there.
        BackendError: the place cannot be listed.
    """
    paths = [path.split("/") for path in _paths(root, recursive=True) if path.endswith(SUFFIX)]
    if not paths:
        raise _nothing(root)
    folders = sorted({(path[-3], path[-2]) for path in paths})
    return [(unquote(fingerprint), "query" if role == "query" else "document") for fingerprint, role in folders]


def check_filled(root: Root) -> None:
    """Refuse a place where no vectors lie: where it is mistyped, a run would embed, and pay for, everything anew.

    Raises:
        InputError: no vectors lie there, of any encoder.
        BackendError: the place cannot be listed.
    """
    if not _paths(root, recursive=False):
        raise _nothing(root)


def _paths(root: Root, *, recursive: bool) -> list[str]:
    from pyarrow import fs

    selector = fs.FileSelector(f"{root.path}/vectors", allow_not_found=True, recursive=recursive)
    with root.faults("parts cannot be listed"):
        return [entry.path for entry in root.filesystem.get_file_info(selector)]


def _nothing(root: Root) -> InputError:
    return InputError(Problem(root.url, "holds no vectors", "name the place that `harness embed --to` wrote to"))
