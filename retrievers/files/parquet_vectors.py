"""Vectors as Parquet files.

Below the folder or URL are `<fingerprint>/<role>/*.parquet`, with the columns id,
digest, vector, tokens and truncated_tokens, and a manifest.json with the fingerprint,
the role and the form. The digest is the cache's key.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, get_args

import numpy as np

from retrievers.cache import Cache
from retrievers.embedded import Embedded, Role
from retrievers.errors import InputError, Problem, require_package
from retrievers.options.placeholders import expand
from retrievers.ragged import AnyVectors, VectorForm, all_finite
from retrievers.vector_bytes import from_bytes, to_bytes

VECTOR_MANIFEST = "manifest.json"
MAX_TABLE_ROWS = 16_384
"""Vectors that are read, or stored, at a time."""
VECTOR_COLUMNS = ["digest", "vector", "tokens", "truncated_tokens"]
VECTOR_FORMS = get_args(VectorForm)
EMBED_AGAIN = "embed them again"
FILL_REMEDY = "fill it with harness embed EXPERIMENT --to URL"
log = logging.getLogger(__name__)


class VectorFolder(NamedTuple):
    """The folder with the vectors of one encoder and role."""

    files: Any
    """A file system of pyarrow."""
    path: str
    fingerprint: str
    role: Role


class ImportedVectors(NamedTuple):
    """The vectors that were copied into the cache."""

    fingerprint: str
    role: Role
    rows: int
    """Vectors that the cache did not have."""
    known: int
    """Vectors that it had, or that the folder has again."""


class _FileSystem(NamedTuple):
    """A file system of pyarrow, and a folder in it."""

    files: Any
    root: str


def vector_folder(url: str, fingerprint: str, role: Role) -> VectorFolder:
    """Return the folder of an encoder and role below a folder or a URL for fsspec."""
    system = _open_file_system(url)
    path = f"{system.root}/{fingerprint}/{role}"
    return VectorFolder(system.files, path, fingerprint, role)


def read_digests(folder: VectorFolder) -> set[bytes]:
    """Return the digests of all texts whose vectors are in a folder, if there is one.

    Raises:
        InputError: it cannot be read.
    """
    digests: set[bytes] = set()
    for table in _read_tables(folder, ["digest"]):
        digests.update(table["digest"].to_pylist())
    return digests


def write_vector_manifest(folder: VectorFolder, form: VectorForm) -> None:
    """Write whose vectors are in a folder, which is created if it is absent.

    Raises:
        InputError: it cannot be written.
    """
    manifest = {
        "fingerprint": folder.fingerprint,
        "role": folder.role,
        "form": form,
    }
    with _explain_access_errors(folder.path):
        folder.files.create_dir(folder.path, recursive=True)
        path = f"{folder.path}/{VECTOR_MANIFEST}"
        with folder.files.open_output_stream(path) as file:
            file.write(json.dumps(manifest, indent=1).encode())


def vector_table(
    ids: Sequence[str], digests: Sequence[bytes], embedded: Embedded
) -> Any:
    """Return the rows of some texts as a table of pyarrow.

    Vectors that are not dense are stored as bytes.
    """
    import pyarrow as pa

    vectors = embedded.vectors
    if isinstance(vectors, np.ndarray):
        vector_column = pa.array(list(vectors), pa.list_(pa.float32()))
    else:
        vector_column = pa.array(to_bytes(vectors), pa.binary())
    columns = {
        "id": list(ids),
        "digest": list(digests),
        "vector": vector_column,
        "tokens": embedded.tokens,
        "truncated_tokens": embedded.truncated_tokens,
    }
    return pa.table(columns)


def import_vectors(
    cache: Cache, url: str, fingerprints: Sequence[str] | None = None
) -> list[ImportedVectors]:
    """Copy vectors into the cache that it does not have.

    Vectors that the cache has are only looked up, so that a second import is fast.

    Args:
        cache: receives the vectors.
        url: a folder, or a URL for fsspec.
        fingerprints: the encoders whose vectors are copied; None for all.

    Raises:
        InputError: the folder cannot be read or has no vectors, or none of these
            encoders; a folder's manifest names another encoder; a column is missing, or
            of another type; or vectors of one folder differ in width, or are not
            finite.
    """
    system = _open_file_system(url)
    imported = []
    for path in _find_manifests(system, url):
        # A manifest at the root of a bucket is in no such folders.
        _, fingerprint, role_name, _ = f"///{path}".rsplit("/", 3)
        with _explain_access_errors(path), system.files.open_input_stream(path) as file:
            content = file.read()
        try:
            manifest = json.loads(content)
        except (ValueError, RecursionError):
            manifest = None
        _check_manifest(path, manifest, fingerprint, role_name)
        role: Role = manifest["role"]
        if fingerprints is None or fingerprint in fingerprints:
            folder_path = path.rpartition("/")[0]
            folder = VectorFolder(system.files, folder_path, fingerprint, role)
            imported.append(_import_folder(cache, folder, manifest["form"]))
    if not imported:
        problem = "holds no vectors of the encoders of this experiment"
        raise InputError(Problem(url, problem, FILL_REMEDY))
    return imported


def _find_manifests(system: _FileSystem, url: str) -> list[str]:
    """Return the paths of all manifests; raise InputError if none is found."""
    from pyarrow.fs import FileSelector, FileType

    with _explain_access_errors(url):
        entries = system.files.get_file_info(FileSelector(system.root, recursive=True))
    paths = [
        file.path
        for file in entries
        if file.type == FileType.File and file.base_name == VECTOR_MANIFEST
    ]
    if not paths:
        raise InputError(Problem(url, "holds no vectors", FILL_REMEDY))
    return sorted(paths)


def _check_manifest(path: str, manifest: Any, fingerprint: str, role: str) -> None:
    """Refuse a manifest that names another encoder or role than its folder.

    Raises:
        InputError: it does, or it is no manifest of vectors.
    """
    if not isinstance(manifest, dict) or manifest.get("form") not in VECTOR_FORMS:
        problem = "is no manifest of vectors: it has no form of theirs"
        raise InputError(Problem(path, problem, EMBED_AGAIN))
    manifest_fingerprint = manifest.get("fingerprint")
    manifest_role = manifest.get("role")
    is_same = manifest_fingerprint == fingerprint and manifest_role == role
    if not is_same or role not in get_args(Role):
        problem = (
            f"names {manifest_fingerprint!r} and {manifest_role!r}, "
            f"its folder {fingerprint!r}, {role!r}"
        )
        raise InputError(
            Problem(path, problem, "move the folder back to the names in it")
        )


def _import_folder(
    cache: Cache, folder: VectorFolder, form: VectorForm
) -> ImportedVectors:
    """Copy the vectors of a folder into the cache that it does not have."""
    new_count = 0
    cached_count = 0
    width = 0
    for table in _read_tables(folder, VECTOR_COLUMNS):
        digests = table["digest"].to_pylist()
        known_keys = cache.cached_keys(digests)
        new_rows = []
        for i, digest in enumerate(digests):
            if digest not in known_keys:
                new_rows.append(i)
                known_keys.add(digest)
        cached_count += len(digests) - len(new_rows)
        if not new_rows:
            continue
        new_table = table.take(new_rows)
        vectors = _read_vectors(folder, form, new_table["vector"].to_pylist())
        if not all_finite(vectors):
            problem = "holds a vector that is not finite"
            raise InputError(Problem(folder.path, problem, EMBED_AGAIN))
        if width and vectors.shape[1] != width:
            problem = "holds vectors of several widths"
            raise InputError(Problem(folder.path, problem, EMBED_AGAIN))
        width = vectors.shape[1]
        new_count += len(new_rows)
        embedded = Embedded(
            vectors=vectors,
            tokens=new_table["tokens"].to_numpy().astype(np.int64),
            truncated_tokens=new_table["truncated_tokens"].to_numpy().astype(np.int64),
        )
        cache.put(folder.fingerprint, new_table["digest"].to_pylist(), embedded)
    return ImportedVectors(folder.fingerprint, folder.role, new_count, cached_count)


def _read_vectors(
    folder: VectorFolder, form: VectorForm, cells: Sequence[Any]
) -> AnyVectors:
    """Return the vectors in cells; raise InputError if they differ in width."""
    try:
        rows = cells  # bytes, if they are not dense
        if form == "dense":
            rows = [np.asarray(cell, dtype="<f4").tobytes() for cell in cells]
        return from_bytes(form, rows)
    except (TypeError, ValueError):
        problem = f"holds vectors of several widths, or some that are not {form}"
        raise InputError(Problem(folder.path, problem, EMBED_AGAIN)) from None


def _read_tables(folder: VectorFolder, columns: list[str]) -> Iterator[Any]:
    """Yield the files' rows, at most MAX_TABLE_ROWS at a time.

    A file that a killed process left incomplete is skipped.
    """
    import pyarrow as pa
    from pyarrow import parquet
    from pyarrow.fs import FileSelector

    with _explain_access_errors(folder.path):
        selector = FileSelector(folder.path, allow_not_found=True)
        entries = folder.files.get_file_info(selector)
        for path in sorted(entry.path for entry in entries):
            if not path.endswith(".parquet"):
                continue
            try:
                file = parquet.ParquetFile(path, filesystem=folder.files)
            except pa.ArrowInvalid:
                log.warning(
                    "%s is not a whole file and is not read; "
                    "its texts are embedded again",
                    path,
                )
                continue
            if file.metadata.num_rows:  # an empty file may have no types
                _check_columns(path, file.schema_arrow, columns)
            for batch in file.iter_batches(MAX_TABLE_ROWS, columns=columns):
                if any(batch[column].null_count for column in columns):
                    raise InputError(Problem(path, "has empty cells", EMBED_AGAIN))
                yield pa.Table.from_batches([batch])


def _check_columns(path: str, schema: Any, columns: Iterable[str]) -> None:
    """Raise InputError if a column is missing, or has another type than is written."""
    from pyarrow import types

    def is_bytes(column_type: Any) -> bool:
        return bool(types.is_binary(column_type) or types.is_large_binary(column_type))

    is_right_type = {
        "digest": is_bytes,
        "tokens": types.is_integer,
        "truncated_tokens": types.is_integer,
    }
    for column in columns:
        if column not in schema.names:
            raise InputError(Problem(path, f"has no column {column!r}", EMBED_AGAIN))
        column_type = schema.field(column).type
        if column in is_right_type and not is_right_type[column](column_type):
            problem = f"column {column!r} has the type {column_type}"
            raise InputError(Problem(path, problem, EMBED_AGAIN))


def _open_file_system(url: str) -> _FileSystem:
    """Return the file system of a folder or a URL.

    Raises:
        InputError: it cannot be opened, or a package is missing.
    """
    with require_package("vectors as Parquet files", "pyarrow", "ray"):
        from pyarrow.fs import FSSpecHandler, PyFileSystem
    with require_package("vectors as Parquet files", "fsspec", "ray"):
        from fsspec.core import url_to_fs
    try:
        files, root = url_to_fs(expand(url))
    except (ImportError, ValueError, OSError) as failure:
        # The protocol does not exist, or its package is not installed.
        remedy = "name a folder, or a URL that fsspec opens"
        raise InputError(Problem(url, f"cannot be opened: {failure}", remedy)) from None
    return _FileSystem(PyFileSystem(FSSpecHandler(files)), root.rstrip("/"))


@contextmanager
def _explain_access_errors(location: str) -> Iterator[None]:
    """Turn a failure of a file system into InputError."""
    try:
        yield
    except (OSError, ValueError) as failure:
        problem = f"cannot be reached: {failure}"
        remedy = "check the place, and its keys"
        raise InputError(Problem(location, problem, remedy)) from None
