"""A model behind an API.

What encoders, rerankers and chat models share: options, key, price, one client. The
subclass sends the requests, through `caller.py`.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
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
from retrievers.services.addresses import check_address, is_server_of
from retrievers.services.caller import RequestCost, ServiceCaller
from retrievers.services.clients import JsonClient
from retrievers.services.concurrency import AnswerType, close_later
from retrievers.services.headers import NO_HEADERS, Header, Headers
from retrievers.services.service_errors import RequestRefused
from retrievers.texts.token_estimate import Counts

if TYPE_CHECKING:
    from pydantic import SecretStr

MAX_BILLED_TOKENS = 1e12
"""A service that reports more tokens for one request is wrong."""


@dataclass(frozen=True, slots=True)
class EndpointAccess:
    """How a model is reached, with `${NAME}` for values of the environment."""

    provider: str
    """Its name in genai-prices, or in this package's table of prices."""
    provider_url: str = ""
    """The server to which the environment's key may be sent, and the default; empty if
    there is none. It need not be the provider's own (OPENAI_BASE_URL)."""
    base_url: str = ""
    """The server, if it is another."""
    api_key: str = ""
    """The experiment's key."""
    key_variables: tuple[str, ...] = ()
    """Environment variables of the key, which is sent only to `provider_url`; the first
    that is set has it."""
    key_header: str = "Authorization"
    """The header of the key."""
    headers: Headers = NO_HEADERS
    """Further headers of every request."""


class RemoteModel(Configured):
    """A model behind an API.

    Creating it sends nothing, and looks for no key.
    """

    expands: ClassVar[bool] = True
    """Whether it receives options with `${NAME}`, and replaces them itself."""
    table_name: ClassVar[str] = "encoder"
    """The table of the experiment with the options."""
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
    """Dollars for a million tokens; left out, the list price, 0 for a server on this
    machine, and unknown for other servers."""
    _access: EndpointAccess = PrivateAttr()
    _limits: Limits = PrivateAttr()
    _caller: ServiceCaller = PrivateAttr()
    _lock: Lock = PrivateAttr(default_factory=Lock)
    _opened: Any = None

    def _set_access(self, access: EndpointAccess, tokens: int) -> None:
        """Set how it is reached, and the tokens of one text that it reads, at most.

        A subclass calls this once, when it is created.

        Raises:
            InputError: the address is invalid.
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
        """The server of requests, with `${NAME}` for values of the environment."""
        return self._access.base_url or self._access.provider_url

    @property
    def name(self) -> str:
        """The server and the model in messages."""
        return f"{redact_url(self._url)} ({self.model or self._access.provider})"

    @cached_property
    def price(self) -> Price | None:
        """The experiment's price, else 0 on this machine, else the list price."""
        model, url = expand((self.model, self._access.base_url))
        return find_price(
            self._access.provider, model, given_price=self.given_price, base_url=url
        )

    @property
    def limits(self) -> Limits:
        """The declared limits of requests, and the tokens of a text."""
        return self._limits

    def check(self) -> None:
        """Check that there is a key.

        Raises:
            InputError: the key is not set.
        """
        self._key()

    def _key(self) -> SecretStr | None:
        """Return the experiment's key, or the environment's for the provider's server.

        None for another server without a key in the experiment.

        Raises:
            InputError: the key is not set.
        """
        access = self._access
        if access.api_key:
            return resolve_secret(access.api_key)
        # Addresses with ${NAME} are expanded there.
        if not (access.provider_url and is_server_of(self._url, access.provider_url)):
            return None
        for name in access.key_variables:
            if os.environ.get(name):
                return resolve_secret(f"${{{name}}}")
        variables = " or ".join(access.key_variables)
        remedy = f"export {access.key_variables[0]}=…"
        raise InputError(Problem(variables, "is not set in the environment", remedy))

    def _headers(self) -> Headers:
        """Return the headers of every request, with the key."""
        access = self._access
        key = self._key()
        headers = access.headers
        if key:
            bearer = "Bearer " if access.key_header == "Authorization" else ""
            key_header = Header(access.key_header, bearer + key.get_secret_value())
            headers = headers.with_first(key_header)
        return headers

    def _open(self) -> Any:
        """Create the client; called once."""
        return JsonClient(self._url, self._headers(), self.name)

    def _client(self) -> Any:
        """Return the client, which the first call creates.

        Raises:
            InputError: a key is missing.
        """
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
                close = getattr(self._opened, "close_async", None)
                if close is not None:
                    weakref.finalize(self, close_later, close)
            return self._opened

    def _billed_cost(self, tokens: int, searches: float = 0) -> RequestCost:
        """Return the cost of tokens and searches; 0 dollars if the price is unknown."""
        usd = 0.0 if self.price is None else self.price.usd(tokens, searches)
        return RequestCost(tokens, usd)


async def split_when_refused(
    texts: list[str], send: Callable[[list[str]], Awaitable[AnswerType]]
) -> list[AnswerType]:
    """Send texts in one request; a refused request is split in half, and so on.

    Returns:
        The answer of each accepted request, in the order of the texts.

    Raises:
        RequestRefused: one text alone is refused.
    """
    try:
        return [await send(texts)]
    except RequestRefused:
        if len(texts) <= 1:
            raise
    half = (len(texts) + 1) // 2
    answers = await split_when_refused(texts[:half], send)
    answers += await split_when_refused(texts[half:], send)
    return answers


def billed_tokens(reported: object, minimum: int = 1) -> int:
    """Return the tokens that a service reports as billed.

    0 if they are not plausible: the caller then uses its estimate.

    Args:
        reported: what the service says, of any type.
        minimum: the fewest that such a request has.

    >>> billed_tokens(12), billed_tokens("12"), billed_tokens(2, minimum=3)
    (12, 0, 0)
    >>> billed_tokens(float("nan"))
    0
    """
    if not isinstance(reported, int | float):
        return 0
    return int(reported) if minimum <= reported <= MAX_BILLED_TOKENS else 0


def share_by_weight(total: int, weights: Counts) -> Counts:
    """Divide billed tokens among texts by weight, such as their estimated tokens.

    The shares are whole numbers whose sum is `total`, unless all weights are 0: the
    running sums are rounded, and a share is the difference of two.
    """
    tokens_per_weight = total / max(int(weights.sum()), 1)
    ends = np.rint(np.cumsum(weights) * tokens_per_weight).astype(np.int64)
    shares: Counts = ends - np.concatenate([[0], ends[:-1]])
    return shares
