"""What models behind an API share: key, address, limits and price; and the clients that send for them."""

from __future__ import annotations

import base64
import json
import os
import re
import weakref
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

import numpy as np
from pydantic import Field, PrivateAttr

from retrievers.calling import (
    Answer,
    Caller,
    Charge,
    Refused,
    close_later,
    readable,
    refusal,
    unanswered,
)
from retrievers.costs import Price, price_of
from retrievers.errors import BackendError, InputError, Problem
from retrievers.options import Configured, NotNegative, Positive, Whole
from retrievers.placeholders import expand, hide_values, secret, shown
from retrievers.types import Counts, Limits

if TYPE_CHECKING:
    from pydantic import SecretStr

OPENAI_URL = "https://api.openai.com/v1"
KEY, AZURE_KEY, BASE_URL = "OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "OPENAI_BASE_URL"
_ACCOUNT = ("OpenAI-Organization", "OpenAI-Project")
_NEVER_SENT = "none"
"""Stands for the key where there is none: the SDK asks for one, and its header is left out."""
_ADDRESS = re.compile(r"https?://[^/?#\s:](.*\S)?")
_IN_ADDRESSES = ";/?:@&=+$,[]#%!'()*~"
"""What remains in an address as it is; a letter such as ü is written as its bytes."""


@dataclass(frozen=True, slots=True)
class Access:
    """How a model is reached, as written in the experiment, with `${NAME}` for values of the environment."""

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


class RemoteModel(Configured):
    """A model behind an API: nothing is sent, and no key looked for, before the first request."""

    expands: ClassVar[bool] = True
    where: ClassVar[str] = "encoder"
    """The table of the experiment that holds the options."""
    first = "model"
    model: str
    """The provider's name for it."""
    at_once: Whole = Field(default=8, alias="concurrency")
    """Requests at once, at most."""
    rpm: NotNegative = 0
    """Requests a minute that the account may send; 0: unknown."""
    tpm: NotNegative = 0
    """Tokens a minute; 0: unknown."""
    timeout: Positive = 60
    """Seconds of one attempt, its whole answer read."""
    patience: Positive = 300
    """Seconds after which a request that keeps failing is given up."""
    own_price: NotNegative | None = Field(default=None, alias="price")
    """Dollars for a million tokens; left out, the list price, 0 for a server on this machine, and unknown for other
    servers."""
    _access: Access = PrivateAttr()
    _limits: Limits = PrivateAttr()
    _caller: Caller = PrivateAttr()
    _lock: Lock = PrivateAttr(default_factory=Lock)
    _opened: Any = None

    def _reached(self, access: Access, tokens: int) -> None:
        """Take how it is reached, and the tokens of one text that it reads, at most.

        Raises:
            InputError: a number that cannot be, or an address that is none.
        """
        if access.base_url:
            check_address(f"{self.where}.base_url", access.base_url)
        self._access = access
        self._limits = Limits(self.at_once, self.rpm, self.tpm, self.patience, tokens)
        self._caller = Caller(self._limits, self.timeout, lambda: self.name)

    @property
    def _url(self) -> str:
        return self._access.base_url or self._access.own

    @property
    def name(self) -> str:
        """The server and the model as messages call them."""
        return f"{shown(self._url)} ({self.model or self._access.provider})"

    @cached_property
    def price(self) -> Price | None:
        """The experiment's price, nothing for a server on this machine, else the list price."""
        model, url = expand((self.model, self._access.base_url))
        return price_of(self._access.provider, model, own=self.own_price, base_url=url)

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
            return secret(access.api_key)
        if not (access.own and is_server_of(self._url, access.own)):
            return None
        for name in access.variables:
            if os.environ.get(name):
                return secret(f"${{{name}}}")
        names, remedy = " or ".join(access.variables), f"export {access.variables[0]}=…"
        raise InputError(Problem(names, "is not set in the environment", remedy))

    def _headers(self) -> dict[str, str]:
        """What every request carries, the key among it."""
        access, key = self._access, self._key()
        bearer = "Bearer " if access.key_header == "Authorization" else ""
        own = {access.key_header: bearer + key.get_secret_value()} if key else {}
        return sent_headers(self._url, {**own, **access.headers})

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

    def _charge(self, tokens: int, searches: float = 0) -> Charge:
        """What is billed, in dollars where the price is known."""
        return Charge(
            tokens, 0.0 if self.price is None else self.price.usd(tokens, searches)
        )


