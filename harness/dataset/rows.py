"""The rows of any file.

The suffix decides who reads them: `text_rows` (JSON, YAML, lines), `delimited` (CSV,
TSV) or `columnar` (Parquet, Arrow, workbooks). `row_shapes` has the forms of JSON.
"""

from collections.abc import Callable, Iterator, Sequence

from harness.dataset import columnar
from harness.dataset.delimited import CellRow, delimited_rows, rows_of_cells
from harness.dataset.file import COMPRESSION_SUFFIXES, File
from harness.dataset.read_problems import ReadProblems
from harness.dataset.row import Row
from harness.dataset.text_rows import (
    json_lines_rows,
    json_rows,
    query_line_rows,
    yaml_rows,
)
from retrievers.errors import InputError, Problem, collect_errors

TABLE_SUFFIXES = (
    ".jsonl",
    ".ndjson",
    ".json",
    ".yaml",
    ".yml",
    ".csv",
    ".tsv",
    *columnar.COLUMNAR_SUFFIXES,
    *columnar.WORKBOOK_SUFFIXES,
)
"""Suffixes of tables."""
PLAIN_TEXT_SUFFIXES = (".txt",)
"""Suffixes of text with one query per line, and nothing else."""


def read_file_rows(file: File, problems: ReadProblems) -> Iterator[Row]:
    """Yield the rows of one file, each with its line.

    For Parquet and Arrow the line is the row's number from 1; a list of JSON or YAML
    has none, and its entries are numbered from 0. Cells of CSV, TSV, sheets and YAML
    are text, empty ones too. A row or a file that cannot be read becomes a problem.

    Args:
        file: with a suffix of a table or of plain text; any other is JSON Lines.
        problems: takes the problems.
    """
    with collect_errors(problems):
        yield from _row_reader(file.suffix)(file, problems)


def _row_reader(suffix: str) -> Callable[[File, ReadProblems], Iterator[Row]]:
    """Return the function that reads the rows of files with a suffix."""
    match suffix:
        case ".csv" | ".tsv":
            return delimited_rows
        case ".json":
            return json_rows
        case ".txt":
            return query_line_rows
        case ".yaml" | ".yml":
            return yaml_rows
    if suffix in columnar.COLUMNAR_SUFFIXES:
        return _columnar_rows
    if suffix in columnar.WORKBOOK_SUFFIXES:
        return _sheet_rows
    return json_lines_rows


def _columnar_rows(file: File, problems: ReadProblems) -> Iterator[Row]:
    is_compressed = file.path.suffix.lower() in COMPRESSION_SUFFIXES
    # If another file has the same name, `read` raises an error.
    must_read = file.archive is not None or file.same_named_file or is_compressed
    raw = file.read() if must_read else None
    kind = "Parquet" if file.suffix == ".parquet" else "Arrow"
    return columnar.columnar_rows(file.path, kind, raw, problems)


def _sheet_rows(file: File, problems: ReadProblems) -> Iterator[Row]:
    """Yield the rows of the sheet that is named, else of the only one."""
    sheets = columnar.read_sheets(file.read(), file.path)
    sheet = _choose_sheet(file, tuple(sheets))
    rows = (CellRow(line, cells) for line, cells in enumerate(sheets[sheet], 1))
    yield from rows_of_cells(file, rows, problems)


def _choose_sheet(file: File, names: Sequence[str]) -> str:
    """Return the sheet that is named, else the only one.

    Raises:
        InputError: there is no such sheet, or there are several and none is named.
    """
    if file.table in names:
        return file.table
    if not file.table and len(names) == 1:
        return names[0]
    remedy = "fill one in"
    problem = "holds no sheet with a value"
    if names:
        remedy = f"name one: {file.path.name}#SHEET"
        problem = f"has the sheets {', '.join(map(repr, names))}"
    if file.table:
        problem = f"has no sheet {file.table!r}, but {problem.removeprefix('has ')}"
    raise InputError(Problem(str(file.path), problem, remedy))
