"""One Parquet file of vectors: how it is named and written, and how it is checked before any of it is unpacked.

    <storage>/vectors/<fingerprint>/<role>/<name>.parquet

Its name is the SHA-256 of its sorted keys, so that the same texts always have the same name and writing a file twice
does no harm. It says of which encoder and role it is.

    key             binary(32)
    vector          dense         fixed_size_list<float32, d>
                    multivector   list<fixed_size_list<float32, d>>: a vector for each token
                    sparse        list<struct<index: int32, value: float32>>; d stands in the file's metadata
    tokens, lost    int64
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Self
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from retrievers.errors import BackendError, InputError, Problem
from retrievers.ragged import AnyVectors, SparseVectors, TokenVectors, numbers_of
from retrievers.storage import Storage, is_away
from retrievers.types import Counts, Embedded, Role, Vectors

if TYPE_CHECKING:
    from pyarrow import Array, ChunkedArray, DataType, Table
    from pyarrow.parquet import ParquetFile, ParquetWriter

SUFFIX = ".parquet"
FILE_NUMBERS = 1 << 26
"""Numbers of a file, about: 256 MiB. A shard has one file, unless its vectors are more."""
KEY_BYTES = 32
Keys = npt.NDArray[np.void]
"""(n,) of 32 bytes each."""
ROW_GROUP = 4096
"""Texts that are read in one piece."""
MOST_ROWS = 1 << 20
MOST_BYTES = 1 << 30
"""Of the vectors of one file, unpacked: ours have some 256 MiB at most. A file of a few MiB may unpack to any size, and
reading takes three times as much memory."""
MOST_COUNT = 10**12
"""Tokens of one text, read or lost."""
MOST_DIMENSIONS = 1 << 24
"""Of a sparse vector: vocabularies have some hundred thousand words."""
REMEDY = "remove the file, and embed its texts again"
_COUNTS = ("tokens", "lost")


def sortable(names: Keys) -> npt.NDArray[np.bytes_]:
    """Return keys as texts of bytes, (n,): raw bytes are neither sorted nor found by NumPy."""
    return names.view(f"S{KEY_BYTES}")


def file_name(names: Keys) -> str:
    """Return the name of the file that holds these distinct keys, in hexadecimal."""
    return hashlib.sha256(np.sort(sortable(names)).tobytes()).hexdigest() + SUFFIX


def folder_of(storage: Storage, fingerprint: str, role: Role) -> str:
    """Return the folder of one encoder's vectors of one role."""
    return f"{storage.path}/vectors/{quote(fingerprint, safe='')}/{role}"


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


class ShardFile:
    """An open file of vectors, whose form is right and whose size is bounded; see `open_file`."""

    def __init__(self, file: ParquetFile, storage: Storage) -> None:
        """Take the file; raises ValueError where it has another form, or is too large."""
        self._file, self._storage = file, storage
        _check_form(file)

    def written(self, name: str) -> str:
        """Return what the metadata say of the file, "" where they do not."""
        return str((self._file.schema_arrow.metadata or {}).get(name.encode(), b"").decode("utf-8", "replace"))

    def keys(self) -> Keys:
        """Return all keys; raises ValueError where one is missing or occurs twice."""
        names = _keys(self._storage.retry(lambda: self._file.read(columns=["key"])))
        ordered = np.sort(sortable(names))
        if repeated := int((ordered[1:] == ordered[:-1]).sum()):  # `unique` takes four times as long
            raise ValueError(f"holds {repeated:,} of its keys more than once")
        return names

    def groups(self) -> Iterator[tuple[Keys, Embedded]]:
        """Yield the keys and vectors of each row group; raises ValueError for what is no vector or no count."""
        for number in range(self._file.num_row_groups):
            yield self._group(number)

    def rows(self, wanted: npt.NDArray[np.intp]) -> Iterator[tuple[npt.NDArray[np.intp], Keys, Embedded]]:
        """Yield some rows, row group by row group: their positions among those that are wanted, keys and vectors."""
        sizes = [self._file.metadata.row_group(number).num_rows for number in range(self._file.num_row_groups)]
        starts = np.cumsum([0, *sizes])
        groups = np.searchsorted(starts, wanted, side="right") - 1
        for number in np.unique(groups).tolist():
            positions = np.flatnonzero(groups == number)
            inside = wanted[positions] - starts[number]
            names, embedded = self._group(number)
            yield positions, names[inside], embedded.at(inside)

    def _group(self, number: int) -> tuple[Keys, Embedded]:
        stated = self.written("dimensions")
        readable = stated.isascii() and stated.isdecimal() and len(stated) <= len(str(MOST_DIMENSIONS))
        dimensions = int(stated) if readable and int(stated) <= MOST_DIMENSIONS else 0  # sparse vectors need one
        columns = ["key", "vector", *_COUNTS]
        table = self._storage.retry(lambda: self._file.read_row_group(number, columns=columns))
        vectors = vectors_of(table.column("vector"), dimensions)
        return _keys(table), Embedded(vectors, *(_counts(table, name) for name in _COUNTS))


