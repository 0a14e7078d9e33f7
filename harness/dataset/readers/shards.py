"""The files of one split."""

import re

from harness.dataset.file import File, Files
from harness.dataset.listing import is_container
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DatasetReference
from harness.dataset.rows import TABLE_SUFFIXES, read_file_rows
from harness.dataset.source import TableRow, choose_split
from retrievers.errors import InputError, Problem

SHARD_NAME = re.compile(
    r"(?:(?P<folder>.+)/)??(?:(?P<saved>[^/]+)/data-\d{5}-of-\d{5}\.arrow|"
    rf"(?P<split>[^/]+?)-\d{{5}}-of-\d{{5}}(?:{'|'.join(map(re.escape, TABLE_SUFFIXES))}))"
)
SAVED_FOLDER = "data"
"""What `save_to_disk` calls its shards, and what the hub calls the folder of a data set's only configuration."""


def list_table_files(
    reference: DatasetReference, files: Files, also: tuple[str, ...] = ()
) -> list[File]:
    """The files of the one table that a reference is; none where it is something else.

    Args:
        reference: a file with a suffix of `SUFFIXES`, a folder of shards of one split, or of the one it names.
        files: what is in the folder.
        also: further suffixes that will do for a file.

    Raises:
        InputError: several configurations or splits are there, and none is named.
    """
    if reference.scheme or not reference.folder.exists():
        return []
    if reference.folder.is_file():
        known = File(reference.folder).suffix in (*TABLE_SUFFIXES, *also)
        return (
            [File(reference.folder)]
            if known and not is_container(reference.folder)
            else []
        )
    shards = _shards(files)
    if len(shards) > 1:
        remedy = f"name the folder of one: {reference.name}/{next(iter(shards))}"
        raise InputError(
            Problem(
                reference.name, f"has the configurations {', '.join(shards)}", remedy
            )
        )
    splits = next(iter(shards.values()), {})
    return (
        splits[choose_split(reference.name, splits, reference.split)] if splits else []
    )


def read_first_row(reference: DatasetReference, files: Files) -> TableRow:
    """The first row of the one table that a reference is; empty where it is none."""
    return next(
        (
            row
            for file in list_table_files(reference, files)
            for _, row in read_file_rows(file, ReadProblems())
        ),
        {},
    )


def shard_of(name: str) -> tuple[str, str] | None:
    """The folder and the split of a file of shards; None for any other file.

    >>> shard_of("en/test-00000-of-00002.parquet"), shard_of("test/data-00000-of-00001.arrow"), shard_of("a.csv")
    (('en', 'test'), ('', 'test'), None)
    """
    shard = SHARD_NAME.fullmatch(name)
    return (shard["folder"] or "", shard["saved"] or shard["split"]) if shard else None


def _shards(files: Files) -> dict[str, dict[str, list[File]]]:
    """Configuration -> split -> files."""
    found: dict[str, dict[str, list[File]]] = {}
    for name, file in files.items():
        for folder, split in filter(None, [shard_of(name)]):
            found.setdefault("" if folder == SAVED_FOLDER else folder, {}).setdefault(
                split, []
            ).append(file)
    return found
