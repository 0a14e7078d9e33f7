"""Blocks of TREC lines."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from retrievers.errors import InputError, Problem
from retrievers.files.text_files import TREC_FIELD_COUNTS, guess_file_kind
from retrievers.files.trec_columns import (
    QRELS_FORM,
    RUN_FORM,
    LineForm,
    NumberColumn,
    parse_columns,
    parse_id,
    parse_numbers,
)

UTF8_BOM = b"\xef\xbb\xbf"


BLOCK_BYTES, MAX_LINE_BYTES = 1 << 20, 1 << 20
"""Bytes that are read at once, about, and of a line beyond them, at most."""
NEWLINE_BYTE = b"\n"
MAX_LISTED_PROBLEMS = 20
"""How many problems of one file are listed; the rest is counted."""


TrecLine = tuple[int, str, str, Any]
"""Its number, a query, a document, and what it says of them."""
AddProblem = Callable[[int, str, str], None]
"""Takes what is wrong with a line: its number, what is wrong, what to do."""
LineReader = Callable[[AddProblem], Iterator[TrecLine]]


class QueryLines(NamedTuple):
    """Lines of one query that follow each other."""

    query: str
    lines: Sequence[int]
    """Their numbers."""
    documents: tuple[str, ...]
    values: NumberColumn

    def report_duplicates(
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


def group_by_query(
    path: str | Path, form: LineForm, problems: LineProblems, lines: LineReader | None
) -> Iterator[QueryLines]:
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
            some = QueryLines(
                query, [*chain(*numbers)], (*chain(*documents),), np.concatenate(values)
            )
        yield some


def _parts(
    path: str | Path, form: LineForm, problems: LineProblems
) -> Iterator[QueryLines]:
    """The same, cut where a block ends."""
    begun = form is not QRELS_FORM
    for first, block in read_blocks(path):
        if columns := parse_columns(block, form):
            queries, names, values = columns
            for query, at in queries:
                yield QueryLines(
                    query,
                    range(first + at.start, first + at.stop),
                    names[at],
                    values[at],
                )
        else:
            if not begun:
                _refuse_other_kinds(path, block)
            yield from _of_lines(parse_lines(first, block, form, problems.add))
        begun = begun or not block.isspace()


def _of_lines(lines: Iterable[TrecLine]) -> Iterator[QueryLines]:
    for query, some in groupby(lines, itemgetter(1)):
        numbers, _, documents, values = zip(*some, strict=True)
        yield QueryLines(query, numbers, documents, np.array(values))


def parse_lines(
    first: int, block: bytes, form: LineForm, add: AddProblem
) -> Iterator[TrecLine]:
    """The lines of a block that may hold any; one that is malformed goes to `add`."""
    raw, query = b"", ""
    for number, line in enumerate(block.split(NEWLINE_BYTE), start=first):
        fields = line.split()
        if not fields or (
            fields[0].startswith(b"#") and len(fields) != form.field_count
        ):  # blank, or a comment
            continue
        values = parse_numbers(
            fields[form.number_column : form.number_column + 1], form
        )
        if len(fields) < form.field_count or (
            form is QRELS_FORM and len(fields) > form.field_count
        ):
            tabs = line.count(b"\t") == form.field_count - 1
            remedy = (
                "an id with white space: write a space as %20" if tabs else form.fields
            )
            add(number, f"{len(fields)} fields instead of {form.field_count}", remedy)
        elif values is None:
            add(
                number,
                f"{fields[form.number_column].decode(errors='replace')!r:.60} is not a {form.number_name}",
                form.remedy,
            )
        else:
            try:
                if fields[0] != raw:
                    raw, query = fields[0], parse_id(fields[0])
                yield number, query, parse_id(fields[2]), values.item()
            except UnicodeDecodeError:
                add(number, "an id is not UTF-8", "save the file as UTF-8")


def _refuse_other_kinds(path: str | Path, block: bytes) -> None:
    """Raise InputError where the first line is that of a file of another kind: each of its lines would be wrong."""
    line = block.lstrip().partition(b"\n")[0]
    fields = line.split()  # bytes: only what separates fields in TREC files
    if len(fields) == RUN_FORM.field_count and fields[1].upper() == b"Q0":
        raise InputError(
            Problem(
                str(path), "is a run, not qrels", "give the qrels first, then the runs"
            )
        )
    kind = guess_file_kind(line.decode("utf-8", "replace"))
    judged = (
        len(fields) == QRELS_FORM.field_count
        and parse_numbers(fields[3:], QRELS_FORM) is not None
    )  # an id may begin with a brace
    if (kind == "JSON" and not judged) or (
        kind and len(fields) not in TREC_FIELD_COUNTS
    ):  # and hold a comma
        remedy = f"expected four fields a line: {QRELS_FORM.fields}"
        raise InputError(
            Problem(str(path), f"holds no TREC qrels: it looks like {kind}", remedy)
        )


def read_blocks(
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
            if file.peek(len(UTF8_BOM)).startswith(UTF8_BOM):
                file.read(len(UTF8_BOM))
            while block := file.read(BLOCK_BYTES):
                block += file.readline(MAX_LINE_BYTES)
                if not block.endswith(NEWLINE_BYTE) and file.peek(1):
                    where = f"{path}:{number + block.count(NEWLINE_BYTE)}"
                    raise InputError(
                        Problem(
                            where, f"is longer than {MAX_LINE_BYTES:,} bytes", remedy
                        )
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
        if self.count <= MAX_LISTED_PROBLEMS:
            self.listed.append((line, Problem(f"{self.path}:{line}", what, remedy)))

    def raise_problems(self, *, is_empty: bool) -> None:
        """Raise InputError if there was any problem, or nothing in the file at all."""
        listed = [problem for _, problem in sorted(self.listed)]
        if more := self.count - len(listed):
            listed.append(
                Problem(
                    str(self.path),
                    f"and {more} more lines like these",
                    occurrences=more,
                )
            )
        if listed or is_empty:
            raise InputError(
                listed or Problem(str(self.path), "there is no line in this file")
            )
