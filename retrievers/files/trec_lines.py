"""Blocks of TREC lines.

A run or qrels come in as bytes, plain or gzip; out come the consecutive lines of each
query. `trec_columns` reads a regular block at once; any other block is read line by
line here, where malformed lines become problems.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
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
GZIP_MAGIC = b"\x1f\x8b"
BLOCK_BYTES = 1 << 20
"""Bytes that are read at once, about."""
MAX_LINE_BYTES = 1 << 20
"""Bytes of a line beyond a block, at most."""
NEWLINE_BYTE = b"\n"
MAX_LISTED_PROBLEMS = 20
"""Problems of one file that are listed; further ones are counted."""


class TrecLine(NamedTuple):
    """One line of a run or of qrels."""

    number: int
    query: str
    document: str
    value: Any
    """The score or grade."""


AddProblem = Callable[[int, str, str], None]
"""Receives the problem of a line: its number, the problem, the remedy."""
LineReader = Callable[[AddProblem], Iterator[TrecLine]]
"""Yields the lines of a file that does not have TREC lines."""


class QueryLines(NamedTuple):
    """Consecutive lines of one query."""

    query: str
    lines: Sequence[int]
    """The numbers of the lines."""
    documents: tuple[str, ...]
    values: NumberColumn

    def report_duplicates(
        self, earlier: Collection[str], problems: LineProblems, verb: str
    ) -> None:
        """Report each document that was in an earlier line.

        Args:
            earlier: documents in earlier lines of the query.
            problems: receives the problems.
            verb: "ranked" or "judged", for the message.
        """
        documents = set(earlier)
        expected_count = len(documents) + len(self.documents)
        if len(documents.union(self.documents)) == expected_count:
            return
        for number, document in zip(self.lines, self.documents, strict=True):
            if document in documents:
                problem = (
                    f"document {document!r} is {verb} twice for query {self.query!r}"
                )
                problems.add(number, problem, "keep one")
            documents.add(document)


def group_by_query(
    path: str | Path,
    form: LineForm,
    problems: LineProblems,
    read_lines: LineReader | None,
) -> Iterator[QueryLines]:
    """Yield the lines of a file, consecutive lines of one query together.

    Args:
        path: the file.
        form: the fields of its lines.
        problems: receives malformed lines.
        read_lines: None for a file with TREC lines.
    """
    if read_lines is None:
        groups = _groups_in_blocks(path, form, problems)
    else:
        groups = _group_lines(read_lines(problems.add))
    for query, same_query_groups in groupby(groups, attrgetter("query")):
        yield _join_groups(query, list(same_query_groups))


def _join_groups(query: str, groups: Sequence[QueryLines]) -> QueryLines:
    """Return the lines of one query that were cut where a block ends."""
    if len(groups) == 1:
        return groups[0]
    numbers: list[int] = []
    documents: list[str] = []
    for group in groups:
        numbers += group.lines
        documents += group.documents
    values = np.concatenate([group.values for group in groups])
    return QueryLines(query, numbers, tuple(documents), values)


def _groups_in_blocks(
    path: str | Path, form: LineForm, problems: LineProblems
) -> Iterator[QueryLines]:
    """Yield the consecutive lines of each query in each block."""
    # Of qrels, the first block with a line shows whether the file is something else.
    may_be_other_kind = form is QRELS_FORM
    for first_number, block in read_blocks(path):
        columns = parse_columns(block, form)
        if columns is None:
            if may_be_other_kind:
                _refuse_other_kinds(path, block)
            lines = parse_lines(first_number, block, form, problems.add)
            yield from _group_lines(lines)
        else:
            for query, rows in columns.queries:
                numbers = range(first_number + rows.start, first_number + rows.stop)
                yield QueryLines(
                    query, numbers, columns.documents[rows], columns.values[rows]
                )
        if not block.isspace():
            may_be_other_kind = False


def _group_lines(lines: Iterable[TrecLine]) -> Iterator[QueryLines]:
    """Yield the consecutive lines of each query."""
    for query, query_lines in groupby(lines, attrgetter("query")):
        numbers, _, documents, values = zip(*query_lines, strict=True)
        yield QueryLines(query, numbers, documents, np.array(values))


def parse_lines(
    first_number: int, block: bytes, form: LineForm, add_problem: AddProblem
) -> Iterator[TrecLine]:
    """Yield the lines of a block, one by one; malformed ones go to `add_problem`.

    Blank lines and comments are left out: those that begin with # and have another
    number of fields than the form.
    """
    query_field = b""
    query = ""
    for number, line in enumerate(block.split(NEWLINE_BYTE), start=first_number):
        fields = line.split()
        if not fields or _is_comment(fields, form):
            continue
        number_fields = fields[form.number_column : form.number_column + 1]
        values = parse_numbers(number_fields, form)
        # The tag at the end of a run's line may have white space.
        has_extra_fields = len(fields) > form.field_count and form is QRELS_FORM
        if len(fields) < form.field_count or has_extra_fields:
            problem = f"{len(fields)} fields instead of {form.field_count}"
            remedy = form.fields
            if line.count(b"\t") == form.field_count - 1:
                remedy = "an id with white space: write a space as %20"
            add_problem(number, problem, remedy)
        elif values is None:
            shown_field = number_fields[0].decode(errors="replace")
            problem = f"{shown_field!r:.60} is not a {form.number_name}"
            add_problem(number, problem, form.remedy)
        else:
            try:
                if fields[0] != query_field:
                    query = parse_id(fields[0])
                    query_field = fields[0]
                yield TrecLine(number, query, parse_id(fields[2]), values.item())
            except UnicodeDecodeError:
                add_problem(number, "an id is not UTF-8", "save the file as UTF-8")


def _is_comment(fields: Sequence[bytes], form: LineForm) -> bool:
    return fields[0].startswith(b"#") and len(fields) != form.field_count


def _refuse_other_kinds(path: str | Path, block: bytes) -> None:
    """Raise InputError if the first line is that of a file of another kind.

    Each of its lines would be a problem.
    """
    line = block.lstrip().partition(b"\n")[0]
    fields = line.split()  # at ASCII white space, as in TREC files
    if len(fields) == RUN_FORM.field_count and fields[1].upper() == b"Q0":
        remedy = "give the qrels first, then the runs"
        raise InputError(Problem(str(path), "is a run, not qrels", remedy))
    kind = guess_file_kind(line.decode("utf-8", "replace"))
    # An id may begin with a brace, and have a comma.
    is_qrels = (
        len(fields) == QRELS_FORM.field_count
        and parse_numbers(fields[3:], QRELS_FORM) is not None
    )
    is_json = kind == "JSON" and not is_qrels
    is_other_kind = bool(kind) and len(fields) not in TREC_FIELD_COUNTS
    if is_json or is_other_kind:
        problem = f"holds no TREC qrels: it looks like {kind}"
        remedy = f"expected four fields a line: {QRELS_FORM.fields}"
        raise InputError(Problem(str(path), problem, remedy))


class LineBlock(NamedTuple):
    """Whole lines of a file."""

    first_number: int
    """The number of the first line."""
    content: bytes


def read_blocks(
    path: str | Path, remedy: str = "give TREC lines, plain or gzip"
) -> Iterator[LineBlock]:
    """Yield a file of lines, plain or gzip, in blocks that end where a line ends.

    Raises:
        InputError: it cannot be read.
    """
    number = 1
    try:
        # Opened once: a pipe cannot be read again.
        with Path(path).open("rb") as raw_file:
            is_gzip = raw_file.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC)
            file: Any = gzip.GzipFile(fileobj=raw_file) if is_gzip else raw_file
            if file.peek(len(UTF8_BOM)).startswith(UTF8_BOM):
                file.read(len(UTF8_BOM))
            while block := file.read(BLOCK_BYTES):
                block += file.readline(MAX_LINE_BYTES)
                line_count = block.count(NEWLINE_BYTE)
                if not block.endswith(NEWLINE_BYTE):
                    if file.peek(1):
                        where = f"{path}:{number + line_count}"
                        problem = f"is longer than {MAX_LINE_BYTES:,} bytes"
                        raise InputError(Problem(where, problem, remedy))
                    block += NEWLINE_BYTE
                yield LineBlock(number, block)
                number += line_count
    except (OSError, ValueError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        problem = f"cannot be read: {reason}"
        raise InputError(Problem(str(path), problem, remedy)) from error


class ListedProblem(NamedTuple):
    """The problem of a line."""

    line: int
    problem: Problem


@dataclass
class LineProblems:
    """The problems of one file: the first few in full, all of them counted."""

    path: str | Path
    listed: list[ListedProblem] = field(default_factory=list)
    count: int = 0

    def add(self, line: int, problem: str, remedy: str = "") -> None:
        """Add the problem of a line."""
        self.count += 1
        if self.count <= MAX_LISTED_PROBLEMS:
            location = f"{self.path}:{line}"
            listed = ListedProblem(line, Problem(location, problem, remedy))
            self.listed.append(listed)

    def raise_problems(self, *, is_empty: bool) -> None:
        """Raise InputError if there is any problem, or the file has no line."""
        problems = [listed.problem for listed in sorted(self.listed)]
        unlisted = self.count - len(problems)
        if unlisted:
            summary = f"and {unlisted} more lines like these"
            problems.append(Problem(str(self.path), summary, occurrences=unlisted))
        if not problems and is_empty:
            problems.append(Problem(str(self.path), "there is no line in this file"))
        if problems:
            raise InputError(problems)
