"""The guarded read of one file of a results folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from harness.records.jsonl import read_json_lines
from harness.records.manifest import Manifest
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import file_digest

COPY_FILES_REMEDY = "copy the files themselves into the folder"
FILE_CHANGED = "it was changed or cut since it was written"


def refuse_outside_links(folder: Path) -> None:
    """Raise InputError where a link in a folder leads out of it."""
    links = (path for path in folder.rglob("*") if path.is_symlink())
    if out := [
        path for path in links if not path.resolve().is_relative_to(folder.resolve())
    ]:
        raise InputError(
            [
                Problem(
                    str(path),
                    "is a link that leads out of the results",
                    COPY_FILES_REMEDY,
                )
                for path in out
            ]
        )


RUN_AGAIN_REMEDY = "run the experiment again"


ParsedRow = TypeVar("ParsedRow")


def read_unchanged_rows(
    folder: Path, manifest: Manifest, name: str, parse: Callable[[bytes], ParsedRow]
) -> Iterator[ParsedRow]:
    """The rows of a file, which must have the digest that the manifest has."""
    refuse_changed_file(folder, manifest, name)
    try:
        yield from read_json_lines(folder / name, parse)
    except (OSError, ValueError) as error:
        raise unreadable_file(folder / name, error) from None


def refuse_changed_file(folder: Path, manifest: Manifest, name: str) -> None:
    """Raise InputError where a file has another digest than the manifest says."""
    try:
        if manifest.file_digests.get(name) != file_digest(folder / name):
            raise ValueError(FILE_CHANGED)
    except (OSError, ValueError) as error:
        raise unreadable_file(folder / name, error) from None


def unreadable_file(path: Path, error: Exception) -> InputError:  # noqa: D103
    what = (
        "is missing"
        if isinstance(error, FileNotFoundError)
        else f"cannot be read whole: {error}"
    )
    return InputError(Problem(str(path), what, RUN_AGAIN_REMEDY))
