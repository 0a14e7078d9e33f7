"""Documents as companies have them (PDF, HTML, Word, …) as Markdown, by markitdown: converted once, then kept.

markitdown (MIT, kept by Microsoft) was chosen because one small library reads all of these formats on a processor,
with parsers that are well kept themselves (pdfminer, mammoth, python-pptx, Beautiful Soup) and no model to fetch.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import warnings
import zipfile
from collections import Counter
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from harness.dataset.files import File
from harness.dataset.model import Dataset
from harness.dataset.unpacking import FREE, RATIO

CONVERTED = {".pdf", ".html", ".htm", ".docx", ".pptx", ".xlsx", ".epub", ".ipynb"}
"""What markitdown is asked to read."""
NAMED = 5
"""Kinds of files that are named."""
REMEDY = 'pip install "markitdown[docx,pdf,pptx,xlsx]", or the extra "documents"'


class NotConverted(Exception):
    """A file that holds no text which could be read, with the reason."""


class Converted(NamedTuple):
    """A document's title, where its format has one, and its text as Markdown."""

    title: str
    text: str


class Converter:
    """Converts files and keeps what came out beside the cache of vectors, by content and by markitdown's version."""

    def __init__(self) -> None:
        self.available = _installed()
        self._engine: Any = None

    def convert(self, file: File) -> Converted:
        """Convert one file, or take what was kept.

        Raises:
            NotConverted: it is damaged, protected, or holds no text (a scanned page, say).
            InputError: it cannot be read.
        """
        raw = file.read()
        name = f"{version('markitdown')}\0{file.suffix}\0".encode()
        kept = _folder() / f"{hashlib.sha256(name + raw).hexdigest()}.json"
        try:
            conversion = json.loads(kept.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            conversion = self._fresh(raw, file.suffix)
            kept.parent.mkdir(parents=True, exist_ok=True)
            aside = kept.with_suffix(f".{os.getpid()}")
            aside.write_text(json.dumps(conversion, ensure_ascii=False), encoding="utf-8", newline="\n")
            aside.replace(kept)
        if "failed" in conversion:
            raise NotConverted(conversion["failed"])
        return Converted(conversion["title"], conversion["text"])

    def _fresh(self, raw: bytes, suffix: str) -> dict[str, str]:
        from markitdown import MarkItDown, StreamInfo

        if self._engine is None:
            self._engine = MarkItDown(enable_plugins=False)
        if size := _unpacked_size(raw):
            return {"failed": f"unpacks to {size >> 20:,} MiB, far more than a document would"}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of parsers, about what they repaired
                converted = self._engine.convert_stream(io.BytesIO(raw), stream_info=StreamInfo(extension=suffix))
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            return {"failed": reason[:200]}
        text = converted.markdown.encode("utf-8", "replace").decode().strip()
        title = " ".join((converted.title or _heading(text)).split())
        return {"title": title, "text": text} if text else {"failed": "there is no text in it"}


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
    unread, failed = (dataset.ledger.get(kind, ()) for kind in ("unread-file", "unconverted-file"))
    if not unread and not failed:
        return ""
    suffixes = Counter(PurePosixPath(name).suffix.lower() or PurePosixPath(name).name for name in unread)
    parts = [f"{dataset.count:,} of {dataset.count + len(unread) + len(failed):,} files are read"]
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
