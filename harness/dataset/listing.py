"""The files of a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

from harness.dataset.columnar import WORKBOOK_SUFFIXES, sheet_names
from harness.dataset.file import (
    COMPRESSION_SUFFIXES,
    UNREADABLE_REMEDY,
    Archive,
    File,
    is_zip,
    refuse_other_archives,
)
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DatasetReference
from harness.dataset.written_values import HALF_CHARACTER
from harness.pages import is_overview
from retrievers.errors import InputError, Problem, did_you_mean


def is_container(path: Path) -> bool:
    """Whether a path is a file that others are in: a zip archive, a workbook of several sheets."""
    if path.suffix.lower() in WORKBOOK_SUFFIXES:
        return path.is_file() and len(sheet_names(path)) > 1
    return is_zip(path)


def list_files(path: Path, problems: ReadProblems | None = None) -> dict[str, File]:
    """The files of a folder or a zip archive by their path in it, without the suffix of a compression, in order.

    Sheets of a workbook are named as they are.

    Hidden files are left out, and so is the one folder that an archive wraps its members in. Members whose names
    lead out of the archive are refused: nothing is ever written, but such an archive is not what it seems.

    Args:
        path: the folder or the archive.
        problems: where what cannot be taken of a folder goes: see `_files_below`.

    Raises:
        InputError: the archive is none, or a name in it leads outside.
    """
    if path.is_file():
        if path.suffix.lower() in WORKBOOK_SUFFIXES:
            return {name: File(path, table=name) for name in sheet_names(path)}
        refuse_other_archives(path)
        archive = Archive(path)
        return _by_name(
            (below, File(path / name, archive, name))
            for below, name in archive.members()
        )
    below = _files_below(path, ReadProblems() if problems is None else problems)
    return _by_name((file.relative_to(path).as_posix(), File(file)) for file in below)


def list_reference(reference: DatasetReference) -> dict[str, File]:
    """The files of a reference that is a folder, or a file that others are in; none of any other."""
    if reference.scheme:
        return {}
    refuse_other_archives(reference.folder)
    return (
        list_files(reference.folder)
        if reference.folder.is_dir() or is_container(reference.folder)
        else {}
    )


def file_named(files: Mapping[str, File], name: str, where: Path) -> File:
    """The file of a listing that has this name, or an InputError with the nearest names.

    `questions.xlsx#Sheet1` is a sheet of a workbook.
    """
    if (file := files.get(_plain(name))) is not None:
        return file
    whole, _, sheet = name.rpartition("#")
    if (file := files.get(_plain(whole))) is not None:
        return replace(file, table=sheet)
    known = list(files) or (
        [file.name for file in where.iterdir()] if where.is_dir() else []
    )
    remedy = (
        did_you_mean(name, known)
        if len(known) <= 50
        else f"one of {len(known):,} files there"
    )
    raise InputError(
        Problem(
            str(where / name),
            "no such file",
            remedy if known else "the folder is empty",
        )
    )


def _files_below(folder: Path, problems: ReadProblems) -> Iterator[Path]:
    """Yield the files below a folder, hidden ones and results of runs left out, in the order of their paths.

    What cannot be taken becomes a problem: a folder that cannot be listed, a name that is not UTF-8, a link that
    leads out of the folder, a pipe or a device.
    """
    root, paths = folder.resolve(), list[Path]()
    wrong = problems.add
    for place, folders, names in os.walk(
        folder,
        onerror=lambda error: wrong(
            error.filename, f"cannot be listed: {error.strerror}", UNREADABLE_REMEDY
        ),
    ):
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and not is_run_folder(Path(place, name))
        ]
        linked = [name for name in folders if Path(place, name).is_symlink()]
        paths += [
            Path(place, name)
            for name in (*names, *linked)
            if not _is_ours(Path(place, name))
        ]
    for path in sorted(paths):
        if HALF_CHARACTER.search(str(path)):
            wrong(ascii(str(path)), "its name is not UTF-8", "rename it")
        elif path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(
            root
        ):
            wrong(
                path,
                "is a link that leads out of the data set",
                "copy what it points to",
            )
        else:
            yield path


def is_run_folder(folder: Path) -> bool:
    """Whether a run wrote this folder: results are never read as documents."""
    if not (folder / "qrels.trec").is_file():
        return False
    return ".unfinished" in folder.name or (folder / "manifest.json").is_file()


def _is_ours(path: Path) -> bool:
    """Whether a file is hidden, or the page that runs write beside their results."""
    return path.name.startswith(".") or (
        path.name == "index.html" and is_overview(path)
    )


def _by_name(found: Iterable[tuple[str, File]]) -> dict[str, File]:
    """Files by their names; where two have the same one the first is kept, which knows of the other."""
    files: dict[str, File] = {}
    for path, file in found:
        name = _plain(path)
        files[name] = (
            replace(files[name], same_named_file=file.path.name)
            if name in files
            else file
        )
    return files


def _plain(name: str) -> str:
    """A name without the suffix of a compression."""
    pure = PurePosixPath(name)
    return (
        pure.with_suffix("").as_posix()
        if pure.suffix.lower() in COMPRESSION_SUFFIXES
        else pure.as_posix()
    )
