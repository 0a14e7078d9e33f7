"""The process that converts documents: a file that would take hours, or all memory, ends it and nothing else.

It is run as a script and imports nothing of this project, so that it starts fast. It answers each document on standard
input, a line of JSON with its suffix, its size and the processor's seconds that it may take, and then its bytes, with a
line of JSON on standard output.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import warnings

MEMORY = 4 << 30
"""Bytes that it may take, where the system can limit them."""
LONGEST = 64 << 20
"""Characters of a document's text, at most."""


def serve() -> None:
    """Answer until standard input ends."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)  # what a parser prints is no answer
        _limit_memory()
        from markitdown import MarkItDown

        engine = MarkItDown(enable_plugins=False)
        print("{}", file=answers, flush=True)
        while head := sys.stdin.buffer.readline():
            asked = json.loads(head)
            raw = sys.stdin.buffer.read(asked["size"])
            _limit_time(asked["seconds"])
            conversion = _converted(engine, raw, asked["suffix"])
            _limit_time(0)
            print(json.dumps(conversion), file=answers, flush=True)


def _converted(engine: object, raw: bytes, suffix: str) -> dict[str, str]:
    from markitdown import StreamInfo

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of parsers, about what they repaired
            made = engine.convert_stream(io.BytesIO(raw), stream_info=StreamInfo(extension=suffix))  # type: ignore[attr-defined]
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        return {"failed": reason[:200]}
    if len(made.markdown) > LONGEST:
        return {"failed": f"its text has more than {LONGEST:,} characters"}
    return {"title": made.title or "", "text": made.markdown}


def _limit_time(seconds: float) -> None:
    """End the process after so many seconds of the processor, on a busy machine as on an idle one; 0: never."""
    if hasattr(signal, "setitimer"):  # not on Windows: there the caller's patience ends it
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _limit_memory() -> None:
    try:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    except (ImportError, OSError, ValueError):  # not every system has such limits
        pass


if __name__ == "__main__":
    serve()
