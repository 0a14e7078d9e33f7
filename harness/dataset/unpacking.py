"""Compressed files as streams that end with a message where they would fill the memory."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from pathlib import Path
from typing import IO, Any

from retrievers.errors import InputError, Problem

COMPRESSED = (".gz", ".zst", ".bz2", ".xz")
"""Suffixes that may stand behind a file's own."""
FREE = 64 << 20
"""Bytes that any archive or compressed file may unpack to."""
RATIO = 200
"""Beyond that, so many times its size: text shrinks to a tenth or so, a bomb to a thousandth."""


def unpacked(raw: IO[bytes], suffix: str, path: Path, size: int) -> IO[bytes]:
    """Return what a stream holds, unpacked where its suffix says that it is compressed.

    Args:
        raw: the file, or the member of an archive.
        suffix: the last one of its name, in lower case.
        path: as it is named in messages.
        size: its bytes, compressed.

    Raises:
        InputError: while it is read, where it gives more than `FREE` bytes and `RATIO` times its size.
    """
    if suffix not in COMPRESSED:
        return raw
    if suffix == ".zst":
        return bounded(_zstd(raw, path), path, size)
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    return bounded(openers[suffix](raw), path, size)


def _zstd(raw: IO[bytes], path: Path) -> Any:
    try:
        import zstandard
    except ImportError:
        raise InputError(missing(str(path), "zstandard", "formats")) from None

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


def missing(where: str, package: str, extra: str) -> Problem:
    """What to say where a library of an extra is not installed."""
    return Problem(where, f"needs the package {package}", f'pip install {package}, or the extra "{extra}"')


def bounded(stream: Any, path: Path, size: int) -> IO[bytes]:
    """Return the stream, which fails with an InputError beyond what a file of so many packed bytes may hold."""
    return io.BufferedReader(_Bounded(stream, path, max(FREE, RATIO * size)), 1 << 20)


class _Bounded(io.RawIOBase):
    """A stream that stops with an InputError where it gives more than it may."""

    def __init__(self, stream: IO[bytes], path: Path, most: int) -> None:
        self._stream, self._path, self._left, self._most = stream, path, most, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        self._left -= len(data)
        if self._left < 0:
            what = f"unpacks to more than {self._most >> 20:,} MiB, far more than text would"
            raise InputError(Problem(str(self._path), what, "unpack it yourself, if you trust it"))
        buffer[: len(data)] = data
        return len(data)
