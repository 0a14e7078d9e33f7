"""The folder that `harness try` writes."""

from pathlib import Path

TRY_MARK = "# Written by harness try"
"""Begins a line at the top of the experiment file of such a folder."""
MAX_MARK_BYTES = 200
"""Bytes that are read of a line to look for the mark."""
TRY_EXPERIMENTS = ("try.toml", "try-titles.toml")
"""The experiments of real questions, and of questions made from titles."""


def is_try_folder(folder: Path) -> bool:
    """Whether a folder holds an experiment that `harness try` wrote."""
    return any(map(_has_mark, (folder / name for name in TRY_EXPERIMENTS)))


def _has_mark(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        first_lines = [file.readline(MAX_MARK_BYTES) for _ in range(2)]
    return any(line.startswith(TRY_MARK.encode()) for line in first_lines)
