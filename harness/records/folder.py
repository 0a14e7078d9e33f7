"""A results folder as a place: what is read lies in it, and what is written is made anew in it.

A folder may come from somebody else. A symbolic link in it would read, or overwrite, a file somewhere else; a pipe
would never come to an end; a hard link would be written through to another name of the same file.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TextIO

from retrievers.errors import InputError, Problem

COPY = "copy the files themselves into the folder"


def refuse_links(folder: Path) -> None:
    """Refuse a folder that holds anything but files and folders.

    Raises:
        InputError: naming each link, pipe and device, and each folder that cannot be listed.
    """
    problems: list[Problem] = []

    def unreadable(error: OSError) -> None:
        problems.append(Problem(str(error.filename), f"cannot be listed: {error.strerror}", "see that you may read it"))

    for place, folders, names in os.walk(folder, onerror=unreadable):
        for name in (*folders, *names):
            path = Path(place, name)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                problems.append(Problem(str(path), "is a link, which could lead out of the results", COPY))
            elif not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
                problems.append(Problem(str(path), "is no regular file", "remove it"))
    if problems:
        raise InputError(problems)


def regular(path: Path) -> Path:
    """Return the path of a file that is there and no link.

    Raises:
        OSError: it is not there.
        ValueError: it is a link, a folder, a pipe or a device.
    """
    mode = path.lstat().st_mode
    if not stat.S_ISREG(mode):
        raise ValueError("it is a link" if stat.S_ISLNK(mode) else "it is no regular file")
    return path


def create(path: Path) -> TextIO:
    r"""Open a file for writing UTF-8 with \n, made anew: what had this name is removed, never written through.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    return path.open("x", encoding="utf-8", newline="\n")
