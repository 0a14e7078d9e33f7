"""One file, packed or plain.

A reader opens a `File` and need not know whether it is on disk, in a zip archive or
compressed; `listing` finds the files of a folder.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

from retrievers.errors import InputError, Problem, require_package

COMPRESSION_SUFFIXES = (".gz", ".zst", ".bz2", ".xz")
"""Suffixes that may follow the suffix of the content."""
UNREADABLE_ARCHIVE_SUFFIXES = (
    ".tgz",
    ".tbz2",
    ".txz",
    ".7z",
    ".rar",
    ".tar",
    *(f".tar{suffix}" for suffix in COMPRESSION_SUFFIXES),
)
"""Suffixes of archives that no reader opens."""
HIDDEN_MEMBER = re.compile(r"^__MACOSX/|(^|/)\.")
"""A member of an archive that is skipped: macOS's copies, and hidden files."""
FETCH_AGAIN = "fetch or make it again"
UNSAFE_ARCHIVE_REMEDY = (
    "do not trust this archive: unpack it where it can do no harm, and look at it"
)
UNREADABLE_REMEDY = "see that it is there and whole, and that you may read it"
READ_ERRORS = (
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    RuntimeError,
)
"""What opening and reading a file raises if it is absent, damaged or protected.

RuntimeError is the only sign that `zipfile` gives of a password.
"""


def is_zip(path: Path) -> bool:
    """Whether a path is a zip archive, by its content, as a .docx is, too."""
    return path.is_file() and zipfile.is_zipfile(path)


def refuse_other_archives(path: Path) -> None:
    """Refuse an archive that is not a zip.

    A tar has no list of its members, and its members cannot be opened one by one.

    Raises:
        InputError: the suffix is one of another kind of archive.
    """
    suffixes = "".join(path.suffixes[-2:]).lower()
    if suffixes.endswith(UNREADABLE_ARCHIVE_SUFFIXES):
        problem = "is an archive of a kind that is not read: only zip is"
        remedy = "unpack it and name the folder, or pack the folder as a zip"
        raise InputError(Problem(str(path), problem, remedy))


class ArchiveMember(NamedTuple):
    """A file in an archive."""

    path: str
    """Its path below the archive's top folder."""
    full_name: str
    """Its path in the archive, by which it is opened."""


class Archive:
    """A zip archive; the list of its members is read only once."""

    def __init__(self, path: Path) -> None:
        """Read the list of members.

        Raises:
            InputError: it is not an archive, or a name in it leads outside.
        """
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            problem = f"is not a zip archive that can be read: {error}"
            raise InputError(Problem(str(path), problem, FETCH_AGAIN)) from None
        members = self._zip.infolist()
        self._names = [member.filename for member in members if not member.is_dir()]
        for name in self._names:
            if _leads_outside(name):
                where = f"{path}/{name}"
                problem = "leads out of the archive"
                raise InputError(Problem(where, problem, UNSAFE_ARCHIVE_REMEDY))

    def members(self) -> Iterator[ArchiveMember]:
        """Yield the members in the order of their names, hidden ones skipped.

        If all of them are in one folder, that folder is the top.
        """
        names = sorted(name for name in self._names if not HIDDEN_MEMBER.search(name))
        top_names = {PurePosixPath(name).parts[0] for name in names}
        has_top_folder = len(top_names) == 1 and all("/" in name for name in names)
        for name in names:
            path = name.partition("/")[2] if has_top_folder else name
            yield ArchiveMember(path, name)

    def open(self, name: str) -> IO[bytes]:
        """Open one member, which may be a compressed file itself."""
        return self._zip.open(name)


def _leads_outside(name: str) -> bool:
    """Whether the name of a member leads out of the archive."""
    path = PurePosixPath(name.replace("\\", "/"))
    if not path.parts or path.is_absolute():
        return True
    return ".." in path.parts or ":" in path.parts[0]


def decompressed(raw: IO[bytes], path: Path) -> IO[bytes]:
    """Return a stream, decompressed if the suffix of its name says so."""
    suffix = path.suffix.lower()
    if suffix == ".zst":
        return io.BufferedReader(_decompress_zstd(raw, path))
    open_by_suffix: dict[str, Any] = {
        ".gz": gzip.open,
        ".bz2": bz2.open,
        ".xz": lzma.open,
    }
    if suffix in open_by_suffix:
        stream: IO[bytes] = open_by_suffix[suffix](raw)
        return stream
    return raw


def _decompress_zstd(raw: IO[bytes], path: Path) -> Any:
    with require_package(str(path), "zstandard", "formats"):
        import zstandard
    return zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)


@dataclass(frozen=True, slots=True)
class File:
    """One file on disk, one member of a zip archive, or one sheet of a workbook."""

    path: Path
    """The path in messages: for a member the path of the archive and its own."""
    archive: Archive | None = None
    """The archive that has the file; None if it is on disk."""
    member: str = ""
    """Its path in the archive."""
    same_named_file: str = ""
    """Another file with the same name: a compressed one, or one more in an archive."""
    table: str = ""
    """The sheet of a workbook."""
    header: tuple[str, ...] | None = None
    """The columns of a table without a header; None if its first row is the header.

    An empty name at the end means that further columns have numbers.
    """

    @property
    def name(self) -> str:
        """The file's name, without the suffix of a compression."""
        if self.path.suffix.lower() in COMPRESSION_SUFFIXES:
            return self.path.stem
        return self.path.name

    @property
    def suffix(self) -> str:
        """The suffix of the content in lower case: `.jsonl` for `corpus.jsonl.gz`."""
        return PurePosixPath(self.name).suffix.lower()

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the file for reading, decompressed.

        Raises:
            InputError: it cannot be read or is damaged, or another file has its name.
        """
        if self.same_named_file:
            problem = f"{self.same_named_file} is there as well"
            remedy = "keep one of them, since both have the same name"
            raise InputError(Problem(str(self.path), problem, remedy))
        try:
            with self._open_raw() as raw:
                yield decompressed(raw, self.path)
        except Exception as error:
            # ZstdError belongs to a package that may not be installed.
            is_zstd_error = type(error).__name__ == "ZstdError"
            if not isinstance(error, READ_ERRORS) and not is_zstd_error:
                raise
            problem = f"cannot be read: {getattr(error, 'strerror', '') or error}"
            raise InputError(
                Problem(str(self.path), problem, UNREADABLE_REMEDY)
            ) from None

    def _open_raw(self) -> IO[bytes]:
        if self.archive:
            return self.archive.open(self.member)
        return self.path.open("rb")

    def read(self) -> bytes:
        """Return the whole content, decompressed.

        Raises:
            InputError: as `open` does.
        """
        with self.open() as handle:
            return handle.read()


Files = Mapping[str, File]
"""The files in a folder, an archive or a workbook, by name: see `list_files`."""


def without_parent_steps(path: Path) -> Path:
    """Return a path without `..`, unless a link makes that another file."""
    normal = Path(os.path.normpath(path))
    return normal if normal.resolve() == path.resolve() else path
