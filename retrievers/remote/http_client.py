"""HTTP client, and OpenAI's SDK: one request, its answer checked against a schema, and no key in any message.

Whatever sends the request (httpx, an SDK here, boto3 elsewhere) goes through `exchange`, so that limits of time and
size, the check of each answer, and the hiding of keys are the same for all.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

import httpx
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from retrievers.errors import BackendError, InputError, Problem
from retrievers.remote.bounded_transport import MOST_BYTES, PROXY_REMEDY, BoundedTransport, note_refused
from retrievers.remote.redaction import Expanded, as_written, beginning_of, redacted, secrets_in, shown, shown_or_hidden
from retrievers.retrying import TooLong, Transient, retry_after, says_too_long

OPENAI_URL = "https://api.openai.com/v1"
KEY, AZURE_KEY, BASE_URL = "OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "OPENAI_BASE_URL"
_ACCOUNT = ("OpenAI-Organization", "OpenAI-Project")
_NEVER_SENT = "none"
"""Stands for the key where there is none: the SDK asks for one, and its header is left out."""
Schema = TypeVar("Schema")
_FOR_NOW = {408, 409, 425, 429}
_FOR_LENGTH = {400, 413, 422}
_REMEDIES = {
    401: "; the key was refused: look at the environment variable that holds it",
    403: "; the key may not use this model",
    404: "; look at the model's name and at the address",
    407: PROXY_REMEDY,
}
_LLAMA = "is too large to process"
"""What llama.cpp says of a long text, with status 500."""
_BEGINNING = 80
_LONGEST_REFUSAL = 1 << 20
"""Bytes of an answer that may be an error in words, at most."""
_IN_ADDRESSES = ";/?:@&=+$,[]#%!'()*~"
"""What stands in an address as it is; a letter such as ü is written as its bytes."""

Item = TypeVar("Item")
Listed = Annotated[list[Item], Field(fail_fast=True)]
"""A list of which the first fault is told alone: of four million, each of which takes half a kilobyte, nobody reads."""
TokenCount = Annotated[int, Field(ge=0, le=10**12)]
"""What a service says that it read or bills."""


class AnswerPart(BaseModel):
    """A part of a service's answer; what else stands in it is ignored."""

    model_config = ConfigDict(frozen=True)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer with a status that is no success."""

    status: int
    headers: Mapping[str, str]
    code: str
    """The service's own code or type of the error, "" where it gives none."""
    words: str
    """The service's own words."""
    message: str
    """Who refused, and the words, keys hidden."""


ToException = Callable[[Refusal], Exception]


def to_exception(refusal: Refusal) -> Exception:
    """Return what the refusal of an ordinary service means for the request."""
    status = refusal.status
    if status == 413 or (status in _FOR_LENGTH and says_too_long(refusal.words)) or _LLAMA in refusal.words:
        return TooLong(refusal.message)
    if status >= 500 or (status in _FOR_NOW and refusal.code != "insufficient_quota"):
        wait = retry_after(refusal.headers)
        return Transient(refusal.message, retry_after=wait, throttled=status in {429, 503})
    return BackendError(refusal.message + _REMEDIES.get(status, ""))


@dataclass(frozen=True, slots=True)
class Server:
    """Where a model is asked, and what every request carries."""

    url: str
    """Its address, as the experiment has it."""
    model: str
    """Which is asked for; "" where the address says it all."""
    headers: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    """What no message may show."""
    timeout: float = 60
    """Seconds for a whole answer."""
    concurrency: int = 8
    largest: int = MOST_BYTES
    """Bytes of an answer, unpacked, at most."""

    @property
    def name(self) -> str:
        """The server and the model as messages call them."""
        return f"{shown(self.url)} ({as_written(self.model)})" if self.model else shown(self.url)


