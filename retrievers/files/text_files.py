"""Files: writing, locks, digests, likely kinds."""

import hashlib
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Literal, TextIO

from retrievers.errors import InputError, Problem
from retrievers.remedy import Remedy

WRITE_REMEDY = "free disk space, or choose a folder that you may write to"
TOML_LINE = re.compile(r"#|\[\[?[\w.-]+\]\]?\s*$|[\w-]{1,64}\s*=")
"""The start of a line of TOML: a comment, a table's heading, or a key."""
CSV_DELIMITERS = ",;\t|"
"""Characters that may separate the cells of CSV."""
TREC_FIELD_COUNTS = {4: "TREC qrels", 6: "a TREC run"}
"""How many words a line has -> the kind of TREC file with such lines."""


def user_path(path: str) -> Path:
    """Return a path with `~` replaced by a home folder; that of no user stays.

    >>> user_path("~nobody-of-that-name/a").as_posix()
    '~nobody-of-that-name/a'
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def is_folder(path: Path) -> bool:
    """Return whether there is a folder that can be reached.

    >>> is_folder(Path(".")), is_folder(Path("a" * 300))
    (True, False)
    """
    try:
        return path.is_dir()
    except OSError:  # the name is too long, or a folder above it may not be read
        return False


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, as 64 hex digits.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def open_text_file(path: str | Path, mode: Literal["x", "w", "a"]) -> TextIO:
    r"""Open a text file for writing, UTF-8 with \n.

    In mode "a" every line is written at once.

    Raises:
        OSError: it cannot be written; with "x", it exists.
    """
    line_buffered = 1
    default_buffering = -1
    buffering = line_buffered if mode == "a" else default_buffering
    return Path(path).open(mode, encoding="utf-8", newline="\n", buffering=buffering)


@contextmanager
def explain_write_errors(
    path: Path, exists_remedy: str = "name another file"
) -> Iterator[None]:
    """Write a file inside.

    Args:
        path: the file.
        exists_remedy: what to do if it exists.

    Raises:
        InputError: it exists, and should be new; or it cannot be written.
    """
    try:
        yield
    except FileExistsError:
        raise InputError(
            Problem(path.as_posix(), "is there already", exists_remedy)
        ) from None
    except OSError as error:
        problem = f"cannot be written: {error.strerror}"
        raise InputError(Problem(path.as_posix(), problem, WRITE_REMEDY)) from None


def exclusive_lock(
    path: Path, problem: str, remedy: Remedy | str
) -> AbstractContextManager[object]:
    """Lock a file or a folder for this process, until the returned context ends.

    The lock is a file in the same folder.

    Raises:
        InputError: it is locked already, by whatever process; the message has this
            problem and remedy.
        OSError: the lock cannot be created.
    """
    from filelock import FileLock, Timeout

    lock_path = path.parent / f".{path.name}.lock"
    try:
        return FileLock(lock_path).acquire(timeout=0)
    except Timeout:
        raise InputError(Problem(str(path), problem, remedy)) from None


def guess_file_kind(line: str) -> str:
    """Return the likely kind of a file that begins with this line, with its article.

    Empty if the kind is unclear.

    >>> guess_file_kind('name = "e"'), guess_file_kind("id;query")
    ('an experiment file (TOML)', 'a table (CSV)')
    >>> guess_file_kind('{"a": 1}'), guess_file_kind("q 0 d 1")
    ('JSON', 'TREC qrels')
    >>> guess_file_kind("words")
    ''
    """
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
