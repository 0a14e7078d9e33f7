"""The requests of one service, tried again while failures pass.

An SDK sends the request, reads the answer and signs; its own retries are off. An attempt waits for its turn, promises
its dollars, ends after `timeout` and can be cancelled. It is tried again, after pauses that grow, until patience ends.
Everything runs on one event loop in a thread of its own, so that callers need not be asynchronous.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from retrievers.errors import BackendError
from retrievers.meter import Call, Meter, Stop
from retrievers.model import Limits
from retrievers.services.concurrency import POLL_SECONDS, STOPPED_MESSAGE, AnswerType
from retrievers.services.service_errors import TransientFailure

if TYPE_CHECKING:
    from tenacity import RetryCallState

STORE_PATIENCE = 30.0
"""Seconds after which a store that does not answer is given up; models and endpoints have their own."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds, at most, before the second try and before any: doubled from try to try, and less by chance."""
NOTICE_SECONDS = 10.0
"""Seconds between two lines about one service."""
MAX_UNLIKELY_TRIES = 2
"""Tries that tell that nothing listens on this machine, or that a page answers where a service should."""


_MARGIN = 1.05
"""Requests are sent this much slower than the declared limit, since clocks and networks are not exact."""


log = logging.getLogger(__name__)


class RequestCost(NamedTuple):
    """What one request cost, or is expected to cost."""

    tokens: int
    usd: float


class Retries:
    """Asks one service again where a failure may pass; all its requests run on one event loop."""

    def __init__(self, patience: float) -> None:
        """Take the seconds after which a request that keeps failing is given up; the last pause ends with them."""
        self._patience = patience
        self._answered = False
        self._said = -NOTICE_SECONDS

    async def ask(
        self, request: Callable[[], Awaitable[AnswerType]], meter: Meter, stopped: Stop
    ) -> AnswerType:
        """Send a request until it is answered.

        The request asks once, and raises Transient where another try may help; the meter counts `retries`.

        Raises:
            BackendError: it has failed for good.
        """
        import tenacity

        started, waited_for = time.monotonic(), ""
        exponential = tenacity.wait_random_exponential(
            multiplier=FIRST_PAUSE, max=LONGEST_PAUSE
        )

        def left() -> float:
            return max(started + self._patience - time.monotonic(), 0.0)

        def over(state: RetryCallState) -> bool:
            self._answered |= not _failure(state).unlikely_to_pass
            return (
                stopped.is_set()
                or not left()
                or not (self._answered or state.attempt_number < MAX_UNLIKELY_TRIES)
            )

        def pause(state: RetryCallState) -> float:
            after = _failure(state).retry_after
            return min(exponential(state) if after is None else after, left())

        def before_sleep(state: RetryCallState) -> None:
            nonlocal waited_for
            meter.count(retries=1)
            ends = f"gives up in {left():.0f} s" if self._answered else "the last"
            waited_for = f"{_failure(state)}, try {state.attempt_number + 1}, {ends}"

        async def sleep(seconds: float) -> None:
            end = time.monotonic() + seconds
            while (rest := end - time.monotonic()) > 0 and not stopped.is_set():
                if time.monotonic() - self._said >= NOTICE_SECONDS:
                    self._said = time.monotonic()
                    log.warning("waiting for %s", waited_for)
                await asyncio.sleep(min(rest, POLL_SECONDS))

        again = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(TransientFailure),
            wait=pause,
            stop=over,
            sleep=sleep,
            before_sleep=before_sleep,
            reraise=True,
        )
        try:
            answer: AnswerType = await again(request)
        except TransientFailure as last:
            tries = again.statistics["attempt_number"]
            took = f"{tries} {'try' if tries == 1 else 'tries'} in {time.monotonic() - started:.0f} s"
            raise BackendError(
                f"gave up after {took} (patience = {self._patience:g}): {last}"
            ) from last.__cause__
        self._answered = True
        return answer


def _failure(state: RetryCallState) -> TransientFailure:
    failure = state.outcome.exception() if state.outcome else None
    return failure if isinstance(failure, TransientFailure) else TransientFailure("")


class ServiceCaller:
    """Sends the requests of one model or endpoint."""

    def __init__(self, limits: Limits, timeout: float, name: Callable[[], str]) -> None:
        """Take how it may be asked, the seconds of one attempt, and what messages call it."""
        self._timeout, self._name = timeout, name
        self._retries = Retries(limits.patience)
        self._per_request = _MARGIN * 60 / limits.rpm if limits.rpm else 0.0
        self._per_token = _MARGIN * 60 / limits.tpm if limits.tpm else 0.0
        self._next = 0.0

    async def call(
        self,
        attempt: Callable[[], Awaitable[tuple[AnswerType, RequestCost]]],
        expected_cost: RequestCost,
        call: Call,
        pace_tokens: int,
    ) -> AnswerType:
        """Send one request until it succeeds or fails for good, within the budget; count what it cost.

        Args:
            attempt: asks once; returns the answer, checked, and its cost. Raises Transient where another try may help.
            expected_cost: what it is expected to cost.
            call: for which retriever it is sent, and what stops it.
            pace_tokens: tokens by which the rate is kept.

        Raises:
            Refused: the provider does not take what is in it.
            BackendError: for good; OverBudget before anything is sent.
        """

        async def once() -> AnswerType:
            await self._turn(pace_tokens, call.stopped)
            call.meter.budget.reserve(expected_cost.usd)
            cost = RequestCost(0, 0.0)
            try:
                async with asyncio.timeout(self._timeout):
                    answer, cost = await attempt()
            except TimeoutError:
                what = f"no complete response within {self._timeout:g} s (timeout)"
                raise TransientFailure(f"{self._name()}: {what}") from None
            finally:
                call.meter.budget.release(expected_cost.usd - cost.usd)
                call.meter.count(tokens=cost.tokens, usd=cost.usd)
            call.meter.count(calls=1)
            return answer

        return await self._retries.ask(once, call.meter, call.stopped)

    async def _turn(self, tokens: int, stopped: Stop) -> None:
        """Wait until the declared rate allows a request of so many tokens."""
        at = max(time.monotonic(), self._next)
        self._next = at + max(self._per_request, tokens * self._per_token)
        while not stopped.is_set() and (left := at - time.monotonic()) > 0:
            await asyncio.sleep(min(left, POLL_SECONDS))
        if stopped.is_set():
            raise BackendError(STOPPED_MESSAGE)
