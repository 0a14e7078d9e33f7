"""Vectors as Parquet files.

Below the folder or URL are `<fingerprint>/<role>/*.parquet`, with the columns id, digest, vector, tokens and
truncated_tokens, and a manifest.json that names the fingerprint, the role and the form. The digest is the cache's key.
"""

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, get_args

import numpy as np

from retrievers.cache import Cache
from retrievers.embedded import Embedded, Role
from retrievers.errors import InputError, Problem, require_package
from retrievers.options.placeholders import expand
from retrievers.ragged import VectorForm, all_finite
from retrievers.vector_bytes import from_bytes, to_bytes

VECTOR_MANIFEST = "manifest.json"
MAX_TABLE_ROWS = 16_384
"""Vectors that are read, or kept, at a time."""
log = logging.getLogger(__name__)


class VectorFolder(NamedTuple):
    """Where the vectors of one encoder and role are."""

    files: Any
    """A file system of pyarrow."""
    path: str
    fingerprint: str
    role: Role


class ImportedVectors(NamedTuple):
    """What was taken over into the cache."""

    fingerprint: str
    role: Role
    rows: int
    """Vectors that the cache did not have."""
    known: int
    """Vectors that it had."""


def vector_folder(url: str, fingerprint: str, role: Role) -> VectorFolder:
    """Name the folder of an encoder and role below a folder or a URL that fsspec opens."""
    files, root = _opened(url)
    return VectorFolder(files, f"{root}/{fingerprint}/{role}", fingerprint, role)


def read_digests(folder: VectorFolder) -> set[bytes]:
    """Return the digests of all texts whose vectors are in a folder; raises InputError where it cannot be read."""
    return {
        digest
        for table in _tables(folder, ["digest"])
        for digest in table["digest"].to_pylist()
    }


def write_vector_manifest(folder: VectorFolder, form: VectorForm) -> None:
    """Say whose vectors are in a folder; makes it where it is absent."""
    with _reaching(folder.path):
        folder.files.create_dir(folder.path, recursive=True)
        with folder.files.open_output_stream(
            f"{folder.path}/{VECTOR_MANIFEST}"
        ) as file:
            named = {
                "fingerprint": folder.fingerprint,
                "role": folder.role,
                "form": form,
            }
            file.write(json.dumps(named, indent=1).encode())


def vector_table(ids: Sequence[str], names: Sequence[bytes], embedded: Embedded) -> Any:
    """Return the rows of some texts as a table of pyarrow; sparse vectors and those of tokens are packed bytes."""
    import pyarrow as pa

    vectors = embedded.vectors
    if isinstance(vectors, np.ndarray):
        column = pa.array(list(vectors), pa.list_(pa.float32()))
    else:
        column = pa.array(to_bytes(vectors), pa.binary())
    counts = {"tokens": embedded.tokens, "truncated_tokens": embedded.truncated_tokens}
    return pa.table(
        {"id": list(ids), "digest": list(names), "vector": column, **counts}
    )


def import_vectors(
    cache: Cache, url: str, fingerprints: Sequence[str] | None = None
) -> list[ImportedVectors]:
    """Copy vectors into the cache that it does not hold; reading again costs one look at each digest.

    Args:
        cache: is filled.
        url: a folder, or what fsspec opens.
        fingerprints: of the encoders whose vectors are wanted; None for all.

    Raises:
        InputError: the place cannot be read or holds no vectors; a folder's manifest names another encoder; or vectors
            of one folder differ in width.
    """
    from pyarrow.fs import FileSelector, FileType

    files, root = _opened(url)
    with _reaching(url):
        manifests = [
            entry.path
            for entry in files.get_file_info(FileSelector(root, recursive=True))
            if entry.type == FileType.File and entry.base_name == VECTOR_MANIFEST
        ]
    if not manifests:
        raise InputError(
            Problem(
                url,
                "holds no vectors",
                "fill it with harness embed EXPERIMENT --to URL",
            )
        )
    done = []
    for path in sorted(manifests):
        fingerprint, role = path.split("/")[-3:-1]
        with _reaching(path), files.open_input_stream(path) as file:
            named = json.loads(file.read())
        if (named.get("fingerprint"), named.get("role")) != (
            fingerprint,
            role,
        ) or role not in get_args(Role):
            what = f"names {named.get('fingerprint')!r} and {named.get('role')!r}, its folder {fingerprint!r}, {role!r}"
            raise InputError(
                Problem(path, what, "move the folder back to the names in it")
            )
        if fingerprints is None or fingerprint in fingerprints:
            folder = VectorFolder(files, path.rpartition("/")[0], fingerprint, role)
            done.append(_take_over(cache, folder, named["form"]))
    return done