class JsonClient:
    """Sends JSON to one server, and reads JSON."""

    def __init__(self, url: str, headers: Mapping[str, str], name: str) -> None:
        """Take an address as it is written, what every request carries, and what messages call it."""
        import httpx2

        hide_values(url)
        self._url, self._headers, self._name = expand(url), headers, name
        self._http = opened(httpx2.AsyncClient, timeout=None)
        self._failure = httpx2.RequestError
        self.close_async = self._http.aclose

    async def ask(self, path: str, body: object) -> Any:
        """Send one request to an address below the server's, and return what its answer says."""
        return await self.send(
            "POST", joined(self._url, path), json.dumps(body).encode()
        )

    async def send(self, method: str, url: str, body: bytes) -> Any:
        """Send one request as it is, and return what its answer says.

        Raises:
            Transient: the failure may pass.
            Refused: the server does not take what is in the request.
            BackendError: for good.
        """
        address = quote(without_user_part(url), safe=_IN_ADDRESSES)
        try:
            answer = await self._http.request(
                method, address, content=body, headers=self._headers
            )
        except self._failure as failure:
            raise unanswered(self._name, url, failure) from None
        return content_of(answer, self._name)


class OpenAIClient:
    """OpenAI's SDK for one server, Azure's for its older form of addresses."""

    def __init__(self, url: str, headers: Mapping[str, str], name: str) -> None:
        """Take an address as it is written; the SDK is imported, which takes about a second."""
        import openai

        hide_values(url)
        self._url, self._name, self._errors = expand(url), name, openai
        absent = {"Authorization", "api-key"}
        if not is_server_of(self._url, OPENAI_URL):
            absent.update(_ACCOUNT, _custom_headers())
        named = {header.lower() for header in headers}
        self._headers = {
            **headers,
            **{one: openai.Omit() for one in absent if one.lower() not in named},
        }
        parts = urlsplit(without_user_part(self._url))
        query = dict(parse_qsl(parts.query))
        azure = by_deployment(self._url)
        version = {"api_version": query.pop("api-version", "")} if azure else {}
        sdk = opened(
            openai.AsyncAzureOpenAI if azure else openai.AsyncOpenAI,
            default_query=query,
            max_retries=0,
            timeout=None,
            base_url=urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")),
            api_key=headers.get("api-key", _NEVER_SENT),
            **version,
        )
        self.close_async = sdk.close
        # The answer as it came: the SDK's own objects cost more than all else on the way.
        self.embeddings = sdk.embeddings.with_raw_response.create
        self.completions = sdk.chat.completions.with_raw_response.create

    async def ask(self, create: Callable[..., Any], **body: Any) -> Any:
        """Call one of the SDK's methods once, and return what the answer says; raises as `JsonClient.send`."""
        try:
            answer = await create(**body, extra_headers=self._headers)
        except self._errors.APIStatusError as refused:
            return content_of(refused.response, self._name)
        except self._errors.APIConnectionError as failure:
            raise unanswered(self._name, self._url, failure) from None
        return content_of(answer.http_response, self._name)


def content_of(answer: Any, name: str) -> Any:
    """Return what an answer of the HTTP library says in JSON; raises as `JsonClient.send` where it is none."""
    text = answer.content.decode("utf-8", "replace")
    if not answer.is_success:
        raise refusal(name, answer.status_code, text, answer.headers)
    with readable(name, text):
        return json.loads(answer.content)


def opened(client: Callable[..., Any], **options: Any) -> Any:
    """Make a client; raises InputError where the proxies and certificates of the environment cannot be used."""
    try:
        return client(**options)
    except (
        ValueError,
        TypeError,
        ImportError,
        OSError,
    ) as failure:  # whose words would repeat a proxy's password
        what = (
            f"no connection can be made with what they hold ({type(failure).__name__})"
        )
        remedy = "http://user:password@host:port; a file that is there; pip install socksio for SOCKS"
        raise InputError(
            Problem("HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE", what, remedy)
        ) from None


async def in_halves(
    items: list[str], send: Callable[[list[str]], Awaitable[Answer]]
) -> list[Answer]:
    """Send what may be refused together in as few requests as the service takes; raises Refused for one alone."""
    try:
        return [await send(items)]
    except Refused:
        if len(items) == 1:
            raise
    half = (len(items) + 1) // 2
    return [
        part
        for some in (items[:half], items[half:])
        for part in await in_halves(some, send)
    ]


