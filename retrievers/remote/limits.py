"""Lets requests pass at the provider's pace."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from retrievers.errors import BackendError
from retrievers.remote.faults import Transient

_MARGIN = 1.05
"""Requests are sent this much slower than the declared limit, since clocks and networks are not exact."""

_LONGEST_WAIT = 3600.0
"""Seconds between two looks at the clock: no wait may be longer than a few hundred years."""


class RateLimiter:
    """Lets the requests of one encoder or reranker pass: so many at once, so fast, and fewer while throttled.

    The number at once is halved when a request is throttled and grows by one for every round of successes, as TCP
    does (Jacobson 1988); after a Retry-After nothing is sent before it.
    """

    def __init__(self, concurrency: int, *, rpm: float, tpm: float) -> None:
        """Take the most requests at once, and the limits of requests and tokens a minute (0: none)."""
        self._most = concurrency
        self._per_request = _MARGIN * 60 / rpm if rpm else 0.0
        self._per_token = _MARGIN * 60 / tpm if tpm else 0.0
        self._room = threading.Condition()
        self._width = float(concurrency)
        self._running = 0
        self._next = self._resume = self._narrowed = 0.0

    @contextmanager
    def turn(self, tokens: int, stopped: threading.Event) -> Iterator[None]:
        """Wait for the turn of a request of so many tokens, unless it is stopped, and learn from how it ends."""
        with self._room:
            while self._running >= int(self._width):
                self._room.wait(0.5)
                _check(stopped)
            self._running += 1
            at = max(time.monotonic(), self._next)
            self._next = at + max(self._per_request, tokens * self._per_token)
        sent = 0.0
        try:
            while (delay := max(at, self._resume) - time.monotonic()) > 0:
                stopped.wait(min(delay, _LONGEST_WAIT))
                _check(stopped)
            _check(stopped)
            sent = time.monotonic()
            yield
            with self._room:
                self._width = min(self._most, self._width + 1 / self._width)
        except Transient as failure:
            with self._room:
                if failure.throttled and sent > self._narrowed:  # one halving for all that were under way
                    self._width = max(1.0, self._width / 2)
                    self._narrowed = time.monotonic()
                self._resume = max(self._resume, time.monotonic() + (failure.retry_after or 0))
            raise
        finally:
            with self._room:
                self._running -= 1
                self._room.notify_all()


def _check(stopped: threading.Event) -> None:
    if stopped.is_set():
        raise BackendError("stopped, since another request failed or the run was interrupted")
