"""What encoders and rerankers behind an API share: one request, within the limits of the rate and the budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from retrievers.meter import Call
from retrievers.prices import Price
from retrievers.remote.limits import RateLimiter
from retrievers.remote.network import followed
from retrievers.remote.patience import patiently
from retrievers.types import Limits

Answer = TypeVar("Answer")


class Bill(NamedTuple):
    """What one request is billed for."""

    tokens: int
    """0: the provider does not say."""
    searches: float = 0
    """Of a reranker that is billed by the search."""


class Charge(NamedTuple):
    """What one request cost, or is expected to cost."""

    tokens: int
    usd: float


class RequestSender:
    """Sends the requests of one encoder or reranker; several threads and several retrievers may share it."""

    def __init__(self, limits: Limits, price: Price | None) -> None:
        """Take the limits, and the price: None where it is not known, so that no dollars are counted."""
        self._price = price
        self._patience = limits.patience
        self._limiter = RateLimiter(limits.concurrency, rpm=limits.rpm, tpm=limits.tpm)

    def send(self, request: Callable[[], tuple[Answer, Bill]], expected: Bill, call: Call) -> tuple[Answer, int]:
        """Send one request until it succeeds, fails for good, or patience ends; count what each try cost.

        Args:
            request: asks the provider once; returns the answer and what was billed. Raises Transient, TooLong or
                BackendError.
            expected: what the request is expected to be billed for, promised to the budget before each try.
            call: for which retriever it is sent, and what stops it.

        Returns:
            The answer, and the tokens billed: those expected where the provider does not say.

        Raises:
            BackendError: for good; OverBudget before anything is sent.
        """
        promised = self._cost(expected)

        def once() -> tuple[Answer, Charge]:
            answer, stated = request()
            return answer, self._cost(Bill(stated.tokens or expected.tokens, stated.searches or expected.searches))

        def paid() -> tuple[Answer, Charge]:
            return pay(once, promised, call)

        answer, cost = patiently(paid, self._limiter, expected.tokens, patience=self._patience, call=call)
        call.meter.count(calls=1)
        return answer, cost.tokens

    def _cost(self, bill: Bill) -> Charge:
        return Charge(bill.tokens, 0.0 if self._price is None else self._price.usd(*bill))


def pay(request: Callable[[], tuple[Answer, Charge]], promised: Charge, call: Call) -> tuple[Answer, Charge]:
    """Ask once, within the budget, and count what it cost.

    A request that was sent and not refused may be billed although its answer came too late, or cannot be used: it is
    counted as what was promised, and as `unanswered`. Each further try is promised anew.

    Args:
        request: asks the provider; returns the answer and its cost.
        promised: what it is expected to cost.
        call: whose meter and budget count it.

    Raises:
        BackendError: OverBudget before anything is sent; whatever else `request` raises passes through.
    """
    call.meter.before(promised.usd)
    cost = Charge(0, 0.0)
    with followed() as fate:
        try:
            answer, cost = request()
        except BaseException:
            if fate.worked:
                cost = promised
                call.meter.count(unanswered=1)
            raise
        finally:
            call.meter.after(promised.usd, tokens=cost.tokens, usd=cost.usd)
    return answer, cost
