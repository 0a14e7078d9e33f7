r"""TREC runs and qrels: read and written here and nowhere else.

A run line is `query Q0 document rank score tag`, one of qrels `query iteration document grade`. Lines end at \n
alone, fields at ASCII white space, as trec_eval cuts them. Ids that hold white space or a percent sign are
percent-encoded, so that they stay one field.
"""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import numpy as np
import numpy.typing as npt
from pydantic_core import to_json

from retrievers.errors import InputError, Problem
from retrievers.ids import nfc
from retrievers.opening import NUMBERS_OF_FIELDS, kind_of, text_file, writing
from retrievers.types import Floats, Ranking

BOM = b"\xef\xbb\xbf"
LARGEST = float(np.finfo(np.float32).max)
BLOCK, LONGEST_LINE = 1 << 20, 1 << 20
"""Bytes that are read at once, and of a line, at most."""
NEWLINE_BYTE = b"\n"
SPACES = bytes(byte in b" \t\n\v\f\r" for byte in range(256))
"""For each byte, whether it separates fields."""
WIDEST = 1 << 24
"""Bytes of a column, each field padded to the longest: a block with longer ones is read line by line."""
KNOWN, SLOT_BITS, MIXING = 1 << 18, 17, np.uint64(0x9E3779B97F4A7C15)
"""Ids of which one text is kept each; bits of the number by which they are found, and what spreads it."""
SHOWN = 20
"""How many problems of one file are listed; the rest is counted."""
RunScores = dict[str, dict[str, float]]
Qrels = dict[str, dict[str, int]]
Numbers = npt.NDArray[Any]
Line = tuple[int, str, str, Any]
"""Its number, a query, a document, and what it says of them."""
Add = Callable[[int, str, str], None]
"""Takes what is wrong with a line: its number, what is wrong, what to do."""
Lines = Callable[[Add], Iterator[Line]]


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


def read_run(path: str | Path, lines: Lines | None = None) -> RunScores:
    """Read a run, plain or gzip: query id -> document id -> score. The rank column is ignored, as by trec_eval.

    Args:
        path: the file.
        lines: what reads its lines, where they are not those of TREC files.

    Raises:
        InputError: malformed lines, scores that are no number, or a document ranked twice for a query, each
            with its line; or the file cannot be read or holds nothing.
    """
    return _by_query(path, RUN, lines)


def read_qrels(path: str | Path) -> Qrels:
    """Read judgments, plain or gzip: query id -> document id -> grade, in the file's order.

    Raises:
        InputError: malformed lines, grades that are no whole number, or a document judged twice for a
            query, each with its line; or the file cannot be read or holds nothing.
    """
    return _by_query(path, QRELS)


def _by_query(path: str | Path, form: LineForm, lines: Lines | None = None) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    problems = LineProblems(path)
    for some in _stretches(path, form, problems, lines):
        known = found.setdefault(some.query, {})
        some.refuse_twice(known, problems, form.done)
        known.update(zip(some.documents, some.values.tolist(), strict=True))
    problems.refuse(nothing=not found)
    return found


def stream_run(path: str | Path, lines: Lines | None = None) -> Iterator[tuple[str, tuple[str, ...], Floats]]:
    """Read a run query by query, as far as its lines stand together: query id, documents and their scores.

    Only one query's hits are in memory at a time. A query whose lines do not stand together comes again. Arguments and
    errors, after the last query, as of `read_run`.
    """
    problems = LineProblems(path)
    some = None
    for some in _stretches(path, RUN, problems, lines):
        some.refuse_twice((), problems, RUN.done)
        yield some.query, some.documents, some.values
    problems.refuse(nothing=some is None)


def write_run(path: str | Path, run: Iterable[tuple[str, Ranking]], *, tag: str) -> None:
    """Write the lines of rankings, pairs of query id and ranking."""
    with writing(Path(path)), text_file(path, "w") as file:
        for query, ranking in run:
            file.write(lines_of(query, ranking, written(ranking.scores), tag=tag))


