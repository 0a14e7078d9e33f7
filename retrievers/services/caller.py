"""The requests of one service, tried again while failures pass.

A client sends the request and reads the answer; its own retries are off. An attempt
waits for its turn, reserves its dollars, ends after `timeout` and can be cancelled
(`ServiceCaller`). It is tried again, after pauses that grow, until patience ends
(`Retries`). All of this is awaited on the event loop of `concurrency.py`, which runs in
a thread of its own, so that a model's callers need not be asynchronous.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Generic, NamedTuple

from retrievers.errors import BackendError
from retrievers.meter import Call, Meter, Stop
from retrievers.model import Limits
from retrievers.services.concurrency import POLL_SECONDS, STOPPED_MESSAGE, AnswerType
from retrievers.services.service_errors import RepeatedError, TransientFailure

if TYPE_CHECKING:
    from tenacity import RetryCallState

STORE_PATIENCE = 30.0
"""Seconds after which a store that does not answer is given up; models and endpoints
have their own."""
FIRST_PAUSE = 0.5
"""Seconds before the second try, at most; pauses double, and chance shortens them."""
LONGEST_PAUSE = 30.0
"""Seconds before any try, at most, unless the service asks for more."""
SILENT_SECONDS = 3.0
"""Seconds of a request's tries before the log says what it waits for."""
NOTICE_SECONDS = 10.0
"""Seconds between two log messages about one service."""
MAX_EQUAL_ERRORS = 3
"""Equal errors 500 in a row after which a request is given up. A caller may set fewer,
and gets a RepeatedError, after which it may try something else."""
MAX_UNLIKELY_TRIES = 2
"""Tries of a service that never answered, if nothing seems to listen on this machine,
or only a web page answers."""
_RATE_MARGIN = 1.05
"""How much longer pauses are than the declared limit needs, since clocks and networks
are not exact."""
log = logging.getLogger(__name__)


class RequestCost(NamedTuple):
    """What one request cost, or is expected to cost."""

    tokens: int
    usd: float


NO_COST = RequestCost(0, 0.0)


class PaidAnswer(NamedTuple, Generic[AnswerType]):
    """The checked answer of one attempt, and its cost."""

    answer: AnswerType
    cost: RequestCost


