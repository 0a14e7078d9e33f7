"""The files of one split.

A reference may be one table: a file of rows, the only table in a folder, or shards of
which one split is meant. Shards are what `datasets` saves and what the hub stores:

    test-00000-of-00001.parquet        a shard of the split `test`
    test/data-00000-of-00001.arrow     the same, as `save_to_disk` writes it
    de/test-00000-of-00001.parquet     the same, of the configuration `de`
"""

import re
from dataclasses import dataclass

from harness.dataset.file import File, Files
from harness.dataset.listing import is_container
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DatasetReference
from harness.dataset.row import NO_ROW, Row
from harness.dataset.rows import TABLE_SUFFIXES, read_file_rows
from harness.dataset.source import choose_split
from retrievers.errors import InputError, Problem

SHARD_PATH = re.compile(
    r"(?:(?P<folder>.+)/)??"
    r"(?:(?P<split_folder>[^/]+)/data-\d{5}-of-\d{5}\.arrow"
    r"|(?P<split>[^/]+?)-\d{5}-of-\d{5}"
    rf"(?:{'|'.join(map(re.escape, TABLE_SUFFIXES))}))"
)
"""The path of a shard: FOLDER/SPLIT-00000-of-00002.SUFFIX, or arrow files by split."""
ONLY_CONFIGURATION = "data"
"""The folder in which the hub stores a data set that has only one configuration."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The parts of a shard's path."""

    configuration: str
    """Its folder; empty for the only configuration."""
    split: str


def parse_shard(path: str) -> Shard | None:
    """Return the configuration and the split in a path; None if it is not a shard's.

    >>> parse_shard("en/test-00000-of-00002.parquet")
    Shard(configuration='en', split='test')
    >>> parse_shard("test/data-00000-of-00001.arrow")
    Shard(configuration='', split='test')
    >>> parse_shard("queries.csv") is None
    True
    """
    match = SHARD_PATH.fullmatch(path)
    if match is None:
        return None
    configuration = match["folder"] or ""
    if configuration == ONLY_CONFIGURATION:
        configuration = ""
    return Shard(configuration, split=match["split_folder"] or match["split"])


def list_table_files(
    reference: DatasetReference, files: Files, extra_suffixes: tuple[str, ...] = ()
) -> list[File]:
    """Return the files of the table that a reference is; empty if it is not one table.

    Args:
        reference: a file of rows, or a folder with one table alone, or with the shards
            of one split. If it has shards of several splits, the reference names the
            split.
        files: the files in the folder.
        extra_suffixes: suffixes that are accepted in addition to those of tables.

    Raises:
        InputError: the folder has several configurations, or several splits of which
            the reference names none, or not the split that it names.
    """
    if reference.scheme or not reference.folder.exists():
        return []
    if not reference.folder.is_file():
        return _split_files(reference, files)
    file = File(reference.folder)
    if file.suffix not in (*TABLE_SUFFIXES, *extra_suffixes):
        return []
    if is_container(reference.folder):
        return []
    return [file]


def read_first_row(reference: DatasetReference, files: Files) -> Row:
    """Return the first row of the table that a reference is; `NO_ROW` without one.

    Raises:
        InputError: as `list_table_files` does.
    """
    for file in list_table_files(reference, files):
        for row in read_file_rows(file, ReadProblems()):
            return row
    return NO_ROW


def _split_files(reference: DatasetReference, files: Files) -> list[File]:
    """Return the shards of the split that is meant; empty if there are no shards."""
    configurations = _group_shards(files)
    if not configurations:
        return _only_table(reference, files)
    first_configuration = next(iter(configurations))
    if len(configurations) > 1:
        problem = f"has the configurations {', '.join(configurations)}"
        remedy = f"name the folder of one: {reference.name}/{first_configuration}"
        raise InputError(Problem(reference.name, problem, remedy))
    splits = configurations[first_configuration]
    return splits[choose_split(reference.name, splits, reference.split)]


def _only_table(reference: DatasetReference, files: Files) -> list[File]:
    """Return the table that is alone in a folder, if the reference names no part."""
    names = (reference.documents, reference.queries, reference.labels)
    if any(names) or len(files) != 1 or not reference.folder.is_dir():
        return []
    return [file for file in files.values() if file.suffix in TABLE_SUFFIXES]


def _group_shards(files: Files) -> dict[str, dict[str, list[File]]]:
    """Return the shards by configuration, and within it by split."""
    configurations: dict[str, dict[str, list[File]]] = {}
    for path, file in files.items():
        shard = parse_shard(path)
        if shard is None:
            continue
        splits = configurations.setdefault(shard.configuration, {})
        splits.setdefault(shard.split, []).append(file)
    return configurations
