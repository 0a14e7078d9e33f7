"""Files as readers see them: in a folder or a zip archive, plain or compressed; and Parquet, Arrow and sheets."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import io
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from harness.dataset.dataset_model import DatasetReference
from harness.dataset.source import HALF, Findings, Source, SourceLocation, named_twice
from harness.pages import is_overview
from retrievers.errors import InputError, Problem, did_you_mean, needing

if TYPE_CHECKING:
    import pyarrow as pa

COMPRESSED = (".gz", ".zst", ".bz2", ".xz")
"""Suffixes that may follow a file's own."""
OTHER_ARCHIVES = (
    ".tgz",
    ".tbz2",
    ".txz",
    ".7z",
    ".rar",
    *(f".tar{suffix}" for suffix in ("", *COMPRESSED)),
)
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
        raise InputError(
            Problem(
                str(path),
                "is an archive of a kind that is not read: only zip is",
                remedy,
            )
        )


class Archive:
    """A zip archive whose list of members is read once, however many of them are opened."""

    def __init__(self, path: Path) -> None:
        """Read the list of members.

        Raises:
            InputError: it is not an archive, or a name in it leads outside.
        """
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise InputError(
                Problem(
                    str(path), f"is not a zip archive that can be read: {error}", AGAIN
                )
            ) from None
        self._names = [
            info.filename for info in self._zip.infolist() if not info.is_dir()
        ]
        for name in self._names:
            pure = PurePosixPath(name.replace("\\", "/"))
            if (
                not pure.parts
                or pure.is_absolute()
                or ".." in pure.parts
                or ":" in pure.parts[0]
            ):
                raise InputError(
                    Problem(f"{path}/{name}", "leads out of the archive", TRUST)
                )

    def members(self) -> Iterator[tuple[str, str]]:
        """The members in the order of their names: the path below the archive's top, and the whole name.

        Hidden ones are left out, and the one folder that an archive wraps its members in is its top.
        """
        shown = sorted(
            name for name in self._names if not re.search(r"^__MACOSX/|(^|/)\.", name)
        )
        tops = {PurePosixPath(name).parts[0] for name in shown}
        wrapped = len(tops) == 1 and all("/" in name for name in shown)
        return ((name.partition("/")[2] if wrapped else name, name) for name in shown)

    def open(self, name: str) -> IO[bytes]:
        """Open one member, which may be a compressed file itself."""
        return self._zip.open(name)


def unpacked(raw: IO[bytes], path: Path) -> IO[bytes]:
    """Return what a stream holds, unpacked where the suffix of its name says that it is compressed."""
    suffix = path.suffix.lower()
    if suffix == ".zst":
        return io.BufferedReader(_zstd(raw, path))
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(suffix)
    return opener(raw) if opener else raw


def _zstd(raw: IO[bytes], path: Path) -> Any:
    with needing(str(path), "zstandard", "formats"):
        import zstandard
    return zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)


READABLE = "see that it is there and whole, and that you may read it"
UNREADABLE = (
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    RuntimeError,
)


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
            raise InputError(
                Problem(
                    str(self.path),
                    what,
                    "keep one of them, since both have the same name",
                )
            )
        try:
            with (
                self.archive.open(self.member)
                if self.archive
                else self.path.open("rb") as raw
            ):
                yield unpacked(raw, self.path)
        except Exception as error:
            # ZstdError is of a package that may not be there; RuntimeError is all that zipfile says of a password.
            if (
                not isinstance(error, UNREADABLE)
                and type(error).__name__ != "ZstdError"
            ):
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
    """A format: whether a reference is one, by its files, and how it is opened."""

    matches: Callable[[DatasetReference, Files], bool]
    read: Callable[[DatasetReference, Files], Source]


def straight(path: Path) -> Path:
    """A path without `..`, where that leads to the same place: it does not behind a link."""
    without = Path(os.path.normpath(path))
    return without if without.resolve() == path.resolve() else path


def holds_files(path: Path) -> bool:
    """Whether a path is a file that others are in: a zip archive, a workbook of several sheets."""
    if path.suffix.lower() in SUFFIXES:
        return path.is_file() and len(sheets_on_disk(path)) > 1
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
        if path.suffix.lower() in SUFFIXES:
            return {name: File(path, table=name) for name in sheets_on_disk(path)}
        refuse_other_archives(path)
        archive = Archive(path)
        return _by_name(
            (below, File(path / name, archive, name))
            for below, name in archive.members()
        )
    below = _files_below(path, Findings() if problems is None else problems)
    return _by_name((file.relative_to(path).as_posix(), File(file)) for file in below)


def listing_of(reference: DatasetReference) -> dict[str, File]:
    """The files of a reference that is a folder, or a file that others are in; none of any other."""
    if reference.scheme:
        return {}
    refuse_other_archives(reference.folder)
    return (
        listing(reference.folder)
        if reference.folder.is_dir() or holds_files(reference.folder)
        else {}
    )


def pick(files: Mapping[str, File], name: str, where: Path) -> File:
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


