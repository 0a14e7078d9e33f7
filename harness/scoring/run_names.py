"""Names that distinguish files or folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from retrievers.errors import InputError, Problem


def unique_folder_names(folders: Sequence[Path]) -> list[str]:
    """Return the last part of each path.

    It is preceded by as many folders as needed to make all different.

    Raises:
        InputError: a folder is given twice, under one name or two.

    >>> unique_folder_names([Path("/old/quickstart"), Path("/new/quickstart")])
    ['old/quickstart', 'new/quickstart']
    """
    parts = [folder.resolve().parts for folder in folders]
    for folder, path_parts in zip(folders, parts, strict=True):
        if parts.count(path_parts) > 1:
            remedy = "give different folders"
            raise InputError(Problem(str(folder), "is named twice", remedy))
    length = 1
    while len({path_parts[-length:] for path_parts in parts}) < len(parts):
        length += 1
    return [str(Path(*path_parts[-length:])) for path_parts in parts]


def name_runs(runs: Sequence[str | Path]) -> list[str]:
    """Name runs by their files: TREC's tag, else the name without its suffix.

    TREC's files are called `input.TAG.gz`. If two runs would share a name, all keep
    their suffixes; if that is not enough, folders precede the names.

    >>> name_runs(["input.bm25.gz", "input.dense.v2", "other.run"])
    ['bm25', 'dense.v2', 'other']
    >>> name_runs(["2024/bm25.run", "2025/bm25.run"])
    ['2024/bm25', '2025/bm25']
    >>> name_runs(["bm25.run", "bm25.trec"])
    ['bm25.run', 'bm25.trec']
    """
    paths = [Path(run) for run in runs]
    deepest = max((len(path.parts) for path in paths), default=0)
    for folders in range(deepest):
        parents = [path.parts[-1 - folders : -1] for path in paths]
        for file_names in (
            [_run_tag(path.name) for path in paths],
            [path.name for path in paths],
        ):
            names = [
                "/".join((*folder_names, file_name))
                for folder_names, file_name in zip(parents, file_names, strict=True)
            ]
            if len(set(names)) == len(names):
                return names
    return [str(run) for run in runs]


def _run_tag(file_name: str) -> str:
    plain_name = file_name.removesuffix(".gz")
    if plain_name.startswith("input."):
        return plain_name.removeprefix("input.")
    return Path(plain_name).stem
