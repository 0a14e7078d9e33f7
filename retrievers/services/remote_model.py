"""A model behind an API."""

from __future__ import annotations

import os
import weakref
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field, PrivateAttr

from retrievers.errors import InputError, Problem
from retrievers.model import Limits
from retrievers.options.placeholders import expand, redact_url, resolve_secret
from retrievers.options.tables import (
    Configured,
    NonNegativeNumber,
    PositiveInt,
    PositiveNumber,
)
from retrievers.prices import Price, find_price
from retrievers.services.addresses import check_address, is_server_of, request_headers
from retrievers.services.caller import RequestCost, ServiceCaller
from retrievers.services.clients import JsonClient
from retrievers.services.concurrency import AnswerType, close_later
from retrievers.services.service_errors import RequestRefused
from retrievers.texts.token_estimate import Counts

if TYPE_CHECKING:
    from pydantic import SecretStr


@dataclass(frozen=True, slots=True)
class EndpointAccess:
    """How a model is reached, as written in the experiment, with `${NAME}` for values of the environment."""

    provider: str
    """As genai-prices calls it, or our own rows of prices."""
    provider_url: str = ""
    """The provider's own server; "" where everybody has their own."""
    base_url: str = ""
    """Another server."""
    api_key: str = ""
    """What the experiment gives."""
    key_variables: tuple[str, ...] = ()
    """Environment variables of the key, which goes to the provider's own server alone."""
    key_header: str = "Authorization"
    headers: Mapping[str, str] = field(default_factory=dict)
    """What else every request carries."""


class RemoteModel(Configured):
    """A model behind an API: nothing is sent, and no key looked for, before the first request."""

    expands: ClassVar[bool] = True
    table_name: ClassVar[str] = "encoder"
    """The table of the experiment that holds the options."""
    positional_option = "model"
    model: str
    """The provider's name for it."""
    max_requests: PositiveInt = Field(default=8, alias="concurrency")
    """Requests at once, at most."""
    rpm: NonNegativeNumber = 0
    """Requests a minute that the account may send; 0: unknown."""
    tpm: NonNegativeNumber = 0
    """Tokens a minute; 0: unknown."""
    timeout: PositiveNumber = 60
    """Seconds of one attempt, its whole answer read."""
    patience: PositiveNumber = 300
    """Seconds after which a request that keeps failing is given up."""
    given_price: NonNegativeNumber | None = Field(default=None, alias="price")
    """Dollars for a million tokens; left out, the list price, 0 for a server on this machine, and unknown for other
    servers."""
    _access: EndpointAccess = PrivateAttr()
    _limits: Limits = PrivateAttr()
    _caller: ServiceCaller = PrivateAttr()
    _lock: Lock = PrivateAttr(default_factory=Lock)
    _opened: Any = None

    def _reached(self, access: EndpointAccess, tokens: int) -> None:
        """Take how it is reached, and the tokens of one text that it reads, at most.

        Raises:
            InputError: a number that cannot be, or an address that is none.
        """
        if access.base_url:
            check_address(f"{self.table_name}.base_url", access.base_url)
        self._access = access
        self._limits = Limits(
            self.max_requests, self.rpm, self.tpm, self.patience, tokens
        )
        self._caller = ServiceCaller(self._limits, self.timeout, lambda: self.name)

    @property
    def _url(self) -> str:
        return self._access.base_url or self._access.provider_url

    @property
    def name(self) -> str:
        """The server and the model as messages call them."""
        return f"{redact_url(self._url)} ({self.model or self._access.provider})"

    @cached_property
    def price(self) -> Price | None:
        """The experiment's price, nothing for a server on this machine, else the list price."""
        model, url = expand((self.model, self._access.base_url))
        return find_price(
            self._access.provider, model, given_price=self.given_price, base_url=url
        )

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

    def _key(self) -> SecretStr | None:
        """The experiment's key, else the environment's for the provider's own server; None for another server."""
        access = self._access
        if access.api_key:
            return resolve_secret(access.api_key)
        if not (access.provider_url and is_server_of(self._url, access.provider_url)):
            return None
        for name in access.key_variables:
            if os.environ.get(name):
                return resolve_secret(f"${{{name}}}")
        names, remedy = (
            " or ".join(access.key_variables),
            f"export {access.key_variables[0]}=…",
        )
        raise InputError(Problem(names, "is not set in the environment", remedy))

    def _headers(self) -> dict[str, str]:
        """What every request carries, the key among it."""
        access, key = self._access, self._key()
        bearer = "Bearer " if access.key_header == "Authorization" else ""
        own = {access.key_header: bearer + key.get_secret_value()} if key else {}
        return request_headers(self._url, {**own, **access.headers})

    def _open(self) -> Any:
        """Make what sends requests; called once."""
        return JsonClient(self._url, self._headers(), self.name)

    def _client(self) -> Any:
        """What sends requests; the first call loads an SDK, or tells that a key is missing."""
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
                if (close := getattr(self._opened, "close_async", None)) is not None:
                    weakref.finalize(self, close_later, close)
            return self._opened

    def _charge(self, tokens: int, searches: float = 0) -> RequestCost:
        """What is billed, in dollars where the price is known."""
        return RequestCost(
            tokens, 0.0 if self.price is None else self.price.usd(tokens, searches)
        )


async def split_when_refused(
    items: list[str], send: Callable[[list[str]], Awaitable[AnswerType]]
) -> list[AnswerType]:
    """Send what may be refused together in as few requests as the service takes; raises Refused for one alone."""
    try:
        return [await send(items)]
    except RequestRefused:
        if len(items) == 1:
            raise
    half = (len(items) + 1) // 2
    return [
        part
        for some in (items[:half], items[half:])
        for part in await split_when_refused(some, send)
    ]


def billed_tokens(said: object, least: int = 1) -> int:
    """Return how many tokens a service says that it bills, 0 where it does not say or cannot mean it.

    >>> billed_tokens(12), billed_tokens("12"), billed_tokens(float("nan")), billed_tokens(2, least=3)
    (12, 0, 0, 0)
    """
    return int(said) if isinstance(said, int | float) and least <= said <= 1e12 else 0


def share_by_weight(total: int, weights: Counts) -> Counts:
    """Divide the billed tokens among the texts by their estimates, so that they add up."""
    ends = np.rint(np.cumsum(weights) * (total / max(int(weights.sum()), 1))).astype(
        np.int64
    )
    shares: Counts = ends - np.concatenate([[0], ends[:-1]])
    return shares
