"""Rows of text formats."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from harness.dataset.file import File
from harness.dataset.read_problems import ReadProblems
from harness.dataset.row_shapes import bulk_action, rows_in_json, rows_of_object
from harness.dataset.source import SourceLocation, TableRow
from harness.dataset.written_values import decode_utf8, parse_json
from retrievers.errors import InputError, Problem, collect_errors
from retrievers.files.text_files import guess_file_kind

JSON_REMEDY = "write it with a JSON library, and see that it is whole"


def read_lines(file: File, problems: ReadProblems) -> Iterator[tuple[int, str]]:
    """Stream the non-blank lines of a UTF-8 file with their numbers, cut at line feeds alone."""
    with (
        collect_errors(problems),
        file.open() as handle,
    ):  # one complaint: in another encoding every line is wrong
        for number, line in enumerate(decoded_lines(handle, file.path), 1):
            if line and not line.isspace():
                yield number, line


def _text(raw: bytes, path: Path, number: int) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = decode_utf8(raw, SourceLocation(path, number))
    return text.removeprefix("\ufeff").rstrip("\r\n")


def json_lines_rows(  # noqa: D103
    file: File, problems: ReadProblems
) -> Iterator[tuple[SourceLocation, TableRow]]:
    begun = False
    action: TableRow = {}
    for number, line in read_lines(file, problems):
        place = SourceLocation(file.path, number)
        first, begun = not begun, True
        try:
            row = parse_json(line)
        except ValueError as error:
            if first and (kind := guess_file_kind(line)) not in ("", "JSON"):
                what = f"is not JSON Lines: it looks like {kind}"
                problems.append(
                    Problem(str(place), what, "expected one JSON object a line: {…}")
                )
                return
            problems.append(Problem(str(place), f"is not JSON: {error}", JSON_REMEDY))
            continue
        if not isinstance(row, dict):
            problems.append(
                Problem(
                    str(place), "is not a JSON object", 'expected {"_id": …, "text": …}'
                )
            )
        elif (said := bulk_action(row)) is not None:
            action = {"_id": said["_id"]} if "_id" in said else {}
        else:
            yield from ((place, {**action, **plain}) for plain in rows_of_object(row))
            action = {}


def read_json_lines(
    path: Path, problems: ReadProblems
) -> Iterator[tuple[SourceLocation, TableRow]]:
    """Stream the objects of a JSON Lines file; a line that is none becomes a problem."""
    return json_lines_rows(File(path), problems)


def read_text(path: Path) -> str:
    """Read a UTF-8 file whole, a byte order mark left out.

    Raises:
        InputError: it cannot be read, or has another encoding.
    """
    return decode_utf8(File(path).read(), SourceLocation(path))


def read_json(file: File) -> Any:
    """Parse a JSON file whole; InputError with its line where it is none."""
    text = decode_utf8(file.read(), SourceLocation(file.path))
    try:
        return parse_json(text)
    except ValueError as error:
        place = SourceLocation(file.path, getattr(error, "lineno", None))
        raise InputError(
            Problem(
                str(place), f"is not JSON: {getattr(error, 'msg', error)}", JSON_REMEDY
            )
        ) from None


def json_rows(  # noqa: D103
    file: File, problems: ReadProblems
) -> Iterator[tuple[SourceLocation, TableRow]]:
    try:
        found = rows_in_json(read_json(file))
    except InputError as error:
        if "Extra data" not in str(error):
            raise
        yield from json_lines_rows(
            file, problems
        )  # one object a line, whatever the file is called
        return
    yield from _listed(file, found, problems)


def yaml_rows(
    file: File, problems: ReadProblems
) -> Iterator[tuple[SourceLocation, TableRow]]:
    """The rows of YAML; every value is text, so that the id 007 stays what it is."""
    import yaml

    try:
        whole = yaml.load(
            decode_utf8(file.read(), SourceLocation(file.path)),
            yaml.BaseLoader,  # noqa: S506
        )
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = SourceLocation(file.path, mark.line + 1 if mark else None)
        raise InputError(
            Problem(
                str(place),
                f"is not YAML: {getattr(error, 'problem', error)}",
                JSON_REMEDY,
            )
        ) from None
    yield from _listed(file, rows_in_json(whole), problems)


def _listed(
    file: File, found: tuple[str, list[Any]] | None, problems: ReadProblems
) -> Iterator[tuple[SourceLocation, TableRow]]:
    """Rows that are listed in one file, each with its number."""
    if found is None:
        what = "is not a list of objects, nor an object with one such list"
        problems.append(
            Problem(str(file.path), what, "or name it .jsonl: one object a line")
        )
        return
    key, rows = found
    for number, row in enumerate(rows):
        place = SourceLocation(Path(f"{file.path}{key and f': {key}'}[{number}]"))
        if isinstance(row, dict):
            yield from ((place, plain) for plain in rows_of_object(row))
        else:
            problems.append(
                Problem(str(place), "is not an object", "every entry is one: {…}")
            )


def query_line_rows(  # noqa: D103
    file: File, problems: ReadProblems
) -> Iterator[tuple[SourceLocation, TableRow]]:
    for number, line in read_lines(file, problems):
        yield SourceLocation(file.path, number), {"query": line.strip()}


def decoded_lines(handle: IO[bytes], path: Path) -> Iterator[str]:
    """The lines of a file as text, without their ends."""
    yield from (_text(raw, path, number) for number, raw in enumerate(handle, 1))
