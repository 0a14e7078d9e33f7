"""Files that are written and locked, and the folder of caches."""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Literal, TextIO

from retrievers.errors import InputError, Problem

ELSEWHERE = "free disk space, or choose a folder that you may write to"

TOML = re.compile(r"#|\[\[?[\w.-]+\]\]?\s*$|[\w-]{1,64}\s*=")
DELIMITERS = ",;\t|"
"""What may part the cells of CSV."""
NUMBERS_OF_FIELDS = {4: "TREC qrels", 6: "a TREC run"}


def cache_folder() -> Path:
    """Return the folder that HARNESS_CACHE names, else the user's cache folder."""
    if folder := os.environ.get("HARNESS_CACHE"):
        return Path(folder).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("retriever-harness", appauthor=False)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, as 64 hex digits; OSError where it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_file(path: str | Path, mode: Literal["x", "w", "a"]) -> TextIO:
    r"""Open a text file for writing, UTF-8 with \n; one that is added to holds every line at once.

    Raises:
        OSError: it cannot be written; with "x", it is there already.
    """
    return Path(path).open(
        mode, encoding="utf-8", newline="\n", buffering=1 if mode == "a" else -1
    )


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
        raise InputError(
            Problem(path.as_posix(), f"cannot be written: {error.strerror}", ELSEWHERE)
        ) from None


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


def kind_of(line: str) -> str:
    """Return what a file that begins with this line seems to be, with its article; "" where that is not clear.

    >>> kind_of('name = "e"'), kind_of("id;query"), kind_of('{"a": 1}'), kind_of("q 0 d 1"), kind_of("words")
    ('an experiment file (TOML)', 'a table (CSV)', 'JSON', 'TREC qrels', '')
    """
    line = line.strip()
    if line.startswith("{"):
        return "JSON"
    if line.startswith("<"):
        return "a web page, or XML"
    if TOML.match(line):
        return "an experiment file (TOML)"
    if any(delimiter in line for delimiter in DELIMITERS):
        return "a table (CSV)"
    return NUMBERS_OF_FIELDS.get(len(line.split()), "")
