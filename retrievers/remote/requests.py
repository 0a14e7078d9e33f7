"""What encoders and rerankers behind an API share: one request, within the limits of the rate and the budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from retrievers.meter import Call
from retrievers.prices import Price
from retrievers.remote.limits import RateLimiter
from retrievers.remote.patience import patiently
from retrievers.types import Limits

Answer = TypeVar("Answer")


class Bill(NamedTuple):
    """What one request is billed for."""

    tokens: int
    """0: the provider does not say."""
    searches: float = 0
    """Of a reranker that is billed by the search."""


class RequestSender:
    """Sends the requests of one encoder or reranker; several threads and several retrievers may share it."""

    def __init__(self, limits: Limits, price: Price | None) -> None:
        """Take the limits, and the price: None where it is not known, so that no dollars are counted."""
        self._price = price
        self._patience = limits.patience
        self._limiter = RateLimiter(limits.concurrency, rpm=limits.rpm, tpm=limits.tpm)

    def send(self, request: Callable[[], tuple[Answer, Bill]], expected: Bill, call: Call) -> tuple[Answer, int]:
        """Send one request until it succeeds, fails for good, or patience ends; settle what it cost.

        Args:
            request: asks the provider once; returns the answer and what was billed. Raises Transient, TooLong or
                BackendError.
            expected: what the request is expected to be billed for, promised to the budget before it is sent.
            call: for which retriever it is sent, and what stops it.

        Returns:
            The answer, and the tokens billed: those expected where the provider does not say.

        Raises:
            BackendError: for good; OverBudget before anything is sent.
        """
        promised = self._usd(expected)
        call.meter.before(promised)
        billed = Bill(0)
        try:
            answer, stated = patiently(request, self._limiter, expected.tokens, patience=self._patience, call=call)
            billed = Bill(stated.tokens or expected.tokens, stated.searches or expected.searches)
        finally:
            call.meter.after(promised, tokens=billed.tokens, usd=self._usd(billed))
        call.meter.count(calls=1)
        return answer, billed.tokens

    def _usd(self, bill: Bill) -> float:
        return 0.0 if self._price is None else self._price.usd(*bill)
