"""Addresses of services."""

from __future__ import annotations

import os
import re
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit, urlunsplit

from retrievers.errors import InputError, Problem
from retrievers.options.placeholders import expand, redact_url

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_KEY_VARIABLE = "OPENAI_API_KEY"
AZURE_KEY_VARIABLE = "AZURE_OPENAI_API_KEY"
OPENAI_URL_VARIABLE = "OPENAI_BASE_URL"
_DEFAULT_PORTS = {"http": 80, "https": 443}
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
        address: it may have `${NAME}`, which stays as it is if it is not set.

    Raises:
        InputError: the address is invalid.
    """
    if not is_valid_url(expand(address)):
        problem = f"{redact_url(address)!r} is an invalid URL"
        raise InputError(Problem(where, problem, "write https://host/path"))


def is_valid_url(url: str) -> bool:
    """Return whether requests can be sent to an address.

    It has a host. Spaces may be in its path alone: `urlsplit` would drop leading ones,
    tabs and line breaks silently.

    >>> is_valid_url("https://a.b/c d"), is_valid_url("https://a b/")
    (True, False)
    >>> is_valid_url("https://me@/c"), is_valid_url(" https://a.b")
    (False, False)
    """
    if not _ADDRESS.fullmatch(url) or not url.isprintable():
        return False
    try:
        parts = urlsplit(url)
        is_valid_port = parts.port != 0
    except ValueError:
        return False
    return is_valid_port and bool(parts.hostname) and " " not in parts.netloc


def is_server_of(url: str, provider_url: str) -> bool:
    """Return whether an address is on the provider's own server.

    Keys in the environment are sent only there.

    >>> is_server_of("https://api.cohere.com/v2/", "https://api.cohere.com")
    True
    >>> is_server_of("http://a.b", "https://a.b")
    False
    >>> is_server_of("https://a.b:443", "https://a.b")
    True
    """
    origin = _origin(urlsplit(expand(url)))
    return origin == _origin(urlsplit(expand(provider_url)))


def _origin(parts: SplitResult) -> _Origin:
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    return _Origin(parts.scheme, parts.hostname, port)


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


def openai_key_variable(base_url: str) -> str:
    """Return the environment variable of the key of an experiment's chat server.

    OPENAI_API_KEY for OpenAI's own server and that of OPENAI_BASE_URL, which an empty
    address means; empty for any other server, which must not receive that key.

    >>> openai_key_variable("http://localhost:8000/v1"), openai_key_variable("")
    ('', 'OPENAI_API_KEY')
    """
    is_own = not base_url or is_server_of(base_url, OPENAI_URL)
    return OPENAI_KEY_VARIABLE if is_own else ""


def is_azure_deployment(url: str) -> bool:
    """Return whether an address has Azure's older form.

    It names a deployment and a version of the API, on any host: gateways have it, too.
    The SDK has a client of its own for it.
    """
    return "/openai/deployments/" in urlsplit(expand(url)).path


def is_azure(url: str) -> bool:
    """Return whether an address is on Azure's own servers."""
    parts = urlsplit(expand(url))
    host = parts.hostname or ""
    return parts.scheme == "https" and host.endswith(".openai.azure.com")
