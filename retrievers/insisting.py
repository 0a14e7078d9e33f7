"""Asking a service again while it may come back: one rule for models, endpoints, stores and storage.

Pauses grow until patience ends, and a line on the screen says what is waited for. A server on this machine that
refuses to be connected to, and has not answered yet, was not started: two tries tell.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

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
Answer = TypeVar("Answer")


class Passing(NamedTuple):
    """A failure that may pass by itself."""

    reason: str
    """Who failed, and how, as messages show it."""
    pause: float | None = None
    """The seconds that the service asks to wait."""
    refused_here: bool = False
    """Whether nothing listens where the service should be, on this machine."""


class Insistence:
    """Asks one service again where a failure may pass; safe for many threads.

    Args:
        passing: what a failure says; None where it does not pass by itself.
        patience: seconds after which no further try is made.
    """

    def __init__(self, passing: Callable[[BaseException], Passing | None], patience: float) -> None:
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

    def _last(self, state: tenacity.RetryCallState) -> Passing:
        failure = state.outcome.exception() if state.outcome else None
        return (failure and self._passing(failure)) or Passing("")

    def _not_started(self, state: tenacity.RetryCallState) -> bool:
        refused = self._last(state).refused_here
        self._answered |= not refused
        return refused and not self._answered and state.attempt_number >= NOT_STARTED

    def _pause(self, state: tenacity.RetryCallState) -> float:
        import tenacity

        if (asked := self._last(state).pause) is not None:
            return asked + tenacity.wait_random(0, FIRST_PAUSE / 2)(state)
        return tenacity.wait_random_exponential(multiplier=FIRST_PAUSE, max=LONGEST_PAUSE)(state)

    def _say(self, state: tenacity.RetryCallState) -> None:
        now = time.monotonic()
        if now - self._said >= SILENCE:
            self._said = now
            left = self.patience - (state.seconds_since_start or 0.0)
            number = state.attempt_number + 1
            log.warning("waiting for %s, try %d, gives up in %.0f s", self._last(state).reason, number, left)
