"""A reference that is one table: a file of rows, or a folder in which `datasets` or the hub keeps its shards.

A folder of shards has parts: splits (`test-00000-of-00001.parquet`, or a folder `test` of Arrow files, as
`save_to_disk` writes them), and folders of splits, which are configurations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from harness.dataset.dataset_model import DatasetReference
from harness.dataset.files import File, holds_files, listing
from harness.dataset.rows import SUFFIXES, Row, read_rows
from harness.dataset.source import Findings, split_among
from retrievers.errors import InputError, Problem

SHARD = re.compile(r"(.+?)-\d{5}-of-\d{5}")
SAVED = "data"
"""What `save_to_disk` calls its shards, and what the hub calls the folder of a data set's only configuration."""


def table_files(reference: DatasetReference, also: tuple[str, ...] = ()) -> list[File]:
    """The files of the one table that a reference is; none where it is something else.

    Args:
        reference: a file with a suffix of `SUFFIXES`, or a folder of shards of one split, or of the one it names.
        also: further suffixes that will do for a file.

    Raises:
        InputError: several configurations or splits are there, and none is named.
    """
    if reference.scheme or not reference.folder.exists():
        return []
    if reference.folder.is_file():
        known = File(reference.folder).suffix in (*SUFFIXES, *also)
        return [File(reference.folder)] if known and not holds_files(reference.folder) else []
    if not any(next(reference.folder.glob(f"{level}*-of-*.*"), None) for level in ("", "*/")):
        return []  # told without a look at every file of a large folder
    shards = _shards(listing(reference.folder))
    if len(shards) > 1:
        remedy = f"name the folder of one: {reference.name}/{next(iter(shards))}"
        raise InputError(Problem(reference.name, f"has the configurations {', '.join(shards)}", remedy))
    splits = next(iter(shards.values()), {})
    return splits[split_among(reference.name, splits, reference.split)] if splits else []


def first_row(reference: DatasetReference) -> Row:
    """The first row of the one table that a reference is; empty where it is none."""
    return next((row for file in table_files(reference) for _, row in read_rows(file, Findings())), {})


def split_of(name: str) -> tuple[str, str] | None:
    """The folder and the split of a file of shards; None for any other file.

    >>> split_of("en/test-00000-of-00002.parquet"), split_of("test/data-00000-of-00001.arrow"), split_of("a.csv")
    (('en', 'test'), ('', 'test'), None)
    """
    pure = PurePosixPath(name)
    shard = SHARD.fullmatch(pure.stem) if pure.suffix.lower() in SUFFIXES else None
    if shard is None:
        return None
    if pure.suffix.lower() == ".arrow" and shard[1] == SAVED:
        return "/".join(pure.parts[:-2]), pure.parent.name
    return "/".join(pure.parts[:-1]), shard[1]


def _shards(files: Mapping[str, File]) -> dict[str, dict[str, list[File]]]:
    """Configuration -> split -> files."""
    found: dict[str, dict[str, list[File]]] = {}
    for name, file in files.items():
        for folder, split in filter(None, [split_of(name)]):
            found.setdefault("" if folder == SAVED else folder, {}).setdefault(split, []).append(file)
    return found
