"""The proxy that the environment names for an address, as companies write it."""

from __future__ import annotations

import importlib.util
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from retrievers.errors import InputError, Problem

PROXY_REMEDY = "; look at the user and the password in HTTP_PROXY or HTTPS_PROXY"
_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
"""Of each kind of proxy, where its address names none."""


def proxy_for(url: str) -> httpcore.Proxy | None:
    """Return the proxy that the environment names for an address, None where it names none.

    HTTP_PROXY or HTTPS_PROXY is asked for first, then ALL_PROXY; NO_PROXY goes before all of them.

    Raises:
        InputError: it is no address of a proxy; its password is not shown.
    """
    asked = urlsplit(url)
    known = getproxies()
    name = next((name for name in (asked.scheme, "all") if known.get(name, "").strip()), "")
    if not name or proxy_bypass(asked.hostname or ""):
        return None
    where, written = f"{name.upper()}_PROXY", known[name].strip()
    parts, port = _split(where, written if "://" in written else f"http://{written}")
    if parts.scheme.startswith("socks") and importlib.util.find_spec("socksio") is None:
        raise InputError(Problem(where, "names a SOCKS proxy, which needs socksio", "pip install socksio"))
    user = unquote_to_bytes(parts.username or ""), unquote_to_bytes(parts.password or "")
    return httpcore.Proxy(
        httpcore.URL(scheme=parts.scheme, host=parts.hostname or "", port=port, target="/"),
        auth=user if parts.username else None,
        ssl_context=httpx.create_ssl_context() if parts.scheme == "https" else None,
    )


def _split(where: str, address: str) -> tuple[SplitResult, int]:
    remedy = "write http://user:password@host:port"
    try:
        parts = urlsplit(address)
        port = parts.port
        whole = bool(parts.hostname) and (parts.hostname or "").isascii() and port != 0
    except ValueError:  # its words would repeat the address
        whole = False
    if not whole:
        raise InputError(Problem(where, "is no address of a proxy", remedy))
    if parts.scheme not in _PORTS:
        raise InputError(Problem(where, f"names a proxy of the kind {parts.scheme!r}, which is not known", remedy))
    return parts, port or _PORTS[parts.scheme]
