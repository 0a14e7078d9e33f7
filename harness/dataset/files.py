"""Files as readers see them: in a folder or a zip archive, plain or compressed, never unpacked to disk."""

import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from harness.dataset import held_tables
from harness.dataset.archives import COMPRESSED, Archive, is_zip, refuse_other_archives, unpacked
from harness.dataset.dataset_model import DatasetReference
from harness.dataset.source import HALF, Findings, Source
from harness.pages import is_overview
from retrievers.errors import InputError, Problem, did_you_mean

READABLE = "see that it is there and whole, and that you may read it"
UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError)


@dataclass(frozen=True, slots=True)
class File:
    """One file on disk, one member of a zip archive, or one sheet of a workbook."""

    path: Path
    """As it is named in messages: for a member the archive's path and its own."""
    archive: Archive | None = None
    member: str = ""
    twin: str = ""
    """Another file that has the same name: one that is compressed, or one more of an archive."""
    table: str = ""
    """The sheet of a workbook."""
    header: tuple[str, ...] | None = None
    """What the columns of a table without a header are called, "" at the end for any more, which have numbers; None
    where its first row says it."""

    @property
    def name(self) -> str:
        """The file's own name, without the suffix of a compression."""
        suffix = self.path.suffix.lower()
        return self.path.stem if suffix in COMPRESSED else self.path.name

    @property
    def suffix(self) -> str:
        """The suffix that tells what is in it, in lower case: `.jsonl` for `corpus.jsonl.gz`."""
        return PurePosixPath(self.name).suffix.lower()

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the file for reading, unpacked.

        Raises:
            InputError: it cannot be read, is damaged, or has a twin: which of them is meant is unknown.
        """
        if self.twin:
            what = f"{self.twin} is there as well"
            raise InputError(Problem(str(self.path), what, "keep one of them, since both have the same name"))
        try:
            with self.archive.open(self.member) if self.archive else self.path.open("rb") as raw:
                yield unpacked(raw, self.path)
        except Exception as error:
            # ZstdError is of a package that may not be there; RuntimeError is all that zipfile says of a password.
            if not isinstance(error, UNREADABLE) and type(error).__name__ != "ZstdError":
                raise
            what = f"cannot be read: {getattr(error, 'strerror', '') or error}"
            raise InputError(Problem(str(self.path), what, READABLE)) from None

    def read(self) -> bytes:
        """The whole of it."""
        with self.open() as handle:
            return handle.read()


Files = Mapping[str, File]
"""What is in a folder, an archive or a workbook, by name: see `listing`."""


class Reader(NamedTuple):
    """A format: whether a reference is one, by the files that lie there, and how it is opened."""

    matches: Callable[[DatasetReference, Files], bool]
    read: Callable[[DatasetReference, Files], Source]


def straight(path: Path) -> Path:
    """A path without `..`, where that leads to the same place: it does not behind a link."""
    without = Path(os.path.normpath(path))
    return without if without.resolve() == path.resolve() else path


def holds_files(path: Path) -> bool:
    """Whether a path is a file that others are in: a zip archive, a workbook of several sheets."""
    if path.suffix.lower() in held_tables.SUFFIXES:
        return path.is_file() and len(held_tables.sheets_on_disk(path)) > 1
    return is_zip(path)


def listing(path: Path, problems: Findings | None = None) -> dict[str, File]:
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
        if path.suffix.lower() in held_tables.SUFFIXES:
            return {name: File(path, table=name) for name in held_tables.sheets_on_disk(path)}
        refuse_other_archives(path)
        archive = Archive(path)
        return _by_name((below, File(path / name, archive, name)) for below, name in archive.members())
    below = _files_below(path, Findings() if problems is None else problems)
    return _by_name((file.relative_to(path).as_posix(), File(file)) for file in below)


def listing_of(reference: DatasetReference) -> dict[str, File]:
    """The files of a reference that is a folder, or a file that others are in; none of any other."""
    if reference.scheme:
        return {}
    refuse_other_archives(reference.folder)
    return listing(reference.folder) if reference.folder.is_dir() or holds_files(reference.folder) else {}


def pick(files: Mapping[str, File], name: str, where: Path) -> File:
    """The file of a listing that has this name, or an InputError with the nearest names.

    `questions.xlsx#Sheet1` is a sheet of a workbook.
    """
    if (file := files.get(_plain(name))) is not None:
        return file
    whole, _, sheet = name.rpartition("#")
    if (file := files.get(_plain(whole))) is not None:
        return replace(file, table=sheet)
    known = list(files) or ([file.name for file in where.iterdir()] if where.is_dir() else [])
    remedy = did_you_mean(name, known) if len(known) <= 50 else f"one of {len(known):,} files there"
    raise InputError(Problem(str(where / name), "no such file", remedy if known else "the folder is empty"))


def _files_below(folder: Path, problems: Findings) -> Iterator[Path]:
    """Yield the files below a folder, hidden ones and results of runs left out, in the order of their paths.

    What cannot be taken becomes a problem: a folder that cannot be listed, a name that is not UTF-8, a link that
    leads out of the folder, a pipe or a device.
    """
    root, paths = folder.resolve(), list[Path]()
    wrong = problems.wrong
    for place, folders, names in os.walk(
        folder, onerror=lambda error: wrong(error.filename, f"cannot be listed: {error.strerror}", READABLE)
    ):
        folders[:] = [name for name in folders if not name.startswith(".") and not is_results(Path(place, name))]
        linked = [name for name in folders if Path(place, name).is_symlink()]
        paths += [Path(place, name) for name in (*names, *linked) if not _is_ours(Path(place, name))]
    for path in sorted(paths):
        if HALF.search(str(path)):
            wrong(ascii(str(path)), "its name is not UTF-8", "rename it")
        elif path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
            wrong(path, "is a link that leads out of the data set", "copy what it points to")
        else:
            yield path


def is_results(folder: Path) -> bool:
    """Whether a run wrote this folder: results are never read as documents, wherever they lie."""
    if not (folder / "qrels.trec").is_file():
        return False
    return ".unfinished" in folder.name or (folder / "manifest.json").is_file()


def _is_ours(path: Path) -> bool:
    """Whether a file is hidden, or the page that runs write beside their results."""
    return path.name.startswith(".") or (path.name == "index.html" and is_overview(path))


def _by_name(found: Iterable[tuple[str, File]]) -> dict[str, File]:
    """Files by their names; where two have the same one the first is kept, which knows of the other."""
    files: dict[str, File] = {}
    for path, file in found:
        name = _plain(path)
        files[name] = replace(files[name], twin=file.path.name) if name in files else file
    return files


def _plain(name: str) -> str:
    """A name without the suffix of a compression."""
    pure = PurePosixPath(name)
    return pure.with_suffix("").as_posix() if pure.suffix.lower() in COMPRESSED else pure.as_posix()
