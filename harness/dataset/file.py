"""One file, packed or plain."""

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
from typing import IO, Any

from retrievers.errors import InputError, Problem, require_package

COMPRESSION_SUFFIXES = (".gz", ".zst", ".bz2", ".xz")
"""Suffixes that may follow a file's own."""
UNREADABLE_ARCHIVE_SUFFIXES = (
    ".tgz",
    ".tbz2",
    ".txz",
    ".7z",
    ".rar",
    *(f".tar{suffix}" for suffix in ("", *COMPRESSION_SUFFIXES)),
)
"""Suffixes of archives that no reader opens."""
FETCH_AGAIN = "fetch or make it again"
UNSAFE_ARCHIVE_REMEDY = (
    "do not trust this archive: unpack it where it can do no harm, and look at it"
)


def is_zip(path: Path) -> bool:
    """Whether a path is a zip archive, by its first bytes."""
    return path.is_file() and zipfile.is_zipfile(path)


def refuse_other_archives(path: Path) -> None:
    """Raise InputError for an archive of another kind: a tar has no list of its members and no way to one of them."""
    if "".join(path.suffixes[-2:]).lower().endswith(UNREADABLE_ARCHIVE_SUFFIXES):
        remedy = "unpack it and name the folder, or pack the folder as a zip"
        raise InputError(
            Problem(
                str(path),
                "is an archive of a kind that is not read: only zip is",
                remedy,
            )
        )


class Archive:
    """A zip archive whose list of members is read once, however many of them are opened."""

    def __init__(self, path: Path) -> None:
        """Read the list of members.

        Raises:
            InputError: it is not an archive, or a name in it leads outside.
        """
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise InputError(
                Problem(
                    str(path),
                    f"is not a zip archive that can be read: {error}",
                    FETCH_AGAIN,
                )
            ) from None
        self._names = [
            info.filename for info in self._zip.infolist() if not info.is_dir()
        ]
        for name in self._names:
            pure = PurePosixPath(name.replace("\\", "/"))
            if (
                not pure.parts
                or pure.is_absolute()
                or ".." in pure.parts
                or ":" in pure.parts[0]
            ):
                raise InputError(
                    Problem(
                        f"{path}/{name}",
                        "leads out of the archive",
                        UNSAFE_ARCHIVE_REMEDY,
                    )
                )

    def members(self) -> Iterator[tuple[str, str]]:
        """The members in the order of their names: the path below the archive's top, and the whole name.

        Hidden ones are left out, and the one folder that an archive wraps its members in is its top.
        """
        shown = sorted(
            name for name in self._names if not re.search(r"^__MACOSX/|(^|/)\.", name)
        )
        tops = {PurePosixPath(name).parts[0] for name in shown}
        wrapped = len(tops) == 1 and all("/" in name for name in shown)
        return ((name.partition("/")[2] if wrapped else name, name) for name in shown)

    def open(self, name: str) -> IO[bytes]:
        """Open one member, which may be a compressed file itself."""
        return self._zip.open(name)


def decompressed(raw: IO[bytes], path: Path) -> IO[bytes]:
    """Return what a stream holds, unpacked where the suffix of its name says that it is compressed."""
    suffix = path.suffix.lower()
    if suffix == ".zst":
        return io.BufferedReader(_zstd(raw, path))
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(suffix)
    return opener(raw) if opener else raw


def _zstd(raw: IO[bytes], path: Path) -> Any:
    with require_package(str(path), "zstandard", "formats"):
        import zstandard
    return zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)


UNREADABLE_REMEDY = "see that it is there and whole, and that you may read it"
READ_ERRORS = (
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    RuntimeError,
)


@dataclass(frozen=True, slots=True)
class File:
    """One file on disk, one member of a zip archive, or one sheet of a workbook."""

    path: Path
    """As it is named in messages: for a member the archive's path and its own."""
    archive: Archive | None = None
    member: str = ""
    same_named_file: str = ""
    """Another file that has the same name: one that is compressed, or one more of an archive."""
    table: str = ""
    """The sheet of a workbook."""
    header: tuple[str, ...] | None = None
    """What the columns of a table without a header are called, "" at the end for any more, which have numbers; None
    where its first row says it."""

    @property
    def name(self) -> str:
        """The file's own name, without the suffix of a compression."""
        suffix = self.path.suffix.lower()
        return self.path.stem if suffix in COMPRESSION_SUFFIXES else self.path.name

    @property
    def suffix(self) -> str:
        """The suffix that tells what is in it, in lower case: `.jsonl` for `corpus.jsonl.gz`."""
        return PurePosixPath(self.name).suffix.lower()

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the file for reading, unpacked.

        Raises:
            InputError: it cannot be read, is damaged, or has a twin: which of them is meant is unknown.
        """
        if self.same_named_file:
            what = f"{self.same_named_file} is there as well"
            raise InputError(
                Problem(
                    str(self.path),
                    what,
                    "keep one of them, since both have the same name",
                )
            )
        try:
            with (
                self.archive.open(self.member)
                if self.archive
                else self.path.open("rb") as raw
            ):
                yield decompressed(raw, self.path)
        except Exception as error:
            # ZstdError is of a package that may not be there; RuntimeError is all that zipfile says of a password.
            if (
                not isinstance(error, READ_ERRORS)
                and type(error).__name__ != "ZstdError"
            ):
                raise
            what = f"cannot be read: {getattr(error, 'strerror', '') or error}"
            raise InputError(Problem(str(self.path), what, UNREADABLE_REMEDY)) from None

    def read(self) -> bytes:
        """The whole of it."""
        with self.open() as handle:
            return handle.read()


Files = Mapping[str, File]
"""What is in a folder, an archive or a workbook, by name: see `listing`."""


def without_parent_steps(path: Path) -> Path:
    """A path without `..`, where that leads to the same place: it does not behind a link."""
    without = Path(os.path.normpath(path))
    return without if without.resolve() == path.resolve() else path
