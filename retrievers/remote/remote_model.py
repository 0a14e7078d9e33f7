"""What models behind an API share: their key, connection, limits and price, and how texts are packed for them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from retrievers.errors import InputError, Problem, check_not_negative, check_positive
from retrievers.meter import Call
from retrievers.prices import Price, price_of
from retrievers.remote.http_client import Server, check_address, is_server_of
from retrievers.remote.redaction import as_written, from_environment, secrets_in, shown
from retrievers.remote.splitting import EmbeddingReply, EmbeddingRequests, packed
from retrievers.tokens import Tokens, estimate
from retrievers.types import Embedded, Encoder, Limits, Role

Client = TypeVar("Client")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How a model is reached: its server, its key, and what an answer may take and cost."""

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
    timeout: float = 60
    """Seconds for one whole answer."""
    price: float | None = None
    """The experiment's, dollars for a million tokens."""


class RemoteModel(ABC, Generic[Client]):
    """A model behind an API: nothing is sent, and no key looked for, before the first request."""

    service: ClassVar[str] = "a service"
    """To whom texts are sent where the experiment names no address."""

    def __init__(self, where: str, model: str, access: Access, limits: Limits) -> None:
        """Take what the experiment's table `where` says.

        Raises:
            InputError: a number that cannot be, or an address that is none.
        """
        check_positive(where, concurrency=limits.concurrency, timeout=access.timeout, patience=limits.patience,
                       max_tokens=limits.tokens)  # fmt: skip
        check_not_negative(where, rpm=limits.rpm, tpm=limits.tpm, price=access.price)
        if access.base_url:
            check_address(f"{where}.base_url", access.base_url)
        self.model = model
        self._url = access.base_url or access.own
        self._access = access
        self._limits = limits
        self._lock = Lock()
        self._opened: Client | None = None

    @cached_property
    def price(self) -> Price | None:
        """The experiment's price, nothing for a server on this machine, else the list price."""
        access = self._access
        return price_of(access.provider, self.model, own=access.price, base_url=access.base_url)

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
        own = bool(self._access.own) and is_server_of(self._url, self._access.own)
        return key_of(self._access.api_key, *self._access.variables) if own else self._access.api_key

    def _server(self) -> Server:
        """Where the model is asked, its key looked for."""
        access, key = self._access, self._key()
        bearer = access.key_header == "Authorization"
        header = {access.key_header: f"Bearer {key}" if bearer else key} if key else {}
        return Server(
            self._url, self.model or access.provider, {**header, **access.headers}, (key, *secrets_in(*access.sent)),
            access.timeout, self._limits.concurrency,
        )  # fmt: skip

    @abstractmethod
    def _open(self) -> Client:
        """Make what sends requests; called once."""

    def _client(self) -> Client:
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
            return self._opened


class Packing(NamedTuple):
    """How many texts and tokens a request may have."""

    size: int
    total: int
    """Tokens of all texts."""
    alone: int
    """Tokens from which a text goes alone."""


class RemoteEncoder(RemoteModel[Client], Encoder):
    """An encoder behind an API, of which each provider says what one request is, and what comes back."""

    def __init__(
        self, model: str, access: Access, limits: Limits, packing: Packing, *,
        dimensions: int | None = None, prompts: Mapping[Role, str] | None = None,
    ) -> None:  # fmt: skip
        """Take what the experiment says; `prompts` are put before every text of their role."""
        super().__init__("encoder", model, access, limits)
        check_positive("encoder", batch_size=packing.size, dimensions=1 if dimensions is None else dimensions)
        self._packing = packing
        self._dimensions = dimensions
        self._prompts: Mapping[Role, str] = prompts or {"query": "", "document": ""}
        self._requests = EmbeddingRequests(limits, lambda: self.price, count=lambda texts: self._counted(texts).counts)

    @abstractmethod
    def _send(self, texts: list[str], role: Role) -> EmbeddingReply:
        """Ask the provider once; raises Transient, TooLong or BackendError."""

    def _counted(self, texts: Sequence[str]) -> Tokens:
        """Count the tokens that would be billed; no network."""
        return Tokens(estimate(texts), exact=False)

    def _described(self, **more: str) -> Mapping[str, str]:
        """What the manifest keeps."""
        prompts = {f"{role}_prompt": as_written(prompt) for role, prompt in self._prompts.items() if prompt}
        dimensions = {} if self._dimensions is None else {"dimensions": str(self._dimensions)}
        return {"model": as_written(self.model), "source": shown(self._url), **prompts, **more, **dimensions}

    def count(self, texts: Sequence[str], role: Role) -> Tokens:
        """Count the tokens that would be billed, the prompt's among them; no network."""
        return self._counted([self._prompts[role] + text for text in texts])

    def batches(self, texts: Sequence[str], role: Role) -> Iterator[Sequence[int]]:
        """Pack texts into requests by their tokens, those that may be too long alone."""
        return packed(np.minimum(self.count(texts, role).counts, self._limits.tokens), *self._packing)

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Send one request; `tokens` are shared out from what the provider billed."""
        self._client()  # before the clock of the rate runs: loading an SDK takes a while
        prompted = [self._prompts[role] + text for text in texts]
        return self._requests.embed(prompted, lambda some: self._send(some, role), call)


def check_batch_size(batch_size: int, most: int, provider: str) -> None:
    """Refuse more texts a request than a provider takes.

    Raises:
        InputError: naming the limit.
    """
    if batch_size > most:
        raise InputError(Problem("encoder.batch_size", f"{batch_size} is above {provider}'s {most}"))


def key_of(given: str, *variables: str) -> str:
    """Return the key that an experiment gives, else the first environment variable that is set.

    Args:
        given: the experiment's `api_key`, its `${NAME}` replaced.
        variables: names of environment variables, in the order in which they are looked at.

    Raises:
        InputError: there is none.
    """
    if given:
        return given
    for name in variables:
        if os.environ.get(name):
            return from_environment(name)
    remedy = f"export {variables[0]}=…, or give api_key"
    raise InputError(Problem(" or ".join(variables), "is not set in the environment", remedy))
