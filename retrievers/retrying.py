"""Requests: several at once, how one may fail, and asking again by one rule.

Pauses grow until patience ends, and a line on the screen says what is waited for. A server on this machine that
refuses to be connected to, and has not answered yet, was not started: two tries tell.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import TypeVar

from retrievers.meter import Stop

PATIENCE = 30.0
"""Seconds after which a store or a storage that does not answer is given up; models and endpoints have their own."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds, at most, before the second try and before any: doubled from try to try, and less by chance."""
SILENCE = 10.0
"""Seconds between two lines about one service."""
NOT_STARTED, WRONG_ADDRESS = 2, 3
"""Tries that tell that nothing listens on this machine, and that a page answers where a service should."""
LOOK = 0.2
"""Seconds between two looks at whether a pause is still wanted."""
log = logging.getLogger(__name__)
Request = TypeVar("Request")
Answer = TypeVar("Answer")


class Transient(Exception):
    """A failure that may not happen again."""

    def __init__(self, reason: str, *, retry_after: float | None = None, enough: int | None = None) -> None:
        """Take the reason, and what the provider says or the failure tells.

        Args:
            reason: for people.
            retry_after: seconds that the provider asks to wait.
            enough: tries after which the failure is final, of a service that has never answered; None: it may pass.
        """
        super().__init__(reason)
        self.retry_after, self.enough = retry_after, enough


class RetryLoop:
    """Asks one service again where a failure may pass; all its requests run on one event loop."""

    def __init__(self, patience: float) -> None:
        """Take the seconds after which a request that keeps failing is given up; the last pause ends with them."""
        self._patience = patience
        self._answered = False
        self._said = -SILENCE

    async def ask(
        self, request: Callable[[], Awaitable[Answer]], on_retry: Callable[[], None], stopped: Stop
    ) -> Answer:
        """Send a request until it is answered, or has failed for good; then what it raised last is raised.

        Args:
            request: asks once; raises Transient where another try may help.
            on_retry: called before each further try.
            stopped: ends a pause, and with it the request.
        """
        import tenacity

        waited_for = ""
        exponential = tenacity.wait_random_exponential(multiplier=FIRST_PAUSE, max=LONGEST_PAUSE)

        def last(state: tenacity.RetryCallState) -> Transient:
            failure = state.outcome.exception() if state.outcome else None
            return failure if isinstance(failure, Transient) else Transient("")

        def left(state: tenacity.RetryCallState) -> float:
            return max(self._patience - (state.seconds_since_start or 0.0), 0.0)

        def over(state: tenacity.RetryCallState) -> bool:
            enough = last(state).enough
            self._answered |= enough is None
            told = enough is not None and not self._answered and state.attempt_number >= enough
            return stopped.is_set() or told or not left(state)

        def pause(state: tenacity.RetryCallState) -> float:
            after = last(state).retry_after
            return min(exponential(state) if after is None else after, left(state))

        def before_sleep(state: tenacity.RetryCallState) -> None:
            nonlocal waited_for
            on_retry()
            enough = None if self._answered else last(state).enough
            ends = f", gives up in {left(state):.0f} s" if enough is None else f" of {enough}"
            waited_for = f"{last(state)}, try {state.attempt_number + 1}{ends}"

        async def sleep(seconds: float) -> None:
            end = time.monotonic() + seconds
            while (rest := end - time.monotonic()) > 0 and not stopped.is_set():
                if time.monotonic() - self._said >= SILENCE:
                    self._said = time.monotonic()
                    log.warning("waiting for %s", waited_for)
                await asyncio.sleep(min(rest, LOOK))

        again = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(Transient), wait=pause, stop=over, sleep=sleep,
            before_sleep=before_sleep, reraise=True,
        )  # fmt: skip
        answer: Answer = await again(request)
        self._answered = True
        return answer


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a provider's headers ask to wait, a number or an HTTP date.

    >>> retry_after({"retry-after": "2.5"}), retry_after({"retry-after": "nan"}), retry_after({})
    (2.5, None, None)
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        if name in headers and not math.isnan(seconds := _seconds(headers[name])):
            return max(seconds / unit, 0.0)
    return None


def _seconds(value: str) -> float:
    """A number, or the seconds to an HTTP date; NaN where it is neither."""
    for read in (float, lambda date: parsedate_to_datetime(date).timestamp() - time.time()):
        with suppress(ValueError, OverflowError, OSError):
            return read(value)
    return math.nan


def answers(
    ask: Callable[[Request, Stop], Answer], requests: Iterable[Request], *, width: int
) -> Iterator[tuple[Request, Answer]]:
    """Yield each request with its answer in the order of arrival; as `lots_of_answers`."""
    for lot in lots_of_answers(ask, requests, width=width):
        yield from lot


def lots_of_answers(
    ask: Callable[[Request, Stop], Answer], requests: Iterable[Request], *, width: int
) -> Iterator[list[tuple[Request, Answer]]]:
    """Yield requests with their answers as they arrive, together what came together; `width` are under way at once.

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
    failures: list[BaseException] = []
    stopped = Stop()
    pool = ThreadPoolExecutor(width)
    try:
        while True:
            # Half as many again are ready, so that no thread idles while the caller treats an answer.
            room = 0 if failures else width + width // 2 - len(running)
            running.update((pool.submit(ask, request, stopped), request) for request in islice(waiting, room))
            if not running:
                break
            done = [(running.pop(one), one) for one in wait(running, return_when=FIRST_COMPLETED).done]
            failures += [failure for _, one in done if (failure := one.exception()) is not None]
            if lot := [(request, one.result()) for request, one in done if one.exception() is None]:
                yield lot
            if failures:
                stopped.set()
                running = {one: some for one, some in running.items() if not one.cancel()}
    except BaseException:
        stopped.interrupt()
        pool.shutdown(wait=False, cancel_futures=True)  # so that the line of a stopped run comes at once
        raise
    pool.shutdown()
    if failures:
        raise failures[0]
