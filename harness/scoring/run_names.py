"""Names that tell files or folders apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from retrievers.errors import InputError, Problem


def unique_labels(folders: Sequence[Path]) -> list[str]:
    """The last part of each path, with as many before it as tell all of them apart.

    >>> unique_labels([Path("/old/quickstart"), Path("/new/quickstart")])
    ['old/quickstart', 'new/quickstart']
    """
    parts = [folder.resolve().parts for folder in folders]
    if len(set(parts)) < len(parts):
        raise InputError(
            Problem(str(folders[0]), "is named twice", "give different folders")
        )
    length = next(
        n
        for n in range(1, 1 + max(map(len, parts)))
        if len({one[-n:] for one in parts}) == len(parts)
    )
    return ["/".join(one[-length:]) for one in parts]


def name_runs(runs: Sequence[str | Path]) -> list[str]:
    """Name runs by their files: the tag of TREC's `input.TAG.gz`, else the name without its suffix.

    Where two would share a name, all keep their suffixes, or as much of their paths as makes them differ.

    >>> name_runs(["input.bm25.gz", "input.dense.v2", "other.run"])
    ['bm25', 'dense.v2', 'other']
    >>> name_runs(["2024/bm25.run", "2025/bm25.run"])
    ['2024/bm25', '2025/bm25']
    >>> name_runs(["bm25.run", "bm25.trec"])
    ['bm25.run', 'bm25.trec']
    """
    paths = [Path(run) for run in runs]
    for above in range(max((len(path.parts) for path in paths), default=0)):
        for named in (_tag, str):
            names = [
                "/".join((*path.parts[-1 - above : -1], named(path.name)))
                for path in paths
            ]
            if len(set(names)) == len(names):
                return names
    return [str(run) for run in runs]


def _tag(file: str) -> str:
    plain = file.removesuffix(".gz")
    return (
        plain.removeprefix("input.") if plain.startswith("input.") else Path(plain).stem
    )
