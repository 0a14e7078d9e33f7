"""Zip archives and compressed files, read where they lie: names that would deceive are refused, and so are bombs.

The standard library reads them. fsspec's file system for zip archives was looked at: it gives the same streams, but
lists a name once that an archive has twice, and this would hide which of the two is meant.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from retrievers.errors import InputError, Problem, needing

COMPRESSED = (".gz", ".zst", ".bz2", ".xz")
"""Suffixes that may stand behind a file's own."""
FREE = 64 << 20
"""Bytes that any archive or compressed file may unpack to."""
RATIO = 200
"""Beyond that, so many times its size: text shrinks to a tenth or so, a bomb to a thousandth."""
OTHER_ARCHIVES = (".tgz", ".tbz2", ".txz", ".7z", ".rar", *(f".tar{suffix}" for suffix in ("", *COMPRESSED)))
"""Suffixes of archives that no reader opens."""
AGAIN = "fetch or make it again"
TRUST = "do not trust this archive: unpack it where it can do no harm, and look at it"


def is_zip(path: Path) -> bool:
    """Whether a path is a zip archive, by its first bytes."""
    return path.is_file() and zipfile.is_zipfile(path)


def regular(path: Path) -> int:
    """Return the size of a regular file in bytes; a pipe or a device, which could block for ever, is refused.

    Raises:
        InputError: it is something else than a file.
        OSError: it cannot be looked at.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise InputError(Problem(str(path), "is not a regular file", "a data set is made of files"))
    return status.st_size


def refuse_other_archives(path: Path) -> None:
    """Raise InputError for an archive of another kind: a tar has no list of its members and no way to one of them."""
    if "".join(path.suffixes[-2:]).lower().endswith(OTHER_ARCHIVES):
        remedy = "unpack it and name the folder, or pack the folder as a zip"
        raise InputError(Problem(str(path), "is an archive of a kind that is not read: only zip is", remedy))


class Archive:
    """A zip archive whose list of members is read once, however many of them are opened."""

    def __init__(self, path: Path) -> None:
        """Read the list of members.

        Raises:
            InputError: it is not an archive, a name in it leads outside or names nothing, or its members overlap.
        """
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except UnicodeDecodeError:
            what = "has a member whose name is said to be UTF-8 and is not"
            raise InputError(Problem(str(path), what, AGAIN)) from None
        except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise InputError(Problem(str(path), f"is not a zip archive that can be read: {error}", AGAIN)) from None
        members = [info for info in self._zip.infolist() if not info.is_dir()]
        if sum(info.compress_size for info in members) > path.stat().st_size:
            raise InputError(Problem(str(path), "has members that take more bytes than the whole archive", TRUST))
        self._most = max(FREE, RATIO * path.stat().st_size)
        self._taken: dict[str, int] = {}
        """Member -> bytes that came out of it, in its longest reading."""
        self._together = 0
        self._names = [info.filename for info in members]
        for name in self._names:
            self._refuse_deceiving(name)

    def members(self) -> Iterator[tuple[str, str]]:
        """The members in the order of their names: the path below the archive's top, and the whole name.

        Hidden ones are left out, and the one folder that an archive wraps its members in is its top.
        """
        shown = sorted(name for name in self._names if not _hidden(name) and not name.startswith("__MACOSX/"))
        tops = {PurePosixPath(name).parts[0] for name in shown}
        wrapped = len(tops) == 1 and all("/" in name for name in shown)
        return ((name.partition("/")[2] if wrapped else name, name) for name in shown)

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open one member, unpacked, also where it is a compressed file itself.

        The bytes that come out are counted, of this member and of all together: what the archive says of them is not
        believed.
        """
        size, path, taken = self._zip.getinfo(name).compress_size, self.path / name, self._taken.get(name, 0)
        own, left = max(FREE, RATIO * size), self._most - self._together + taken
        with self._zip.open(name) as member:
            stream = unpacked(member, path, size)
            counted = _Bounded(stream, path, own) if own <= left else _Bounded(stream, self.path, left, self._most)
            try:
                yield io.BufferedReader(counted, 1 << 20)
            finally:
                self._taken[name] = max(taken, counted.given)
                self._together += self._taken[name] - taken

    def _refuse_deceiving(self, name: str) -> None:
        pure = PurePosixPath(name.replace("\\", "/"))
        if not pure.parts:
            raise InputError(Problem(str(self.path), f"has a member called {name!r}, which names no file", TRUST))
        if pure.is_absolute() or ".." in pure.parts or ":" in pure.parts[0]:
            raise InputError(Problem(f"{self.path}/{name}", "leads out of the archive", TRUST))


def _hidden(name: str) -> bool:
    return any(part.startswith(".") for part in PurePosixPath(name).parts)


def unpacked(raw: IO[bytes], path: Path, size: int) -> IO[bytes]:
    """Return what a stream holds, unpacked where its suffix says that it is compressed.

    Args:
        raw: the file, or the member of an archive.
        path: its name, as messages have it.
        size: its bytes, compressed.

    Raises:
        InputError: while it is read, where it gives more than `FREE` bytes and `RATIO` times its size.
    """
    suffix = path.suffix.lower()
    if suffix not in COMPRESSED:
        return raw
    if suffix == ".zst":
        return bounded(_zstd(raw, path), path, size)
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    return bounded(openers[suffix](raw), path, size)


def _zstd(raw: IO[bytes], path: Path) -> Any:
    with needing(str(path), "zstandard", "formats"):
        import zstandard

    class Reader(io.RawIOBase):
        """The decompressor, its own error turned into one that `File.open` knows."""

        def __init__(self) -> None:
            self._stream = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            try:
                data = self._stream.read(len(buffer))
            except zstandard.ZstdError as error:
                raise EOFError(str(error)) from None
            buffer[: len(data)] = data
            return len(data)

    return Reader()


def unpacked_size(raw: bytes) -> int:
    """The bytes that an archive (a Word file is one) says it unpacks to where no document would; else 0.

    What it says can be relied on: zipfile gives no more of a member than that.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return 0
    return size if size > max(FREE, RATIO * len(raw)) else 0


def bounded(stream: Any, path: Path, size: int) -> IO[bytes]:
    """Return the stream, which fails with an InputError beyond what a file of so many packed bytes may hold."""
    return io.BufferedReader(_Bounded(stream, path, max(FREE, RATIO * size)), 1 << 20)


class _Bounded(io.RawIOBase):
    """A stream that stops with an InputError where it gives more than it may."""

    def __init__(self, stream: IO[bytes], path: Path, left: int, most: int | None = None) -> None:
        """Let so many bytes through; `most` is what stands in the message, where others have come before."""
        self._stream, self._path, self._left, self._most = stream, path, left, left if most is None else most
        self.given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        self.given += len(data)
        if self.given > self._left:
            what = f"unpacks to more than {self._most >> 20:,} MiB, far more than text would"
            raise InputError(Problem(str(self._path), what, "unpack it yourself, if you trust it"))
        buffer[: len(data)] = data
        return len(data)
