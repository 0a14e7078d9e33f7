"""Requests: several at once; how one may fail, for now, for its length, or for good; and asking again by one rule.

Pauses grow until patience ends, and a line on the screen says what is waited for. A server on this machine that
refuses to be connected to, and has not answered yet, was not started: two tries tell.
"""

from __future__ import annotations

import logging
import math
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeVar

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
log = logging.getLogger(__name__)
Request = TypeVar("Request")
Answer = TypeVar("Answer")
_LIMIT = re.compile(
    r"(?:maxLength:|(?:maximum|model's) context length is(?: only)?|max input tokens:|maximum input length is"
    r"|must have less than|current batch size:|max)\s*([\d,]*\d)",
    re.IGNORECASE,
)
_LENGTH = re.compile(
    r"(?:actual:|passed|requested|token count:|given:|your request has|input \()\s*([\d,]*\d)", re.IGNORECASE
)
_TOO_LONG = re.compile(
    r"context length|maximum input length|too many (?:input )?tokens|max_tokens_per_request|tokens per request"
    r"|must have less than \d+ tokens|maxLength: \d+|input (?:text |is )*too long|maximum allowed batch"
    r"|is too large to process",
    re.IGNORECASE,
)
_TEXTS = re.compile(
    r"(?:maximum (?:allowed )?batch size(?: of| is)?|batch size limit(?: of)?|number of (?:texts|inputs|documents) "
    r"must be at most|(?:at most|maximum of|limit of|up to) (?=\d+ (?:texts|inputs|requests|documents|items|strings)))"
    r"\s*+:?\s*+(\d+)",
    re.IGNORECASE,
)
_DAY = 86_400.0


class Transient(Exception):
    """A failure that may not happen again: the reason, and how many seconds the provider asks to wait.

    `refused_here`: nothing listens on this machine where the server should be.
    """

    def __init__(
        self, reason: str, *, retry_after: float | None = None, throttled: bool = False, refused_here: bool = False
    ) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        self.throttled = throttled
        self.refused_here = refused_here


class RetryLoop:
    """Asks one service again where a failure may pass; safe for many threads.

    Args:
        passing: a failure as one that may pass by itself; None where it does not.
        patience: seconds after which no further try is made.
    """

    def __init__(self, passing: Callable[[BaseException], Transient | None], patience: float) -> None:
        self.patience = patience
        self._passing = passing
        self._answered = False
        self._said = -SILENCE

    def ask(
        self, request: Callable[[], Answer], *,
        on_retry: Callable[[], None] = lambda: None, stopped: threading.Event | None = None,
    ) -> Answer:  # fmt: skip
        """Send a request until it is answered, or has failed for good; then what it raised last is raised.

        Args:
            request: asks once.
            on_retry: called before each further try.
            stopped: ends a pause, when no further try is wanted.
        """
        import tenacity

        def before_sleep(state: tenacity.RetryCallState) -> None:
            on_retry()
            self._say(state)

        out_of_patience = tenacity.stop_before_delay(self.patience)
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda failure: self._passing(failure) is not None),
            wait=self._pause,
            stop=lambda state: self._not_started(state) or out_of_patience(state),
            sleep=tenacity.sleep if stopped is None else tenacity.sleep_using_event(stopped),
            before_sleep=before_sleep,
            reraise=True,
        )
        answer: Answer = retrying(request)
        self._answered = True
        return answer

    def _last(self, state: tenacity.RetryCallState) -> Transient:
        failure = state.outcome.exception() if state.outcome else None
        return (self._passing(failure) if failure else None) or Transient("")

    def _not_started(self, state: tenacity.RetryCallState) -> bool:
        refused = self._last(state).refused_here
        self._answered |= not refused
        return refused and not self._answered and state.attempt_number >= NOT_STARTED

    def _pause(self, state: tenacity.RetryCallState) -> float:
        import tenacity

        if (asked := self._last(state).retry_after) is not None:
            return asked + tenacity.wait_random(0, FIRST_PAUSE / 2)(state)
        return tenacity.wait_random_exponential(multiplier=FIRST_PAUSE, max=LONGEST_PAUSE)(state)

    def _say(self, state: tenacity.RetryCallState) -> None:
        now = time.monotonic()
        if now - self._said >= SILENCE:
            self._said = now
            last, number = self._last(state), state.attempt_number + 1
            if last.refused_here and not self._answered:
                log.warning("waiting for %s, try %d of %d", last, number, NOT_STARTED)
                return
            left = self.patience - (state.seconds_since_start or 0.0)
            log.warning("waiting for %s, try %d, gives up in %.0f s", last, number, left)


class TooLong(Exception):
    """The provider refuses a request for its length: the limit and the length that it names, if it names them.

    `texts` is the number of texts that a request may have, where that is the reason; never 0.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        texts = _TEXTS.search(reason)
        self.texts = int(texts[1]) or None if texts and len(texts[1]) < 9 else None
        if self.texts is not None:
            self.limit = self.length = None
            self.characters = False
            return
        limit = _LIMIT.search(reason)
        length = _LENGTH.search(reason)
        self.limit = _number(limit)
        self.length = _number(length)
        self.characters = "maxLength" in reason


def says_too_long(message: str) -> bool:
    """Tell whether a refusal is for the length of a text or of a request, in the words of the known providers.

    >>> says_too_long("This model's maximum context length is 8192 tokens, however you requested 9000 tokens")
    True
    """
    return _TOO_LONG.search(message) is not None or _TEXTS.search(message) is not None


def _number(match: re.Match[str] | None) -> int | None:
    """The number in a provider's words; None where there is none, or none that can be meant."""
    return int(match[1].replace(",", "")) if match and len(match[1]) < 13 else None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a provider's headers ask to wait, a number or an HTTP date; a day at most.

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
            return min(max(seconds, 0.0), _DAY)
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
