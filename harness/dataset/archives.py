"""Zip archives and compressed files, read where they lie: names that lead out of an archive are refused.

The standard library reads them. fsspec's file system for zip archives was looked at: it gives the same streams, but
lists a name once that an archive has twice, and this would hide which of the two is meant.
"""

import bz2
import gzip
import io
import lzma
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from retrievers.errors import InputError, Problem, needing

COMPRESSED = (".gz", ".zst", ".bz2", ".xz")
"""Suffixes that may stand behind a file's own."""
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
            raise InputError(Problem(str(path), f"is not a zip archive that can be read: {error}", AGAIN)) from None
        self._names = [info.filename for info in self._zip.infolist() if not info.is_dir()]
        for name in self._names:
            pure = PurePosixPath(name.replace("\\", "/"))
            if not pure.parts or pure.is_absolute() or ".." in pure.parts or ":" in pure.parts[0]:
                raise InputError(Problem(f"{path}/{name}", "leads out of the archive", TRUST))

    def members(self) -> Iterator[tuple[str, str]]:
        """The members in the order of their names: the path below the archive's top, and the whole name.

        Hidden ones are left out, and the one folder that an archive wraps its members in is its top.
        """
        shown = sorted(name for name in self._names if not re.search(r"^__MACOSX/|(^|/)\.", name))
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
