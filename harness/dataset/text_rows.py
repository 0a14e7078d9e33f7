"""Rows of text formats: JSON, JSON Lines, YAML, one query a line.

`row_shapes` finds the rows in objects that have them in another shape.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from harness.dataset.file import File
from harness.dataset.read_problems import ReadProblems
from harness.dataset.row import Row
from harness.dataset.row_shapes import (
    BulkAction,
    JsonRows,
    bulk_action,
    rows_in_json,
    rows_of_object,
)
from harness.dataset.source import SourceLocation
from harness.dataset.written_values import decode_utf8, parse_json
from retrievers.errors import InputError, Problem, collect_errors
from retrievers.files.text_files import guess_file_kind

JSON_REMEDY = "write it with a JSON library, and see that it is whole"


class NumberedLine(NamedTuple):
    """A line of a file with its number, from 1."""

    number: int
    text: str


def read_lines(file: File, problems: ReadProblems) -> Iterator[NumberedLine]:
    """Yield the non-blank lines of a UTF-8 file with their numbers.

    Lines end at line feeds alone. If the encoding is another one, that is one problem,
    not one for each line.
    """
    with collect_errors(problems), file.open() as handle:
        for number, line in enumerate(decoded_lines(handle, file.path), 1):
            if line and not line.isspace():
                yield NumberedLine(number, line)


def decoded_lines(handle: IO[bytes], path: Path) -> Iterator[str]:
    """Yield the lines of a file as text, without line feeds."""
    for number, raw in enumerate(handle, 1):
        yield _decode_line(raw, path, number)


def _decode_line(raw: bytes, path: Path, number: int) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        # Raises the error again, as a problem with its line.
        text = decode_utf8(raw, SourceLocation(path, number))
    if number == 1:
        text = text.removeprefix("\ufeff")
    return text.rstrip("\r\n")


def json_lines_rows(file: File, problems: ReadProblems) -> Iterator[Row]:
    """Yield the rows of JSON Lines, also of a bulk request."""
    is_first_line = True
    action: BulkAction | None = None
    for number, line in read_lines(file, problems):
        location = SourceLocation(file.path, number)
        try:
            content = parse_json(line)
        except ValueError as error:
            other_kind = guess_file_kind(line) if is_first_line else ""
            if other_kind not in ("", "JSON"):
                problem = f"is not JSON Lines: it looks like {other_kind}"
                problems.add(location, problem, "expected one JSON object a line: {…}")
                return
            is_first_line = False
            problems.add(location, _json_problem(error), JSON_REMEDY)
            continue
        is_first_line = False
        if not isinstance(content, dict):
            remedy = 'expected {"_id": …, "text": …}'
            problems.add(location, "is not a JSON object", remedy)
            continue
        row = Row(location, content)
        next_action = bulk_action(row)
        if next_action is not None:
            action = next_action
            continue
        for plain_row in rows_of_object(row):
            yield plain_row if action is None else _with_id(plain_row, action)
        action = None


def _with_id(row: Row, action: BulkAction) -> Row:
    """Return a document of a bulk request with the id in the action before it."""
    if action.document_id is None:
        return row
    return Row(row.location, {"_id": action.document_id, **row.cells})


def read_json_lines(path: Path, problems: ReadProblems) -> Iterator[Row]:
    """Yield the objects of a JSON Lines file; any other line becomes a problem."""
    return json_lines_rows(File(path), problems)


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file, without its byte order mark.

    Raises:
        InputError: it cannot be read, or has another encoding.
    """
    return decode_utf8(File(path).read(), SourceLocation(path))


def read_json(file: File) -> Any:
    """Parse a JSON file.

    Raises:
        InputError: it cannot be read, or is not JSON; with the line if that is known.
    """
    text = decode_utf8(file.read(), SourceLocation(file.path))
    try:
        return parse_json(text)
    except ValueError as error:
        location = SourceLocation(file.path, getattr(error, "lineno", None))
        problem = _json_problem(error)
        raise InputError(Problem(str(location), problem, JSON_REMEDY)) from None


def _json_problem(error: ValueError) -> str:
    """Return what is wrong with JSON, with its column; its line is the place's."""
    if not isinstance(error, json.JSONDecodeError):
        return f"is not JSON: {error}"
    return f"is not JSON: {error.msg} in column {error.colno}"


def json_rows(file: File, problems: ReadProblems) -> Iterator[Row]:
    """Yield the rows of a JSON file; also of JSON Lines under the name of one.

    These have two lines or more: one line is JSON.
    """
    try:
        rows = rows_in_json(read_json(file))
    except InputError:
        if not _begins_with_json_line(file):
            raise
        yield from json_lines_rows(file, problems)
        return
    yield from _numbered_rows(file, rows, problems)


def _begins_with_json_line(file: File) -> bool:
    """Whether the first line of a file that is not blank is JSON by itself."""
    lines = (line for _, line in read_lines(file, ReadProblems()))
    try:
        parse_json(next(lines, ""))
    except ValueError:
        return False
    return True


def yaml_rows(file: File, problems: ReadProblems) -> Iterator[Row]:
    """Yield the rows of YAML; every value is text, so that the id 007 stays."""
    import yaml

    from harness.dataset.yaml_nodes import compose_yaml

    text = decode_utf8(file.read(), SourceLocation(file.path))
    content = None
    try:
        node = compose_yaml(text)
        if node is not None:
            content = yaml.constructor.BaseConstructor().construct_document(node)
    except RecursionError:
        problem = "is not YAML: it is nested too deep"
        raise InputError(Problem(str(file.path), problem, JSON_REMEDY)) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        location = SourceLocation(file.path, mark.line + 1 if mark else None)
        problem = f"is not YAML: {getattr(error, 'problem', error)}"
        raise InputError(Problem(str(location), problem, JSON_REMEDY)) from None
    yield from _numbered_rows(file, rows_in_json(content), problems)


def _numbered_rows(
    file: File, rows: JsonRows | None, problems: ReadProblems
) -> Iterator[Row]:
    """Yield the rows of a list in a file, each with its number."""
    if rows is None:
        problem = "is not a list of objects, nor an object with one such list"
        problems.add(file.path, problem, "or name it .jsonl: one object a line")
        return
    list_path = f"{file.path}: {rows.key}" if rows.key else str(file.path)
    for number, row in enumerate(rows.rows):
        location = SourceLocation(Path(f"{list_path}[{number}]"))
        if isinstance(row, dict):
            yield from rows_of_object(Row(location, row))
        else:
            problems.add(location, "is not an object", "every entry is one: {…}")


def query_line_rows(file: File, problems: ReadProblems) -> Iterator[Row]:
    """Yield a row for each line of text, which is a query."""
    for number, line in read_lines(file, problems):
        yield Row(SourceLocation(file.path, number), {"query": line.strip()})
