"""Rows of a table, whatever file they stand in: JSON Lines, JSON, CSV, TSV, Parquet."""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from harness.dataset.archives import COMPRESSED, FREE, RATIO, missing
from harness.dataset.files import File as File  # what other rooms give these readers
from harness.dataset.files import regular
from harness.dataset.source import Complaints, Place, decode, parse_json
from retrievers.errors import InputError, Problem

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

Row = Mapping[str, Any]
SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")
"""What tables are read from."""
PLAIN = (".txt",)
"""Text with one question a line: of queries alone."""
LONGEST_LINE = 64 << 20
"""Bytes of one line or one cell, at most."""
BATCH = 4096
"""Rows of a Parquet file in memory, at most."""
FEWEST = 16
"""Rows of it at once, however large its values may be."""
AT_ONCE = 256 << 20
"""Bytes of them, at most, if every value were as large as all of its column's distinct values together."""
VALID = "write it with a JSON library, and see that it is whole"
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
TOML = re.compile(r"#|\[\[?[\w.-]+\]\]?\s*$|[\w-]{1,64}\s*=")
NUMBERS_OF_FIELDS = {4: "TREC judgments", 6: "a TREC run"}


def kind_of(line: str) -> str:
    """Return what a file that begins with this line seems to be, with its article; "" where that is not clear.

    >>> kind_of('name = "e"'), kind_of("id;query"), kind_of('{"a": 1}'), kind_of("q 0 d 1"), kind_of("words")
    ('an experiment file (TOML)', 'a table (CSV)', 'JSON', 'TREC judgments', '')
    """
    line = line.strip()
    if line.startswith("{"):
        return "JSON"
    if line.startswith("<"):
        return "a web page, or XML"
    if TOML.match(line):
        return "an experiment file (TOML)"
    if any(delimiter in line for delimiter in ",;\t"):
        return "a table (CSV)"
    return NUMBERS_OF_FIELDS.get(len(line.split()), "")


def read_rows(file: File, problems: Complaints) -> Iterator[tuple[Place, Row]]:
    """Stream the rows of one file, each with its line (of Parquet, its number from 1).

    Cells of CSV and TSV are text, empty ones too. What cannot be read is added to `problems` and skipped.

    Args:
        file: `*.jsonl`, `*.ndjson`, `*.json` (a list of objects), `*.csv`, `*.tsv` or `*.parquet`.
        problems: where complaints go.
    """
    readers = {".csv": _csv, ".tsv": _tsv, ".json": _json, ".parquet": _parquet, ".txt": _txt}
    try:
        yield from readers.get(file.suffix, _jsonl)(file, problems)
    except InputError as error:
        problems.extend(error.problems)


def read_lines(file: File, problems: Complaints) -> Iterator[tuple[int, str]]:
    """Stream the non-blank lines of a UTF-8 file with their numbers, cut at line feeds alone."""
    with file.open() as handle:
        number = 0
        while raw := handle.readline(LONGEST_LINE + 1):
            number += 1
            if len(raw) > LONGEST_LINE:
                what = f"is longer than {LONGEST_LINE:,} bytes"
                problems.append(Problem(str(Place(file.path, number)), what, "cut the record"))
                return
            try:
                line = _text(raw, file.path, number)
            except InputError as error:
                problems.extend(error.problems)
                return  # one complaint: in another encoding every line is wrong
            if line and not line.isspace():
                yield number, line


def _text(raw: bytes, path: Path, number: int) -> str:
    if number == 1 and raw.startswith(UTF16):
        raise InputError(Problem(f"{path}:1", "is not UTF-8 but UTF-16", "save the file as UTF-8"))
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = decode(raw, Place(path, number))
    return text.removeprefix("\ufeff").rstrip("\r\n")


def _jsonl(file: File, problems: Complaints) -> Iterator[tuple[Place, Row]]:
    begun = False
    for number, line in read_lines(file, problems):
        place = Place(file.path, number)
        first, begun = not begun, True
        try:
            row = parse_json(line)
        except ValueError as error:
            if first and (kind := kind_of(line)) not in ("", "JSON"):
                what = f"is not JSON Lines: it looks like {kind}"
                problems.append(Problem(str(place), what, "expected one JSON object a line: {…}"))
                return
            problems.append(Problem(str(place), f"is not JSON: {error}", VALID))
            continue
        if isinstance(row, dict):
            yield place, row
        else:
            problems.append(Problem(str(place), "is not a JSON object", 'expected {"_id": …, "text": …}'))


def read_jsonl(path: Path, problems: Complaints) -> Iterator[tuple[Place, Row]]:
    """Stream the objects of a JSON Lines file; a line that is none becomes a problem."""
    try:
        yield from _jsonl(File(path), problems)
    except InputError as error:
        problems.extend(error.problems)


def read_text(path: Path) -> str:
    """Read a UTF-8 file whole, a byte order mark left out.

    Raises:
        InputError: it cannot be read, is no regular file, is larger than 1 GiB, or has another encoding.
    """
    return decode(File(path).read(), Place(path))


def read_json(file: File) -> Any:
    """Parse a JSON file whole; InputError with its line where it is none."""
    text = decode(file.read(), Place(file.path))
    try:
        return parse_json(text)
    except json.JSONDecodeError as error:
        raise InputError(Problem(f"{file.path}:{error.lineno}", f"is not JSON: {error.msg}", VALID)) from None
    except ValueError as error:
        raise InputError(Problem(str(file.path), f"is not JSON: {error}", VALID)) from None


