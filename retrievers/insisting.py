"""Asking a store or a storage again while it is away for a moment: pauses that double, and a line that says so."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import tenacity

ATTEMPTS = 6
FIRST_PAUSE = 0.5
"""Seconds, doubled from attempt to attempt unless the other side names a time: 15.5 seconds in all."""
log = logging.getLogger(__name__)
Answer = TypeVar("Answer")


class Insistence:
    """Asks one service again where a failure may pass; safe for many threads.

    Args:
        address: as messages show it.
        passing: whether a failure may pass by itself.
        on_retry: called before each further attempt.
        asked_pause: the seconds that a failure asks to wait, None where it names none.
    """

    def __init__(
        self,
        address: str,
        passing: Callable[[BaseException], bool],
        on_retry: Callable[[], None] = lambda: None,
        asked_pause: Callable[[BaseException], float | None] = lambda error: None,
    ) -> None:
        self._address, self._passing, self._on_retry, self._asked_pause = address, passing, on_retry, asked_pause
        self._waiting = False

    def ask(self, request: Callable[[], Answer], attempts: int | None = None) -> Answer:
        """Send a request until it is answered, or has failed for good; then what it raised last is raised."""
        import tenacity

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(self._passing),
            wait=self._pause,
            stop=tenacity.stop_after_attempt(attempts or ATTEMPTS),
            before_sleep=self._before_sleep,
            reraise=True,
        )
        answer: Answer = retrying(request)
        self._waiting = False
        return answer

    def _before_sleep(self, state: tenacity.RetryCallState) -> None:
        self._on_retry()
        if not self._waiting:
            self._waiting = True
            log.warning("%s does not answer: waiting for it, with pauses of a few seconds", self._address)

    def _pause(self, state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = None if error is None else self._asked_pause(error)
        return FIRST_PAUSE * 2.0 ** (state.attempt_number - 1) if asked is None else asked
