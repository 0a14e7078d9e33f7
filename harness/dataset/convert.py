"""Files of other programs to Markdown."""

import contextlib
import hashlib
import importlib.util
import os
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from harness.dataset.conversion import Conversion, parse_conversion
from harness.dataset.conversion_process import CONVERSIONS, ConversionStopped
from harness.dataset.file import File
from retrievers.errors import install_extras
from retrievers.files.cache_folder import cache_folder

CONVERTED_SUFFIXES = {
    ".pdf": "PDF",
    ".html": "HTML",
    ".htm": "HTML",
    ".docx": "Word",
    ".pptx": "PowerPoint",
    ".xlsx": "Excel",
    ".epub": "EPUB",
    ".ipynb": "Jupyter",
}
"""Suffix of a file that markitdown converts -> the name of its format."""
CONVERTER_REMEDY = install_extras("documents")


_reason_by_digest: dict[str, str] = {}
"""A file's digest -> why the child process ended at it, so that each pass over a folder
finds the same documents. A later run tries the file again, since the machine may have
been busy."""


class ConversionError(Exception):
    """A file has no text that can be read, with the reason."""


class ConvertedText(NamedTuple):
    """The text of a file as Markdown."""

    titles: tuple[str, ...]
    """What may be its title, best first."""
    texts: tuple[str, ...]
    """The text of each page, or of the whole file."""


def convert_file(file: File, *, by_page: bool = False) -> ConvertedText:
    """Return the text of a file as Markdown, or of each page of a PDF.

    Conversions are cached, by content and by markitdown's version.

    Raises:
        ConversionError: the file is damaged, protected, or has no text (a scanned page,
            say), or its conversion exceeds a limit.
        InputError: it cannot be read.
    """
    raw = file.read()
    # "no navigation" sets these apart from the cached conversions of older versions,
    # which kept navigation, and read damaged files as plain text.
    form = "pages" if by_page else "no navigation"
    version_key = f"{version('markitdown')}, {form}\0{file.suffix}\0".encode()
    digest = hashlib.sha256(version_key + raw).hexdigest()
    cached = cache_folder() / "documents" / f"{digest}.json"
    try:
        conversion = parse_conversion(cached.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        conversion = _convert_bytes(raw, file.suffix, digest, by_page=by_page)
        with contextlib.suppress(OSError):  # the cache only saves time
            _write_cache(cached, conversion)
    if conversion.failed:
        raise ConversionError(conversion.failed)
    return ConvertedText(conversion.titles, conversion.texts)


def _convert_bytes(
    raw: bytes, suffix: str, digest: str, *, by_page: bool
) -> Conversion:
    """Return what the child process finds in a file.

    Raises:
        ConversionError: the child process took too long, or crashed.
    """
    if digest not in _reason_by_digest:
        try:
            return CONVERSIONS.convert(raw, suffix, by_page=by_page)
        except ConversionStopped as stopped:
            _reason_by_digest[digest] = str(stopped)
    raise ConversionError(_reason_by_digest[digest])


def _write_cache(path: Path, conversion: Conversion) -> None:
    temporary = path.with_suffix(f".{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary.write_text(conversion.line(), encoding="utf-8", newline="\n")
    temporary.replace(path)


def can_convert() -> bool:
    """Whether markitdown is installed."""
    return importlib.util.find_spec("markitdown") is not None
