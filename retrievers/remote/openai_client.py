"""OpenAI's SDK, and Azure's, behind the bounded transport: embeddings and chat, of every server with this protocol."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import httpx

from retrievers.remote.http_client import (
    HttpAnswer,
    HttpClient,
    Schema,
    Server,
    ToException,
    is_server_of,
    sent_headers,
    to_exception,
    without_user_part,
)

OPENAI_URL = "https://api.openai.com/v1"
KEY, AZURE_KEY, BASE_URL = "OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "OPENAI_BASE_URL"
_ACCOUNT = ("OpenAI-Organization", "OpenAI-Project")
_NEVER_SENT = "none"
"""Stands for the key where there is none: the SDK asks for one, and its header is left out."""


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


class OpenAIClient:
    """Asks one server by the SDK, once a call; several threads may share it."""

    def __init__(self, server: Server, meaning: ToException = to_exception) -> None:
        """Take the server, and what its refusals mean; the SDK is imported, which takes about a second."""
        import openai

        self.server = server
        self._http = HttpClient(server, meaning)
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
            "http_client": httpx.Client(transport=self._http.transport),
        }
        if by_deployment(server.url):
            options["api_version"] = query.pop("api-version", "")
        kind = openai.AzureOpenAI if by_deployment(server.url) else openai.OpenAI
        self._sdk = kind(default_query=query, **options)

    def ask(self, path: str, body: Mapping[str, Any], schema: type[Schema]) -> Schema:
        """Send one request and return its answer, checked; raises as `HttpClient.ask` does."""
        packed = json.dumps(body).encode()
        return self._http.exchange(lambda: self._post(path, packed), schema)[0]

    def _post(self, path: str, body: bytes) -> HttpAnswer:
        try:
            answer = self._sdk.post(
                f"/{path}", cast_to=httpx.Response, content=body, options={"headers": self._headers}
            )
        except self._refused as refused:
            return HttpAnswer(refused.response.status_code, refused.response.headers, refused.response.content)
        return HttpAnswer(answer.status_code, answer.headers, answer.content)


def _custom_headers() -> list[str]:
    """The names of the headers in OPENAI_CUSTOM_HEADERS, which are for the account's own server."""
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
    return [line.partition(":")[0].strip() for line in lines if ":" in line]
