"""The process that converts documents, as its caller sees it: started, asked, and what its end says of a document."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

from harness.dataset import converting

SECONDS = 120
"""Of the processor, that one document may take."""
PATIENCE = 1800
"""Seconds after which a process that does not even work is ended."""
PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH",
          "SYSTEMROOT", "TEMP", "TMP", "USERPROFILE", "APPDATA",
          "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE")  # fmt: skip
"""Variables of the environment that it is given: what it needs to find the same packages, and none that may be a key,
since parsers of other people's documents work in it."""


class NotConverted(Exception):
    """A file that holds no text which could be read, with the reason."""


class ConvertingProcess:
    """The process, started when it is first asked and again where it has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, raw: bytes, suffix: str) -> dict[str, str]:
        """Have one document converted.

        Returns:
            `title` and `text`; or `failed` with a reason that lies in the document, and will be the same next time.

        Raises:
            NotConverted: the process was ended by something else than this document, which another command may convert.
        """
        process = self._process or self._begin()
        head = json.dumps({"suffix": suffix, "size": len(raw), "seconds": SECONDS}).encode()
        asked = time.monotonic()
        answer = _answer(process, head + b"\n" + raw)
        if answer is None:
            code = _code(process)
            self._process = None
            if hasattr(signal, "SIGPROF") and code == -signal.SIGPROF:
                return {"failed": f"took more than {SECONDS} s of the processor"}
            late = time.monotonic() - asked >= PATIENCE
            how = f"it gave no answer within {PATIENCE:,} s" if late else _how(code)
            answer = {"undone": f"the process that converts it was ended: {how}"}
        if reason := answer.get("undone"):
            raise NotConverted(f"{reason}; the next command tries it again")
        return answer

    def _begin(self) -> subprocess.Popen[bytes]:
        process = _started()
        if _answer(process, b"") is None:
            _end(process)
            raise NotConverted("markitdown does not start")
        weakref.finalize(self, _end, process)
        self._process = process
        return process


def _started() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", str(Path(converting.__file__))]
    given = {name: os.environ[name] for name in PASSED if name in os.environ}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=given)  # noqa: S603 - our own


def _answer(process: subprocess.Popen[bytes], asked: bytes) -> dict[str, str] | None:
    """Send what is asked and return the answer; None where the process has ended."""
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


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def _code(process: subprocess.Popen[bytes]) -> int:
    """The exit code of a process whose pipes have broken, which is known a moment later."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)
    _end(process)
    return process.returncode


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"{name}, as by a machine that runs out of memory" if name == "SIGKILL" else name
