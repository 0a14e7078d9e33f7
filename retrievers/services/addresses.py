"""Addresses of services."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit, urlunsplit

from retrievers.errors import BackendError, InputError, Problem
from retrievers.options.placeholders import expand, hide_values, redact_url

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_KEY_VARIABLE, AZURE_KEY_VARIABLE, OPENAI_URL_VARIABLE = (
    "OPENAI_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "OPENAI_BASE_URL",
)


_ADDRESS = re.compile(r"https?://[^/?#\s:](.*\S)?")


def join_path(url: str, path: str) -> str:
    """Return an address with a path added before its query.

    >>> join_path("https://example.org/openai/deployments/e?api-version=1", "embeddings")
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
                f"{redact_url(written)!r} is an invalid URL",
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


def request_headers(url: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request to a service that speaks JSON: what is given, else the user of the address.

    >>> request_headers("https://me:word@example.org", {})["Authorization"]
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


def without_url_user(url: str) -> str:
    """Return an address without its user and password.

    >>> without_url_user("https://me:word@example.org/v1?key=abc")
    'https://example.org/v1?key=abc'
    """
    parts = urlsplit(url)
    return urlunsplit(
        (parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query, "")
    )


def openai_server_url(base_url: str) -> str:
    """Return the address that is asked: what the experiment says, else OPENAI_BASE_URL, else OpenAI's own."""
    return base_url or os.environ.get(OPENAI_URL_VARIABLE, "").strip() or OPENAI_URL


def is_azure_deployment(url: str) -> bool:
    """Return whether an address is of Azure's older form, which names a deployment and a version of the API."""
    return "/openai/deployments/" in urlsplit(expand(url)).path


def is_azure(url: str) -> bool:
    """Return whether an address is of Azure's own servers."""
    parts = urlsplit(expand(url))
    return parts.scheme == "https" and (parts.hostname or "").endswith(
        ".openai.azure.com"
    )