class HttpClient:
    """Asks one server, once a call; several threads may share it."""

    def __init__(self, server: Server, meaning: ToException = to_exception) -> None:
        """Take the server, and what its refusals mean where that is its own affair."""
        self.server = server
        self._to_exception = meaning
        transport = BoundedTransport(timeout=server.timeout, connections=server.concurrency, largest=server.largest)
        self.httpx = httpx.Client(transport=transport)
        """Sends whatever is sent, as it is."""

    def ask(self, path: str, body: Mapping[str, Any], schema: type[Schema]) -> Schema:
        """Send one request and return its answer, checked.

        Args:
            path: joined to the server's address.
            body: what is asked.
            schema: what the answer must be.

        Raises:
            Transient: the failure may pass.
            TooLong: the request is refused for its length.
            BackendError: for good.
        """
        return self.send(joined(self.server.url, path), json.dumps(body).encode(), schema)

    def send(self, url: str, body: bytes, schema: type[Schema], *, method: str = "POST") -> Schema:
        """Send one request as it is, and return its answer, checked."""

        def request() -> httpx.Response:
            headers = sent_headers(url, self.server.headers)
            address = quote(without_user_part(url), safe=_IN_ADDRESSES)
            return self.httpx.request(method, address, content=body, headers=headers)

        return self.exchange(request, schema)[0]

    def exchange(self, request: Callable[[], httpx.Response], schema: type[Schema]) -> tuple[Schema, Mapping[str, str]]:
        """Return the answer to a request, checked, and its headers; failures name the server and show no secret."""
        try:
            answer = request()
        except Transient as failure:
            raise Transient(self._hidden(str(failure)), refused_here=failure.refused_here) from None
        except BackendError as failure:
            raise BackendError(self._hidden(str(failure))) from None
        if not answer.is_success:
            raise self._to_exception(self._refusal(answer))
        adapter: TypeAdapter[Schema] = TypeAdapter(schema)
        try:
            return adapter.validate_json(answer.content), answer.headers
        except ValidationError as error:
            fault = error.errors(include_url=False, include_context=False)[0]
        start = beginning_of(answer.content, _BEGINNING, **self._hiding)
        if fault["type"] == "json_invalid" and not start.startswith("<"):
            raise Transient(self._hidden("an answer that is no whole JSON came back"))
        if error_in(answer.content)[1]:  # an error with the status of a success
            note_refused()
            raise self._to_exception(self._refusal(answer))
        place = ".".join(map(str, fault["loc"]))
        what = "is a page, not JSON" if start.startswith("<") else f"is not of the protocol ({place}: {fault['msg']})"
        raise BackendError(self._hidden(f"the answer {what}; it begins with {start!r}; look at the address"))

    def _refusal(self, answer: httpx.Response) -> Refusal:
        code, words = error_in(answer.content)
        text = words or beginning_of(answer.content, 4 * _BEGINNING, **self._hiding)
        message = self._hidden(f"{answer.status_code} {text}".strip())
        return Refusal(answer.status_code, answer.headers, code, text, message)

    def _hidden(self, message: str) -> str:
        return f"{self.server.name}: {redacted(message, **self._hiding)}"

    @property
    def _hiding(self) -> Mapping[str, list[str]]:
        """What no message may show, and what looks like a key and is none."""
        server = self.server
        kept = [] if isinstance(server.model, Expanded) else [server.model]
        return {"secrets": [*server.secrets, *secrets_in(server.url, server.headers, server.model)], "keep": kept}


def joined(url: str, path: str) -> str:
    """Return an address with a path added before its query.

    >>> joined("https://example.org/openai/deployments/e?api-version=1", "embeddings")
    'https://example.org/openai/deployments/e/embeddings?api-version=1'
    """
    parts = urlsplit(url)
    whole = f"{parts.path.rstrip('/')}/{path}" if path else parts.path
    return urlunsplit((parts.scheme, parts.netloc, whole, parts.query, ""))


def check_address(where: str, url: str) -> None:
    """Refuse an address that no request can be sent to.

    Raises:
        InputError: naming it.
    """
    # urlsplit would take them away in silence: what is asked must be the address that was read.
    if url != url.strip() or not url.isprintable():
        what = f"{shown_or_hidden(url)!r} has a space around it, or a character in it that cannot be seen"
        raise InputError(Problem(where, what, "write the address alone"))
    try:
        parts = urlsplit(url)
        whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        whole = False
    if not whole:
        raise InputError(Problem(where, f"{shown_or_hidden(url)!r} is an invalid URL", "write https://host/path"))


def is_server_of(url: str, own: str) -> bool:
    """Return whether an address is of the server of another: only there does a key of the environment go.

    >>> is_server_of("https://api.cohere.com/v2/", "https://api.cohere.com"), is_server_of("http://a.b", "https://a.b")
    (True, False)
    """
    parts = urlsplit(url), urlsplit(own)
    return len({(one.scheme, one.hostname, one.port) for one in parts}) == 1


