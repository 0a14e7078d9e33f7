"""Files of a results folder: what is read is in it, and no link leads out of it."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeVar

from retrievers.errors import InputError, Problem
from retrievers.opening import text_file, writing

COPY = "copy the files themselves into the folder"
CHANGED = "it was changed or cut since it was written"

Row = TypeVar("Row")


def refuse_links(folder: Path) -> None:
    """Raise InputError where a link in a folder leads out of it."""
    root = folder.resolve()
    links = (path for path in folder.rglob("*") if path.is_symlink())
    if problems := [Problem(str(path), "is a link that leads out of the results", COPY)
                    for path in links if not path.resolve().is_relative_to(root)]:  # fmt: skip
        raise InputError(problems)


@contextmanager
def create(path: Path) -> Iterator[TextIO]:
    r"""Write a file as UTF-8 with \n, made anew.

    Whatever the environment holds is in it as `${NAME}`.

    Raises:
        InputError: it cannot be written.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with text_file(path, "w") as file:
            yield file


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line."""
    with create(path) as handle:
        handle.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_jsonl(path: Path, parse: Callable[[bytes], Row] = json.loads) -> Iterator[Row]:
    """Stream the rows of a file.

    Args:
        path: the file.
        parse: one line to a row; ValueError where it is none.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is not a row.
    """
    with path.open("rb") as handle:
        for number, line in enumerate(handle, 1):
            if line.strip():
                try:
                    row = parse(line)
                except (ValueError, RecursionError) as error:
                    raise ValueError(f"line {number}: {error}") from None
                yield row