def _json(file: File, problems: Complaints) -> Iterator[tuple[Place, Row]]:
    rows = read_json(file)
    if not isinstance(rows, list):
        problems.append(Problem(str(file.path), "is not a list of objects", "or name it .jsonl: one object a line"))
        return
    for number, row in enumerate(rows):
        place = Place(Path(f"{file.path}[{number}]"))
        if isinstance(row, dict):
            yield place, row
        else:
            problems.append(Problem(str(place), "is not an object", "every entry is one: {…}"))


def _txt(file: File, problems: Complaints) -> Iterator[tuple[Place, Row]]:
    for number, line in read_lines(file, problems):
        yield Place(file.path, number), {"query": line.strip()}


def _csv(file: File, problems: Complaints) -> Iterator[tuple[Place, Row]]:
    yield from _separated(file, _delimiter_of(file), problems)


def _tsv(file: File, problems: Complaints) -> Iterator[tuple[Place, Row]]:
    yield from _separated(file, "\t", problems)


def _delimiter_of(file: File) -> str:
    """What the header of a table has most often between its cells: Excel writes semicolons where a comma is decimal."""
    with file.open() as handle:
        header = next((line for line in _decoded(handle, file.path) if line.strip()), "")
    return max(",;\t", key=re.sub('"[^"]*"', "", header).count)


def _separated(file: File, delimiter: str, problems: Complaints) -> Iterator[tuple[Place, Row]]:
    """The rows of a table with a header, quoted as RFC 4180 has it, a quoted cell over several lines too."""
    csv.field_size_limit(LONGEST_LINE)
    with file.open() as handle:
        reader = csv.reader(_decoded(handle, file.path), delimiter=delimiter, strict=True)
        header: list[str] | None = None
        begins = 1
        while True:
            try:
                cells = next(reader, None)
            except csv.Error as error:
                remedy = "a quote is doubled within quotes, and every cell with a quote stands in quotes"
                problems.append(Problem(str(Place(file.path, begins)), f"cannot be read as a table: {error}", remedy))
                return
            if cells is None:
                break
            place, begins = Place(file.path, begins), reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = [cell.strip() for cell in cells]
                if _named_twice(header, str(place), problems):
                    return
            elif len(cells) != len(header):
                remedy = f"the header has {len(header)}: {', '.join(header[:8])}"
                problems.append(Problem(str(place), f"{len(cells)} columns", remedy))
            else:
                yield place, dict(zip(header, cells, strict=True))
        if header is None:
            problems.append(Problem(str(file.path), "is empty", "a header, then one row a line"))


def _named_twice(header: Sequence[str], where: str, problems: Complaints) -> bool:
    """Complain of a column that stands twice; unnamed ones may."""
    twice = sorted(name for name, number in Counter(header).items() if name and number > 1)
    if twice:
        problems.append(Problem(where, f"the column {twice[0]!r} stands twice", "name columns apart"))
    return bool(twice)


def _decoded(handle: IO[bytes], path: Path) -> Iterator[str]:
    number = 0
    while raw := handle.readline(LONGEST_LINE + 1):
        number += 1
        if len(raw) > LONGEST_LINE:
            raise InputError(
                Problem(str(Place(path, number)), f"is longer than {LONGEST_LINE:,} bytes", "cut the record")
            )
        if b"\0" in raw:
            _text(raw, path, number)
            raise InputError(Problem(str(Place(path, number)), "holds a zero byte", "is this a text file?"))
        yield _text(raw, path, number) + "\n"


def _parquet(file: File, problems: Complaints) -> Iterator[tuple[Place, Row]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        problems.append(missing(str(file.path), "pyarrow", "formats"))
        return
    packed = file.archive is not None or file.path.suffix.lower() in COMPRESSED
    try:
        file.refuse_twin()
        raw = file.read() if packed else b""
        source: Any = pa.BufferReader(raw) if packed else str(file.path)
        size = len(raw) if packed else regular(file.path)
        with pq.ParquetFile(source) as table:
            if _named_twice(table.schema_arrow.names, str(file.path), problems):
                return
            number, left = 0, max(FREE, RATIO * size)
            for batch in _batches(table):
                left -= sum(_unpacked_bytes(column) for column in batch.columns)
                if left < 0:
                    what = "unpacks to far more than text would"
                    problems.append(Problem(str(file.path), what, "write it as JSON Lines, if you trust it"))
                    return
                for row in _pylist(batch):
                    number += 1
                    yield Place(file.path, number), row
    except (pa.ArrowException, OSError) as error:
        what = f"is no Parquet file that can be read: {str(error).splitlines()[0]}"
        problems.append(Problem(str(file.path), what, "fetch or write it again"))
    except UnicodeDecodeError:
        problems.append(Problem(str(file.path), "holds text that is not UTF-8", "write the strings as UTF-8"))
    except (OverflowError, ValueError) as error:  # what pyarrow raises of dates and of names in structs
        remedy = "write dates and times as text, or leave their column out"
        problems.append(Problem(str(file.path), f"holds a value that cannot be taken: {error}", remedy))


def _batches(table: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    """Rows that are read at once: few where a value may be large, since one that stands once may be a million rows'."""
    for number in range(table.num_row_groups):
        group = table.metadata.row_group(number)
        largest = max((group.column(i).total_uncompressed_size for i in range(group.num_columns)), default=0)
        rows = min(max(AT_ONCE // max(largest, 1), FEWEST), BATCH)
        yield from table.iter_batches(rows, row_groups=[number])


def _unpacked_bytes(column: pa.Array) -> int:
    """The bytes of a column's values, each counted as often as it stands there."""
    import pyarrow as pa

    return int((column.dictionary_decode() if pa.types.is_dictionary(column.type) else column).nbytes)


def _pylist(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows
