"""Documents as companies have them (PDF, HTML, Word, …) as Markdown, by markitdown: converted once, then kept.

markitdown (MIT, kept by Microsoft) was chosen because one small library reads all of these formats on a processor,
with parsers that are well kept themselves (pdfminer, mammoth, python-pptx, Beautiful Soup) and no model to fetch. It
runs in a process of its own: a file that would take hours, or all memory, ends that process and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
import threading
import warnings
import weakref
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from harness.dataset.archives import unpacked_size
from harness.dataset.files import File
from harness.dataset.source import parse_json
from retrievers.opening import cache_folder

CONVERTED = {".pdf": "PDF", ".html": "HTML", ".htm": "HTML", ".docx": "Word", ".pptx": "PowerPoint", ".xlsx": "Excel",
             ".epub": "EPUB", ".ipynb": "Jupyter"}  # fmt: skip
"""What markitdown is asked to read, and what it is called."""
BEGINNINGS = {".pdf": b"%PDF-", ".docx": b"PK", ".pptx": b"PK", ".xlsx": b"PK", ".epub": b"PK"}
"""What stands near the beginning of such a file."""
SECONDS = 120
"""Of the processor, that one document may take: the same on a busy machine as on an idle one."""
PATIENCE = 1800
"""Seconds by the clock after which a process that does not even work is ended."""
MEMORY = 4 << 30
"""Bytes that the process may take, where the system can limit them."""
LONGEST = 64 << 20
"""Characters of a document's text, at most."""
PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH",
          "SYSTEMROOT", "TEMP", "TMP", "USERPROFILE", "APPDATA")  # fmt: skip
"""Variables of the environment that the process is given: none that may be a key, since parsers of other people's
documents work in it."""
CHILD = "from harness.dataset.converting import serve; serve()"


class NotConverted(Exception):
    """A file that holds no text which could be read, with the reason."""


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
        self.available = installed()
        self._process: subprocess.Popen[bytes] | None = None
        self._undone = {} if undone is None else undone

    def convert(self, file: File) -> Converted:
        """Convert one file, or take what was kept.

        Raises:
            NotConverted: it is damaged, protected, or holds no text (a scanned page, say); or what converts it was
                ended from outside, which is not kept.
            InputError: it cannot be read.
        """
        raw = file.read()
        if BEGINNINGS.get(file.suffix, b"") not in raw[:1024]:
            raise NotConverted(f"its content is not {CONVERTED[file.suffix]}, whatever its name says")
        name = f"{version('markitdown')}, no plain text\0{file.suffix}\0".encode()  # as older versions took it for
        kept = cache_folder() / "documents" / f"{hashlib.sha256(name + raw).hexdigest()}.json"
        if kept.name in self._undone:
            raise NotConverted(self._undone[kept.name])
        conversion = _kept(kept)
        if conversion is None:
            conversion = self.convert_bytes(raw, file.suffix)
            if reason := conversion.get("undone"):
                self._undone[kept.name] = f"{reason}; the next command tries it again"
                raise NotConverted(self._undone[kept.name])
            _keep(kept, conversion)
        if "failed" in conversion:
            raise NotConverted(conversion["failed"])
        return Converted(conversion["title"], conversion["text"])

    def convert_bytes(self, raw: bytes, suffix: str) -> dict[str, str]:
        """Have one document converted.

        Returns:
            `title` and `text`; `failed` with a reason that lies in the document, and will be the same next time; or
            `undone` with one that does not.
        """
        if size := unpacked_size(raw):
            return {"failed": f"unpacks to {size >> 20:,} MiB, far more than a document would"}
        if self._process is None:
            self._process = _started()
            weakref.finalize(self, _end, self._process)
        conversion = _answer(self._process, raw, suffix)
        if conversion is None:
            ended, self._process = self._process, None
            return _reason_of_end(ended)
        if "text" not in conversion:
            return conversion
        text = conversion["text"].encode("utf-8", "replace").decode().strip()
        heading = next((line[2:] for line in text.split("\n") if line.startswith("# ")), "")
        title = " ".join((conversion["title"] or heading).split())
        return {"title": title, "text": text} if text else {"failed": "there is no text in it"}