@contextmanager
def open_file(storage: Storage, path: str) -> Iterator[ShardFile]:
    """Open a file of vectors.

    Raises:
        InputError: it is damaged, has another form, or is too large, also where the block raises ValueError.
        BackendError: it is gone, or the storage fails.
    """
    from pyarrow import ArrowException, parquet

    try:
        with storage.retry(
            lambda: parquet.ParquetFile(path, filesystem=storage.filesystem, page_checksum_verification=True)
        ) as file:
            yield ShardFile(file, storage)
    except FileNotFoundError as failure:
        raise BackendError(f"{storage.where(path)} was there and is gone: {storage.without_secrets(failure)}") from None
    except (OSError, ArrowException) as failure:
        if is_away(failure):
            raise BackendError(f"{storage.where(path)} cannot be read: {storage.without_secrets(failure)}") from None
        raise refused(storage, path, f"is damaged: {failure}") from None
    except ValueError as fault:
        raise refused(storage, path, str(fault)) from None


def refused(storage: Storage, path: str, what: str) -> InputError:
    """Return the error that names a file."""
    return InputError(Problem(storage.where(path), storage.without_secrets(what), REMEDY))


def column_of(vectors: AnyVectors) -> Array:
    """Return the vectors of some texts, (n,)."""
    import pyarrow as pa

    if isinstance(vectors, SparseVectors):
        numbers = pa.StructArray.from_arrays(
            [pa.array(vectors.indices, pa.int32()), pa.array(vectors.values, pa.float32())], ["index", "value"]
        )
        return pa.LargeListArray.from_arrays(pa.array(vectors.starts), numbers)
    values = vectors.values if isinstance(vectors, TokenVectors) else vectors
    rows = pa.FixedSizeListArray.from_arrays(pa.array(np.ravel(values), pa.float32()), values.shape[1])
    return pa.LargeListArray.from_arrays(pa.array(vectors.starts), rows) if isinstance(vectors, TokenVectors) else rows


