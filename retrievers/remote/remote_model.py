"""What models behind an API share: key, connection, limits and price; and requests at their pace, tried again, paid."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from retrievers.costs import Price, price_of
from retrievers.errors import BackendError, InputError, Problem, check_not_negative, check_positive
from retrievers.meter import Call
from retrievers.remote.bounded_transport import Attempt, may_be_billed
from retrievers.remote.http_client import HttpClient, Server, check_address, is_server_of
from retrievers.remote.redaction import from_environment, secrets_in
from retrievers.retrying import RetryLoop, TooLong, Transient
from retrievers.types import Counts, Limits

Answer = TypeVar("Answer")
Item = TypeVar("Item")
Part = TypeVar("Part")
_MARGIN = 1.05
"""Requests are sent this much slower than the declared limit, since clocks and networks are not exact."""

_LONGEST_WAIT = 3600.0
"""Seconds between two looks at the clock: no wait may be longer than a few hundred years."""


class RateLimiter:
    """Lets the requests of one encoder or reranker pass: so many at once, so fast, and fewer while throttled.

    The number at once is halved when a request is throttled and grows by one for every round of successes, as TCP
    does (Jacobson 1988); after a Retry-After nothing is sent before it.
    """

    def __init__(self, concurrency: int, *, rpm: float, tpm: float) -> None:
        """Take the most requests at once, and the limits of requests and tokens a minute (0: none)."""
        self._most = concurrency
        self._per_request = _MARGIN * 60 / rpm if rpm else 0.0
        self._per_token = _MARGIN * 60 / tpm if tpm else 0.0
        self._room = threading.Condition()
        self._width = float(concurrency)
        self._running = 0
        self._next = self._resume = self._narrowed = 0.0

    @contextmanager
    def turn(self, tokens: int, stopped: threading.Event) -> Iterator[None]:
        """Wait for the turn of a request of so many tokens, unless it is stopped, and learn from how it ends."""
        with self._room:
            while self._running >= int(self._width):
                self._room.wait(0.5)
                _check(stopped)
            self._running += 1
            at = max(time.monotonic(), self._next)
            self._next = at + max(self._per_request, tokens * self._per_token)
        sent = 0.0
        try:
            while (delay := max(at, self._resume) - time.monotonic()) > 0:
                stopped.wait(min(delay, _LONGEST_WAIT))
                _check(stopped)
            _check(stopped)
            sent = time.monotonic()
            yield
            with self._room:
                self._width = min(self._most, self._width + 1 / self._width)
        except Transient as failure:
            with self._room:
                if failure.throttled and sent > self._narrowed:  # one halving for all that were under way
                    self._width = max(1.0, self._width / 2)
                    self._narrowed = time.monotonic()
                self._resume = max(self._resume, time.monotonic() + (failure.retry_after or 0))
            raise
        finally:
            with self._room:
                self._running -= 1
                self._room.notify_all()


def _check(stopped: threading.Event) -> None:
    if stopped.is_set():
        raise BackendError("stopped, since another request failed or the run was interrupted")


class Charge(NamedTuple):
    """What one request cost, or is expected to cost."""

    tokens: int
    usd: float


class RequestSender:
    """Sends the requests of one model or endpoint; several threads and several retrievers may share it."""

    def __init__(self, limits: Limits) -> None:
        self._limiter = RateLimiter(limits.concurrency, rpm=limits.rpm, tpm=limits.tpm)
        self._retries = RetryLoop(lambda failure: failure if isinstance(failure, Transient) else None, limits.patience)

    def send(
        self, request: Callable[[], tuple[Answer, Charge]], promised: Charge, call: Call, *, pace: int | None = None
    ) -> tuple[Answer, Charge]:
        """Send one request until it succeeds, fails for good, or patience ends, within the budget; count what it cost.

        A request that was sent and not refused may be billed although its answer came too late, or cannot be used: it
        is counted as what was promised, and as `unanswered`. Each further try is promised anew.

        Args:
            request: asks the provider once; returns the answer and its cost. Raises Transient, TooLong or BackendError.
            promised: what it is expected to cost.
            call: for which retriever it is sent, and what stops it; its meter and budget count the cost.
            pace: tokens by which the rate is kept; left out, those that are promised.

        Raises:
            BackendError: for good; OverBudget before anything is sent.
        """

        def paid() -> tuple[Answer, Charge]:
            call.meter.before(promised.usd)
            cost = Charge(0, 0.0)
            try:
                answer, cost = request()
            except BaseException:
                if may_be_billed():
                    cost = promised
                    call.meter.count(unanswered=1)
                raise
            finally:
                call.meter.after(promised.usd, tokens=cost.tokens, usd=cost.usd)
            return answer, cost

        answer, cost = self.ask(paid, promised.tokens if pace is None else pace, call)
        call.meter.count(calls=1)
        return answer, cost

    def ask(self, request: Callable[[], Answer], tokens: int, call: Call) -> Answer:
        """Send one request that nobody bills until it succeeds; each further try counts as a retry.

        Args:
            request: asks once; raises Transient where another try may help.
            tokens: how many the request has, for the pace.
            call: counts retries, and says when all stops.

        Raises:
            BackendError: patience ended; whatever else `request` raises passes through.
        """

        def once() -> Answer:
            with self._limiter.turn(tokens, call.stopped), Attempt(call.stopped).followed():
                return request()

        tries = 1

        def again() -> None:
            nonlocal tries
            tries += 1
            call.meter.count(retries=1)

        started = time.monotonic()
        try:
            return self._retries.ask(once, on_retry=again, stopped=call.stopped)
        except Transient as last:
            took = f"{tries} {'try' if tries == 1 else 'tries'} in {time.monotonic() - started:.0f} s"
            remedy = "; is it running? start it, then run again" if last.refused_here else ""
            patience = f"(patience = {self._retries.patience:g})"
            raise BackendError(f"gave up after {took} {patience}: {last}{remedy}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How a model is reached: its server, its key, and what is sent along."""

    provider: str
    """As genai-prices calls it, or our own rows of prices."""
    own: str = ""
    """The provider's own server; "" where everybody has their own."""
    base_url: str = ""
    """Another server."""
    api_key: str = ""
    """What the experiment gives."""
    variables: tuple[str, ...] = ()
    """Environment variables of the key, which goes to the provider's own server alone."""
    key_header: str = "Authorization"
    headers: Mapping[str, str] = field(default_factory=dict)
    """What else every request carries."""
    sent: tuple[Any, ...] = ()
    """What is sent in bodies: what `${NAME}` stood for in it is shown in no message."""


