"""What models behind an API share: their key, connection, limits and price, and requests of fewer texts."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from retrievers.errors import BackendError, InputError, Problem, check_not_negative, check_positive
from retrievers.insisting import TooLong
from retrievers.prices import Price, price_of
from retrievers.remote.http_client import Server, check_address, is_server_of
from retrievers.remote.redaction import from_environment, secrets_in
from retrievers.remote.retries import Charge, RequestSender
from retrievers.types import Counts, Limits


class HasServer(Protocol):
    """What asks a server."""

    server: Server


Client = TypeVar("Client", bound=HasServer)
Item = TypeVar("Item")
Part = TypeVar("Part")


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


class Reads(NamedTuple):
    """How much of one text a model reads."""

    tokens: int
    characters: int = 0
    """0: no limit."""


class RemoteModel(ABC, Generic[Client]):
    """A model behind an API: nothing is sent, and no key looked for, before the first request."""

    service: ClassVar[str] = "a service"
    """To whom texts are sent where the experiment names no address."""
    where: ClassVar[str] = "encoder"
    """The table of the experiment in which the options stand."""

    def __init__(
        self, model: str, access: Access, reads: Reads, *, concurrency: int = 8, rpm: float = 0, tpm: float = 0,
        timeout: float = 60, patience: float = 300, price: float | None = None,
    ) -> None:  # fmt: skip
        """Take what the experiment says; nothing is sent.

        Args:
            model: the provider's name for it.
            access: how it is reached.
            reads: how much of a text.
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
        check_positive(self.where, concurrency=concurrency, timeout=timeout, patience=patience, max_tokens=reads.tokens)
        check_not_negative(self.where, rpm=rpm, tpm=tpm, price=price)
        if access.base_url:
            check_address(f"{self.where}.base_url", access.base_url)
        self.model = model
        self._url = access.base_url or access.own
        self._access = access
        self._timeout, self._own_price = timeout, price
        self._limits = Limits(concurrency, rpm, tpm, patience, *reads)
        self._sender = RequestSender(self._limits)
        self._lock = Lock()
        self._opened: Client | None = None

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

    @abstractmethod
    def _open(self) -> Client:
        """Make what sends requests; called once."""

    def _client(self) -> Client:
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
