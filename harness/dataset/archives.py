"""Zip archives as a list of names: what is in them is read where it lies, and names that would deceive are refused."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from harness.dataset.unpacking import COMPRESSED
from retrievers.errors import InputError, Problem

OTHER_ARCHIVES = (".tgz", ".tbz2", ".txz", ".7z", ".rar", *(f".tar{suffix}" for suffix in ("", *COMPRESSED)))
"""Suffixes of archives that no reader opens."""
AGAIN = "fetch or make it again"
TRUST = "do not trust this archive: unpack it where it can do no harm, and look at it"


def is_zip(path: Path) -> bool:
    """Whether a path is a zip archive, by its first bytes."""
    return path.is_file() and zipfile.is_zipfile(path)


def refuse_other_archives(path: Path) -> None:
    """Raise InputError for an archive of another kind: a tar has no list of its members and no way to one of them."""
    if "".join(path.suffixes[-2:]).lower().endswith(OTHER_ARCHIVES):
        remedy = "unpack it and name the folder, or pack the folder as a zip"
        raise InputError(Problem(str(path), "is an archive of a kind that is not read: only zip is", remedy))


def members(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the members of a zip archive, in the order of their names: the path below its top, and the whole name.

    Hidden ones are left out, and the one folder that an archive wraps its members in is its top.

    Raises:
        InputError: it is no archive, or a name in it leads outside, or names nothing.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = [info.filename for info in archive.infolist() if not info.is_dir()]
    except UnicodeDecodeError:
        what = "has a member whose name is said to be UTF-8 and is not"
        raise InputError(Problem(str(path), what, AGAIN)) from None
    except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise InputError(Problem(str(path), f"is no zip archive that can be read: {error}", AGAIN)) from None
    for name in names:
        pure = PurePosixPath(name.replace("\\", "/"))
        if not pure.parts:
            raise InputError(Problem(str(path), f"has a member called {name!r}, which names no file", TRUST))
        if pure.is_absolute() or ".." in pure.parts or ":" in pure.parts[0]:
            raise InputError(Problem(f"{path}/{name}", "leads out of the archive", TRUST))
    shown = sorted(name for name in names if not _hidden(name) and not name.startswith("__MACOSX/"))
    tops = {PurePosixPath(name).parts[0] for name in shown}
    wrapped = len(tops) == 1 and all("/" in name for name in shown)
    return ((name.partition("/")[2] if wrapped else name, name) for name in shown)


def _hidden(name: str) -> bool:
    return any(part.startswith(".") for part in PurePosixPath(name).parts)