class RemoteModel:
    """A model behind an API: nothing is sent, and no key looked for, before the first request."""

    service: ClassVar[str] = "a service"
    """To whom texts are sent where the experiment names no address."""
    where: ClassVar[str] = "encoder"
    """The table of the experiment in which the options stand."""

    def __init__(
        self, model: str, access: Access, tokens: int, *, concurrency: int = 8, rpm: float = 0, tpm: float = 0,
        timeout: float = 60, patience: float = 300, price: float | None = None,
    ) -> None:  # fmt: skip
        """Take what the experiment says; nothing is sent.

        Args:
            model: the provider's name for it.
            access: how it is reached.
            tokens: of one text that it reads, at most.
            concurrency: requests at once, at most; fewer while the service throttles.
            rpm: requests a minute that the account may send; 0: unknown.
            tpm: tokens a minute; 0: unknown.
            timeout: seconds for one whole answer.
            patience: seconds after which a request that keeps failing is given up.
            price: dollars for a million tokens; left out, the list price, 0 for a server on this machine, and unknown
                for other servers.

        Raises:
            InputError: a number that cannot be, or an address that is none.
        """
        check_positive(self.where, concurrency=concurrency, timeout=timeout, patience=patience, max_tokens=tokens)
        check_not_negative(self.where, rpm=rpm, tpm=tpm, price=price)
        if access.base_url:
            check_address(f"{self.where}.base_url", access.base_url)
        self.model = model
        self._url = access.base_url or access.own
        self._access = access
        self._timeout, self._own_price = timeout, price
        self._limits = Limits(concurrency, rpm, tpm, patience, tokens)
        self._sender = RequestSender(self._limits)
        self._lock = Lock()
        self._opened: HttpClient | None = None

    @cached_property
    def price(self) -> Price | None:
        """The experiment's price, nothing for a server on this machine, else the list price."""
        return price_of(self._access.provider, self.model, own=self._own_price, base_url=self._access.base_url)

    @property
    def limits(self) -> Limits:
        """The declared limits of the rate, and the tokens of a text."""
        return self._limits

    def check(self) -> None:
        """Look for what a run needs, before it starts: the key.

        Raises:
            InputError: there is none.
        """
        self._key()

    def _key(self) -> str:
        """The experiment's key, else the environment's for the provider's own server; "" for another server."""
        access = self._access
        own = bool(access.own) and is_server_of(self._url, access.own)
        if access.api_key or not own:
            return access.api_key
        for name in access.variables:
            if os.environ.get(name):
                return from_environment(name)
        names, remedy = " or ".join(access.variables), f"export {access.variables[0]}=…"
        raise InputError(Problem(names, "is not set in the environment", remedy))

    def _server(self) -> Server:
        """Where the model is asked, its key looked for."""
        access, key = self._access, self._key()
        bearer = access.key_header == "Authorization"
        header = {access.key_header: f"Bearer {key}" if bearer else key} if key else {}
        return Server(
            self._url, self.model or access.provider, {**header, **access.headers}, (key, *secrets_in(*access.sent)),
            self._timeout, self._limits.concurrency,
        )  # fmt: skip

    def _open(self) -> HttpClient:
        """Make what sends requests; called once."""
        return HttpClient(self._server())

    def _client(self) -> HttpClient:
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def _charge(self, tokens: int, searches: float = 0) -> Charge:
        """What is billed, in dollars where the price is known."""
        return Charge(tokens, 0.0 if self.price is None else self.price.usd(tokens, searches))