def lines_of(query: str, ranking: Ranking, scores: list[str], *, tag: str) -> str:
    """Return the lines of a ranking, best first: `query Q0 document rank score tag`.

    Scores fall strictly, also as 32-bit floats, so that every reader finds this order again: a score that
    does not fall is lowered to the next 32-bit float below its predecessor.

    Args:
        query: its id.
        ranking: its answer.
        scores: those of the ranking as they are written where they fall.
        tag: the name of the run, without white space.
    """
    if not scores:
        return ""
    lowered = falling(ranking.scores)
    begin, end = f"{encode(query)} Q0 ", f" {tag}\n"
    parts = [end + begin] * (4 * len(scores))  # no step of Python for each line, of which there may be millions
    text = "".join(ranking.doc_ids)
    plain = text.isascii() and text.isprintable() and " " not in text and "%" not in text
    ids = ranking.doc_ids if plain else map(encode, ranking.doc_ids)
    parts[0], parts[1::4], parts[2::4] = begin, ids, _ranks(len(scores))
    parts[3::4] = scores if lowered is None else map(repr, lowered)
    return "".join(parts) + end


def written(scores: Floats) -> list[str]:
    """Return what `repr` gives of each score, best first.

    >>> written(np.array([0.5, 1e-07]))
    ['0.5', '1e-07']
    """
    numbers: list[float] = scores.tolist()
    if numbers and numbers[0] < 1e16 and numbers[-1] >= 1e-4:  # no exponents: the same, in a third of the time
        return to_json(numbers).decode()[1:-1].split(",")
    return list(map(repr, numbers))


@lru_cache
def _ranks(count: int) -> list[str]:
    return [f" {rank} " for rank in range(1, count + 1)]


def falling(scores: Floats) -> list[float] | None:
    """Return scores that fall strictly, as doubles and as 32-bit floats; None where they do.

    >>> falling(np.array([0.5, 0.5]))
    [0.5, 0.4999999701976776]
    """
    near = np.clip(scores, -LARGEST, LARGEST) if max(scores[0], -scores[-1]) > LARGEST else scores
    singles = near.astype(np.float32)
    if near is scores and (singles[1:] < singles[:-1]).all():
        return None
    written: list[float] = near.tolist()
    for i in range(1, len(singles)):
        if singles[i] >= singles[i - 1]:
            singles[i] = np.nextafter(singles[i - 1], np.float32(-np.inf))
            written[i] = float(singles[i])
    return written


def write_qrels(path: str | Path, judgments: Mapping[str, Mapping[str, int]]) -> None:
    """Write judgments (or gains) as `query 0 document grade`."""
    with writing(Path(path)), text_file(path, "w") as file:
        for query, judged in judgments.items():
            file.writelines(f"{encode(query)} 0 {encode(document)} {grade}\n" for document, grade in judged.items())


class Stretch(NamedTuple):
    """Lines of one query that follow each other."""

    query: str
    lines: Sequence[int]
    """Their numbers."""
    documents: tuple[str, ...]
    values: Numbers

    def refuse_twice(self, earlier: Collection[str], problems: LineProblems, done: str) -> None:
        """Note each document that was in an earlier line."""
        seen = set(earlier)
        if len(seen.union(self.documents)) < len(seen) + len(self.documents):
            for number, document in zip(self.lines, self.documents, strict=True):
                if document in seen:
                    what = f"document {document!r} is {done} twice for query {self.query!r}"
                    problems.add(number, what, "keep one")
                seen.add(document)


def _stretches(path: str | Path, form: LineForm, problems: LineProblems, lines: Lines | None) -> Iterator[Stretch]:
    """The lines of a file, those of one query together; what is malformed goes to `problems`."""
    every = _parts(path, form, problems) if lines is None else _of_lines(lines(problems.add))
    for query, parts in groupby(every, attrgetter("query")):
        some, *others = parts
        if others:
            _, numbers, documents, values = zip(some, *others, strict=True)
            some = Stretch(query, [*chain(*numbers)], (*chain(*documents),), np.concatenate(values))
        yield some


