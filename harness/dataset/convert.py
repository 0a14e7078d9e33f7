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
from typing import Any

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
"""What markitdown is asked to read, and what it is called."""
CONVERTER_REMEDY = (
    'pip install "markitdown[docx,pdf,pptx,xlsx]", or the extra "documents"'
)


class ConversionError(Exception):
    """A file that holds no text which could be read, with the reason."""


def convert_file(file: File) -> tuple[str, str]:
    """The title of a file, where its format has one, and its text as Markdown.

    It is converted, or was kept beside the cache of vectors, by content and by markitdown's version.

    Raises:
        NotConverted: it is damaged, protected, or holds no text (a scanned page, say).
        InputError: it cannot be read.
    """
    raw = file.read()
    name = (
        f"{version('markitdown')}, no plain text\0{file.suffix}\0".encode()
    )  # as older versions took it for
    kept = (
        cache_folder() / "documents" / f"{hashlib.sha256(name + raw).hexdigest()}.json"
    )
    try:
        conversion: dict[str, str] = json.loads(kept.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        conversion = convert_bytes(raw, file.suffix)
        temporary = kept.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(
            OSError
        ):  # keeping it saves time and changes no result
            kept.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(
                json.dumps(conversion, ensure_ascii=False),
                encoding="utf-8",
                newline="\n",
            )
            temporary.replace(kept)
    if "failed" in conversion:
        raise ConversionError(conversion["failed"])
    return conversion["title"], conversion["text"]


def convert_bytes(raw: bytes, suffix: str) -> dict[str, str]:
    """Return `title` and `text` of a document, or `failed` with the reason."""
    from markitdown import StreamInfo

    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
            warnings.simplefilter("ignore")  # of parsers, about what they repaired
            made = _engine().convert_stream(
                io.BytesIO(raw), stream_info=StreamInfo(extension=suffix)
            )
    except (
        Exception
    ) as error:  # whatever a parser of somebody else's document may raise
        return {"failed": (" ".join(str(error).split()) or type(error).__name__)[:200]}
    text = made.markdown.encode("utf-8", "replace").decode().strip()
    heading = next((line[2:] for line in text.split("\n") if line.startswith("# ")), "")
    title = " ".join((made.title or heading).split())
    return (
        {"title": title, "text": text} if text else {"failed": "there is no text in it"}
    )


def can_convert() -> bool:
    """Whether markitdown is there."""
    return importlib.util.find_spec("markitdown") is not None


@cache
def _engine() -> Any:
    import markitdown.converters
    from markitdown import MarkItDown

    engine = MarkItDown(enable_builtins=False, enable_plugins=False)
    for kind in (
        "Html",
        "Ipynb",
        "Pdf",
        "Docx",
        "Pptx",
        "Xlsx",
        "Epub",
    ):  # none takes damaged files for text
        engine.register_converter(getattr(markitdown.converters, f"{kind}Converter")())
    return engine
