"""Titles that too many converted documents share.

The name of a template or of a site says nothing about one document.
"""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from pathlib import PurePosixPath
from typing import NamedTuple

from harness.dataset.convert import ConversionError, ConvertedText, convert_file
from harness.dataset.file import File
from retrievers.errors import InputError

MIN_SHARED_SHARE = 0.5
"""Share of a format's documents from which on a title that they have is not used."""


class FormatTitle(NamedTuple):
    """A title of documents of one format."""

    suffix: str
    title: str


class _FileVersion(NamedTuple):
    """A file with what changes if its content does."""

    path: str
    file: File
    by_page: bool
    modified: int
    size: int


def shared_titles(
    files: Mapping[str, File], *, by_page: bool
) -> frozenset[FormatTitle]:
    """Return the titles that at least two, and half of a format's documents, have.

    Each file is converted; a later reading finds the conversions in the cache.

    Args:
        files: those that are converted, by path.
        by_page: whether pages of PDF are documents.
    """
    versions: list[_FileVersion] = []
    for path, file in files.items():
        # A member of an archive changes with the archive.
        status = (file.archive.path if file.archive else file.path).stat()
        is_by_page = by_page and file.suffix == ".pdf"
        version = _FileVersion(
            path, file, is_by_page, status.st_mtime_ns, status.st_size
        )
        versions.append(version)
    return _count_titles(tuple(versions))


@lru_cache(maxsize=8)
def _count_titles(versions: tuple[_FileVersion, ...]) -> frozenset[FormatTitle]:
    """Count titles once for all readings of the same files."""
    counts = Counter[FormatTitle]()
    converted_files = Counter[str]()
    for version in versions:
        try:
            titles = convert_file(version.file, by_page=version.by_page).titles
        except (ConversionError, InputError):
            continue  # it is reported when the document is read
        converted_files[version.file.suffix] += 1
        counts.update(FormatTitle(version.file.suffix, title) for title in titles)
    return frozenset(
        title
        for title, count in counts.items()
        if count > 1 and count >= MIN_SHARED_SHARE * converted_files[title.suffix]
    )


def choose_title(
    path: str, file: File, converted: ConvertedText, shared: frozenset[FormatTitle]
) -> str:
    """Return the first title that is not shared, else the file's name.

    "" if the file has no title at all.
    """
    for title in converted.titles:
        if FormatTitle(file.suffix, title) not in shared:
            return title
    return PurePosixPath(path).stem if converted.titles else ""
