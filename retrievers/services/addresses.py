"""Addresses of services."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from retrievers.errors import BackendError, InputError, Problem
from retrievers.options.placeholders import expand, hide_values, redact_url

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_KEY_VARIABLE = "OPENAI_API_KEY"
AZURE_KEY_VARIABLE = "AZURE_OPENAI_API_KEY"
OPENAI_URL_VARIABLE = "OPENAI_BASE_URL"
_ADDRESS = re.compile(r"https?://[^/?#\s:](.*\S)?")


class _Origin(NamedTuple):
    """The parts of an address that identify its server."""

    scheme: str
    host: str | None
    port: int | None


def join_path(url: str, path: str) -> str:
    """Return an address with a path added before its query.

    >>> join_path("https://example.org/v1?api-version=1", "embeddings")
    'https://example.org/v1/embeddings?api-version=1'
    """
    parts = urlsplit(url)
    joined_path = f"{parts.path.rstrip('/')}/{path}"
    return urlunsplit((parts.scheme, parts.netloc, joined_path, parts.query, ""))


def check_address(where: str, address: str) -> None:
    """Refuse an address that no request can be sent to.

    Args:
        where: the option with the address.
        address: it may have `${NAME}`.

    Raises:
        InputError: the address is invalid.
    """
    if not _is_valid_url(expand(address)):
        problem = f"{redact_url(address)!r} is an invalid URL"
        raise InputError(Problem(where, problem, "write https://host/path"))


def _is_valid_url(url: str) -> bool:
    """Return whether requests can be sent to an address.

    `urlsplit` would remove spaces silently, so they are refused first.
    """
    if not _ADDRESS.fullmatch(url) or not url.isprintable():
        return False
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


def is_server_of(url: str, provider_url: str) -> bool:
    """Return whether an address is on the provider's own server.

    Keys in the environment are sent only there.

    >>> is_server_of("https://api.cohere.com/v2/", "https://api.cohere.com")
    True
    >>> is_server_of("http://a.b", "https://a.b")
    False
    """
    origin = _origin(urlsplit(expand(url)))
    return origin == _origin(urlsplit(expand(provider_url)))


def _origin(parts: SplitResult) -> _Origin:
    return _Origin(parts.scheme, parts.hostname, parts.port)


def request_headers(url: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request to a service that speaks JSON.

    Args:
        url: its address; a user in it becomes the header Authorization.
        given: further headers, which replace others with the same name.

    >>> request_headers("https://me:word@example.org", {})["Authorization"]
    'Basic bWU6d29yZA=='

    Raises:
        BackendError: a header has a character that is not allowed.
    """
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    parts = urlsplit(expand(url))
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        encoded_user = base64.b64encode(user.encode()).decode()
        headers["Authorization"] = f"Basic {encoded_user}"
    hide_values(given)
    # Names differ in case only: the given spelling takes the place of the first one.
    name_by_lower = {name.lower(): name for name in headers}
    content_by_lower = {name.lower(): content for name, content in headers.items()}
    for name, content in given.items():
        name_by_lower[name.lower()] = name
        content_by_lower[name.lower()] = expand(content).strip()
    for lower, content in content_by_lower.items():
        if not (content.isascii() and content.isprintable()):
            raise BackendError(
                f"the header {name_by_lower[lower]!r} holds a character that no header "
                "may have, such as a line break: look at the environment variable that "
                "it is from"
            )
    return {name: content_by_lower[lower] for lower, name in name_by_lower.items()}


def without_url_user(url: str) -> str:
    """Return an address without its user and password.

    >>> without_url_user("https://me:word@example.org/v1?key=abc")
    'https://example.org/v1?key=abc'
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, parts.query, ""))


def openai_server_url(base_url: str) -> str:
    """Return the experiment's address, else OPENAI_BASE_URL, else OpenAI's own."""
    return base_url or os.environ.get(OPENAI_URL_VARIABLE, "").strip() or OPENAI_URL


def is_azure_deployment(url: str) -> bool:
    """Return whether an address has Azure's older form.

    It names a deployment and a version of the API.
    """
    return "/openai/deployments/" in urlsplit(expand(url)).path


def is_azure(url: str) -> bool:
    """Return whether an address is on Azure's own servers."""
    parts = urlsplit(expand(url))
    host = parts.hostname or ""
    return parts.scheme == "https" and host.endswith(".openai.azure.com")