def _parts(path: str | Path, form: LineForm, problems: LineProblems) -> Iterator[Stretch]:
    """The same, cut where a block ends."""
    begun = form is not QRELS
    for first, block in blocks_of(path):
        if columns := columns_of(block, form):
            queries, names, values = columns
            for query, at in queries:
                yield Stretch(query, range(first + at.start, first + at.stop), names[at], values[at])
        else:
            if not begun:
                _refuse_other_kinds(path, block)
            yield from _of_lines(lines_one_by_one(first, block, form, problems.add))
        begun = begun or not block.isspace()


def _of_lines(lines: Iterable[Line]) -> Iterator[Stretch]:
    for query, some in groupby(lines, itemgetter(1)):
        numbers, _, documents, values = zip(*some, strict=True)
        yield Stretch(query, numbers, documents, np.array(values))


def lines_one_by_one(first: int, block: bytes, form: LineForm, add: Add) -> Iterator[Line]:
    """The lines of a block that may hold any; one that is malformed goes to `add`."""
    raw, query = b"", ""
    for number, line in enumerate(block.split(NEWLINE_BYTE), start=first):
        fields = line.split()
        if not fields or (fields[0].startswith(b"#") and len(fields) != form.width):  # blank, or a comment
            continue
        values = _numbers(fields[form.column : form.column + 1], form)
        if len(fields) < form.width or (form is QRELS and len(fields) > form.width):
            tabs = line.count(b"\t") == form.width - 1
            remedy = "an id with white space: write a space as %20" if tabs else form.fields
            add(number, f"{len(fields)} fields instead of {form.width}", remedy)
        elif values is None:
            add(number, f"{fields[form.column].decode(errors='replace')!r:.60} is not a {form.value}", form.remedy)
        else:
            try:
                if fields[0] != raw:
                    raw, query = fields[0], id_of(fields[0])
                yield number, query, id_of(fields[2]), values.item()
            except UnicodeDecodeError:
                add(number, "an id is not UTF-8", "save the file as UTF-8")


def _refuse_other_kinds(path: str | Path, block: bytes) -> None:
    """Raise InputError where the first line is that of a file of another kind: each of its lines would be wrong."""
    line = block.lstrip().partition(b"\n")[0]
    fields = line.split()  # bytes: only what separates fields in TREC files
    if len(fields) == RUN.width and fields[1].upper() == b"Q0":
        raise InputError(Problem(str(path), "is a run, not judgments", "give the qrels first, then the runs"))
    kind = kind_of(line.decode("utf-8", "replace"))
    judged = len(fields) == QRELS.width and _numbers(fields[3:], QRELS) is not None  # an id may begin with a brace
    if (kind == "JSON" and not judged) or (kind and len(fields) not in NUMBERS_OF_FIELDS):  # and hold a comma
        remedy = f"expected four fields a line: {QRELS.fields}"
        raise InputError(Problem(str(path), f"holds no TREC judgments: it looks like {kind}", remedy))


def _numbers(fields: Sequence[bytes], form: LineForm) -> Numbers | None:
    """The fields as whole or finite numbers; None where one is none, or too large."""
    try:
        values = np.array(list(map(form.number, fields)))
    except ValueError:
        return None
    fit = (values >= -form.largest) & (values <= form.largest)
    return values if fit.all() and b"_" not in b"".join(fields) else None


class LineForm(NamedTuple):
    """What stands in the lines of a kind of file."""

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


class _Ids:
    """One text for each id, however often and in however many files it occurs."""

    def __init__(self) -> None:
        self._codes, self._slots = dict[bytes, int](), np.zeros(1 << SLOT_BITS, np.int32)
        self._fields, self._names = np.array([b""]), np.array([""], object)

    def of(self, fields: npt.NDArray[np.bytes_]) -> tuple[str, ...]:
        """Return the ids of some fields; UnicodeDecodeError where one is none."""
        if len(self._codes) > KNOWN:
            vars(self).update(vars(_Ids()))
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


IDS = _Ids()


