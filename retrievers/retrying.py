"""Requests: several at once, how one may fail, and asking again by one rule.

Pauses grow until patience ends, and a line on the screen says what is waited for. A server on this machine that
refuses to be connected to, and has not answered yet, was not started: two tries tell.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

from retrievers.meter import Stop

if TYPE_CHECKING:
    import tenacity

PATIENCE = 30.0
"""Seconds after which a store or a storage that does not answer is given up; models and endpoints have their own."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds, at most, before the second try and before any: doubled from try to try, and less by chance."""
SILENCE = 10.0
"""Seconds between two lines about one service."""
NOT_STARTED = 2
"""Tries that tell that nothing listens on this machine."""
LOOK = 0.2
"""Seconds between two looks at whether a pause is still wanted."""
log = logging.getLogger(__name__)
Request = TypeVar("Request")
Answer = TypeVar("Answer")


class Transient(Exception):
    """A failure that may not happen again: the reason, and how many seconds the provider asks to wait.

    `refused_here`: nothing listens on this machine where the server should be.
    """

    def __init__(self, reason: str, *, retry_after: float | None = None, refused_here: bool = False) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        self.refused_here = refused_here


class RetryLoop:
    """Asks one service again where a failure may pass; safe for many threads.

    Args:
        passing: a failure as one that may pass by itself; None where it does not.
        patience: seconds after which a request that keeps failing is given up; the last pause ends with them.
    """

    def __init__(self, passing: Callable[[BaseException], Transient | None], patience: float) -> None:
        self.patience = patience
        self._passing = passing
        self._answered = False
        self._said = -SILENCE

    def ask(self, request: Callable[[], Answer], *, on_retry: Callable[[], None] = lambda: None) -> Answer:
        """Send a request until it is answered, or has failed for good; then what it raised last is raised.

        Args:
            request: asks once.
            on_retry: called before each further try.
        """
        import tenacity

        def say(state: tenacity.RetryCallState) -> None:
            self._say(self._waited_for(state))

        answer: Answer = tenacity.Retrying(**self._rule(on_retry, say, Stop()))(request)
        self._answered = True
        return answer

    async def ask_async(
        self, request: Callable[[], Awaitable[Answer]], on_retry: Callable[[], None], stopped: Stop
    ) -> Answer:
        """Send a request as `ask` does, unless it is `stopped`, which ends a pause."""
        import tenacity

        waited_for = ""

        def say(state: tenacity.RetryCallState) -> None:
            nonlocal waited_for
            waited_for = self._waited_for(state)

        async def sleep(seconds: float) -> None:
            end = time.monotonic() + seconds
            while (left := end - time.monotonic()) > 0 and not stopped.is_set():
                self._say(waited_for)
                await asyncio.sleep(min(left, LOOK))

        answer: Answer = await tenacity.AsyncRetrying(sleep=sleep, **self._rule(on_retry, say, stopped))(request)
        self._answered = True
        return answer

    def _rule(
        self, on_retry: Callable[[], None], say: Callable[[tenacity.RetryCallState], None], stopped: Stop
    ) -> dict[str, Any]:
        import tenacity

        def before_sleep(state: tenacity.RetryCallState) -> None:
            on_retry()
            say(state)

        out_of_patience = tenacity.stop_after_delay(self.patience)
        return {
            "retry": tenacity.retry_if_exception(lambda failure: self._passing(failure) is not None),
            "wait": self._pause,
            "stop": lambda state: stopped.is_set() or self._not_started(state) or out_of_patience(state),
            "before_sleep": before_sleep,
            "reraise": True,
        }

    def _last(self, state: tenacity.RetryCallState) -> Transient:
        failure = state.outcome.exception() if state.outcome else None
        return (self._passing(failure) if failure else None) or Transient("")

    def _not_started(self, state: tenacity.RetryCallState) -> bool:
        refused = self._last(state).refused_here
        self._answered |= not refused
        return refused and not self._answered and state.attempt_number >= NOT_STARTED

    def _pause(self, state: tenacity.RetryCallState) -> float:
        import tenacity

        pause = self._last(state).retry_after
        if pause is None:
            pause = tenacity.wait_random_exponential(multiplier=FIRST_PAUSE, max=LONGEST_PAUSE)(state)
        return max(min(pause, self.patience - (state.seconds_since_start or 0.0)), 0.0)

    def _waited_for(self, state: tenacity.RetryCallState) -> str:
        last, number = self._last(state), state.attempt_number + 1
        if last.refused_here and not self._answered:
            return f"{last}, try {number} of {NOT_STARTED}"
        return f"{last}, try {number}, gives up in {self.patience - (state.seconds_since_start or 0.0):.0f} s"

    def _say(self, waited_for: str) -> None:
        now = time.monotonic()
        if now - self._said >= SILENCE:
            self._said = now
            log.warning("waiting for %s", waited_for)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a provider's headers ask to wait, a number or an HTTP date.

    >>> retry_after({"retry-after": "2.5"}), retry_after({"retry-after": "nan"}), retry_after({})
    (2.5, None, None)
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / unit
        except ValueError:
            seconds = _seconds_until(value)
        if not math.isnan(seconds):
            return max(seconds, 0.0)
    return None


def _seconds_until(date: str) -> float:
    """The seconds to an HTTP date, NaN where it is none."""
    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except (ValueError, OverflowError, OSError):
        return math.nan


def answers(
    ask: Callable[[Request, Stop], Answer], requests: Iterable[Request], *, width: int
) -> Iterator[tuple[Request, Answer]]:
    """Yield each request with its answer in the order of arrival, `width` requests being under way at once.

    When one fails, no further one is sent, those under way are waited for and yielded (they may have been paid
    for), and the first failure is raised at the end. The event that `ask` is given is then set, so that none of them
    tries again. When the caller is interrupted, or stops asking, what is under way is given up.

    Args:
        ask: sends one request; its event belongs to this loop.
        requests: what is sent, in this order; the next one is asked for, in the caller's thread, when there is room.
        width: requests at once.
    """
    waiting = iter(requests)
    running: dict[Future[Answer], Request] = {}
    failure: BaseException | None = None
    stopped = Stop()
    pool = ThreadPoolExecutor(width)
    try:
        while True:
            # Half as many again lie ready, so that no thread idles while the caller treats an answer.
            while failure is None and len(running) < width + width // 2:
                if (request := next(waiting, None)) is None:
                    break
                running[pool.submit(ask, request, stopped)] = request
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                request = running.pop(future)
                if (error := future.exception()) is None:
                    yield request, future.result()
                elif failure is None:
                    failure = error
                    stopped.set()
                    running = {one: some for one, some in running.items() if not one.cancel()}
    except BaseException:
        stopped.interrupt()
        pool.shutdown(wait=False, cancel_futures=True)  # so that the line of a stopped run comes at once
        raise
    pool.shutdown()
    if failure is not None:
        raise failure
