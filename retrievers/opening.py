"""Files that the command line names: regular ones, and pipes, as of <(zcat bm25.trec.gz); and the folder of caches."""

from __future__ import annotations

import io
import os
import stat
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Literal, TextIO

from retrievers.errors import InputError, Problem

WAITED = 5.0
"""Seconds for somebody to open the other end of a pipe."""
ELSEWHERE = "make room, or write where you may"


def cache_folder() -> Path:
    """Return the folder that HARNESS_CACHE names, else the user's cache folder."""
    if folder := os.environ.get("HARNESS_CACHE"):
        return Path(folder).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("retriever-harness", appauthor=False)


def opened(path: str | Path) -> io.BufferedReader:
    """Open a file or a pipe for reading.

    Raises:
        InputError: it is a device, or a pipe that nobody writes to: neither would ever come to an end.
        OSError: it cannot be opened.
    """
    mode = Path(path).stat().st_mode
    if stat.S_ISFIFO(mode):
        return _opened_pipe(path)
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a folder says by itself that it is one
        raise InputError(Problem(str(path), "is not a file but a device", "give a file"))
    return Path(path).open("rb")


def text_file(path: str | Path, mode: Literal["x", "w", "a"]) -> TextIO:
    r"""Open a text file for writing, UTF-8 with \n; one that is added to holds every line at once.

    Raises:
        OSError: it cannot be written; with "x", it is there already.
    """
    return Path(path).open(mode, encoding="utf-8", newline="\n", buffering=1 if mode == "a" else -1)


@contextmanager
def writing(path: Path, taken: str = "name another file") -> Iterator[None]:
    """Turn what the system says of a file that cannot be written into a message.

    Args:
        path: what is written inside.
        taken: what to do where it is there already.

    Raises:
        InputError: it is there already, and was to be made anew; or it cannot be written.
    """
    try:
        yield
    except FileExistsError:
        raise InputError(Problem(path.as_posix(), "is there already", taken)) from None
    except OSError as error:
        raise InputError(Problem(path.as_posix(), f"cannot be written: {error.strerror}", ELSEWHERE)) from None


def check_lock(path: str | Path) -> None:
    """Refuse what cannot be locked: a pipe or a device would be waited for, a link may lead to somebody's file.

    Raises:
        InputError: something else than a file has the name of the lock.
        OSError: it cannot be looked at.
    """
    try:
        mode = Path(path).lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise InputError(Problem(str(path), "is not a regular file, so that it cannot be locked", "remove it"))


def locked(path: Path, what: str, remedy: str) -> AbstractContextManager[object]:
    """Keep other processes from writing to a file or a folder, by a lock beside it, until the context ends.

    Raises:
        InputError: with what is said, another holds it; or something else than a file has the name of the lock.
        OSError: the lock cannot be made.
    """
    from filelock import FileLock, Timeout

    lock = path.parent / f".{path.name}.lock"
    check_lock(lock)
    try:
        return FileLock(lock).acquire(timeout=0)
    except Timeout:
        raise InputError(Problem(str(path), what, remedy)) from None


def _opened_pipe(path: str | Path) -> io.BufferedReader:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    end = time.monotonic() + WAITED
    first = b""
    while not first:
        try:
            first = os.read(descriptor, 1)
        except BlockingIOError:  # somebody will write
            break
        if not first and time.monotonic() > end:
            os.close(descriptor)
            raise InputError(Problem(str(path), "is a pipe that nobody writes to", "write it to a file first"))
        if not first:
            time.sleep(0.02)
    os.set_blocking(descriptor, True)
    return io.BufferedReader(_Begun(first, descriptor))


class _Begun(io.RawIOBase):
    """A pipe of which the first byte has been read."""

    def __init__(self, first: bytes, descriptor: int) -> None:
        self._first, self._rest = first, io.FileIO(descriptor)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view, begun = memoryview(buffer), len(self._first)
        view[:begun], self._first = self._first, b""
        return begun + (self._rest.readinto(view[begun:]) or 0)  # a blocking pipe gives a number

    def close(self) -> None:
        self._rest.close()
        super().close()
