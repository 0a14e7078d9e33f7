"""Rows of delimited text.

A file of CSV or TSV becomes rows under the names of its columns. `rows_of_cells` does
that for the cells of a workbook, too.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from harness.dataset.file import File
from harness.dataset.read_problems import ReadProblems, report_repeated_column
from harness.dataset.row import Row
from harness.dataset.settings import NO_ROWS_REMEDY
from harness.dataset.source import SourceLocation
from harness.dataset.text_rows import decoded_lines, read_lines
from harness.english import count_of
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import CSV_DELIMITERS

DELIMITER_LINE = re.compile(r'"?sep=(.)"?')
"""The line that Excel writes above a table."""
QUEPID_HEADER = ["query", "docid", "rating"]
"""The header of Quepid's export of ratings."""
MAX_CELL_LENGTH = 2**31 - 1
"""The largest limit that csv accepts on every platform; documents may be cells."""
MAX_SHOWN_COLUMNS = 8
"""Columns, at most, that a message shows."""
MAX_SHOWN_HEADER_LENGTH = 60
"""Characters of a header that a message shows."""


class CellRow(NamedTuple):
    """The cells of a row, with the line where it begins."""

    line: int
    cells: list[str]

    @property
    def is_blank(self) -> bool:
        """Whether all cells are blank."""
        return not any(cell.strip() for cell in self.cells)


def delimited_rows(file: File, problems: ReadProblems) -> Iterator[Row]:
    """Yield the rows of a CSV or TSV file."""
    if file.suffix == ".tsv" and file.header is not None:
        rows = _unquoted_rows(file, problems)
    elif file.suffix == ".tsv":
        rows = _quoted_rows(file, "\t")
    else:
        rows = _quoted_rows(file, _detect_delimiter(file))
    yield from rows_of_cells(file, rows, problems)


def _unquoted_rows(file: File, problems: ReadProblems) -> Iterator[CellRow]:
    """Yield the rows of a TSV file like MS MARCO's: a quote is a plain character.

    A line without a tab is split at white space.
    """
    for number, line in read_lines(file, problems):
        yield CellRow(number, line.split("\t") if "\t" in line else line.split())


def _detect_delimiter(file: File) -> str:
    """Return the delimiter of a table.

    Excel may name it in a line above; else it is the most frequent one in the header:
    Excel writes semicolons if numbers have a decimal comma.
    """
    with file.open() as handle:
        lines = decoded_lines(handle, file.path)
        header = next((line for line in lines if line.strip()), "")
    delimiter_line = DELIMITER_LINE.fullmatch(header.strip(" "))
    if delimiter_line:
        return delimiter_line[1]
    unquoted = re.sub('"[^"]*"', "", header)
    return max(CSV_DELIMITERS, key=unquoted.count)


def _quoted_rows(file: File, delimiter: str) -> Iterator[CellRow]:
    """Yield the rows of a table with quotes as in RFC 4180.

    A quoted cell may have several lines.

    Raises:
        InputError: from some line on it is not a table.
    """
    csv.field_size_limit(MAX_CELL_LENGTH)
    with file.open() as handle:
        lines = _table_lines(handle, file.path)
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        first_line = 1
        try:
            for cells in reader:
                yield CellRow(first_line, cells)
                first_line = reader.line_num + 1
        except csv.Error as error:
            reason = str(error)
            remedy = "put every cell with a quote in quotes, and double the quote"
            if "new-line character" in reason:
                reason = "its lines end in carriage returns alone"
                remedy = "save it as CSV UTF-8"
            where = str(SourceLocation(file.path, first_line))
            problem = f"cannot be read as a table: {reason}"
            raise InputError(Problem(where, problem, remedy)) from None


def _table_lines(handle: IO[bytes], path: Path) -> Iterator[str]:
    """Yield the lines of a table with line feeds; Excel's first line is left blank."""
    for number, line in enumerate(decoded_lines(handle, path), 1):
        if number == 1 and DELIMITER_LINE.fullmatch(line.strip(" ")):
            yield "\n"
        else:
            yield f"{line}\n"


def rows_of_cells(
    file: File, rows: Iterable[CellRow], problems: ReadProblems
) -> Iterator[Row]:
    """Yield rows of cells under the names of their columns.

    These are in the first row, unless the file is declared to have no header.
    """
    path = Path(f"{file.path}#{file.table}") if file.table else file.path
    header: list[str] = []
    has_rows = False
    filled_rows = (row for row in rows if not row.is_blank)
    for row in filled_rows:
        location = SourceLocation(path, row.line)
        cells = row.cells
        if not header and file.header is None:
            header = [cell.strip() for cell in cells]
            if report_repeated_column(header, str(location), problems):
                return
            continue
        if not header:
            declared = file.header or ()
            if cells[:2] == list(declared)[:2]:  # it has a header after all
                continue
            header = _column_names(declared, len(cells))
        has_rows = True
        cells = _padded_cells(header, cells)
        if len(cells) == len(header):
            yield Row(location, dict(zip(header, cells, strict=True)))
        else:
            remedy = _expected_columns(header, len(cells), file)
            problems.add(location, count_of(len(cells), "column"), remedy)
    if not has_rows:
        _report_no_rows(file, header, problems)


def _padded_cells(header: Sequence[str], cells: list[str]) -> list[str]:
    """Return the cells of a row; Quepid leaves out those of a query without ratings."""
    if header == QUEPID_HEADER and len(cells) == 1:
        return [*cells, "", ""]
    return cells


def _report_no_rows(file: File, header: Sequence[str], problems: ReadProblems) -> None:
    if not header:
        remedy = "one row a line" if file.header else "a header, then one row a line"
        problems.add(file.path, "is empty", remedy)
        return
    shown_header = ", ".join(header)[:MAX_SHOWN_HEADER_LENGTH]
    problem = f"has no row below its first one, {shown_header}"
    problems.add(file.path, problem, NO_ROWS_REMEDY)


def _column_names(header: Sequence[str], columns: int) -> list[str]:
    """Return the columns of a table without a header.

    An empty last name stands for all further columns, which have their numbers: of
    ("id", "") and four columns they are id, 2, 3, 4.
    """
    if header[-1]:
        return list(header)
    numbers = map(str, range(len(header), columns + 1))
    return [*header[:-1][:columns], *numbers]


def _expected_columns(header: Sequence[str], columns: int, file: File) -> str:
    """Return the remedy for a row with another number of columns than the header."""
    names = ", ".join(header[:MAX_SHOWN_COLUMNS])
    if file.header is None:
        return f"the header has {len(header)}: {names}"
    remedy = f"expected {len(header)}: {names}"
    if file.header and len(header) == 3 and columns == 4:
        remedy += "; this is TREC's form"
    return remedy
