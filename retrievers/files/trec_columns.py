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
"""Bytes of a column, each field padded to the longest: a block with longer ones is read line by line."""
MAX_CACHED_IDS = 1 << 18
"""Ids that keep one text each."""
NumberColumn = npt.NDArray[Any]


class LineForm(NamedTuple):
    """The fields of a kind of file."""

    fields: str
    field_count: int
    number_column: int
    """The field that holds a number."""
    number: type[int] | type[float]
    max_number: float
    number_name: str
    remedy: str
    verb: str
    """What a line does with its document."""


RUN_FORM = LineForm(
    "query Q0 document rank score tag",
    6,
    4,
    float,
    sys.float_info.max,
    "score",
    "a score is a finite number",
    "ranked",
)
QRELS_FORM = LineForm(
    "query iteration document grade",
    4,
    3,
    int,
    2**31 - 1,
    "grade",
    "a grade is a whole number below 2^31",
    "judged",
)


def parse_numbers(fields: Sequence[bytes], form: LineForm) -> NumberColumn | None:
    """The fields as whole or finite numbers; None where one is none, or too large."""
    try:
        values = np.array(list(map(form.number, fields)))
    except ValueError:
        return None
    fit = (values >= -form.max_number) & (values <= form.max_number)
    return values if fit.all() and b"_" not in b"".join(fields) else None


@lru_cache(
    maxsize=1 << 16
)  # a document is a hit of many queries, and of many retrievers
def encode_id(id: str) -> str:
    """Percent-encode the white space and the percent signs of an id.

    >>> encode_id("a b%")
    'a%20b%25'
    """
    return re.sub(r"[\s%]", lambda character: quote(character[0], safe=""), id)


def decode_id(id: str) -> str:
    """Undo `encode`; percent signs that it cannot have written stay as they are.

    >>> decode_id("a%20b%25"), decode_id("%41")
    ('a b%', '%41')
    """
    return re.sub(r"(?:%[0-9A-F]{2})+", _decoded, id)


def parse_id(field: bytes) -> str:
    """Decode a field that is an id; UnicodeDecodeError where it is not UTF-8."""
    return to_nfc(decode_id(field.decode()) if b"%" in field else field.decode())


def _decoded(escapes: re.Match[str]) -> str:
    text = unquote(escapes[0], errors="replace")
    return text if re.fullmatch(r"[\s%]+", text) else escapes[0]


_names: dict[bytes, str] = {}


def parse_ids(fields: npt.NDArray[np.bytes_]) -> tuple[str, ...]:
    """Return the ids of some fields, one text for each however often it occurs; raises UnicodeDecodeError."""
    some = fields.tolist()
    if len(_names) > MAX_CACHED_IDS:
        _names.clear()
    for field in set(some).difference(_names):
        _names[field] = parse_id(field)
    return tuple(map(_names.__getitem__, some))


def parse_columns(
    block: bytes, form: LineForm
) -> tuple[list[tuple[str, slice]], tuple[str, ...], NumberColumn] | None:
    """The columns of a block in which every line has so many fields: queries, each with its lines, documents, numbers.

    Ten times as fast as line by line. None for any other block, which is to be read line by line.
    """
    edges = np.flatnonzero(
        np.diff(
            np.frombuffer(block.translate(SEPARATES_FIELDS), np.bool_), prepend=True
        )
    )
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == NEWLINE_CODE)
    if len(edges) != 2 * form.field_count * len(ends) or b"\0" in block:
        return None
    fields = edges.reshape(-1, form.field_count, 2)
    apart = (fields[:, -1, 1] > ends).any() or (fields[1:, 0, 0] < ends[:-1]).any()
    if apart or int(np.diff(fields).max()) * len(ends) > MAX_COLUMN_BYTES:
        return None
    queries, documents, numbers = (
        _column(block, fields[:, place]) for place in (0, 2, form.number_column)
    )
    starts = [0, *(np.flatnonzero(queries[1:] != queries[:-1]) + 1).tolist()]
    parts = map(slice, starts, [*starts[1:], len(queries)])
    values = parse_numbers(numbers.tolist(), form)
    try:
        named = [*zip(parse_ids(queries[starts]), parts, strict=True)]
        return None if values is None else (named, parse_ids(documents), values)
    except UnicodeDecodeError:
        return None


def _column(block: bytes, edges: npt.NDArray[np.intp]) -> npt.NDArray[np.bytes_]:
    """The bytes between edges, (n, 2)."""
    lengths = edges[:, 1] - edges[:, 0]
    width = int(lengths.max())
    # A field of that width begins at every byte of the block: those wanted are copied, and what follows them is erased.
    column = np.ndarray((len(block),), f"S{width}", block + bytes(width), strides=(1,))[
        edges[:, 0]
    ]
    column.view(np.uint8).reshape(-1, width)[np.arange(width) >= lengths[:, None]] = 0
    return column
