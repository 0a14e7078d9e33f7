"""Files of a results folder: what is read lies in it, and what is written is made anew in it.

A folder may come from somebody else. A symbolic link in it would read, or overwrite, a file somewhere else; a pipe
would never come to an end; a hard link would be written through to another name of the same file.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeVar

from retrievers.errors import InputError, Problem
from retrievers.opening import text_file, writing

COPY = "copy the files themselves into the folder"
LONGEST_LINE = 64 << 20
"""Bytes of a line, at most: a ranking of a million hits has less."""
BLOCK = 1 << 20
CHANGED = "it was changed or cut since it was written"

Row = TypeVar("Row")


def refuse_links(folder: Path) -> None:
    """Refuse a folder that holds anything but files and folders.

    Raises:
        InputError: naming each link, pipe and device, and each folder that cannot be listed.
    """
    problems: list[Problem] = []

    def unreadable(error: OSError) -> None:
        problems.append(Problem(str(error.filename), f"cannot be listed: {error.strerror}", "see that you may read it"))

    for place, folders, names in os.walk(folder, onerror=unreadable):
        for name in (*folders, *names):
            path = Path(place, name)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                problems.append(Problem(str(path), "is a link, which could lead out of the results", COPY))
            elif not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
                problems.append(Problem(str(path), "is not a regular file", "remove it"))
    if problems:
        raise InputError(problems)


def regular(path: Path) -> Path:
    """Return the path of a file that is there and no link.

    Raises:
        OSError: it is not there.
        ValueError: it is a link, a folder, a pipe or a device.
    """
    mode = path.lstat().st_mode
    if not stat.S_ISREG(mode):
        raise ValueError("it is a link" if stat.S_ISLNK(mode) else "it is not a regular file")
    return path


@contextmanager
def create(path: Path) -> Iterator[TextIO]:
    r"""Write a file as UTF-8 with \n, made anew: what had this name is removed, never written through.

    Whatever the environment holds stands in it as `${NAME}`.

    Raises:
        InputError: it cannot be written.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with text_file(path, "x") as file:
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
        ValueError: a line is not a row, or longer than 64 MiB.
    """
    with regular(path).open("rb") as handle:
        number = 0
        while line := handle.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                raise ValueError(f"line {number} is longer than {LONGEST_LINE:,} bytes")
            if line.strip():
                try:
                    row = parse(line)
                except RecursionError:
                    raise ValueError(f"line {number} is nested too deep") from None
                except ValueError as error:
                    raise ValueError(f"line {number}: {error}") from None
                yield row


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file that is no link; OSError or ValueError where it cannot be read."""
    digest = hashlib.sha256()
    with regular(path).open("rb") as handle:
        while block := handle.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