class RequestSize:
    """How many texts, or documents, a service takes at once: what is asked for, until it names a number itself."""

    def __init__(self, most: int = 0) -> None:
        """Take the most that is known; 0: all that are given."""
        self._most = most

    def in_requests(
        self,
        items: list[Item],
        send: Callable[[list[Item]], Part],
        otherwise: Callable[[list[Item], TooLong], list[Part]],
    ) -> list[Part]:
        """Send items in as few requests as the service is known to take; `otherwise` treats other refusals.

        Raises:
            BackendError: the service names a number, and then a smaller one.
        """

        def parts(some: list[Item], *, named: bool = False) -> list[Part]:
            try:
                return [send(some)]
            except TooLong as refusal:
                if not (refusal.texts and refusal.texts < len(some)):
                    return otherwise(some, refusal)
                if named:
                    raise BackendError(f"the server takes fewer texts than it said: {refusal}") from None
                self._most = refusal.texts
                return [part for few in self._few(some) for part in parts(few, named=True)]

        return [part for some in self._few(items) for part in parts(some)]

    def _few(self, items: list[Item]) -> list[list[Item]]:
        most = self._most or len(items)
        return [items[start : start + most] for start in range(0, len(items), most)]


def shared_out(total: int, weights: Counts) -> Counts:
    """Divide the billed tokens among the texts by their estimates, so that they add up."""
    ends = np.rint(np.cumsum(weights) * (total / max(int(weights.sum()), 1))).astype(np.int64)
    shares: Counts = ends - np.concatenate([[0], ends[:-1]])
    return shares
