"""Requests to providers at their pace: within the limits of the rate, tried again while it helps, within the budget."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from retrievers.errors import BackendError
from retrievers.insisting import Insistence, Transient
from retrievers.meter import Call
from retrievers.remote.bounded_transport import Attempt, may_be_billed
from retrievers.types import Limits

Answer = TypeVar("Answer")
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


class Charge(NamedTuple):
    """What one request cost, or is expected to cost."""

    tokens: int
    usd: float


class RequestSender:
    """Sends the requests of one model or endpoint; several threads and several retrievers may share it."""

    def __init__(self, limits: Limits) -> None:
        self._limiter = RateLimiter(limits.concurrency, rpm=limits.rpm, tpm=limits.tpm)
        self._insistence = Insistence(
            lambda failure: failure if isinstance(failure, Transient) else None, limits.patience
        )

    def send(
        self, request: Callable[[], tuple[Answer, Charge]], promised: Charge, call: Call, *, pace: int | None = None
    ) -> tuple[Answer, Charge]:
        """Send one request until it succeeds, fails for good, or patience ends, within the budget; count what it cost.

        A request that was sent and not refused may be billed although its answer came too late, or cannot be used: it
        is counted as what was promised, and as `unanswered`. Each further try is promised anew.

        Args:
            request: asks the provider once; returns the answer and its cost. Raises Transient, TooLong or BackendError.
            promised: what it is expected to cost.
            call: for which retriever it is sent, and what stops it; its meter and budget count the cost.
            pace: tokens by which the rate is kept; left out, those that are promised.

        Raises:
            BackendError: for good; OverBudget before anything is sent.
        """

        def paid() -> tuple[Answer, Charge]:
            call.meter.before(promised.usd)
            cost = Charge(0, 0.0)
            try:
                answer, cost = request()
            except BaseException:
                if may_be_billed():
                    cost = promised
                    call.meter.count(unanswered=1)
                raise
            finally:
                call.meter.after(promised.usd, tokens=cost.tokens, usd=cost.usd)
            return answer, cost

        answer, cost = self.ask(paid, promised.tokens if pace is None else pace, call)
        call.meter.count(calls=1)
        return answer, cost

    def ask(self, request: Callable[[], Answer], tokens: int, call: Call) -> Answer:
        """Send one request that nobody bills until it succeeds; each further try counts as a retry.

        Args:
            request: asks once; raises Transient where another try may help.
            tokens: how many the request has, for the pace.
            call: counts retries, and says when all stops.

        Raises:
            BackendError: patience ended; whatever else `request` raises passes through.
        """

        def once() -> Answer:
            with self._limiter.turn(tokens, call.stopped), Attempt(call.stopped).followed():
                return request()

        tries = 1

        def again() -> None:
            nonlocal tries
            tries += 1
            call.meter.count(retries=1)

        started = time.monotonic()
        try:
            return self._insistence.ask(once, on_retry=again, stopped=call.stopped)
        except Transient as last:
            took = f"{tries} {'try' if tries == 1 else 'tries'} in {time.monotonic() - started:.0f} s"
            remedy = "; is it running? start it, then run again" if last.refused_here else ""
            patience = f"(patience = {self._insistence.patience:g})"
            raise BackendError(f"gave up after {took} {patience}: {last}{remedy}") from None
