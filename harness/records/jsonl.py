"""Lines of JSON in new text files."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeVar

from retrievers.files.text_files import explain_write_errors, open_text_file

JsonRow = TypeVar("JsonRow")


@contextmanager
def new_text_file(path: Path) -> Iterator[TextIO]:
    r"""Open a new file for text in UTF-8 with \n.

    The values of environment variables are written as `${NAME}`.

    Raises:
        InputError: it cannot be written.
    """
    with explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_text_file(path, "w") as file:
            yield file


def write_json_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object on each line."""
    with new_text_file(path) as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_json_lines(
    path: Path, parse: Callable[[bytes], JsonRow] = json.loads
) -> Iterator[JsonRow]:
    """Stream the rows of a file.

    Args:
        path: the file.
        parse: reads one line; ValueError if it is no row.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is not a row.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = parse(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {number}: {error}") from None
            yield row
