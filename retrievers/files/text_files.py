"""Text files as they are written."""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Literal, TextIO

from retrievers.errors import InputError, Problem

WRITE_REMEDY = "free disk space, or choose a folder that you may write to"

TOML_LINE = re.compile(r"#|\[\[?[\w.-]+\]\]?\s*$|[\w-]{1,64}\s*=")
CSV_DELIMITERS = ",;\t|"
"""What may part the cells of CSV."""
TREC_FIELD_COUNTS = {4: "TREC qrels", 6: "a TREC run"}


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


def open_text_file(path: str | Path, mode: Literal["x", "w", "a"]) -> TextIO:
    r"""Open a text file for writing, UTF-8 with \n; one that is added to holds every line at once.

    Raises:
        OSError: it cannot be written; with "x", it is there already.
    """
    return Path(path).open(
        mode, encoding="utf-8", newline="\n", buffering=1 if mode == "a" else -1
    )


@contextmanager
def explain_write_errors(
    path: Path, taken: str = "name another file"
) -> Iterator[None]:
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
            Problem(
                path.as_posix(), f"cannot be written: {error.strerror}", WRITE_REMEDY
            )
        ) from None


def exclusive_lock(
    path: Path, what: str, remedy: str
) -> AbstractContextManager[object]:
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


def guess_file_kind(line: str) -> str:
    """Return what a file that begins with this line seems to be, with its article; "" where that is not clear.

    >>> guess_file_kind('name = "e"'), guess_file_kind("id;query"), guess_file_kind('{"a": 1}'), guess_file_kind("q 0 d 1"), guess_file_kind("words")
    ('an experiment file (TOML)', 'a table (CSV)', 'JSON', 'TREC qrels', '')
    """  # noqa: E501
    line = line.strip()
    if line.startswith("{"):
        return "JSON"
    if line.startswith("<"):
        return "a web page, or XML"
    if TOML_LINE.match(line):
        return "an experiment file (TOML)"
    if any(delimiter in line for delimiter in CSV_DELIMITERS):
        return "a table (CSV)"
    return TREC_FIELD_COUNTS.get(len(line.split()), "")
