"""The rows of any file.

In JSON they are in a list, under one key of an object, or in what searches say: Elasticsearch and OpenSearch keep a
document under `_source`, and in a bulk request on the line after its id; RRE (and Quepid, which exports in its form)
keeps queries in groups that share their ratings.
"""

from collections.abc import Iterator, Sequence

from harness.dataset import columnar
from harness.dataset.delimited import delimited_rows, rows_of_cells
from harness.dataset.file import COMPRESSION_SUFFIXES, File
from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import SourceLocation, TableRow
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
"""What tables are read from."""
PLAIN_TEXT_SUFFIXES = (".txt",)
"""Text with one question a line: of queries alone."""


def read_file_rows(
    file: File, problems: ReadProblems
) -> Iterator[tuple[SourceLocation, TableRow]]:
    """Stream the rows of one file, each with its line (of Parquet and Arrow, its number from 1).

    Cells of CSV, TSV and sheets are text, empty ones too. What cannot be read is added to `problems` and skipped.

    Args:
        file: one with a suffix of `SUFFIXES` or of `PLAIN`; any other is read as JSON Lines.
        problems: where complaints go.
    """
    readers = {
        ".csv": delimited_rows,
        ".tsv": delimited_rows,
        ".json": json_rows,
        ".txt": query_line_rows,
        ".yaml": yaml_rows,
        ".yml": yaml_rows,
    }
    readers |= dict.fromkeys(columnar.COLUMNAR_SUFFIXES, _columnar) | dict.fromkeys(
        columnar.WORKBOOK_SUFFIXES, _sheet
    )
    with collect_errors(problems):
        yield from readers.get(file.suffix, json_lines_rows)(file, problems)


def _columnar(
    file: File, problems: ReadProblems
) -> Iterator[tuple[SourceLocation, TableRow]]:
    packed = (
        file.archive is not None
        or file.same_named_file
        or file.path.suffix.lower() in COMPRESSION_SUFFIXES
    )
    kind = "Parquet" if file.suffix == ".parquet" else "Arrow"
    return columnar.columnar_rows(
        file.path, kind, file.read() if packed else None, problems
    )


def _sheet(
    file: File, problems: ReadProblems
) -> Iterator[tuple[SourceLocation, TableRow]]:
    """The rows of a sheet: of the one that is named, else of the only one that holds anything."""
    sheets = columnar.read_sheets(file.read(), file.path)
    name = _sheet_of(file, tuple(sheets))
    yield from rows_of_cells(file, enumerate(sheets[name], 1), problems)


def _sheet_of(file: File, names: Sequence[str]) -> str:
    """The sheet that is meant: the named one, else the only one; InputError where there is none such."""
    if file.table in names or (not file.table and len(names) == 1):
        return file.table or names[0]
    there = (
        f"has the sheets {', '.join(map(repr, names))}"
        if names
        else "holds no sheet with a value"
    )
    what = (
        f"has no sheet {file.table!r}, but {there.removeprefix('has ')}"
        if file.table
        else there
    )
    raise InputError(
        Problem(
            str(file.path),
            what,
            f"name one: {file.path.name}#SHEET" if names else "fill one in",
        )
    )
