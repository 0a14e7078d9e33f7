r"""TREC runs and qrels: read and written here and nowhere else.

A run line is `query Q0 document rank score tag`, one of qrels `query iteration document grade`. Lines end at \n
alone, fields at ASCII white space, as trec_eval cuts them. Ids that hold white space or a percent sign are
percent-encoded, so that they stay one field.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic_core import to_json

from retrievers.errors import InputError, Problem
from retrievers.opening import NUMBERS_OF_FIELDS, kind_of, text_file, writing
from retrievers.trec_columns import QRELS as QRELS
from retrievers.trec_columns import (
    RUN,
    LineForm,
    Numbers,
    columns_of,
    id_of,
    numbers_in,
)
from retrievers.trec_columns import decode as decode
from retrievers.trec_columns import encode as encode
from retrievers.types import Floats, Ranking

BOM = b"\xef\xbb\xbf"
LARGEST = float(np.finfo(np.float32).max)
BLOCK, LONGEST_LINE = 1 << 20, 1 << 20
"""Bytes that are read at once, about, and of a line beyond them, at most."""
NEWLINE_BYTE = b"\n"
SHOWN = 20
"""How many problems of one file are listed; the rest is counted."""
RunScores = dict[str, dict[str, float]]
Qrels = dict[str, dict[str, int]]
Line = tuple[int, str, str, Any]
"""Its number, a query, a document, and what it says of them."""
Add = Callable[[int, str, str], None]
"""Takes what is wrong with a line: its number, what is wrong, what to do."""
Lines = Callable[[Add], Iterator[Line]]


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


def _by_query(
    path: str | Path, form: LineForm, lines: Lines | None = None
) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    problems = LineProblems(path)
    for some in _stretches(path, form, problems, lines):
        known = found.setdefault(some.query, {})
        some.refuse_twice(known, problems, form.done)
        known.update(zip(some.documents, some.values.tolist(), strict=True))
    problems.refuse(nothing=not found)
    return found


def stream_run(
    path: str | Path, lines: Lines | None = None
) -> Iterator[tuple[str, tuple[str, ...], Floats]]:
    """Read a run query by query, as far as its lines are grouped: query id, documents and their scores.

    Only one query's hits are in memory at a time. A query whose lines are not grouped comes again. Arguments and
    errors, after the last query, as of `read_run`.
    """
    problems = LineProblems(path)
    some = None
    for some in _stretches(path, RUN, problems, lines):
        some.refuse_twice((), problems, RUN.done)
        yield some.query, some.documents, some.values
    problems.refuse(nothing=some is None)


def write_run(
    path: str | Path, run: Iterable[tuple[str, Ranking]], *, tag: str
) -> None:
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
    parts = [end + begin] * (
        4 * len(scores)
    )  # no step of Python for each of millions of lines
    text = "".join(ranking.doc_ids)
    plain = (
        text.isascii() and text.isprintable() and " " not in text and "%" not in text
    )
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
    if (
        numbers and numbers[0] < 1e16 and numbers[-1] >= 1e-4
    ):  # no exponents: the same, in a third of the time
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
    near = (
        np.clip(scores, -LARGEST, LARGEST)
        if max(scores[0], -scores[-1]) > LARGEST
        else scores
    )
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
            file.writelines(
                f"{encode(query)} 0 {encode(document)} {grade}\n"
                for document, grade in judged.items()
            )


class Stretch(NamedTuple):
    """Lines of one query that follow each other."""

    query: str
    lines: Sequence[int]
    """Their numbers."""
    documents: tuple[str, ...]
    values: Numbers

    def refuse_twice(
        self, earlier: Collection[str], problems: LineProblems, done: str
    ) -> None:
        """Note each document that was in an earlier line."""
        seen = set(earlier)
        if len(seen.union(self.documents)) < len(seen) + len(self.documents):
            for number, document in zip(self.lines, self.documents, strict=True):
                if document in seen:
                    what = f"document {document!r} is {done} twice for query {self.query!r}"
                    problems.add(number, what, "keep one")
                seen.add(document)


def _stretches(
    path: str | Path, form: LineForm, problems: LineProblems, lines: Lines | None
) -> Iterator[Stretch]:
    """The lines of a file, those of one query together; what is malformed goes to `problems`."""
    every = (
        _parts(path, form, problems)
        if lines is None
        else _of_lines(lines(problems.add))
    )
    for query, parts in groupby(every, attrgetter("query")):
        some, *others = parts
        if others:
            _, numbers, documents, values = zip(some, *others, strict=True)
            some = Stretch(
                query, [*chain(*numbers)], (*chain(*documents),), np.concatenate(values)
            )
        yield some


def _parts(
    path: str | Path, form: LineForm, problems: LineProblems
) -> Iterator[Stretch]:
    """The same, cut where a block ends."""
    begun = form is not QRELS
    for first, block in blocks_of(path):
        if columns := columns_of(block, form):
            queries, names, values = columns
            for query, at in queries:
                yield Stretch(
                    query,
                    range(first + at.start, first + at.stop),
                    names[at],
                    values[at],
                )
        else:
            if not begun:
                _refuse_other_kinds(path, block)
            yield from _of_lines(lines_one_by_one(first, block, form, problems.add))
        begun = begun or not block.isspace()


def _of_lines(lines: Iterable[Line]) -> Iterator[Stretch]:
    for query, some in groupby(lines, itemgetter(1)):
        numbers, _, documents, values = zip(*some, strict=True)
        yield Stretch(query, numbers, documents, np.array(values))


def lines_one_by_one(
    first: int, block: bytes, form: LineForm, add: Add
) -> Iterator[Line]:
    """The lines of a block that may hold any; one that is malformed goes to `add`."""
    raw, query = b"", ""
    for number, line in enumerate(block.split(NEWLINE_BYTE), start=first):
        fields = line.split()
        if not fields or (
            fields[0].startswith(b"#") and len(fields) != form.width
        ):  # blank, or a comment
            continue
        values = numbers_in(fields[form.column : form.column + 1], form)
        if len(fields) < form.width or (form is QRELS and len(fields) > form.width):
            tabs = line.count(b"\t") == form.width - 1
            remedy = (
                "an id with white space: write a space as %20" if tabs else form.fields
            )
            add(number, f"{len(fields)} fields instead of {form.width}", remedy)
        elif values is None:
            add(
                number,
                f"{fields[form.column].decode(errors='replace')!r:.60} is not a {form.value}",
                form.remedy,
            )
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
        raise InputError(
            Problem(
                str(path), "is a run, not qrels", "give the qrels first, then the runs"
            )
        )
    kind = kind_of(line.decode("utf-8", "replace"))
    judged = (
        len(fields) == QRELS.width and numbers_in(fields[3:], QRELS) is not None
    )  # an id may begin with a brace
    if (kind == "JSON" and not judged) or (
        kind and len(fields) not in NUMBERS_OF_FIELDS
    ):  # and hold a comma
        remedy = f"expected four fields a line: {QRELS.fields}"
        raise InputError(
            Problem(str(path), f"holds no TREC qrels: it looks like {kind}", remedy)
        )


def blocks_of(
    path: str | Path, remedy: str = "give TREC lines, plain or gzip"
) -> Iterator[tuple[int, bytes]]:
    """Read a file of lines, plain or gzip, in blocks that end where a line ends: (number of the first line, block).

    Raises:
        InputError: it cannot be read.
    """
    number = 1
    try:
        # Opened once: a pipe cannot be read again.
        with Path(path).open("rb") as raw:
            file = (
                gzip.GzipFile(fileobj=raw)
                if raw.peek(2).startswith(b"\x1f\x8b")
                else raw
            )
            if file.peek(len(BOM)).startswith(BOM):
                file.read(len(BOM))
            while block := file.read(BLOCK):
                block += file.readline(LONGEST_LINE)
                if not block.endswith(NEWLINE_BYTE) and file.peek(1):
                    where = f"{path}:{number + block.count(NEWLINE_BYTE)}"
                    raise InputError(
                        Problem(where, f"is longer than {LONGEST_LINE:,} bytes", remedy)
                    )
                yield (
                    number,
                    block if block.endswith(NEWLINE_BYTE) else block + NEWLINE_BYTE,
                )
                number += block.count(NEWLINE_BYTE)
    except (OSError, EOFError, zlib.error) as error:
        what = getattr(error, "strerror", None) or error
        raise InputError(
            Problem(str(path), f"cannot be read: {what}", remedy)
        ) from error


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
            listed.append(
                Problem(
                    str(self.path), f"and {more} more lines like these", stands_for=more
                )
            )
        if listed or nothing:
            raise InputError(
                listed or Problem(str(self.path), "there is no line in this file")
            )