def sent_headers(url: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request to a service that speaks JSON: what is given, else the user of the address.

    >>> sent_headers("https://me:word@example.org", {})["Authorization"]
    'Basic bWU6d29yZA=='

    Raises:
        BackendError: a value that no header can have.
    """
    parts = urlsplit(url)
    sent = {"content-type": ("Content-Type", "application/json"), "accept": ("Accept", "application/json")}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        sent["authorization"] = ("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")
    sent |= {name.lower(): (name, value.strip()) for name, value in given.items()}
    for name, value in sent.values():
        if not (value.isascii() and value.isprintable()):
            what = f"the header {name!r} holds a character that no header may have, such as a line break"
            raise BackendError(f"{what}: look at the environment variable that it is from")
    return dict(sent.values())


def without_user_part(url: str) -> str:
    """Return an address without its user and password.

    >>> without_user_part("https://me:word@example.org/v1?key=abc")
    'https://example.org/v1?key=abc'
    """
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query, ""))


def error_in(body: bytes) -> tuple[str, str]:
    """Return the code and the words of an error, in the forms that services use; "" where it has neither.

    >>> error_in(b'{"message": "no such model", "code": 404}'), error_in(b'{"Message": "expired", "__type": "Token"}')
    (('404', 'no such model'), ('Token', 'expired'))
    """
    try:
        content = json.loads(body) if len(body) <= _LONGEST_REFUSAL else None
    except (ValueError, RecursionError):
        return "", ""
    if not isinstance(content, dict):
        return "", ""
    error = content.get("error")
    if isinstance(error, dict):
        return str(error.get("code") or error.get("type") or ""), str(error.get("message") or "")
    kind = str(content.get("error_type") or content.get("code") or content.get("__type") or "")
    for words in (error, content.get("message"), content.get("detail"), content.get("Message")):
        if words:
            return kind, words if isinstance(words, str) else json.dumps(words, ensure_ascii=False)
    return kind, ""


def server_url(base_url: str) -> str:
    """Return the address that is asked: what the experiment says, else OPENAI_BASE_URL, else OpenAI's own."""
    return base_url or os.environ.get(BASE_URL, "").strip() or OPENAI_URL


def by_deployment(url: str) -> bool:
    """Return whether an address is of Azure's older form, which names a deployment and a version of the API."""
    return "/openai/deployments/" in urlsplit(url).path


def is_azure(url: str) -> bool:
    """Return whether an address is of Azure's own servers."""
    parts = urlsplit(url)
    return parts.scheme == "https" and (parts.hostname or "").endswith(".openai.azure.com")


class OpenAIClient(HttpClient):
    """Asks one server by the SDK, once a call; several threads may share it."""

    def __init__(self, server: Server, meaning: ToException = to_exception) -> None:
        """Take the server, and what its refusals mean; the SDK is imported, which takes about a second."""
        import openai

        super().__init__(server, meaning)
        self._refused = openai.APIStatusError
        headers = sent_headers(server.url, server.headers)
        own = is_server_of(server.url, OPENAI_URL)
        absent = {"Authorization", "api-key", *([] if own else [*_ACCOUNT, *_custom_headers()])}
        named = {name.lower() for name in headers}
        omitted = {name: openai.Omit() for name in absent if name.lower() not in named}
        self._headers: dict[str, Any] = {**headers, **omitted}
        parts = urlsplit(without_user_part(server.url))
        query = dict(parse_qsl(parts.query))
        options: dict[str, Any] = {
            "base_url": urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")),
            "api_key": server.headers.get("api-key", _NEVER_SENT),
            "max_retries": 0,
            "http_client": self.httpx,
        }
        if by_deployment(server.url):
            options["api_version"] = query.pop("api-version", "")
        kind = openai.AzureOpenAI if by_deployment(server.url) else openai.OpenAI
        self._sdk = kind(default_query=query, **options)

    def ask(self, path: str, body: Mapping[str, Any], schema: type[Schema]) -> Schema:
        """Send one request and return its answer, checked; raises as `HttpClient.ask` does."""
        content = json.dumps(body).encode()

        def request() -> httpx.Response:
            try:
                answer: httpx.Response = self._sdk.post(
                    f"/{path}", cast_to=httpx.Response, content=content, options={"headers": self._headers}
                )
            except self._refused as refused:
                answer = refused.response
            return answer

        return self.exchange(request, schema)[0]


def _custom_headers() -> list[str]:
    """The names of the headers in OPENAI_CUSTOM_HEADERS, which are for the account's own server."""
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
    return [line.partition(":")[0].strip() for line in lines if ":" in line]