def _take_over(cache: Cache, folder: VectorFolder, form: VectorForm) -> ImportedVectors:
    rows = known = width = 0
    for table in _tables(folder, ["digest", "vector", "tokens", "truncated_tokens"]):
        names = table["digest"].to_pylist()
        held = cache.cached_keys(names)
        new = [i for i, name in enumerate(dict.fromkeys(names)) if name not in held]
        known += len(names) - len(new)
        if not new:
            continue
        some = table.take(new)
        cells = some["vector"].to_pylist()
        try:
            if form == "dense":
                cells = [np.asarray(cell, dtype="<f4").tobytes() for cell in cells]
            vectors = from_bytes(form, cells)
        except ValueError:
            raise InputError(
                Problem(
                    folder.path, "holds vectors of several widths", "embed them again"
                )
            ) from None
        if (width and vectors.shape[1] != width) or not all_finite(vectors):
            what = (
                "holds a vector that is not finite"
                if not all_finite(vectors)
                else "holds vectors of several widths"
            )
            raise InputError(Problem(folder.path, what, "embed them again"))
        width, rows = vectors.shape[1], rows + len(new)
        counts = [
            some[name].to_numpy().astype(np.int64)
            for name in ("tokens", "truncated_tokens")
        ]
        cache.put(
            folder.fingerprint, some["digest"].to_pylist(), Embedded(vectors, *counts)
        )
    return ImportedVectors(folder.fingerprint, folder.role, rows, known)


def _tables(folder: VectorFolder, columns: list[str]) -> Iterator[Any]:
    """Yield the files' rows, ROWS at most at a time; a file that a killed writer left half-written is passed over."""
    import pyarrow as pa
    from pyarrow import parquet
    from pyarrow.fs import FileSelector

    with _reaching(folder.path):
        inside = folder.files.get_file_info(
            FileSelector(folder.path, allow_not_found=True)
        )
        for path in sorted(
            entry.path for entry in inside if entry.path.endswith(".parquet")
        ):
            try:
                file = parquet.ParquetFile(path, filesystem=folder.files)
            except pa.ArrowInvalid:
                log.warning(
                    "%s is not a whole file and is not read; its texts are embedded again",
                    path,
                )
                continue
            for batch in file.iter_batches(MAX_TABLE_ROWS, columns=columns):
                yield pa.Table.from_batches([batch])


def _opened(url: str) -> tuple[Any, str]:
    with require_package("vectors as Parquet files", "pyarrow", "ray"):
        from pyarrow.fs import FSSpecHandler, PyFileSystem
    with require_package("vectors as Parquet files", "fsspec", "ray"):
        from fsspec.core import url_to_fs
    try:
        files, root = url_to_fs(expand(url))
    except (
        ImportError,
        ValueError,
        OSError,
    ) as failure:  # no such protocol, or its package is absent
        remedy = "name a folder, or a URL that fsspec opens"
        raise InputError(Problem(url, f"cannot be opened: {failure}", remedy)) from None
    return PyFileSystem(FSSpecHandler(files)), root.rstrip("/")


@contextmanager
def _reaching(place: str) -> Iterator[None]:
    """Turn a failure of the place into one message."""
    try:
        yield
    except (OSError, ValueError) as failure:
        raise InputError(
            Problem(
                place, f"cannot be reached: {failure}", "check the place, and its keys"
            )
        ) from None
