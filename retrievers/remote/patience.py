"""The one loop of retries: exponential backoff with jitter, or as long as the provider asks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import tenacity

from retrievers.errors import BackendError
from retrievers.meter import Call
from retrievers.remote.faults import Transient
from retrievers.remote.limits import RateLimiter

Answer = TypeVar("Answer")


def patiently(send: Callable[[], Answer], limiter: RateLimiter, tokens: int, *, patience: float, call: Call) -> Answer:
    """Send one request until it succeeds, fails for good, or patience ends; each further try counts as a retry.

    Args:
        send: asks the provider once; raises Transient where another try may help.
        limiter: lets requests pass at the provider's pace.
        tokens: how many the request has, for the pace.
        patience: seconds after which no further try is made.
        call: counts retries, and says when all stops.

    Raises:
        BackendError: patience ended; whatever else `send` raises passes through.
    """

    def once() -> Answer:
        with limiter.turn(tokens, call.stopped):
            return send()

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(Transient),
        wait=_pause,
        stop=tenacity.stop_before_delay(patience),
        sleep=tenacity.sleep_using_event(call.stopped),
        before_sleep=lambda _: call.meter.count(retries=1),
        reraise=True,
    )
    started = time.monotonic()
    try:
        return retrying(once)
    except Transient as last:
        number = retrying.statistics["attempt_number"]
        tries, seconds = f"{number} {'try' if number == 1 else 'tries'}", f"{time.monotonic() - started:.0f} s"
        raise BackendError(f"gave up after {tries} in {seconds} (patience = {patience:g}): {last}") from None


def _pause(state: tenacity.RetryCallState) -> float:
    failure = state.outcome.exception() if state.outcome is not None else None
    asked = failure.retry_after if isinstance(failure, Transient) else None
    if asked is not None:
        return asked + tenacity.wait_random(0, 0.25)(state)
    return tenacity.wait_random_exponential(multiplier=0.5, max=30)(state)
