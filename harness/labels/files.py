"""Files of judgments while they grow: appended to line by line, and read to know where judging goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from harness.dataset.judgments import Judgment, read_judgments
from harness.labels.pool import Pool
from retrievers.errors import InputError, Problem


def judged_before(path: Path, pool: Pool, judge: str) -> dict[tuple[str, str, int], Judgment]:
    """Read what a judge has said about a pool: (query id, document id, round) -> judgment; empty without a file.

    Raises:
        InputError: a line cannot be read, or judges another pool.
    """
    if not path.exists():
        return {}
    judgments = read_judgments([path])
    if foreign := next((one for one in judgments if one.pool != pool.digest), None):
        what = f"holds judgments of pool {foreign.pool}, and this is pool {pool.digest}"
        raise InputError(Problem(str(path), what, "give each pool a file of its own: --output FILE"))
    return {(*one.key, one.round): one for one in judgments if one.judge == judge}


@contextmanager
def appending(path: Path) -> Iterator[TextIO]:
    """Open a file of judgments at its end; each line reaches the disk as it is written.

    Raises:
        InputError: it cannot be written to.
    """
    try:
        file = path.open("a", encoding="utf-8", newline="\n", buffering=1)
    except OSError as error:
        raise InputError(Problem(str(path), f"cannot be written: {error.strerror}")) from None
    with file:
        yield file


def check_new(path: Path) -> None:
    """Look whether a file can be written before anything is asked and paid for.

    Raises:
        InputError: it is there already, or its folder is not there or cannot be written to.
    """
    if path.exists() or path.is_symlink():
        raise InputError(is_there(path))
    if not path.parent.is_dir():
        raise InputError(Problem(str(path), "cannot be written: there is no such folder", f"make {path.parent}"))
    if not os.access(path.parent, os.W_OK):
        raise InputError(Problem(str(path), "cannot be written: its folder takes no files", "name another --output"))


def is_there(path: Path) -> Problem:
    """What is wrong where a file would be written over."""
    return Problem(str(path), "is there already", "name another file")
