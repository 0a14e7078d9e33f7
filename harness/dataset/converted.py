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
import subprocess
import sys
import threading
import weakref
import zipfile
from collections import Counter
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from harness.dataset import converting
from harness.dataset.files import File
from harness.dataset.model import Dataset
from harness.dataset.unpacking import FREE, RATIO

CONVERTED = {".pdf", ".html", ".htm", ".docx", ".pptx", ".xlsx", ".epub", ".ipynb"}
"""What markitdown is asked to read."""
SECONDS = 120
"""Of the processor, that one document may take."""
PATIENCE = 1800
"""Seconds after which a process that does not even work is ended."""
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
        self._process: subprocess.Popen[bytes] | None = None

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
        if size := _unpacked_size(raw):
            return {"failed": f"unpacks to {size >> 20:,} MiB, far more than a document would"}
        if self._process is None:
            self._process = _started()
            weakref.finalize(self, _ended, self._process)
            if _answer(self._process, b"") is None:
                self._process = None
                raise NotConverted("markitdown does not start")
        head = json.dumps({"suffix": suffix, "size": len(raw), "seconds": SECONDS}).encode()
        conversion = _answer(self._process, head + b"\n" + raw)
        if conversion is None:
            _ended(self._process)
            self._process = None
            return {"failed": f"took more than {SECONDS} s of the processor, or more memory than a document would"}
        if "failed" in conversion:
            return conversion
        text = conversion["text"].encode("utf-8", "replace").decode().strip()
        title = " ".join((conversion["title"] or _heading(text)).split())
        return {"title": title, "text": text} if text else {"failed": "there is no text in it"}


def _started() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", str(Path(converting.__file__))]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)  # noqa: S603 - our own


def _answer(process: subprocess.Popen[bytes], asked: bytes) -> dict[str, str] | None:
    """Send what is asked and return the answer; None where the process died, or was ended since it took too long."""
    assert process.stdin is not None and process.stdout is not None
    timer = threading.Timer(PATIENCE, process.kill)
    timer.start()
    try:
        process.stdin.write(asked)
        process.stdin.flush()
        answer: dict[str, str] = json.loads(process.stdout.readline())
        return answer
    except (OSError, ValueError):  # a pipe that broke, a line that is not whole
        return None
    finally:
        timer.cancel()


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


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
