"""Rows of the files that Apache Arrow reads: Parquet, and Arrow itself, as `datasets` saves to disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harness.dataset.archives import COMPRESSED, FREE, RATIO, missing
from harness.dataset.files import File, regular
from harness.dataset.source import Complaints, Place, named_twice
from retrievers.errors import Problem

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

SUFFIXES = (".parquet", ".arrow", ".feather")
BATCH = 4096
"""Rows in memory, at most."""
FEWEST = 16
"""Rows at once, however large their values may be."""
AT_ONCE = 256 << 20
"""Bytes of them, at most, if every value were as large as all of its column's distinct values together."""


def columnar_rows(file: File, problems: Complaints) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Stream the rows of a file, each with its number from 1; what cannot be read is added to `problems`."""
    try:
        import pyarrow as pa
    except ImportError:
        problems.append(missing(str(file.path), "pyarrow", "formats"))
        return
    kind = "Parquet" if file.suffix == ".parquet" else "Arrow"
    try:
        file.refuse_twin()
        packed = file.archive is not None or file.path.suffix.lower() in COMPRESSED
        raw = file.read() if packed else b""
        size = len(raw) if packed else regular(file.path)
        source = pa.BufferReader(raw) if packed else pa.OSFile(str(file.path))
        with source, _opened(source, kind) as table:
            schema = table.schema_arrow if kind == "Parquet" else table.schema
            if named_twice(schema.names, str(file.path), problems):
                return
            number, left = 0, max(FREE, RATIO * size)
            for batch in _batches(table, kind):
                if kind == "Arrow":
                    batch.validate(full=True)  # which nothing else does: places outside of the file could be read
                left -= sum(_unpacked_bytes(column) for column in batch.columns)
                if left < 0:
                    what = "unpacks to far more than text would"
                    problems.append(Problem(str(file.path), what, "write it as JSON Lines, if you trust it"))
                    return
                rows: list[dict[str, Any]] = batch.to_pylist()
                for row in rows:
                    number += 1
                    yield Place(file.path, number), row
    except (pa.ArrowException, OSError) as error:
        what = f"is no {kind} file that can be read: {str(error).splitlines()[0]}"
        problems.append(Problem(str(file.path), what, "fetch or write it again"))
    except UnicodeDecodeError:
        problems.append(Problem(str(file.path), "holds text that is not UTF-8", "write the strings as UTF-8"))
    except (OverflowError, ValueError) as error:  # what pyarrow raises of dates and of names in structs
        remedy = "write dates and times as text, or leave their column out"
        problems.append(Problem(str(file.path), f"holds a value that cannot be taken: {error}", remedy))


def _opened(source: Any, kind: str) -> Any:
    """A Parquet file, a stream of Arrow as `datasets` writes it, or a file of Arrow, which Feather is, too."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if kind == "Parquet":
        return pq.ParquetFile(source)
    is_file = source.read(6) == b"ARROW1"
    source.seek(0)
    return pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)


def _batches(table: Any, kind: str) -> Iterator[pa.RecordBatch]:
    """Rows that are read at once: few where a value may be large, since one that stands once may be a million rows'."""
    if kind == "Arrow":
        streamed = hasattr(table, "read_next_batch")
        yield from table if streamed else map(table.get_batch, range(table.num_record_batches))
        return
    parquet: pq.ParquetFile = table
    for number in range(parquet.num_row_groups):
        group = parquet.metadata.row_group(number)
        largest = max((group.column(i).total_uncompressed_size for i in range(group.num_columns)), default=0)
        rows = min(max(AT_ONCE // max(largest, 1), FEWEST), BATCH)
        yield from parquet.iter_batches(rows, row_groups=[number])


def _unpacked_bytes(column: pa.Array) -> int:
    """The bytes of a column's values, each counted as often as it stands there."""
    import pyarrow as pa

    return int((column.dictionary_decode() if pa.types.is_dictionary(column.type) else column).nbytes)
