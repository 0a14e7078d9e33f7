"""Documents as companies have them (PDF, HTML, Word, …) as Markdown, by markitdown: converted once, then kept.

markitdown (MIT, kept by Microsoft) was chosen because one small library reads all of these formats on a processor,
with parsers that are well kept themselves (pdfminer, mammoth, python-pptx, Beautiful Soup) and no model to fetch.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import json
import os
import zipfile
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from harness.dataset.converting_process import ConvertingProcess, NotConverted
from harness.dataset.files import File
from harness.dataset.model import Dataset
from harness.dataset.source import parse_json
from harness.dataset.unpacking import FREE, RATIO

CONVERTED = {".pdf", ".html", ".htm", ".docx", ".pptx", ".xlsx", ".epub", ".ipynb"}
"""What markitdown is asked to read."""
NAMED = 5
"""Kinds of files that are named."""
REMEDY = 'pip install "markitdown[docx,pdf,pptx,xlsx]", or the extra "documents"'


class Converted(NamedTuple):
    """A document's title, where its format has one, and its text as Markdown."""

    title: str
    text: str


class Converter:
    """Converts files and keeps what came out beside the cache of vectors, by content and by markitdown's version."""

    def __init__(self, undone: dict[str, str] | None = None) -> None:
        """Make one that starts no process until it is asked.

        Args:
            undone: what was ended from outside, with the reason, which grows: several passes over the same files that
                share it take the same files for documents.
        """
        self.available = _installed()
        self._process = ConvertingProcess()
        self._undone = {} if undone is None else undone

    def convert(self, file: File) -> Converted:
        """Convert one file, or take what was kept.

        Raises:
            NotConverted: it is damaged, protected, or holds no text (a scanned page, say); or what converts it was
                ended from outside, which is not kept.
            InputError: it cannot be read.
        """
        raw = file.read()
        name = f"{version('markitdown')}\0{file.suffix}\0".encode()
        kept = _folder() / f"{hashlib.sha256(name + raw).hexdigest()}.json"
        if kept.name in self._undone:
            raise NotConverted(self._undone[kept.name])
        conversion = _kept(kept)
        if conversion is None:
            try:
                conversion = self._fresh(raw, file.suffix)
            except NotConverted as undone:
                self._undone[kept.name] = str(undone)
                raise
            _keep(kept, conversion)
        if "failed" in conversion:
            raise NotConverted(conversion["failed"])
        return Converted(conversion["title"], conversion["text"])

    def _fresh(self, raw: bytes, suffix: str) -> dict[str, str]:
        if size := _unpacked_size(raw):
            return {"failed": f"unpacks to {size >> 20:,} MiB, far more than a document would"}
        conversion = self._process.ask(raw, suffix)
        if "failed" in conversion:
            return conversion
        text = conversion["text"].encode("utf-8", "replace").decode().strip()
        title = " ".join((conversion["title"] or _heading(text)).split())
        return {"title": title, "text": text} if text else {"failed": "there is no text in it"}


def _kept(path: Path) -> dict[str, str] | None:
    """What was kept of a conversion; None where nothing was, or something that no conversion gives."""
    try:
        conversion: Any = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(conversion, dict) or not all(isinstance(value, str) for value in conversion.values()):
        return None
    return conversion if conversion.keys() in ({"failed"}, {"title", "text"}) else None


def _keep(path: Path, conversion: dict[str, str]) -> None:
    """Keep a conversion where that is possible: it saves time and changes no result, so a full disk stops nothing."""
    aside = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(json.dumps(conversion, ensure_ascii=False), encoding="utf-8", newline="\n")
        aside.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)


def _unpacked_size(raw: bytes) -> int:
    """The bytes that an archive (a Word file is one) says it unpacks to where no document would; else 0.

    What it says can be relied on: zipfile gives no more of a member than that.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return 0
    return size if size > max(FREE, RATIO * len(raw)) else 0


def reading_line(dataset: Dataset) -> str:
    """How many of a folder's files are read, and what would read the others; "" where all are."""
    ledger = dataset.ledger
    return reading_sentence(dataset.count, ledger.get("unread-file", ()), ledger.get("unconverted-file", ()))


def reading_sentence(count: int, unread: Sequence[str], failed: Sequence[str] = ()) -> str:
    """How many files are read, and what would read the others; "" where all are.

    Args:
        count: documents that are read.
        unread: names of the files that no reader takes.
        failed: those that could not be converted.
    """
    if not unread and not failed:
        return ""
    suffixes = Counter(PurePosixPath(name).suffix.lower() or PurePosixPath(name).name for name in unread)
    parts = [f"{count:,} of {count + len(unread) + len(failed):,} files are read"]
    if unread:
        common = sorted(suffixes.items(), key=lambda item: (-item[1], item[0]))
        kinds = ", ".join(f"{suffix} {count:,}" for suffix, count in common[:NAMED])
        more = ", …" if len(common) > NAMED else ""
        parts.append(f"{len(unread):,} {'is' if len(unread) == 1 else 'are'} not ({kinds}{more})")
    if failed:
        parts.append(f"{len(failed):,} could not be converted")
    if not _installed() and suffixes.keys() & CONVERTED:
        parts.append(REMEDY)
    return "; ".join(parts)


def _installed() -> bool:
    return importlib.util.find_spec("markitdown") is not None


def _heading(text: str) -> str:
    return next((line[2:] for line in text.split("\n") if line.startswith("# ")), "")


def _folder() -> Path:
    if folder := os.environ.get("HARNESS_CACHE"):
        return Path(folder).expanduser() / "documents"
    from platformdirs import user_cache_path

    return user_cache_path("retriever-harness", appauthor=False) / "documents"
