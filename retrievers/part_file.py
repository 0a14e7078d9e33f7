"""One Parquet part: its form is checked before any of it is unpacked, and it is read one row group at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from retrievers.arrow import vectors_of
from retrievers.errors import BackendError, InputError, Problem
from retrievers.roots import Root
from retrievers.types import Counts, Embedded
from retrievers.vectors import KEY_BYTES, Keys

if TYPE_CHECKING:
    from pyarrow import DataType, Table
    from pyarrow.parquet import ParquetFile

MOST_ROWS = 1 << 20
MOST_BYTES = 1 << 30
"""Of the vectors of one part, unpacked. Ours have 16,384 texts at most, and mostly some MiB; a file of a few MiB may
unpack to any size, and reading takes three times as much memory."""
MOST_COUNT = 10**12
"""Tokens of one text, read or lost."""
MOST_DIMENSIONS = 1 << 24
"""Of a sparse vector: vocabularies have some hundred thousand words."""
REMEDY = "remove the part, and embed its texts again"
_COUNTS = ("tokens", "lost")


class PartFile:
    """An open part, whose form is that of a part and whose size is bounded; see `open_part`."""

    def __init__(self, file: ParquetFile) -> None:
        """Take the file; raises ValueError where it is no part, or too large."""
        self._file = file
        _check_form(file)

    def written(self, name: str) -> str:
        """Return what the metadata say of the part, "" where they do not."""
        return str((self._file.schema_arrow.metadata or {}).get(name.encode(), b"").decode("utf-8", "replace"))

    def keys(self) -> Keys:
        """Return all keys; raises ValueError where one is missing or stands twice."""
        column = self._file.read(columns=["key"]).column("key")
        if column.null_count:
            raise ValueError("some of its keys are missing")
        names = column.to_pylist()
        if len(set(names)) < len(names):
            raise ValueError(f"holds {len(names) - len(set(names)):,} of its keys more than once")
        return _keys(names)

    def tokens(self) -> Counts:
        """Return the tokens of all texts, in the order of the keys; raises ValueError for what is no count."""
        return _counts(self._file.read(columns=["tokens"]), "tokens")

    def groups(self) -> Iterator[tuple[Keys, Embedded]]:
        """Yield the keys and vectors of each row group; raises ValueError for what is no vector or no count."""
        stated = self.written("dimensions")
        readable = stated.isascii() and stated.isdecimal() and len(stated) <= len(str(MOST_DIMENSIONS))
        dimensions = int(stated) if readable and int(stated) <= MOST_DIMENSIONS else 0  # sparse vectors need one
        for number in range(self._file.num_row_groups):
            table = self._file.read_row_group(number, columns=["key", "vector", *_COUNTS])
            vectors = vectors_of(table.column("vector"), dimensions)
            yield _keys(table.column("key").to_pylist()), Embedded(vectors, *(_counts(table, name) for name in _COUNTS))


@contextmanager
def open_part(root: Root, path: str) -> Iterator[PartFile]:
    """Open a part.

    Raises:
        InputError: it is damaged, has not the form of a part, or is too large, also where the block raises ValueError.
        BackendError: it is gone, or the place fails.
    """
    from pyarrow import ArrowException, parquet

    try:
        with parquet.ParquetFile(path, filesystem=root.filesystem, page_checksum_verification=True) as file:
            yield PartFile(file)
    except FileNotFoundError as failure:
        raise BackendError(root.told(f"{path} was there and is gone: {failure}")) from None
    except (OSError, ArrowException) as failure:
        raise refused(root, path, f"is damaged: {failure}") from None
    except ValueError as fault:
        raise refused(root, path, str(fault)) from None


def refused(root: Root, path: str, what: str) -> InputError:
    """Return the error that names a part."""
    return InputError(Problem(root.told(path), root.told(what), REMEDY))


def _check_form(file: ParquetFile) -> None:
    """Raise ValueError where the columns are not those of a part, or hold more than a part may."""
    import pyarrow as pa

    schema, metadata = file.schema_arrow, file.metadata
    for name in ("key", "vector", *_COUNTS):
        if (found := schema.names.count(name)) != 1:
            raise ValueError(f"has {found} columns {name!r}" if found else f"has no column {name!r}")
    if schema.field("key").type != pa.binary(KEY_BYTES):
        raise ValueError(f"its keys are no {KEY_BYTES} bytes each")
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
        raise ValueError(f"is too large: {held}; a part has at most {MOST_ROWS:,} and {MOST_BYTES >> 20:,} MiB")


def _fixed_size(kind: DataType) -> int:
    import pyarrow as pa

    return kind.list_size if pa.types.is_fixed_size_list(kind) else 0


def _counts(table: Table, name: str) -> Counts:
    column = table.column(name)
    numbers: Counts = column.to_numpy() if not column.null_count else np.full(1, -1, dtype=np.int64)
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() <= MOST_COUNT:
        raise ValueError(f"its column {name!r} is not all of numbers from 0 to {MOST_COUNT:,}")
    return numbers


def _keys(names: Sequence[bytes]) -> Keys:
    return np.frombuffer(b"".join(names), dtype=f"V{KEY_BYTES}")
