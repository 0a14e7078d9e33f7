"""Rows of delimited text."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from harness.dataset.file import File
from harness.dataset.read_problems import ReadProblems, report_repeated_column
from harness.dataset.source import SourceLocation, TableRow
from harness.dataset.text_rows import decoded_lines, read_lines
from harness.english import count_of
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import CSV_DELIMITERS

DELIMITER_LINE = re.compile(r'"?sep=(.)"?')
"""Excel's line above a table."""


QUEPID_HEADER = ["query", "docid", "rating"]
"""The header of Quepid's export of ratings."""


def delimited_rows(  # noqa: D103
    file: File, problems: ReadProblems
) -> Iterator[tuple[SourceLocation, TableRow]]:
    if file.suffix != ".tsv" or file.header is None:
        rows: Iterable[tuple[int, list[str]]] = _separated(
            file, "\t" if file.suffix == ".tsv" else _delimiter_of(file)
        )
    else:  # as MS MARCO's: a quote is a character like any other
        rows = (
            (number, line.split("\t") if "\t" in line else line.split())
            for number, line in read_lines(file, problems)
        )
    yield from rows_of_cells(file, rows, problems)


def _delimiter_of(file: File) -> str:
    """What the header of a table has most often between its cells: Excel writes semicolons where a comma is decimal."""
    with file.open() as handle:
        header = next(
            (line for line in decoded_lines(handle, file.path) if line.strip()), ""
        )
    if said := DELIMITER_LINE.fullmatch(header.strip(" ")):
        return said[1]
    return max(CSV_DELIMITERS, key=re.sub('"[^"]*"', "", header).count)


def _separated(file: File, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table, quoted as RFC 4180 has it, a quoted cell over several lines too, each with its first line.

    Raises:
        InputError: from some line on it is not a table.
    """
    csv.field_size_limit(2**31 - 1)
    with file.open() as handle:
        reader = csv.reader(_cells(handle, file.path), delimiter=delimiter, strict=True)
        begins = 1
        try:
            for cells in reader:
                yield begins, cells
                begins = reader.line_num + 1
        except csv.Error as error:
            remedy = "put every cell with a quote in quotes, and double the quote"
            if "new-line character" in str(error):
                error, remedy = (
                    csv.Error("its lines end in carriage returns alone"),
                    "save it as CSV UTF-8",
                )
            what = f"cannot be read as a table: {error}"
            raise InputError(
                Problem(str(SourceLocation(file.path, begins)), what, remedy)
            ) from None


def rows_of_cells(
    file: File, rows: Iterable[tuple[int, list[str]]], problems: ReadProblems
) -> Iterator[tuple[SourceLocation, TableRow]]:
    """Rows of cells under the names of their columns: those of the first row, unless the file is said to have none."""
    header: list[str] = []
    none = True
    path = Path(f"{file.path}#{file.table}") if file.table else file.path
    for line, cells in (
        (line, cells) for line, cells in rows if any(cell.strip() for cell in cells)
    ):
        place = SourceLocation(path, line)
        if not header and file.header is None:
            header = [cell.strip() for cell in cells]
            if report_repeated_column(header, str(place), problems):
                return
            continue
        if (
            not header and cells[:2] == list(file.header or ())[:2]
        ):  # there is a header after all
            continue
        header = header or _names(file.header or (), len(cells))
        none = False
        if header == QUEPID_HEADER and len(cells) == 1:  # a query without ratings
            cells = [*cells, "", ""]
        if len(cells) != len(header):
            remedy = f"{'the header has' if file.header is None else 'expected'} {len(header)}: {', '.join(header[:8])}"
            remedy += (
                "; this is TREC's form"
                if (len(cells), len(header)) == (4, 3) and file.header
                else ""
            )
            problems.append(Problem(str(place), count_of(len(cells), "column"), remedy))
        else:
            yield place, dict(zip(header, cells, strict=True))
    if not header:
        problems.append(
            Problem(str(file.path), "is empty", "a header, then one row a line")
        )
    elif none:
        remedy = "write rows below it; or say header = false (--no-header) if it is one"
        problems.append(
            Problem(
                str(file.path),
                f"has no row below its first one, {', '.join(header)[:60]}",
                remedy,
            )
        )


def _names(header: Sequence[str], columns: int) -> list[str]:
    """The names of so many columns of a table without a header; "" at the end stands for any more."""
    if header[-1]:
        return list(header)
    return [*header[:-1][:columns], *map(str, range(len(header), columns + 1))]


def _cells(handle: IO[bytes], path: Path) -> Iterator[str]:
    """The lines of a table, with an end each."""
    for number, line in enumerate(decoded_lines(handle, path), 1):
        yield (
            "\n"
            if number == 1 and DELIMITER_LINE.fullmatch(line.strip(" "))
            else f"{line}\n"
        )
