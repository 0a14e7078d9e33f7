"""A block of TREC lines as columns."""

import re
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import numpy as np
import numpy.typing as npt

from retrievers.ids import to_nfc

NEWLINE_CODE = ord("\n")
SEPARATES_FIELDS = bytes(byte in b" \t\n\v\f\r" for byte in range(256))
"""For each byte, whether it separates fields."""
MAX_COLUMN_BYTES = 1 << 24
"""Bytes of a column, with each field padded to the longest; a block with more is read
line by line."""
MAX_CACHED_IDS = 1 << 18
"""Ids whose texts are kept, so that equal ids share one; then they start anew."""
QUERY_COLUMN = 0
DOCUMENT_COLUMN = 2
"""The fields of a line with these ids, counted from 0, in runs and in qrels."""
NumberColumn = npt.NDArray[Any]


class LineForm(NamedTuple):
    """The fields of a kind of file."""

    fields: str
    field_count: int
    number_column: int
    """The field with a number."""
    number: type[int] | type[float]
    max_number: float
    number_name: str
    remedy: str
    verb: str
    """In messages: a document "is ranked twice", or "is judged twice"."""


RUN_FORM = LineForm(
    fields="query Q0 document rank score tag",
    field_count=6,
    number_column=4,
    number=float,
    max_number=sys.float_info.max,
    number_name="score",
    remedy="a score is a finite number",
    verb="ranked",
)
QRELS_FORM = LineForm(
    fields="query iteration document grade",
    field_count=4,
    number_column=3,
    number=int,
    max_number=2**31 - 1,
    number_name="grade",
    remedy="a grade is a whole number below 2^31",
    verb="judged",
)


class QueryRows(NamedTuple):
    """Rows of one query in a block, one after the other."""

    query: str
    rows: slice


class TrecColumns(NamedTuple):
    """The columns of a block."""

    queries: list[QueryRows]
    documents: tuple[str, ...]
    values: NumberColumn
    """Scores or grades."""


def parse_numbers(fields: Sequence[bytes], form: LineForm) -> NumberColumn | None:
    """Return fields as whole or finite numbers; None if one is not, or is too large."""
    try:
        numbers = np.array(list(map(form.number, fields)))
    except ValueError:
        return None
    is_in_range = (numbers >= -form.max_number) & (numbers <= form.max_number)
    # Python's numbers may have underscores.
    if not is_in_range.all() or b"_" in b"".join(fields):
        return None
    return numbers


@lru_cache(maxsize=1 << 16)
def encode_id(id: str) -> str:
    """Percent-encode the white space and the percent signs of an id.

    So is a byte order mark at its beginning, which at the beginning of a file would be
    read as the file's. Results are cached: a document is a hit of many queries.

    >>> encode_id("a b%")
    'a%20b%25'
    """
    return re.sub(r"^\ufeff|[\s%]", lambda match: quote(match[0], safe=""), id)


def decode_id(id: str) -> str:
    """Undo `encode_id`; percent signs that it cannot have written stay as they are.

    >>> decode_id("a%20b%25"), decode_id("%41")
    ('a b%', '%41')
    """
    return re.sub(r"(?:%[0-9A-F]{2})+", _decode_escapes, id)


def _decode_escapes(escapes: re.Match[str]) -> str:
    text = unquote(escapes[0], errors="replace")
    encoded_pattern = r"\ufeff?[\s%]*" if escapes.start() == 0 else r"[\s%]+"
    return text if re.fullmatch(encoded_pattern, text) else escapes[0]


def parse_id(field: bytes) -> str:
    """Return the id in a field; raise UnicodeDecodeError if it is not UTF-8."""
    text = field.decode()
    return to_nfc(decode_id(text) if b"%" in field else text)


class _IdsByField(dict[bytes, str]):
    """The ids of fields; a new field is parsed when it is asked for."""

    def __missing__(self, field: bytes) -> str:
        parsed = parse_id(field)
        self[field] = parsed
        return parsed


_cached_ids = _IdsByField()


def parse_ids(fields: npt.NDArray[np.bytes_]) -> tuple[str, ...]:
    """Return the ids in fields, with one text for each, however often it occurs.

    Raises:
        UnicodeDecodeError: a field is not UTF-8.
    """
    if len(_cached_ids) > MAX_CACHED_IDS:
        _cached_ids.clear()
    return tuple(map(_cached_ids.__getitem__, fields.tolist()))


def parse_columns(block: bytes, form: LineForm) -> TrecColumns | None:
    """Return the columns of a block, ten times as fast as line by line.

    Args:
        block: one line or more, each with its end.
        form: the fields of its lines.

    Returns:
        None if it must be read line by line, since a line has more or fewer fields than
        its form, a number or an id cannot be read, or a field is too long.
    """
    field_edges = _find_fields(block, form)
    if field_edges is None:
        return None
    queries = _column(block, field_edges[:, QUERY_COLUMN])
    documents = _column(block, field_edges[:, DOCUMENT_COLUMN])
    numbers = _column(block, field_edges[:, form.number_column])
    changes = np.flatnonzero(queries[1:] != queries[:-1]) + 1
    starts = [0, *changes.tolist()]
    stops = [*starts[1:], len(queries)]
    values = parse_numbers(numbers.tolist(), form)
    if values is None:
        return None
    try:
        query_ids = parse_ids(queries[starts])
        query_rows = [
            QueryRows(query_id, slice(start, stop))
            for query_id, start, stop in zip(query_ids, starts, stops, strict=True)
        ]
        return TrecColumns(query_rows, parse_ids(documents), values)
    except UnicodeDecodeError:
        return None


def _find_fields(block: bytes, form: LineForm) -> npt.NDArray[np.intp] | None:
    """Return where fields begin and end, (lines, fields, 2).

    None if a line has more or fewer fields than its form, or a column is too large.
    """
    is_separator = np.frombuffer(block.translate(SEPARATES_FIELDS), np.bool_)
    edges = np.flatnonzero(np.diff(is_separator, prepend=True))
    line_ends = np.flatnonzero(np.frombuffer(block, np.uint8) == NEWLINE_CODE)
    # A NUL byte would be lost: fields are padded with it.
    if len(edges) != 2 * form.field_count * len(line_ends) or b"\0" in block:
        return None
    fields = edges.reshape(-1, form.field_count, 2)
    # As many fields in all; but one line may have more, and another fewer.
    ends_late = (fields[:, -1, 1] > line_ends).any()
    begins_early = (fields[1:, 0, 0] < line_ends[:-1]).any()
    if ends_late or begins_early:
        return None
    if int(np.diff(fields).max()) * len(line_ends) > MAX_COLUMN_BYTES:
        return None
    return fields


def _column(block: bytes, edges: npt.NDArray[np.intp]) -> npt.NDArray[np.bytes_]:
    """Return the fields between edges, (n, 2)."""
    lengths = edges[:, 1] - edges[:, 0]
    width = int(lengths.max())
    # A field of that width begins at every byte of the block: those of the column are
    # copied, and the bytes after each field are erased.
    padded_block = block + bytes(width)
    fields_at_bytes: npt.NDArray[np.bytes_] = np.ndarray(
        (len(block),), f"S{width}", padded_block, strides=(1,)
    )
    column = fields_at_bytes[edges[:, 0]]
    column_bytes = column.view(np.uint8).reshape(-1, width)
    column_bytes[np.arange(width) >= lengths[:, None]] = 0
    return column
