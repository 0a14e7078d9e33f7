"""Kills a process at a point of its work and not of time, so that a test shows the same
on every machine.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from itertools import count
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext

NEVER = 0
"""The call at which a process is killed that only counts."""

PRELOADED = (
    "tests.harness.running.test_kill",
    "tests.retrievers.test_vector_search_killed",
    "openai",
    "portalocker",
    "pyarrow.parquet",
    "qdrant_client",
    "qdrant_edge",
    "retrievers.encoders.hashing",
    "retrievers.encoders.openai",
    "retrievers.stores.edge",
    "retrievers.stores.qdrant",
)
"""What the processes of all tests need: the server that forks them starts once a
session, and heeds its first list.
"""


def forking() -> ForkServerContext:
    """Starts processes that are forked from one that has imported everything, so that
    starting takes no time.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    return context


def heed_interrupts() -> None:
    """Shells start what runs in the background with interrupts ignored, and children
    inherit that.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def live(work: Callable[[], None], last_call: int) -> int:
    """Do the work and return how many functions were called, or kill this process at
    the call of that number.
    """
    numbers = count(1)
    call_count = 0

    def notice(frame: FrameType, event: str, argument: object) -> None:
        nonlocal call_count
        if event in ("call", "c_call"):
            call_count = next(numbers)
            if call_count == last_call:
                os.kill(os.getpid(), signal.SIGKILL)

    threading.setprofile(notice)
    sys.setprofile(notice)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return call_count
