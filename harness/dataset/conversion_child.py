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

CONVERTER_NAMES = ("Html", "Ipynb", "Pdf", "Docx", "Pptx", "Xlsx", "Epub")
"""The converters that are used: none of them reads damaged files as text."""
MAX_REASON_LENGTH = 200


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
            reply = convert_bytes(raw, request["suffix"])
        except MemoryError:
            reply = {"failed": f"it needs more than {max_memory >> 20:,} MB of memory"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def _limit_memory(size: int) -> None:
    """Limit the memory of this process, if the platform can."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def convert_bytes(raw: bytes, suffix: str) -> dict[str, str]:
    """Return `title` and `text` of a document, or `failed` with the reason.

    Raises:
        MemoryError: the memory of this process does not suffice.
    """
    from markitdown import StreamInfo

    stream = io.BytesIO(raw)
    stream_info = StreamInfo(extension=suffix)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # parsers warn of repairs
            converted = _engine().convert_stream(stream, stream_info=stream_info)
    except MemoryError:
        raise
    except Exception as error:  # a parser may raise anything
        reason = " ".join(str(error).split()) or type(error).__name__
        # markitdown passes on the name of an error of its parsers, not the error.
        if "MemoryError" in reason:
            raise MemoryError from error
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