def _files_below(folder: Path, problems: Findings) -> Iterator[Path]:
    """Yield the files below a folder, hidden ones and results of runs left out, in the order of their paths.

    What cannot be taken becomes a problem: a folder that cannot be listed, a name that is not UTF-8, a link that
    leads out of the folder, a pipe or a device.
    """
    root, paths = folder.resolve(), list[Path]()
    wrong = problems.wrong
    for place, folders, names in os.walk(
        folder,
        onerror=lambda error: wrong(
            error.filename, f"cannot be listed: {error.strerror}", READABLE
        ),
    ):
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and not is_results(Path(place, name))
        ]
        linked = [name for name in folders if Path(place, name).is_symlink()]
        paths += [
            Path(place, name)
            for name in (*names, *linked)
            if not _is_ours(Path(place, name))
        ]
    for path in sorted(paths):
        if HALF.search(str(path)):
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


def is_results(folder: Path) -> bool:
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
            replace(files[name], twin=file.path.name) if name in files else file
        )
    return files


def _plain(name: str) -> str:
    """A name without the suffix of a compression."""
    pure = PurePosixPath(name)
    return (
        pure.with_suffix("").as_posix()
        if pure.suffix.lower() in COMPRESSED
        else pure.as_posix()
    )


SUFFIXES = (".xlsx", ".xlsm", ".xls", ".ods")
"""Of workbooks."""
AT_ONCE = 4096
"""Rows that are read at once, at most."""


def sheets_on_disk(path: Path) -> tuple[str, ...]:
    """The names of the sheets of a workbook that hold anything.

    Raises:
        InputError: it is not a workbook, or cannot be read.
    """
    return _named(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=16)
def _named(path: Path, _: int) -> tuple[str, ...]:
    return tuple(sheets(path.read_bytes(), path))


def sheets(raw: bytes, path: Path) -> dict[str, list[list[str]]]:
    """The cells of every sheet that holds anything, by its name.

    Raises:
        InputError: it is not a workbook.
    """
    with needing(str(path), "python-calamine", "formats"):
        import python_calamine as calamine
    try:
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(raw))
        read = {
            name: book.get_sheet_by_name(name).to_python(skip_empty_area=False)
            for name in book.sheet_names
        }
    except (
        Exception
    ) as error:  # calamine has an error of its own for each kind of workbook
        what = (
            f"is not a workbook that can be read: {' '.join(str(error).split())[:120]}"
        )
        raise InputError(
            Problem(str(path), what, "save it again, or each sheet as CSV")
        ) from None
    cells = {
        name: [list(map(_text, row)) for row in rows] for name, rows in read.items()
    }
    return {name: rows for name, rows in cells.items() if any(map(any, rows))}


def _text(cell: object) -> str:
    """A cell as text.

    >>> _text(2.0), _text(0.5), _text("a "), _text(True), _text(dt.date(2026, 1, 2))
    ('2', '0.5', 'a', 'true', '2026-01-02')
    """
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return (
        cell.isoformat() if isinstance(cell, dt.date | dt.time) else str(cell).strip()
    )


COLUMNAR = (".parquet", ".arrow", ".feather")
"""Of files that Apache Arrow reads: Parquet, and Arrow itself, as `datasets` saves to disk."""


def columnar_rows(
    path: Path, kind: str, raw: bytes | None, problems: Findings
) -> Iterator[tuple[SourceLocation, Mapping[str, Any]]]:
    """Stream the rows of a file, each with its number from 1.

    Args:
        path: the file.
        kind: "Parquet" or "Arrow".
        raw: what it holds, where it is packed.
        problems: takes what cannot be read.
    """
    with needing(str(path), "pyarrow", "formats"):
        import pyarrow as pa
    try:
        with (
            pa.memory_map(str(path)) if raw is None else pa.BufferReader(raw) as source
        ):
            names, batches = _batches(source, kind)
            if named_twice(names, str(path), problems):
                return
            for number, row in enumerate(
                (row for batch in batches for row in batch.to_pylist()), 1
            ):
                yield SourceLocation(path, number), row
    except (
        pa.ArrowException,
        OSError,
        OverflowError,
        ValueError,
    ) as error:  # ValueError: of text, dates, and names
        what = f"cannot be read as {kind}: {next(iter(str(error).splitlines()), '')}"
        problems.append(
            Problem(
                str(path),
                what,
                "write it again, with strings as UTF-8, and dates and times as text",
            )
        )


def _batches(source: Any, kind: str) -> tuple[list[str], Iterable[pa.RecordBatch]]:
    """The columns and the rows of Parquet, of a stream of Arrow as `datasets` writes it, or of a file of Arrow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if kind == "Parquet":
        parquet = pq.ParquetFile(source)
        return parquet.schema_arrow.names, parquet.iter_batches(AT_ONCE)
    is_file = source.read(6) == b"ARROW1"  # as Feather is
    source.seek(0)
    table = (
        pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
    ).read_all()
    table.validate(
        full=True
    )  # which nothing else does: places outside of the file could be read
    return table.column_names, table.to_batches(AT_ONCE)
