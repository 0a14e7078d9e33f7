"""The process that converts files, which `conversion_process` starts.

It reads one JSON object per line, and writes one per line.
"""

import base64
import contextlib
import io
import json
import os
import sys
import warnings
from functools import cache
from typing import Any

from harness.dataset.conversion import Conversion
from harness.dataset.title_candidates import title_candidates, visible_html

CONVERTER_NAMES = ("Html", "Ipynb", "Pdf", "Docx", "Pptx", "Xlsx", "Epub")
"""The converters that are used: none of them reads damaged files as text."""
MAX_REASON_LENGTH = 200
"""Characters of a converter's error that are passed on."""
HTML_SUFFIXES = (".html", ".htm")
PAGE_END = "\f"
"""What pdfminer writes after each page."""


def main() -> None:
    """Convert the files of the requests on stdin until it is closed."""
    max_memory = int(sys.argv[1])
    _limit_memory(max_memory)
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # What a parser prints is not a reply.
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        raw = base64.b64decode(request["content"])
        try:
            reply = convert_bytes(raw, request["suffix"], by_page=request["by_page"])
        except MemoryError:
            reason = f"it needs more than {max_memory >> 20:,} MB of memory"
            reply = Conversion(failed=reason)
        replies.write(reply.line() + "\n")
        replies.flush()


def _limit_memory(size: int) -> None:
    """Limit the memory of this process, if the platform can."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def convert_bytes(raw: bytes, suffix: str, *, by_page: bool) -> Conversion:
    """Return what a converter finds in a file.

    Args:
        raw: the file.
        suffix: of its name.
        by_page: whether it is a PDF that has a text for each page; else there is one.

    Raises:
        MemoryError: the memory of this process does not suffice.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # parsers warn of repairs
            convert = _pages_of if by_page else _whole_of
            conversion = convert(raw, suffix)
    except MemoryError:
        raise
    except Exception as error:  # a parser may raise anything
        reason = " ".join(str(error).split()) or type(error).__name__
        # markitdown passes on the name of an error of its parsers, not the error.
        if "MemoryError" in reason:
            raise MemoryError from error
        return Conversion(failed=reason[:MAX_REASON_LENGTH])
    texts = [_without_surrogates(text).strip() for text in conversion.texts]
    if not any(texts):
        return Conversion(failed="there is no text in it")
    titles = [
        " ".join(_without_surrogates(title).split()) for title in conversion.titles
    ]
    titles.append(" ".join(_first_heading(texts[0]).split()))
    distinct_titles = dict.fromkeys(filter(None, titles))
    return Conversion(tuple(distinct_titles), tuple(texts))


def _without_surrogates(text: str) -> str:
    """Return a text that UTF-8 can have."""
    return text.encode("utf-8", "replace").decode()


def _whole_of(raw: bytes, suffix: str) -> Conversion:
    from markitdown import StreamInfo

    titles = title_candidates(raw, suffix)
    stream_info = StreamInfo(extension=suffix)
    if suffix in HTML_SUFFIXES:
        raw = visible_html(raw)
    converted = _engine().convert_stream(io.BytesIO(raw), stream_info=stream_info)
    return Conversion((*titles, converted.title or ""), (converted.markdown,))


def _pages_of(raw: bytes, suffix: str) -> Conversion:
    """Return the text of each page of a PDF, after one pass over all of them."""
    from pdfminer.high_level import extract_text

    texts = extract_text(io.BytesIO(raw)).removesuffix(PAGE_END).split(PAGE_END)
    return Conversion(tuple(title_candidates(raw, suffix)), tuple(texts))


def _first_heading(text: str) -> str:
    for line in text.split("\n"):
        if line.startswith("# "):
            return line[2:]
    return ""


@cache
def _engine() -> Any:
    import markitdown.converters
    from markitdown import MarkItDown

    engine = MarkItDown(enable_builtins=False, enable_plugins=False)
    for name in CONVERTER_NAMES:
        converter = getattr(markitdown.converters, f"{name}Converter")
        engine.register_converter(converter())
    return engine


if __name__ == "__main__":
    main()