def columns_of(block: bytes, form: LineForm) -> tuple[list[tuple[str, slice]], tuple[str, ...], Numbers] | None:
    """The columns of a block in which every line has so many fields: queries, each with its lines, documents, numbers.

    Ten times as fast as line by line. None for any other block, which is to be read line by line.
    """
    edges = np.flatnonzero(np.diff(np.frombuffer(block.translate(SPACES), np.bool_), prepend=True))
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == NEWLINE_BYTE[0])
    if len(edges) != 2 * form.width * len(ends) or b"\0" in block:
        return None
    fields = edges.reshape(-1, form.width, 2)
    apart = (fields[:, -1, 1] > ends).any() or (fields[1:, 0, 0] < ends[:-1]).any()
    if apart or int(np.diff(fields).max()) * len(ends) > WIDEST:
        return None
    queries, documents, numbers = (_column(block, fields[:, place]) for place in (0, 2, form.column))
    starts = [0, *(np.flatnonzero(queries[1:] != queries[:-1]) + 1).tolist()]
    parts = map(slice, starts, [*starts[1:], len(queries)])
    values = _numbers(numbers.tolist(), form)
    try:
        named = [*zip(IDS.of(queries[starts]), parts, strict=True)]
        return None if values is None else (named, IDS.of(documents), values)
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


def blocks_of(
    path: str | Path, remedy: str = "give a file of TREC lines, plain or gzip"
) -> Iterator[tuple[int, bytes]]:
    """Read a file of lines, plain or gzip, in blocks that end where a line ends: (number of the first line, block).

    Raises:
        InputError: it cannot be read, or a line is longer than 1 MiB, which no line of TREC files is.
    """
    number, rest = 1, b""
    for raw in _read_blocks(path, remedy):
        whole, newline, rest_of = (rest + raw).rpartition(b"\n")
        if len(rest_of) > LONGEST_LINE:
            what = f"is longer than {LONGEST_LINE:,} bytes"
            where = f"{path}:{number + whole.count(NEWLINE_BYTE) + len(newline)}"
            raise InputError(Problem(where, what, remedy))
        rest = rest_of
        if newline:
            yield number, whole + newline
            number += whole.count(NEWLINE_BYTE) + 1
    if rest:
        yield number, rest + NEWLINE_BYTE


def _read_blocks(path: str | Path, remedy: str) -> Iterator[bytes]:
    try:
        # Opened once: a pipe cannot be read again.
        with Path(path).open("rb") as raw:
            file = gzip.GzipFile(fileobj=raw) if raw.peek(2).startswith(b"\x1f\x8b") else raw
            if file.peek(len(BOM)).startswith(BOM):
                file.read(len(BOM))
            while block := file.read(BLOCK):
                yield block
    except OSError as error:
        raise InputError(Problem(str(path), f"cannot be read: {error.strerror or error}", remedy)) from error
    except (EOFError, zlib.error) as error:
        raise InputError(Problem(str(path), f"cannot be read: {error}")) from error


def id_of(field: bytes) -> str:
    """Decode a field that is an id; UnicodeDecodeError where it is not UTF-8."""
    return nfc(decode(field.decode()) if b"%" in field else field.decode())


def _decoded(escapes: re.Match[str]) -> str:
    text = unquote(escapes[0], errors="replace")
    return text if re.fullmatch(r"[\s%]+", text) else escapes[0]


@dataclass
class LineProblems:
    """The problems of one file: the first few in full, all of them counted."""

    path: str | Path
    listed: list[tuple[int, Problem]] = field(default_factory=list)
    count: int = 0

    def add(self, line: int, what: str, remedy: str = "") -> None:
        """Take in the problem of a line."""
        self.count += 1
        if self.count <= SHOWN:
            self.listed.append((line, Problem(f"{self.path}:{line}", what, remedy)))

    def refuse(self, *, nothing: bool) -> None:
        """Raise InputError if there was any problem, or nothing in the file at all."""
        listed = [problem for _, problem in sorted(self.listed)]
        if more := self.count - len(listed):
            listed.append(Problem(str(self.path), f"and {more} more lines like these", stands_for=more))
        if listed or nothing:
            raise InputError(listed or Problem(str(self.path), "there is no line in this file"))
