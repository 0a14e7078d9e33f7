"""The guarded read of one file of a results folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from harness.records.jsonl import read_json_lines
from harness.records.manifest import Manifest
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import file_digest

COPY_FILES_REMEDY = "copy the files themselves into the folder"
FILE_CHANGED = "it was changed or cut since it was written"
RUN_AGAIN_REMEDY = "run the experiment again"

ParsedRow = TypeVar("ParsedRow")


def refuse_outside_links(folder: Path) -> None:
    """Refuse links in a folder that lead out of it.

    Raises:
        InputError: there are any.
    """
    target = os.path.realpath(folder)
    problems: list[Problem] = []
    for path in folder.rglob("*"):
        if not path.is_symlink():
            continue
        # `Path.resolve` raises an error at a link that leads to itself.
        if not Path(os.path.realpath(path)).is_relative_to(target):
            problem = "is a link that leads out of the results"
            problems.append(Problem(str(path), problem, COPY_FILES_REMEDY))
    if problems:
        raise InputError(problems)


def read_unchanged_rows(
    folder: Path, manifest: Manifest, name: str, parse: Callable[[bytes], ParsedRow]
) -> Iterator[ParsedRow]:
    """Yield the rows of a file, which must have the digest in the manifest.

    Args:
        folder: the results.
        manifest: theirs.
        name: the path of the file in the folder.
        parse: reads one line; ValueError if it is no row.

    Raises:
        InputError: it has another digest, or cannot be read.
    """
    refuse_changed_file(folder, manifest, name)
    try:
        yield from read_json_lines(folder / name, parse)
    except (OSError, ValueError) as error:
        raise unreadable_file(folder / name, error) from None


def refuse_changed_file(folder: Path, manifest: Manifest, name: str) -> None:
    """Refuse a file with another digest than in the manifest.

    Raises:
        InputError: it has another digest, or cannot be read.
    """
    try:
        if manifest.digest_of(name) != file_digest(folder / name):
            raise ValueError(FILE_CHANGED)
    except (OSError, ValueError) as error:
        raise unreadable_file(folder / name, error) from None


def unreadable_file(path: Path, error: Exception) -> InputError:
    """Return the error that a file is missing or cannot be read."""
    problem = f"cannot be read whole: {error}"
    if isinstance(error, FileNotFoundError):
        problem = "is missing"
    return InputError(Problem(str(path), problem, RUN_AGAIN_REMEDY))
