"""The files of a folder, an archive or a workbook.

Names have no suffix of a compression, so that a reader finds `corpus.jsonl` packed or
plain. What a run or `harness try` wrote is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
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
from harness.dataset.ignored_files import IgnoredFiles
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DatasetReference
from harness.dataset.try_folder import is_try_folder
from harness.dataset.written_values import HALF_CHARACTER
from harness.pages import is_overview
from retrievers.errors import InputError, Problem, did_you_mean

MAX_COMPARED_FILE_NAMES = 50
"""Files, at most, whose names a remedy compares with a wrong one."""


def is_container(path: Path) -> bool:
    """Whether a file holds other files: a zip archive, a workbook of several sheets."""
    if path.suffix.lower() in WORKBOOK_SUFFIXES:
        return path.is_file() and len(sheet_names(path)) > 1
    return is_zip(path)


def list_files(
    path: Path, problems: ReadProblems | None = None, *, gitignore: bool = False
) -> dict[str, File]:
    """Return the files of a folder, a zip archive or a workbook by their paths in it.

    The paths are in order (sheets in that of the workbook), without the suffix of a
    compression. Hidden files are skipped. If all members of an archive are in one
    folder, paths begin below it.

    Args:
        path: the folder, the archive or the workbook.
        problems: takes the problems of a folder: see `_files_below`. Without it they
            are ignored: the reader that lists the folder again reports them.
        gitignore: skip what `.gitignore` names in a folder, and say what is skipped.

    Raises:
        InputError: it is a file that is no archive or workbook that can be read, or a
            name in it leads outside. Nothing is ever written, but such an archive is
            not to be trusted.
    """
    if not path.is_file():
        problems = ReadProblems() if problems is None else problems
        listed = _NamedFiles()
        skipped = _SkippedFiles(path, problems, gitignore)
        for file_path in _files_below(path, problems, skipped):
            listed.add(file_path.relative_to(path).as_posix(), File(file_path))
        return listed.files
    if path.suffix.lower() in WORKBOOK_SUFFIXES:
        return {sheet: File(path, table=sheet) for sheet in sheet_names(path)}
    refuse_other_archives(path)
    archive = Archive(path)
    listed = _NamedFiles()
    for member in archive.members():
        file = File(path / member.full_name, archive, member.full_name)
        listed.add(member.path, file)
    return listed.files


class _NamedFiles:
    """Files by their names without the suffix of a compression."""

    def __init__(self) -> None:
        self.files: dict[str, File] = {}

    def add(self, path: str, file: File) -> None:
        """Add a file; if its name is used, the first file notes that there are two."""
        name = listing_name(path)
        first = self.files.get(name)
        if first is None:
            self.files[name] = file
        else:
            self.files[name] = replace(first, same_named_file=file.path.name)


def list_reference(reference: DatasetReference) -> dict[str, File]:
    """Return the files of a reference that is a folder or holds files; else none.

    Raises:
        InputError: it is an archive that cannot be read, or is not safe.
    """
    if reference.scheme:
        return {}
    if reference.folder.is_dir() or is_container(reference.folder):
        return list_files(reference.folder)
    refuse_other_archives(reference.folder)
    return {}


def file_named(files: Mapping[str, File], name: str, folder: Path) -> File:
    """Return the file of a listing that has this name.

    `questions.xlsx#Sheet1` is a sheet of a workbook.

    Raises:
        InputError: no file has the name; the remedy has the nearest names.
    """
    file = files.get(listing_name(name))
    if file is not None:
        return file
    workbook_name, _, sheet = name.rpartition("#")
    workbook = files.get(listing_name(workbook_name))
    if workbook is not None:
        return replace(workbook, table=sheet)
    raise InputError(_missing_file(files, name, folder))


def _missing_file(files: Mapping[str, File], name: str, folder: Path) -> Problem:
    file_names = list(files)
    if not file_names and folder.is_dir():
        file_names = [path.name for path in folder.iterdir()]
    if not file_names:
        remedy = "the folder is empty"
    elif len(file_names) <= MAX_COMPARED_FILE_NAMES:
        remedy = did_you_mean(name, file_names)
    else:
        remedy = f"one of {len(file_names):,} files there"
    return Problem(str(folder / name), "no such file", remedy)


class _SkippedFiles:
    """The files and folders that a listing leaves out."""

    def __init__(self, root: Path, problems: ReadProblems, gitignore: bool) -> None:
        self._root = root
        self._real_root = root.resolve()
        self._problems = problems
        self._ignored = IgnoredFiles(self._real_root) if gitignore else None

    def skips(self, path: Path, *, is_folder: bool) -> bool:
        """Whether a path is left out; noted if `.gitignore` counts."""
        if _is_hidden(path):
            self._note("hidden-file", path, is_folder=is_folder)
            return True
        if is_folder and not _is_data_folder(path):
            return True
        if not is_folder and _is_overview_page(path):
            return True
        if self._ignored is None:
            return False
        inner = self._real_root / path.relative_to(self._root)
        if self._ignored.is_ignored(inner, is_folder=is_folder):
            self._note("ignored-file", path, is_folder=is_folder)
            return True
        return False

    def _note(self, kind: str, path: Path, *, is_folder: bool) -> None:
        if self._ignored is not None:
            name = path.relative_to(self._root).as_posix()
            self._problems.note(kind, f"{name}/" if is_folder else name)


def _files_below(
    folder: Path, problems: ReadProblems, skipped: _SkippedFiles
) -> Iterator[Path]:
    """Yield the files below a folder in the order of their paths.

    Hidden files, results of runs and folders of `harness try` are skipped. These become
    a problem: a folder that cannot be listed, a name that is not UTF-8, a link that
    leads out of the folder.
    """
    root = folder.resolve()
    for path in sorted(_walk(folder, problems, skipped)):
        if HALF_CHARACTER.search(str(path)):
            problems.add(ascii(str(path)), "its name is not UTF-8", "rename it")
        elif path.is_symlink() and not _is_below(path, root):
            problem = "is a link that leads out of the data set"
            problems.add(path, problem, "copy what it points to")
        else:
            yield path


def _walk(
    folder: Path, problems: ReadProblems, skipped: _SkippedFiles
) -> Iterator[Path]:
    """Yield the files and the links to folders below a folder, in no order."""

    def add_unlisted(error: OSError) -> None:
        problem = f"cannot be listed: {error.strerror}"
        problems.add(error.filename, problem, UNREADABLE_REMEDY)

    for parent, folder_names, file_names in os.walk(folder, onerror=add_unlisted):
        folder_names[:] = [
            name
            for name in sorted(folder_names)
            if not skipped.skips(Path(parent, name), is_folder=True)
        ]
        linked_folders = [
            name for name in folder_names if Path(parent, name).is_symlink()
        ]
        for name in (*file_names, *linked_folders):
            path = Path(parent, name)
            if name in linked_folders or not skipped.skips(path, is_folder=False):
                yield path


def _is_hidden(path: Path) -> bool:
    """Whether a path is hidden, or is the lock of a file that is open in Office."""
    return path.name.startswith((".", "~$"))


def _is_data_folder(folder: Path) -> bool:
    """Whether a folder was written neither by a run nor by `harness try`."""
    try:
        return not is_run_folder(folder) and not is_try_folder(folder)
    except PermissionError:
        return True  # that it cannot be read is reported where it is listed


def _is_below(path: Path, root: Path) -> bool:
    """Whether a link leads to a file below a folder."""
    return Path(os.path.realpath(path)).is_relative_to(root)


def is_run_folder(folder: Path) -> bool:
    """Whether a run wrote this folder: results are never read as documents."""
    if not (folder / "qrels.trec").is_file():
        return False
    return ".unfinished" in folder.name or (folder / "manifest.json").is_file()


def _is_overview_page(path: Path) -> bool:
    """Whether a file is the overview page that runs write."""
    return path.name == "index.html" and is_overview(path)


def listing_name(name: str) -> str:
    """Return a name as a listing has it: without `./`, and the suffix of a compression.

    >>> listing_name("./docs.csv.gz")
    'docs.csv'
    """
    path = PurePosixPath(name)
    if path.suffix.lower() in COMPRESSION_SUFFIXES:
        path = path.with_suffix("")
    return path.as_posix()