def vectors_of(column: ChunkedArray, dimensions: int) -> AnyVectors:
    """Read what `column_of` gave.

    Args:
        column: (n,)
        dimensions: that sparse vectors have; of the others their type tells it.

    Raises:
        ValueError: the column is of no form, some text has no vector, or a number is not finite, is 0 in a sparse
            vector, or stands beyond its dimensions.
    """
    import pyarrow as pa

    rows = column.combine_chunks()
    if rows.null_count:
        raise ValueError("some texts have no vector")
    if pa.types.is_fixed_size_list(rows.type):
        return _matrix(rows)
    if not pa.types.is_list(rows.type) and not pa.types.is_large_list(rows.type):
        raise ValueError(_NO_FORM)
    offsets = rows.offsets.to_numpy().astype(np.int64)
    starts = offsets - offsets[0] if len(offsets) else np.zeros(1, dtype=np.int64)
    inside = rows.flatten()
    if pa.types.is_fixed_size_list(inside.type):
        return TokenVectors(starts, _matrix(inside))
    if inside.type != pa.struct([("index", pa.int32()), ("value", pa.float32())]) or inside.null_count:
        raise ValueError(_NO_FORM)
    indices, values = (_numbers(part) for part in inside.flatten())
    if dimensions < 1 or (len(indices) and not 0 <= indices.min() <= indices.max() < dimensions):
        raise ValueError("its sparse vectors have numbers beyond their dimensions")
    if not np.isfinite(values).all() or not values.all():
        raise ValueError("its sparse vectors have numbers that are 0 or not finite")
    text = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    if (np.diff(indices)[np.diff(text) == 0] < 1).any():
        raise ValueError("its sparse vectors name their dimensions in no order")
    return SparseVectors(starts, indices, values, dimensions)


_NO_FORM = "its vectors are not lists of 32-bit floats"


def _matrix(rows: Array) -> Vectors:
    """Return the numbers of fixed-size lists, (n, d)."""
    import pyarrow as pa

    if rows.type.value_type != pa.float32() or rows.null_count:
        raise ValueError(_NO_FORM)
    values: Vectors = _numbers(rows.flatten()).reshape(len(rows), rows.type.list_size)
    if not values.shape[1] or not np.isfinite(values).all():
        raise ValueError("holds a vector that is empty or not finite")
    return values


def _numbers(values: Array) -> npt.NDArray[Any]:
    if values.null_count:
        raise ValueError("some vectors lack numbers")
    numbers: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return numbers


def _check_form(file: ParquetFile) -> None:
    """Raise ValueError where the columns are not those of our files, or hold more than one may."""
    import pyarrow as pa

    schema, metadata = file.schema_arrow, file.metadata
    for name in ("key", "vector", *_COUNTS):
        if (found := schema.names.count(name)) != 1:
            raise ValueError(f"has {found} columns {name!r}" if found else f"has no column {name!r}")
    if schema.field("key").type != pa.binary(KEY_BYTES):
        raise ValueError(f"its keys are not {KEY_BYTES} bytes each")
    for name in _COUNTS:
        if schema.field(name).type != pa.int64():
            raise ValueError(f"its column {name!r} has no 64-bit integers")
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    columns = [group.column(place) for group in groups for place in range(group.num_columns)]
    numbers = sum(one.num_values for one in columns if one.path_in_schema.partition(".")[0] == "vector")
    rows = sum(group.num_rows for group in groups)
    # A fixed size is taken for every row, whatever the file says that the column holds.
    size = 4 * max(numbers, rows * _fixed_size(schema.field("vector").type))
    if rows > MOST_ROWS or size > MOST_BYTES:
        held = f"{rows:,} vectors, {size / (1 << 20):,.0f} MiB when unpacked"
        raise ValueError(f"is too large: {held}; a file has at most {MOST_ROWS:,} and {MOST_BYTES >> 20:,} MiB")


def _fixed_size(kind: DataType) -> int:
    import pyarrow as pa

    return kind.list_size if pa.types.is_fixed_size_list(kind) else 0


def _counts(table: Table, name: str) -> Counts:
    column = table.column(name)
    numbers: Counts = column.to_numpy() if not column.null_count else np.full(1, -1, dtype=np.int64)
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() <= MOST_COUNT:
        raise ValueError(f"its column {name!r} is not all of numbers from 0 to {MOST_COUNT:,}")
    return numbers


def _keys(table: Table) -> Keys:
    column = table.column("key")
    if column.null_count:
        raise ValueError("some of its keys are missing")
    whole = column.combine_chunks()
    names: Keys = np.frombuffer(whole.buffers()[1], f"V{KEY_BYTES}", len(whole), whole.offset * KEY_BYTES)
    return names.copy()  # the buffer is Arrow's
