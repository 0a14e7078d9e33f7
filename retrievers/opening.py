"""Files that are written and locked, and the folder of caches."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Literal, TextIO

from retrievers.errors import InputError, Problem
from retrievers.remote.redaction import environment_values, masked

ELSEWHERE = "make room, or write where you may"


def cache_folder() -> Path:
    """Return the folder that HARNESS_CACHE names, else the user's cache folder."""
    if folder := os.environ.get("HARNESS_CACHE"):
        return Path(folder).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("retriever-harness", appauthor=False)


def masking(path: str | Path, mode: Literal["x", "w", "a"]) -> TextIO:
    r"""Open a text file for writing, UTF-8 with \n, in which whatever the environment holds stands as `${NAME}`.

    Every text that a command writes passes here, whoever it came from: a server may repeat the key that it was sent.

    Raises:
        OSError: it cannot be written; with "x", it is there already.
    """
    return _Masked(Path(path).open(f"{mode}b"), line_buffering=mode == "a")


class _Masked(io.TextIOWrapper):
    def __init__(self, file: IO[bytes], *, line_buffering: bool) -> None:
        super().__init__(file, encoding="utf-8", newline="\n", line_buffering=line_buffering)
        self._values = environment_values()

    def write(self, text: str) -> int:
        # Lines are appended while a key may still come into use; other files are written at once.
        return super().write(masked(text, None if self.line_buffering else self._values))


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


def locked(path: Path, what: str, remedy: str) -> AbstractContextManager[object]:
    """Keep other processes from writing to a file or a folder, by a lock beside it, until the context ends.

    Raises:
        InputError: with what is said, another holds it.
        OSError: the lock cannot be made.
    """
    from filelock import FileLock, Timeout

    lock = path.parent / f".{path.name}.lock"
    try:
        return FileLock(lock).acquire(timeout=0)
    except Timeout:
        raise InputError(Problem(str(path), what, remedy)) from None
