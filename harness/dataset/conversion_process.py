"""Conversion of files in a child process with limits.

A file of somebody else may crash a parser, or keep it busy for hours. The child process
has no keys: of the environment it gets only what Python needs.
"""

import atexit
import base64
import contextlib
import json
import os
import subprocess
import sys
import time
from threading import Lock, Timer
from typing import IO

from harness.dataset.conversion import Conversion, parse_conversion

MAX_SECONDS = 120.0
"""Seconds that the conversion of one file may take."""
MAX_MEMORY = 4 << 30
"""Bytes of memory that the process may use, on platforms that have such a limit."""
KEPT_VARIABLES = (
    "PATH",
    "HOME",
    "APPDATA",
    "LOCALAPPDATA",
    "USERPROFILE",
    "SYSTEMROOT",
    "TMPDIR",
    "TEMP",
    "TMP",
    "LANG",
    "LD_LIBRARY_PATH",
)
"""Variables of the environment that the process gets, since Python uses them."""


class ConversionStopped(Exception):
    """The process ended before it had converted a file, with the reason."""


class ConversionProcess:
    """Converts one file after another; started at the first, and after each crash."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = Lock()

    def convert(self, raw: bytes, suffix: str, *, by_page: bool = False) -> Conversion:
        """Return what the process finds in a file.

        Args:
            raw: the file.
            suffix: of its name.
            by_page: whether each page of a PDF is a text; else the file is one.

        Raises:
            ConversionStopped: the process took too long or crashed.
        """
        content = base64.b64encode(raw).decode()
        request = json.dumps({"suffix": suffix, "by_page": by_page, "content": content})
        with self._lock:
            process = self._process or _start_child()
            self._process = process
            timer = Timer(MAX_SECONDS, process.kill)
            timer.daemon = True
            started = time.monotonic()
            timer.start()
            reply = ""
            try:
                reply = _exchange(process, request)
            finally:
                timer.cancel()
                is_too_late = time.monotonic() - started >= MAX_SECONDS
                # After so long the timer may have killed it, even behind its reply.
                if not reply or is_too_late:
                    self._stop()
        if reply:
            return parse_conversion(reply)
        if is_too_late:
            raise ConversionStopped(f"the conversion takes more than {MAX_SECONDS:g} s")
        raise ConversionStopped(
            f"the converter crashed (exit status {process.returncode})"
        )

    def stop(self) -> None:
        """End the process; the next conversion starts another."""
        with self._lock:
            self._stop()

    def _stop(self) -> None:
        if self._process is not None:
            _end_child(self._process)
            self._process = None


def _start_child() -> subprocess.Popen[str]:
    environment = {
        name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ
    }
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    # Without -P, a module in the working directory would replace one of Python's own.
    module = "harness.dataset.conversion_child"
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-P", "-m", module, str(MAX_MEMORY)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        encoding="utf-8",
    )


def _exchange(process: subprocess.Popen[str], request: str) -> str:
    """Return the reply to a request; empty if the process ended before it."""
    requests = _pipe(process.stdin)
    replies = _pipe(process.stdout)
    try:
        requests.write(request + "\n")
        requests.flush()
    except OSError:
        return ""
    reply = replies.readline()
    return reply if reply.endswith("\n") else ""


def _end_child(process: subprocess.Popen[str]) -> None:
    """Close the pipes of a process, which ends an idle one, and wait for its end."""
    with contextlib.suppress(OSError):  # a part of a request that was not sent
        _pipe(process.stdin).close()
    try:
        process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    _pipe(process.stdout).close()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise AssertionError("the process was started with pipes")
    return pipe


CONVERSIONS = ConversionProcess()
atexit.register(CONVERSIONS.stop)
