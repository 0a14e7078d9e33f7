"""A block of TREC lines as columns: bytes to arrays, and one text for each id."""

import re
import sys
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import numpy as np
import numpy.typing as npt

from retrievers.ids import nfc

NEWLINE = ord("\n")
SPACES = bytes(byte in b" \t\n\v\f\r" for byte in range(256))
"""For each byte, whether it separates fields."""
WIDEST = 1 << 24
"""Bytes of a column, each field padded to the longest: a block with longer ones is read line by line."""
KNOWN, SLOT_BITS, MIXING = 1 << 18, 17, np.uint64(0x9E3779B97F4A7C15)
"""Ids that keep one text each; bits of the number by which they are found, and what spreads it."""
Numbers = npt.NDArray[Any]


class LineForm(NamedTuple):
    """The fields of a kind of file."""

    fields: str
    width: int
    column: int
    """The field that holds a number."""
    number: type[int] | type[float]
    largest: float
    value: str
    remedy: str
    done: str
    """What a line does with its document."""


RUN = LineForm("query Q0 document rank score tag", 6, 4, float, sys.float_info.max, "score",
               "a score is a finite number", "ranked")  # fmt: skip
QRELS = LineForm("query iteration document grade", 4, 3, int, 2**31 - 1, "grade",
                 "a grade is a whole number below 2^31", "judged")  # fmt: skip


def numbers_in(fields: Sequence[bytes], form: LineForm) -> Numbers | None:
    """The fields as whole or finite numbers; None where one is none, or too large."""
    try:
        values = np.array(list(map(form.number, fields)))
    except ValueError:
        return None
    fit = (values >= -form.largest) & (values <= form.largest)
    return values if fit.all() and b"_" not in b"".join(fields) else None


@lru_cache(maxsize=1 << 16)  # a document is a hit of many queries, and of many retrievers
def encode(id: str) -> str:
    """Percent-encode the white space and the percent signs of an id.

    >>> encode("a b%")
    'a%20b%25'
    """
    return re.sub(r"[\s%]", lambda character: quote(character[0], safe=""), id)


def decode(id: str) -> str:
    """Undo `encode`; percent signs that it cannot have written stay as they are.

    >>> decode("a%20b%25"), decode("%41")
    ('a b%', '%41')
    """
    return re.sub(r"(?:%[0-9A-F]{2})+", _decoded, id)


def id_of(field: bytes) -> str:
    """Decode a field that is an id; UnicodeDecodeError where it is not UTF-8."""
    return nfc(decode(field.decode()) if b"%" in field else field.decode())


def _decoded(escapes: re.Match[str]) -> str:
    text = unquote(escapes[0], errors="replace")
    return text if re.fullmatch(r"[\s%]+", text) else escapes[0]


class KnownIds:
    """One text for each id, however often and in however many files it occurs."""

    def __init__(self) -> None:
        self._codes, self._slots = dict[bytes, int](), np.zeros(1 << SLOT_BITS, np.int32)
        self._fields, self._names = np.array([b""]), np.array([""], object)

    @property
    def full(self) -> bool:
        """Whether so many ids are known that it is time for a new table."""
        return len(self._codes) > KNOWN

    def of(self, fields: npt.NDArray[np.bytes_]) -> tuple[str, ...]:
        """Return the ids of some fields; UnicodeDecodeError where one is none."""
        # Nearly all are found by what their slot holds: looking up each in a dictionary waits for memory each time.
        words = fields.astype(f"S{-(-fields.itemsize // 8) * 8}").view(np.uint64).reshape(len(fields), -1)
        mixed = words @ (MIXING * np.arange(1, 2 * words.shape[1], 2, dtype=np.uint64))
        slots = (mixed ^ (mixed >> np.uint64(32))) * MIXING >> np.uint64(64 - SLOT_BITS)
        codes = self._slots[slots]
        if len(others := np.flatnonzero(self._fields[codes] != fields)):
            some = fields[others].tolist()
            new = [field for field in dict.fromkeys(some) if field not in self._codes]
            self._names = np.concatenate([self._names, np.array(list(map(id_of, new)), object)])
            self._codes.update(zip(new, range(len(self._fields), len(self._names)), strict=True))
            self._fields = np.concatenate([self._fields, np.array(new, "S")])
            codes[others] = list(map(self._codes.__getitem__, some))
            self._slots[slots[others]] = codes[others]
        return tuple(self._names[codes].tolist())


@cache
def known_ids() -> KnownIds:
    """The ids that this process has read."""
    return KnownIds()


def columns_of(block: bytes, form: LineForm) -> tuple[list[tuple[str, slice]], tuple[str, ...], Numbers] | None:
    """The columns of a block in which every line has so many fields: queries, each with its lines, documents, numbers.

    Ten times as fast as line by line. None for any other block, which is to be read line by line.
    """
    edges = np.flatnonzero(np.diff(np.frombuffer(block.translate(SPACES), np.bool_), prepend=True))
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == NEWLINE)
    if len(edges) != 2 * form.width * len(ends) or b"\0" in block:
        return None
    fields = edges.reshape(-1, form.width, 2)
    apart = (fields[:, -1, 1] > ends).any() or (fields[1:, 0, 0] < ends[:-1]).any()
    if apart or int(np.diff(fields).max()) * len(ends) > WIDEST:
        return None
    queries, documents, numbers = (_column(block, fields[:, place]) for place in (0, 2, form.column))
    starts = [0, *(np.flatnonzero(queries[1:] != queries[:-1]) + 1).tolist()]
    parts = map(slice, starts, [*starts[1:], len(queries)])
    values = numbers_in(numbers.tolist(), form)
    if known_ids().full:
        known_ids.cache_clear()
    ids = known_ids()
    try:
        named = [*zip(ids.of(queries[starts]), parts, strict=True)]
        return None if values is None else (named, ids.of(documents), values)
    except UnicodeDecodeError:
        return None


def _column(block: bytes, edges: npt.NDArray[np.intp]) -> npt.NDArray[np.bytes_]:
    """The bytes between edges, (n, 2)."""
    lengths = edges[:, 1] - edges[:, 0]
    width = int(lengths.max())
    # A field of that width begins at every byte of the block: those wanted are copied, and what follows them is erased.
    column = np.ndarray((len(block),), f"S{width}", block + bytes(width), strides=(1,))[edges[:, 0]]
    column.view(np.uint8).reshape(-1, width)[np.arange(width) >= lengths[:, None]] = 0
    return column
