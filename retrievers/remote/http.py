"""The one door to services behind HTTP: a request goes out, and a whole answer of bounded size comes back in time.

Nothing is followed (a redirection would carry texts and keys to another host), nothing is tried again here, and an
answer is not unpacked beyond the limit.
"""

from __future__ import annotations

import base64
import socket
import ssl
import weakref
import zlib
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

import httpcore
import httpx

from retrievers.errors import BackendError
from retrievers.meter import Stop
from retrievers.remote.faults import Transient
from retrievers.remote.network import BoundedBackend, bounded, note_worked
from retrievers.remote.proxies import PROXY_REMEDY, proxy_for
from retrievers.remote.redaction import without_secrets

MOST_BYTES = 256 << 20
"""Bytes of one answer, unpacked, at most: 2,048 vectors of 4,096 dimensions written as decimals take about 180 MB."""
_REDIRECTIONS = {301, 302, 303, 307, 308}
_IN_ADDRESSES = ";/?:@&=+$,[]#%!'()*~"
"""What stands in an address as it is; a letter such as ü is written as its bytes."""

_PLAIN = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "gzip"}


class HttpAnswer(NamedTuple):
    """What came back, whatever its status."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    """Unpacked."""


class HttpDoor:
    """Sends requests to one address; several threads share its connections, which are opened at the first request."""

    def __init__(self, url: str, *, timeout: float, connections: int, largest: int) -> None:
        """Take the address, the seconds and bytes of a whole answer, and the most connections at once."""
        self._url = url
        self._timeout = timeout
        self._connections = connections
        self._largest = min(largest, MOST_BYTES)
        self._lock = Lock()
        self._pool: httpcore.ConnectionPool | None = None

    def ask(
        self, url: str, body: bytes, headers: Mapping[str, str], stopped: Stop, *, method: str = "POST"
    ) -> HttpAnswer:
        """Send one request.

        Args:
            url: on the server of this door.
            body: JSON, or nothing.
            headers: the key among them.
            stopped: interrupts at once.
            method: POST or GET.

        Raises:
            Transient: no whole answer in time, or the connection broke.
            BackendError: an answer that is too large, a redirection, a certificate or a name that is wrong, a header
                that cannot be sent.
            InputError: the environment names a proxy that is none.
        """
        sent = _headers(url, headers)
        try:
            with bounded(self._timeout, stopped), self._opened().stream(
                method, quote(url, safe=_IN_ADDRESSES), headers=list(sent.items()), content=body
            ) as answer:  # fmt: skip
                names = ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in answer.headers)
                received = dict(names)
                if answer.status in _REDIRECTIONS:
                    note_worked(False)
                    where = without_secrets(received.get("location", "nowhere"))
                    raise BackendError(
                        f"the server redirects to {where}, which is not followed: write that address instead"
                    )
                return HttpAnswer(answer.status, received, _whole(answer.iter_stream(), received, self._largest))
        except ssl.SSLCertVerificationError as failure:
            why = f"the server's certificate is refused: {failure.verify_message}"
            raise BackendError(f"{why}; set SSL_CERT_FILE to the authority that signed it") from None
        except socket.gaierror as failure:
            if failure.errno == socket.EAI_AGAIN:
                raise Transient(f"the server's name cannot be looked up: {failure.strerror}") from None
            raise BackendError(f"the server's name is not known: {failure.strerror}") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as failure:
            if "WRONG_VERSION_NUMBER" in str(failure):
                raise BackendError("the server does not speak TLS: write http:// in its address") from None
            raise Transient(f"no whole answer came: {failure or type(failure).__name__}") from None
        except httpcore.ProxyError as failure:
            raise BackendError(f"the proxy refuses: {failure}{PROXY_REMEDY}") from None
        except httpcore.UnsupportedProtocol as failure:
            raise BackendError(str(failure)) from None

    def _opened(self) -> httpcore.ConnectionPool:
        with self._lock:
            if self._pool is None:
                self._pool = httpcore.ConnectionPool(
                    ssl_context=httpx.create_ssl_context() if self._url.startswith("https") else None,
                    proxy=proxy_for(self._url),
                    max_connections=self._connections,
                    keepalive_expiry=30,
                    network_backend=BoundedBackend(),
                )
                weakref.finalize(self, self._pool.close)  # nobody else knows when the last request was sent
            return self._pool


def _whole(chunks: Iterable[bytes], headers: Mapping[str, str], largest: int) -> bytes:
    """Return a body unpacked; raises BackendError beyond the limit."""
    packing = headers.get("content-encoding", "identity").strip().lower()
    if packing not in {"identity", "", "gzip", "deflate"}:
        raise BackendError(f"the answer is packed as {packing!r}, which nobody asked for")
    unpacking = None if packing in {"identity", ""} else zlib.decompressobj(zlib.MAX_WBITS | 32)
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        if unpacking is not None and unpacking.eof and chunk:  # zlib would keep it, however much there is
            raise Transient("the answer goes on after its end")
        try:
            part = chunk if unpacking is None else unpacking.decompress(chunk, largest + 1 - size)
        except zlib.error:
            raise Transient("the answer cannot be unpacked") from None
        parts.append(part)
        size += len(part)
        if size > largest:
            raise BackendError(f"the answer is larger than {largest >> 20} MiB; set batch_size or depth lower")
    if unpacking is not None and not unpacking.eof:
        raise Transient("the answer breaks off")
    return b"".join(parts)


def _headers(url: str, given: Mapping[str, str]) -> dict[str, str]:
    """What every request carries, then the user of the address, then what is given; whatever the case of a name."""
    sent = {name.lower(): (name, value) for name, value in {**_PLAIN, **_user(url)}.items()}
    sent |= {name.lower(): (name, value.strip()) for name, value in given.items()}
    for name, value in sent.values():
        if not (value.isascii() and value.isprintable()):
            what = f"the header {name!r} holds a character that no header may have, such as a line break"
            raise BackendError(f"{what}: look at the environment variable that it is from")
    return dict(sent.values())


def _user(url: str) -> Mapping[str, str]:
    """The header for the user and password that stand in an address."""
    parts = urlsplit(url)
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