def installed() -> bool:
    """Whether markitdown is there."""
    return importlib.util.find_spec("markitdown") is not None


def _started() -> subprocess.Popen[bytes]:
    environment = {name: os.environ[name] for name in PASSED if name in os.environ}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    pipe = subprocess.PIPE
    command = [sys.executable, "-P", "-c", CHILD]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment)  # noqa: S603 - our own


def _answer(process: subprocess.Popen[bytes], raw: bytes, suffix: str) -> dict[str, str] | None:
    """Send a document and return the answer; None where the process has ended."""
    assert process.stdin is not None and process.stdout is not None
    timer = threading.Timer(PATIENCE, process.kill)
    timer.start()
    try:
        head = json.dumps({"suffix": suffix, "size": len(raw), "seconds": SECONDS})
        process.stdin.write(head.encode() + b"\n" + raw)
        process.stdin.flush()
        answer: dict[str, str] = json.loads(process.stdout.readline())
        return answer
    except (OSError, ValueError):  # a pipe that broke, a line that is not whole
        return None
    finally:
        timer.cancel()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def _reason_of_end(process: subprocess.Popen[bytes]) -> dict[str, str]:
    """What the end of a process says of the document that it had."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)
    _end(process)
    code = process.returncode
    if hasattr(signal, "SIGPROF") and code == -signal.SIGPROF:
        return {"failed": f"took more than {SECONDS} s of the processor"}
    names = {-one.value: one.name for one in signal.Signals}
    how = names.get(code, f"exit code {code}")
    killed = ", as by a machine that runs out of memory" if how == "SIGKILL" else ""
    return {"undone": f"the process that converts it was ended: {how}{killed}"}


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


def serve() -> None:
    """Convert each document on standard input, in the process of its own, until it ends.

    A line of JSON says a document's suffix, size and seconds; then come its bytes. A line of JSON answers.
    """
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)  # what a parser prints is not an answer
        _limit_memory()
        import markitdown.converters
        from markitdown import MarkItDown

        engine = MarkItDown(enable_builtins=False, enable_plugins=False)
        for kind in ("Html", "Ipynb", "Pdf", "Docx", "Pptx", "Xlsx", "Epub"):  # none takes damaged files for text
            engine.register_converter(getattr(markitdown.converters, f"{kind}Converter")())
        while head := sys.stdin.buffer.readline():
            asked = json.loads(head)
            raw = sys.stdin.buffer.read(asked["size"])
            _limit_time(asked["seconds"])
            conversion = _converted(engine, raw, asked["suffix"])
            _limit_time(0)
            print(json.dumps(conversion), file=answers, flush=True)


def _converted(engine: Any, raw: bytes, suffix: str) -> dict[str, str]:
    from markitdown import StreamInfo

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of parsers, about what they repaired
            made = engine.convert_stream(io.BytesIO(raw), stream_info=StreamInfo(extension=suffix))
    except Exception as error:  # whatever a parser of somebody else's document may raise
        # Of each of its attempts markitdown tells in an error of its own.
        tried = [one.exc_info[1] for one in getattr(error, "attempts", None) or () if one.exc_info]
        if any(isinstance(one, MemoryError) for one in (error, *tried)):
            return {"undone": f"it takes more than {MEMORY >> 30} GiB of memory, or than the machine has"}
        return {"failed": (" ".join(str(error).split()) or type(error).__name__)[:200]}
    if len(made.markdown) > LONGEST:
        return {"failed": f"its text has more than {LONGEST:,} characters"}
    return {"title": made.title or "", "text": made.markdown}


def _limit_time(seconds: float) -> None:
    """End the process after so many seconds of the processor; 0: never."""
    if hasattr(signal, "setitimer"):  # not on Windows: there the caller's patience ends it
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _limit_memory() -> None:
    """Limit the memory of this process, where the system can and has no lower limit."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        lowest = min(limit for limit in (MEMORY, soft, hard) if limit != resource.RLIM_INFINITY)
        resource.setrlimit(resource.RLIMIT_AS, (lowest, hard))
