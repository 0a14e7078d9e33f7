"""Clients that send requests to services."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

from retrievers.errors import InputError, Problem
from retrievers.options.placeholders import expand, hide_values
from retrievers.services.addresses import (
    OPENAI_URL,
    is_azure_deployment,
    is_server_of,
    join_path,
    without_url_user,
)
from retrievers.services.service_errors import (
    classify_connection_error,
    classify_response_error,
    explain_unreadable,
)

_ACCOUNT = ("OpenAI-Organization", "OpenAI-Project")
_NEVER_SENT = "none"
"""Stands for the key where there is none: the SDK asks for one, and its header is left out."""


_IN_ADDRESSES = ";/?:@&=+$,[]#%!'()*~"
"""What remains in an address as it is; a letter such as ü is written as its bytes."""


class JsonClient:
    """Sends JSON to one server, and reads JSON."""

    def __init__(self, url: str, headers: Mapping[str, str], name: str) -> None:
        """Take an address as it is written, what every request carries, and what messages call it."""
        import httpx2

        hide_values(url)
        self._url, self._headers, self._name = expand(url), headers, name
        self._http = open_client(httpx2.AsyncClient, timeout=None)
        self._failure = httpx2.RequestError
        self.close_async = self._http.aclose

    async def ask(self, path: str, body: object) -> Any:
        """Send one request to an address below the server's, and return what its answer says."""
        return await self.send(
            "POST", join_path(self._url, path), json.dumps(body).encode()
        )

    async def send(self, method: str, url: str, body: bytes) -> Any:
        """Send one request as it is, and return what its answer says.

        Raises:
            Transient: the failure may pass.
            Refused: the server does not take what is in the request.
            BackendError: for good.
        """
        address = quote(without_url_user(url), safe=_IN_ADDRESSES)
        try:
            answer = await self._http.request(
                method, address, content=body, headers=self._headers
            )
        except self._failure as failure:
            raise classify_connection_error(self._name, url, failure) from None
        return parse_response(answer, self._name)


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
        parts = urlsplit(without_url_user(self._url))
        query = dict(parse_qsl(parts.query))
        azure = is_azure_deployment(self._url)
        version = {"api_version": query.pop("api-version", "")} if azure else {}
        sdk = open_client(
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
            return parse_response(refused.response, self._name)
        except self._errors.APIConnectionError as failure:
            raise classify_connection_error(self._name, self._url, failure) from None
        return parse_response(answer.http_response, self._name)


def parse_response(answer: Any, name: str) -> Any:
    """Return what an answer of the HTTP library says in JSON; raises as `JsonClient.send` where it is none."""
    text = answer.content.decode("utf-8", "replace")
    if not answer.is_success:
        raise classify_response_error(name, answer.status_code, text, answer.headers)
    with explain_unreadable(name, text):
        return json.loads(answer.content)


def open_client(client: Callable[..., Any], **options: Any) -> Any:
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


def _custom_headers() -> list[str]:
    """The names of the headers in OPENAI_CUSTOM_HEADERS, which are for the account's own server."""
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
    return [line.partition(":")[0].strip() for line in lines if ":" in line]
