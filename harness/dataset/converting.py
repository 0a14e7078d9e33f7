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
import threading
import time
import warnings

MEMORY = 4 << 30
"""Bytes that it may take, where the system can limit them."""
LONGEST = 64 << 20
"""Characters of a document's text, at most."""


def serve() -> None:
    """Answer until standard input ends."""
    _end_with_parent()
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)  # what a parser prints is no answer
        limited = _limit_memory()
        from markitdown import MarkItDown

        engine = MarkItDown(enable_plugins=False)
        print("{}", file=answers, flush=True)
        while head := sys.stdin.buffer.readline():
            asked = json.loads(head)
            raw = sys.stdin.buffer.read(asked["size"])
            _limit_time(asked["seconds"])
            conversion = _converted(engine, raw, asked["suffix"], limited=limited)
            _limit_time(0)
            print(json.dumps(conversion), file=answers, flush=True)


def _converted(engine: object, raw: bytes, suffix: str, *, limited: bool) -> dict[str, str]:
    """Convert one document; `failed` lies in the document itself, `undone` in the machine."""
    from markitdown import StreamInfo

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of parsers, about what they repaired
            made = engine.convert_stream(io.BytesIO(raw), stream_info=StreamInfo(extension=suffix))  # type: ignore[attr-defined]
    except Exception as error:
        if _out_of_memory(error):
            most = f"takes more than {MEMORY >> 30} GiB of memory"
            return {"failed": most} if limited else {"undone": "the machine has too little memory for it"}
        reason = " ".join(str(error).split()) or type(error).__name__
        return {"failed": reason[:200]}
    if len(made.markdown) > LONGEST:
        return {"failed": f"its text has more than {LONGEST:,} characters"}
    return {"title": made.title or "", "text": made.markdown}


def _limit_time(seconds: float) -> None:
    """End the process after so many seconds of the processor, on a busy machine as on an idle one; 0: never."""
    if hasattr(signal, "setitimer"):  # not on Windows: there the caller's patience ends it
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _limit_memory() -> bool:
    """Limit the memory of this process; False where a lower limit holds already, or the system has none."""
    try:
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        if any(limit != resource.RLIM_INFINITY and limit < MEMORY for limit in (soft, hard)):
            return False
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))
    except (ImportError, OSError, ValueError):
        return False
    return sys.platform == "linux"  # others take the limit and do not heed it


def _out_of_memory(error: Exception) -> bool:
    """Whether memory ran out, be it in one of the attempts that markitdown tells of in an error of its own."""
    attempts = getattr(error, "attempts", None) or ()
    tried = [attempt.exc_info[1] for attempt in attempts if attempt.exc_info]
    return any(isinstance(one, MemoryError) for one in (error, *tried))


def _end_with_parent() -> None:
    """End this process where the one that started it has gone: a document could keep it busy for minutes more.

    On Windows it ends with its standard input alone, once it has its document done: the parent's number stays there.
    """
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    serve()
