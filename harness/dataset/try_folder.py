"""The folder that `harness try` writes."""

from pathlib import Path

TRY_MARK = "# Written by harness try"
"""Begins the experiment file of such a folder."""
TRY_EXPERIMENTS = ("try.toml", "try-titles.toml")
"""Its experiment of real questions, and that of questions made from titles."""


def is_try_folder(folder: Path) -> bool:
    """Whether a folder holds an experiment that `harness try` wrote."""
    return any(map(_has_mark, (folder / name for name in TRY_EXPERIMENTS)))


def _has_mark(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(TRY_MARK)) == TRY_MARK.encode()