class Retries:
    """Sends the requests of one service again if a failure may pass.

    All its requests run on one event loop.

    Args:
        patience: seconds after which a request that keeps failing is given up; the last
            pause ends with them.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.has_answered = False
        """Whether any request was answered, or failed in a way that often passes.

        Until then, failures that are unlikely to pass end after MAX_UNLIKELY_TRIES.
        """
        self._last_notice = -NOTICE_SECONDS

    async def ask(
        self,
        request: Callable[[], Awaitable[AnswerType]],
        meter: Meter,
        stopped: Stop,
        *,
        max_equal_errors: int = MAX_EQUAL_ERRORS,
    ) -> AnswerType:
        """Send a request until it is answered.

        Args:
            request: sends it once; raises TransientFailure if another try may help.
            meter: counts `retries`.
            stopped: ends the tries when it is set.
            max_equal_errors: equal errors 500 in a row that end the tries.

        Raises:
            RepeatedError: `max_equal_errors` were equal, if that is below
                MAX_EQUAL_ERRORS; else it is a BackendError.
            BackendError: it has failed for good.
        """
        tries = _Tries(self, meter, stopped, max_equal_errors)
        answer = await tries.run(request)
        self.has_answered = True
        return answer

    def notify_waiting(self, state: str) -> None:
        """Log what a request waits for, at most every ten seconds."""
        if time.monotonic() - self._last_notice >= NOTICE_SECONDS:
            self._last_notice = time.monotonic()
            log.warning("waiting for %s", state)


class _Tries:
    """The tries of one request."""

    def __init__(
        self, service: Retries, meter: Meter, stopped: Stop, max_equal_errors: int
    ) -> None:
        import tenacity

        self._max_equal_errors = max_equal_errors
        self._equal_errors = 0
        self._last_error = ""
        """The message of the last error 500."""
        self._service = service
        self._meter = meter
        self._stopped = stopped
        self._started = time.monotonic()
        self._state = ""
        """The last failure and the next try, for the log."""
        self._random_pause = tenacity.wait_random_exponential(
            multiplier=FIRST_PAUSE, max=LONGEST_PAUSE
        )
        self._retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(TransientFailure),
            wait=self._pause,
            stop=self._is_over,
            sleep=self._sleep,
            before_sleep=self._count_retry,
            reraise=True,
        )

    async def run(self, request: Callable[[], Awaitable[AnswerType]]) -> AnswerType:
        """Return the answer; raise BackendError if patience ends."""
        try:
            answer: AnswerType = await self._retrying(request)
        except TransientFailure as last:
            is_repeated = self._equal_errors == self._max_equal_errors
            if is_repeated and self._max_equal_errors < MAX_EQUAL_ERRORS:
                raise RepeatedError(str(last)) from last.__cause__
            if last.unlikely_to_pass and not self._service.has_answered:
                raise BackendError(str(last)) from last.__cause__
            end = self._patience_end()
            if is_repeated:  # patience has not ended
                end = f"the same error {self._equal_errors} times"
            raise BackendError(f"{last} ({end})") from last.__cause__
        return answer

    def _patience_end(self) -> str:
        """Return how often a request was sent until patience ended."""
        tries = self._retrying.statistics["attempt_number"]
        count = "once" if tries == 1 else f"{tries} times"
        seconds = time.monotonic() - self._started
        patience = f"patience = {self._service.patience:g}"
        return f"tried {count} in {seconds:.0f} s; {patience}"

    def _remaining_seconds(self) -> float:
        return max(self._started + self._service.patience - time.monotonic(), 0.0)

    def _is_over(self, state: RetryCallState) -> bool:
        """Return whether there is no further try; called after each that failed."""
        failure = _failure(state)
        if not failure.unlikely_to_pass:
            self._service.has_answered = True
        self._count_equal_errors(failure)
        if self._equal_errors == self._max_equal_errors:
            return True
        if self._stopped.is_set() or not self._remaining_seconds():
            return True
        if self._service.has_answered:
            return False
        return state.attempt_number >= MAX_UNLIKELY_TRIES

    def _count_equal_errors(self, failure: TransientFailure) -> None:
        """Count the errors 500 in a row with the same text."""
        if not failure.is_server_error:
            self._equal_errors = 0
            return
        is_equal = str(failure) == self._last_error
        self._equal_errors = self._equal_errors + 1 if is_equal else 1
        self._last_error = str(failure)

    def _pause(self, state: RetryCallState) -> float:
        """Return the seconds before the next try."""
        seconds = _failure(state).retry_after
        if seconds is None:
            seconds = self._random_pause(state)
        return min(seconds, self._remaining_seconds())

    def _count_retry(self, state: RetryCallState) -> None:
        """Count the next try and describe it."""
        self._meter.count(retries=1)
        end = "the last"
        if self._service.has_answered:
            end = f"gives up in {self._remaining_seconds():.0f} s"
        self._state = f"{_failure(state)}, try {state.attempt_number + 1}, {end}"

    async def _sleep(self, seconds: float) -> None:
        """Wait for the next try, or until the requests are stopped."""
        end = time.monotonic() + seconds
        while (remaining := end - time.monotonic()) > 0 and not self._stopped.is_set():
            if time.monotonic() - self._started >= SILENT_SECONDS:
                self._service.notify_waiting(self._state)
            await asyncio.sleep(min(remaining, POLL_SECONDS))


def _failure(state: RetryCallState) -> TransientFailure:
    """Return the failure of the last try."""
    failure = state.outcome.exception() if state.outcome else None
    return failure if isinstance(failure, TransientFailure) else TransientFailure("")


class ServiceCaller:
    """Sends the requests of one model or endpoint.

    Args:
        limits: the limits of its requests.
        timeout: seconds of one attempt.
        name: returns its name in messages.
    """

    def __init__(self, limits: Limits, timeout: float, name: Callable[[], str]) -> None:
        self._timeout = timeout
        self._name = name
        self._retries = Retries(limits.patience)
        self._seconds_per_request = (
            _RATE_MARGIN * 60 / limits.rpm if limits.rpm else 0.0
        )
        self._seconds_per_token = _RATE_MARGIN * 60 / limits.tpm if limits.tpm else 0.0
        self._next_turn = 0.0

    async def call(
        self,
        attempt: Callable[[], Awaitable[PaidAnswer[AnswerType]]],
        expected_cost: RequestCost,
        call: Call,
        pace_tokens: int,
        *,
        max_equal_errors: int = MAX_EQUAL_ERRORS,
    ) -> AnswerType:
        """Send a request until it succeeds or fails for good, within the budget.

        Args:
            attempt: sends it once; raises TransientFailure if another try may help.
            expected_cost: the cost to reserve.
            call: counts the cost, and stops the request.
            pace_tokens: tokens that count for the rate limit.
            max_equal_errors: equal errors 500 in a row that end the tries.

        Raises:
            RepeatedError: as by `Retries.ask`.
            RequestRefused: the provider refuses the content of the request.
            BackendError: it failed for good; OverBudget before a try that may cost too
                much.
        """

        async def send_once() -> AnswerType:
            await self._wait_for_turn(pace_tokens, call.stopped)
            call.meter.budget.reserve(expected_cost.usd)
            cost = NO_COST
            try:
                async with asyncio.timeout(self._timeout):
                    answer, cost = await attempt()
            except TimeoutError:
                raise TransientFailure(
                    f"{self._name()}: no complete response within {self._timeout:g} s "
                    "(timeout)"
                ) from None
            finally:
                call.meter.budget.release(expected_cost.usd - cost.usd)
                call.meter.count(tokens=cost.tokens, usd=cost.usd)
            call.meter.count(calls=1)
            return answer

        return await self._retries.ask(
            send_once, call.meter, call.stopped, max_equal_errors=max_equal_errors
        )

    async def _wait_for_turn(self, tokens: int, stopped: Stop) -> None:
        """Wait until the declared rate allows a request with these tokens."""
        turn = max(time.monotonic(), self._next_turn)
        pause = max(self._seconds_per_request, tokens * self._seconds_per_token)
        self._next_turn = turn + pause
        while (remaining := turn - time.monotonic()) > 0 and not stopped.is_set():
            await asyncio.sleep(min(remaining, POLL_SECONDS))
        if stopped.is_set():
            raise BackendError(STOPPED_MESSAGE)