def joined(url: str, path: str) -> str:
    """Return an address with a path added before its query.

    >>> joined("https://example.org/openai/deployments/e?api-version=1", "embeddings")
    'https://example.org/openai/deployments/e/embeddings?api-version=1'
    """
    parts = urlsplit(url)
    return urlunsplit(
        (
            parts.scheme,
            parts.netloc,
            f"{parts.path.rstrip('/')}/{path}",
            parts.query,
            "",
        )
    )


def check_address(where: str, written: str) -> None:
    """Refuse an address that no request can be sent to.

    Raises:
        InputError: naming it.
    """
    url: str = expand(written)
    try:
        # urlsplit would take spaces away in silence: what is asked must be the address that was read.
        whole = (
            bool(_ADDRESS.fullmatch(url))
            and url.isprintable()
            and urlsplit(url).port != 0
        )
    except ValueError:
        whole = False
    if not whole:
        raise InputError(
            Problem(
                where,
                f"{shown(written)!r} is an invalid URL",
                "write https://host/path",
            )
        )


def is_server_of(url: str, own: str) -> bool:
    """Return whether an address is of the server of another: only there does a key of the environment go.

    >>> is_server_of("https://api.cohere.com/v2/", "https://api.cohere.com"), is_server_of("http://a.b", "https://a.b")
    (True, False)
    """
    parts = urlsplit(expand(url)), urlsplit(expand(own))
    return len({(one.scheme, one.hostname, one.port) for one in parts}) == 1


def sent_headers(url: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request to a service that speaks JSON: what is given, else the user of the address.

    >>> sent_headers("https://me:word@example.org", {})["Authorization"]
    'Basic bWU6d29yZA=='

    Raises:
        BackendError: a value that no header can have.
    """
    parts = urlsplit(expand(url))
    sent = {
        "content-type": ("Content-Type", "application/json"),
        "accept": ("Accept", "application/json"),
    }
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        sent["authorization"] = (
            "Authorization",
            f"Basic {base64.b64encode(pair.encode()).decode()}",
        )
    hide_values(given)
    sent |= {
        name.lower(): (name, expand(value).strip()) for name, value in given.items()
    }
    for name, value in sent.values():
        if not (value.isascii() and value.isprintable()):
            what = f"the header {name!r} holds a character that no header may have, such as a line break"
            raise BackendError(
                f"{what}: look at the environment variable that it is from"
            )
    return dict(sent.values())


def without_user_part(url: str) -> str:
    """Return an address without its user and password.

    >>> without_user_part("https://me:word@example.org/v1?key=abc")
    'https://example.org/v1?key=abc'
    """
    parts = urlsplit(url)
    return urlunsplit(
        (parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query, "")
    )


def server_url(base_url: str) -> str:
    """Return the address that is asked: what the experiment says, else OPENAI_BASE_URL, else OpenAI's own."""
    return base_url or os.environ.get(BASE_URL, "").strip() or OPENAI_URL


def by_deployment(url: str) -> bool:
    """Return whether an address is of Azure's older form, which names a deployment and a version of the API."""
    return "/openai/deployments/" in urlsplit(expand(url)).path


def is_azure(url: str) -> bool:
    """Return whether an address is of Azure's own servers."""
    parts = urlsplit(expand(url))
    return parts.scheme == "https" and (parts.hostname or "").endswith(
        ".openai.azure.com"
    )


def billed(said: object, least: int = 1) -> int:
    """Return how many tokens a service says that it bills, 0 where it does not say or cannot mean it.

    >>> billed(12), billed("12"), billed(float("nan")), billed(2, least=3)
    (12, 0, 0, 0)
    """
    return int(said) if isinstance(said, int | float) and least <= said <= 1e12 else 0


def shared_out(total: int, weights: Counts) -> Counts:
    """Divide the billed tokens among the texts by their estimates, so that they add up."""
    ends = np.rint(np.cumsum(weights) * (total / max(int(weights.sum()), 1))).astype(
        np.int64
    )
    shares: Counts = ends - np.concatenate([[0], ends[:-1]])
    return shares


def _custom_headers() -> list[str]:
    """The names of the headers in OPENAI_CUSTOM_HEADERS, which are for the account's own server."""
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
    return [line.partition(":")[0].strip() for line in lines if ":" in line]
