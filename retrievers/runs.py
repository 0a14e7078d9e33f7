r"""TREC runs and qrels: read and written here and nowhere else.

A run line is `query Q0 document rank score tag`, one of qrels `query iteration document grade`. Lines end at \n
alone, fields at ASCII white space, as trec_eval cuts them. Ids that hold white space or a percent sign are
percent-encoded, so that they stay one field.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import quote, unquote

import numpy as np

from retrievers.errors import InputError, Problem
from retrievers.ids import nfc
from retrievers.opening import NUMBERS_OF_FIELDS, kind_of, text_file, writing
from retrievers.types import Floats, Ranking

BOM = b"\xef\xbb\xbf"
LARGEST = float(np.finfo(np.float32).max)
BLOCK, LONGEST_LINE = 1 << 20, 1 << 20
"""Bytes that are read at once, and of a line, at most."""
NEWLINE_BYTE = b"\n"
UNUSUAL = (b"%", b"\0", b"\x1c", b"\x1d", b"\x1e", b"\x1f")
"""What may stand for other characters, what marks ends of lines here, and what only Python takes for white space."""
LONGEST_SHOWN = 60
"""Bytes of a field that a message shows."""
SHOWN = 20
"""How many problems of one file are listed; the rest is counted."""
RunScores = dict[str, dict[str, float]]
Qrels = dict[str, dict[str, int]]
Number = TypeVar("Number", int, float)
Line = tuple[int, str, str, Number]


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


def read_run(path: str | Path) -> RunScores:
    """Read a run, plain or gzip: query id -> document id -> score. The rank column is ignored, as by trec_eval.

    Raises:
        InputError: malformed lines, scores that are no number, or a document ranked twice for a query, each
            with its line; or the file cannot be read or holds nothing.
    """
    return _by_query(path, RUN, "ranked")


def read_qrels(path: str | Path) -> Qrels:
    """Read judgments, plain or gzip: query id -> document id -> grade, in the file's order.

    Raises:
        InputError: malformed lines, grades that are no whole number, or a document judged twice for a
            query, each with its line; or the file cannot be read or holds nothing.
    """
    return _by_query(path, QRELS, "judged")


def _by_query(path: str | Path, form: LineForm[Number], done: str) -> dict[str, dict[str, Number]]:
    found: dict[str, dict[str, Number]] = {}
    problems = LineProblems(path)
    for some in _stretches(path, form, problems):
        some.add_to(found.setdefault(some.query, {}), problems, done)
    problems.refuse(nothing=not found)
    return found


def stream_run(path: str | Path) -> Iterator[tuple[str, dict[str, float]]]:
    """Read a run query by query, as far as its lines stand together: pairs of query id and document id -> score.

    Only one query's hits are in memory at a time. A query whose lines do not stand together comes again.

    Raises:
        InputError: as `read_run`, after the last query.
    """
    problems = LineProblems(path)
    current: str | None = None
    hits: dict[str, float] = {}
    for some in _stretches(path, RUN, problems):
        if some.query != current:
            if current is not None:
                yield current, hits
            current, hits = some.query, {}
        some.add_to(hits, problems, "ranked")
    problems.refuse(nothing=current is None)
    if current is not None:
        yield current, hits


def write_run(path: str | Path, run: Iterable[tuple[str, Ranking]], *, tag: str) -> None:
    """Write the lines of rankings, pairs of query id and ranking."""
    with writing(Path(path)), text_file(path, "w") as file:
        for query, ranking in run:
            file.write(lines_of(query, ranking, list(map(repr, ranking.scores.tolist())), tag=tag))


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
    parts[0], parts[1::4], parts[2::4] = begin, map(encode, ranking.doc_ids), _ranks(len(scores))
    parts[3::4] = scores if lowered is None else map(repr, lowered)
    return "".join(parts) + end


@lru_cache
def _ranks(count: int) -> list[str]:
    return [f" {rank} " for rank in range(1, count + 1)]


def falling(scores: Floats) -> list[float] | None:
    """Return scores that fall strictly, as doubles and as 32-bit floats; None where they do.

    >>> falling(np.array([0.5, 0.5]))
    [0.5, 0.4999999701976776]
    """
    near = np.clip(scores, -LARGEST, LARGEST)
    singles = near.astype(np.float32)
    if (singles[1:] < singles[:-1]).all() and near[0] == scores[0] and near[-1] == scores[-1]:
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


class Stretch(NamedTuple, Generic[Number]):
    """Lines of one query that follow each other."""

    query: str
    first: int
    """The number of the first line."""
    documents: Sequence[str]
    values: Sequence[Number]

    def add_to(self, known: dict[str, Number], problems: LineProblems, done: str) -> None:
        """Add the documents to those of earlier lines; one that comes again is a problem."""
        before = len(known)
        known.update(zip(self.documents, self.values, strict=True))
        if len(known) - before < len(self.documents):
            seen = set(list(known)[:before])
            for number, document in enumerate(self.documents, self.first):
                if document in seen:
                    problems.add(number, f"document {document!r} is {done} twice for query {self.query!r}")
                seen.add(document)


def _stretches(path: str | Path, form: LineForm[Number], problems: LineProblems) -> Iterator[Stretch[Number]]:
    """The lines of a file, those of one query together; what is malformed goes to `problems`."""
    for first, block in blocks_of(path):
        columns = columns_of(block, form.width)
        values = None if columns is None else form.numbers(columns[form.column])
        if columns is None or values is None:
            if first == 1 and form.width == QRELS.width:
                _refuse_other_kinds(path, block)
            for number, query, document, value in lines_one_by_one(first, block, form, problems.add):
                yield Stretch(query, number, [document], [value])
            continue
        start = 0
        for query, lines in groupby(columns[0]):
            stop = start + len(list(lines))
            yield Stretch(query, first + start, columns[2][start:stop], values[start:stop])
            start = stop


def lines_one_by_one(
    first: int, block: bytes, form: LineForm[Number], add: Callable[[int, str, str], None]
) -> Iterator[Line[Number]]:
    """The lines of a block that may hold any; one that is malformed goes to `add`."""
    raw, query = b"", ""
    for number, line in enumerate(block.split(NEWLINE_BYTE), start=first):
        fields = line.split()
        if not fields or (fields[0].startswith(b"#") and len(fields) != form.width):  # blank, or a comment
            continue
        values = form.numbers([fields[form.column].decode("ascii", "replace")]) if form.column < len(fields) else None
        if len(fields) < form.width or (form is QRELS and len(fields) > form.width):
            tabs = line.count(b"\t") == form.width - 1
            remedy = "an id with white space: write a space as %20" if tabs else form.fields
            add(number, f"{len(fields)} fields instead of {form.width}", remedy)
        elif values is None:
            add(number, f"{shown(fields[form.column])} is not a {form.value}", form.remedy)
        else:
            try:
                if fields[0] != raw:
                    raw, query = fields[0], id_of(fields[0])
                yield number, query, id_of(fields[2]), values[0]
            except UnicodeDecodeError:
                add(number, "an id is not UTF-8", "save the file as UTF-8")


def _refuse_other_kinds(path: str | Path, block: bytes) -> None:
    """Raise InputError where the first line is that of a file of another kind: each of its lines would be wrong."""
    line = block.lstrip().partition(b"\n")[0]
    fields = line.split()  # bytes: only what separates fields in TREC files
    if len(fields) == RUN.width and fields[1].upper() == b"Q0":
        raise InputError(Problem(str(path), "is a run, not judgments", "give the qrels first, then the runs"))
    kind = kind_of(line.decode("utf-8", "replace"))
    if kind == "JSON" and len(fields) == 4 and _grades([fields[3].decode("utf-8", "replace")]) is not None:
        return  # a query's id may begin with a brace
    if kind == "JSON" or (kind and len(fields) not in NUMBERS_OF_FIELDS):  # an id may hold a comma
        remedy = f"expected four fields a line: {QRELS.fields}"
        raise InputError(Problem(str(path), f"holds no TREC judgments: it looks like {kind}", remedy))


def _grades(fields: list[str]) -> list[int] | None:
    """The fields as whole numbers below 2^31; None where one is none."""
    try:
        grades = list(map(int, fields))
    except ValueError:
        return None
    return grades if max(map(abs, grades)) < 2**31 and "_" not in "".join(fields) else None


def _finite(fields: list[str]) -> list[float] | None:
    """The fields as numbers; None where one is none, or is not finite."""
    try:
        scores = list(map(float, fields))
    except ValueError:
        return None
    return scores if np.isfinite(scores).all() and "_" not in "".join(fields) else None


class LineForm(NamedTuple, Generic[Number]):
    """What stands in the lines of a kind of file."""

    fields: str
    width: int
    column: int
    """The field that holds a number."""
    numbers: Callable[[list[str]], list[Number] | None]
    value: str
    remedy: str


RUN = LineForm("query Q0 document rank score tag", 6, 4, _finite, "score", "a score is a finite number")
QRELS = LineForm("query iteration document grade", 4, 3, _grades, "grade", "a grade is a whole number below 2^31")


def columns_of(block: bytes, width: int) -> list[list[str]] | None:
    """The columns of a block in which every line has so many fields, all plain ASCII and nothing percent-encoded.

    Several times as fast as line by line. None for any other block, which is to be read line by line.
    """
    if not block.isascii() or any(letter in block for letter in UNUSUAL):
        return None
    fields = block.replace(NEWLINE_BYTE, b" \0 ").decode("ascii").split()
    every, lines = width + 1, block.count(NEWLINE_BYTE)
    if len(fields) != every * lines or fields[width::every].count("\0") != lines:
        return None
    return [fields[column::every] for column in range(width)]


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


def shown(field: bytes) -> str:
    """Return a field as a message shows it."""
    return repr(field[:LONGEST_SHOWN].decode(errors="replace")) + ("…" if len(field) > LONGEST_SHOWN else "")


class LineProblems:
    """The problems of one file: the first few in full, all of them counted."""

    def __init__(self, path: str | Path) -> None:
        self._path = str(path)
        self._first: list[Problem] = []
        self._count = 0

    def add(self, line: int, what: str, remedy: str = "") -> None:
        """Take in the problem of a line."""
        self._count += 1
        if self._count <= SHOWN:
            self._first.append(Problem(f"{self._path}:{line}", what, remedy))

    def refuse(self, *, nothing: bool) -> None:
        """Raise InputError if there was any problem, or nothing in the file at all."""
        if more := self._count - len(self._first):
            self._first.append(Problem(self._path, f"and {more} more lines like these", stands_for=more))
        if self._first:
            raise InputError(self._first)
        if nothing:
            raise InputError(Problem(self._path, "there is no line in this file"))
