"""Clients that send requests to services."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

from retrievers.errors import BackendError, InputError, Problem
from retrievers.options.placeholders import error_line, expand, hide_values
from retrievers.services.addresses import (
    OPENAI_URL,
    is_azure_deployment,
    is_server_of,
    join_path,
    without_url_user,
)
from retrievers.services.headers import Headers
from retrievers.services.service_errors import (
    classify_connection_error,
    classify_response_error,
    explain_unreadable,
)

if TYPE_CHECKING:
    import ssl

_OPENAI_ACCOUNT_HEADERS = ("OpenAI-Organization", "OpenAI-Project")
_UNSENT_KEY = "none"
"""The SDK requires a key; if there is none, the key's header is left out."""
_UNQUOTED_CHARACTERS = ";/?:@&=+$,[]#%!'()*~"
"""Characters that stay in a path; a letter such as ü is written as its bytes."""
_PROXY_VARIABLES = "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE"


class JsonClient:
    """Sends JSON to one server, and reads JSON.

    Args:
        url: the server's address, as the experiment has it.
        headers: those of every request besides its own.
        name: the server's name in messages.
    """

    def __init__(self, url: str, headers: Headers, name: str) -> None:
        import httpx2

        hide_values(url)
        self._url = expand(url)
        self._headers = headers.in_request(url)
        self._name = name
        self._http = open_http_client(httpx2.AsyncClient, timeout=None)
        self._connection_error = httpx2.RequestError
        self._url_error = httpx2.InvalidURL
        self.close_async = self._http.aclose

    async def ask(self, path: str, body: object) -> Any:
        """Send one request to a path of the server, and return the JSON of its answer.

        Raises:
            Exception: as by `send`.
        """
        url = join_path(self._url, path)
        return await self.send("POST", url, json.dumps(body).encode())

    async def send(self, method: str, url: str, body: bytes) -> Any:
        """Send one request, and return the JSON of its answer.

        Raises:
            TransientFailure: the failure may pass.
            RequestRefused: the server refuses the content of the request.
            BackendError: the request failed for good.
        """
        try:
            answer = await self._http.request(
                method, request_address(url), content=body, headers=self._headers
            )
        except self._connection_error as failure:
            raise classify_connection_error(self._name, url, failure) from None
        except self._url_error as failure:  # such as one that is too long
            raise BackendError(f"{self._name}: {error_line(str(failure))}") from None
        return parse_response(answer, self._name)


def request_address(url: str) -> str:
    """Return an address without its user, its path and query in ASCII.

    The HTTP library writes the host in ASCII, in a form of its own.

    >>> request_address("https://me:word@bücher.example/süche")
    'https://bücher.example/s%C3%BCche'
    """
    parts = urlsplit(without_url_user(url))
    path = quote(parts.path, safe=_UNQUOTED_CHARACTERS)
    query = quote(parts.query, safe=_UNQUOTED_CHARACTERS)
    return urlunsplit((parts.scheme, parts.netloc, path, query, ""))


class OpenAIClient:
    """OpenAI's SDK for one server; Azure's for the older form of its addresses.

    The SDK is imported when a client is created, which takes about a second.

    Args:
        url: the server's address, as the experiment has it.
        headers: those of every request besides its own.
        name: the server's name in messages.
    """

    def __init__(self, url: str, headers: Headers, name: str) -> None:
        import openai

        hide_values(url)
        self._url = expand(url)
        self._name = name
        self._errors = openai
        sent = headers.in_request(url)
        names_sent = {name.lower() for name in sent}
        self._headers: dict[str, str | openai.Omit] = {**sent}
        for header in self._foreign_headers():
            if header.lower() not in names_sent:
                self._headers[header] = openai.Omit()
        parts = urlsplit(without_url_user(self._url))
        query = dict(parse_qsl(parts.query))
        sdk_class = openai.AsyncOpenAI
        sdk_options = {}
        if is_azure_deployment(self._url):
            sdk_class = openai.AsyncAzureOpenAI
            sdk_options["api_version"] = query.pop("api-version", "")
        http_client = open_http_client(openai.DefaultAsyncHttpxClient, timeout=None)
        sdk = open_client(
            sdk_class,
            http_client=http_client,
            default_query=query,
            max_retries=0,
            timeout=None,
            base_url=urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")),
            api_key=sent.get("api-key", _UNSENT_KEY),
            **sdk_options,
        )
        self.close_async = sdk.close
        # Raw responses: the SDK's own objects take more time than all other steps.
        self.embeddings = sdk.embeddings.with_raw_response.create
        self.completions = sdk.chat.completions.with_raw_response.create

    def _foreign_headers(self) -> set[str]:
        """Return headers that the SDK adds and another server must not receive."""
        headers = {"Authorization", "api-key"}
        if not is_server_of(self._url, OPENAI_URL):
            headers.update(_OPENAI_ACCOUNT_HEADERS, _custom_headers())
        return headers

    async def ask(self, create: Callable[..., Any], **body: Any) -> Any:
        """Call one of the SDK's methods once, and return the JSON of its answer.

        Raises:
            Exception: as by `JsonClient.send`.
        """
        try:
            answer = await create(**body, extra_headers=self._headers)
        except self._errors.APIStatusError as refused:
            return parse_response(refused.response, self._name)
        except self._errors.APIConnectionError as failure:
            raise classify_connection_error(self._name, self._url, failure) from None
        return parse_response(answer.http_response, self._name)


def parse_response(answer: Any, name: str) -> Any:
    """Return the JSON of a response of the HTTP library.

    Raises:
        Exception: as by `JsonClient.send`, if it is not a success, or not JSON.
    """
    text = answer.content.decode("utf-8", "replace")
    if not answer.is_success:
        raise classify_response_error(name, answer.status_code, text, answer.headers)
    with explain_unreadable(name, text):
        return json.loads(answer.content)


def open_http_client(client: Callable[..., Any], **options: Any) -> Any:
    """Create a client of the HTTP library that sends nothing on to another address.

    Raises:
        InputError: the proxies and certificates of the environment cannot be used.
    """
    # The SDK's own client would send texts and keys on to where a server redirects.
    return open_client(
        lambda: client(
            verify=_trusted_certificates(
                os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
            ),
            follow_redirects=False,
            **options,
        )
    )


@lru_cache(maxsize=4)
def _trusted_certificates(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Return the trusted authorities, read once for all clients: it takes 17 ms.

    Args:
        file: SSL_CERT_FILE, which the HTTP library reads itself: a key of the cache.
        folder: SSL_CERT_DIR, likewise.
    """
    import httpx2

    return httpx2.create_ssl_context()


def open_client(client: Callable[..., Any], **options: Any) -> Any:
    """Create a client.

    Raises:
        InputError: the proxies and certificates of the environment cannot be used.
    """
    try:
        return client(**options)
    except (ValueError, TypeError, ImportError, OSError) as failure:
        # The error's own message would show a proxy's password.
        problem = (
            f"no connection can be made with what they hold ({type(failure).__name__})"
        )
        remedy = (
            "http://user:password@host:port; a file that is there; "
            "pip install socksio for SOCKS"
        )
        raise InputError(Problem(_PROXY_VARIABLES, problem, remedy)) from None


def _custom_headers() -> list[str]:
    """Return the headers in OPENAI_CUSTOM_HEADERS, which are for OpenAI's server."""
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
    return [line.partition(":")[0].strip() for line in lines if ":" in line]
