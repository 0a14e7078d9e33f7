"""Files of other programs to Markdown."""

import contextlib
import hashlib
import importlib.util
import io
import json
import os
import sys
import warnings
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from harness.dataset.file import File
from retrievers.files.text_files import cache_folder

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
CONVERTER_NAMES = ("Html", "Ipynb", "Pdf", "Docx", "Pptx", "Xlsx", "Epub")
"""The converters that are used: none of them reads damaged files as text."""
CONVERTER_REMEDY = (
    'pip install "markitdown[docx,pdf,pptx,xlsx]", or the extra "documents"'
)
MAX_REASON_LENGTH = 200


class ConversionError(Exception):
    """A file has no text that can be read, with the reason."""


class ConvertedText(NamedTuple):
    """The text of a file as Markdown."""

    title: str
    """Empty if the format has no title."""
    text: str


def convert_file(file: File) -> ConvertedText:
    """Return the text of a file as Markdown.

    Conversions are cached, by content and by markitdown's version.

    Raises:
        ConversionError: the file is damaged, protected, or has no text (a scanned page,
            say).
        InputError: it cannot be read.
    """
    raw = file.read()
    # Older versions read damaged files as plain text: their cache is not used.
    version_key = f"{version('markitdown')}, no plain text\0{file.suffix}\0".encode()
    digest = hashlib.sha256(version_key + raw).hexdigest()
    cached = cache_folder() / "documents" / f"{digest}.json"
    try:
        conversion: dict[str, str] = json.loads(cached.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        conversion = convert_bytes(raw, file.suffix)
        with contextlib.suppress(OSError):  # the cache only saves time
            _write_cache(cached, conversion)
    if "failed" in conversion:
        raise ConversionError(conversion["failed"])
    return ConvertedText(conversion["title"], conversion["text"])


def _write_cache(path: Path, conversion: dict[str, str]) -> None:
    text = json.dumps(conversion, ensure_ascii=False)
    temporary = path.with_suffix(f".{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary.write_text(text, encoding="utf-8", newline="\n")
    temporary.replace(path)


def convert_bytes(raw: bytes, suffix: str) -> dict[str, str]:
    """Return `title` and `text` of a document, or `failed` with the reason."""
    from markitdown import StreamInfo

    stream = io.BytesIO(raw)
    stream_info = StreamInfo(extension=suffix)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
            warnings.simplefilter("ignore")  # parsers warn of repairs
            converted = _engine().convert_stream(stream, stream_info=stream_info)
    except Exception as error:  # a parser may raise anything
        reason = " ".join(str(error).split()) or type(error).__name__
        return {"failed": reason[:MAX_REASON_LENGTH]}
    text = converted.markdown.encode("utf-8", "replace").decode().strip()
    if not text:
        return {"failed": "there is no text in it"}
    title = converted.title or _first_heading(text)
    return {"title": " ".join(title.split()), "text": text}


def _first_heading(text: str) -> str:
    for line in text.split("\n"):
        if line.startswith("# "):
            return line[2:]
    return ""


def can_convert() -> bool:
    """Whether markitdown is installed."""
    return importlib.util.find_spec("markitdown") is not None


@cache
def _engine() -> Any:
    import markitdown.converters
    from markitdown import MarkItDown

    engine = MarkItDown(enable_builtins=False, enable_plugins=False)
    for name in CONVERTER_NAMES:
        converter = getattr(markitdown.converters, f"{name}Converter")
        engine.register_converter(converter())
    return engine
