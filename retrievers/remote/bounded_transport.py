"""HTTP transport: a deadline for the whole answer, a limit of size, no redirections, no retries.

httpx bounds each step of a request (to connect, one read, one write), so that a server that sends a byte now and then
is never given up. Here every read and write asks the attempt that it serves how long it may still take.
"""

from __future__ import annotations

import logging
import selectors
import socket
import ssl
import time
import weakref
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from typing import Any

import httpx

from retrievers.errors import BackendError, InputError, Problem
from retrievers.meter import Stop
from retrievers.remote.redaction import without_secrets
from retrievers.retrying import Transient

MOST_BYTES = 256 << 20
"""Bytes of one answer, unpacked, at most: 2,048 vectors of 4,096 dimensions written as decimals take about 180 MB."""
PROXY_REMEDY = "; look at the user and the password in HTTP_PROXY or HTTPS_PROXY"
_REDIRECTIONS = {301, 302, 303, 307, 308}
_WRITTEN_AT_ONCE = 1 << 16
_LOOK = 0.2
"""Seconds between two looks at whether the run was interrupted."""
_OF_THE_CODING = {b"content-encoding", b"content-length", b"content-type", b"transfer-encoding"}
"""Headers of how the bytes are to be read: they are unpacked, and JSON; SDKs would believe a charset that is none."""


@dataclass(slots=True)
class Attempt:
    """One request that is sent: what bounds it, and what became of it."""

    stopped: Stop
    worked: bool = False
    """Whether the service may have worked on it, and so may bill it: it was sent, and not refused."""
    seconds: float = 0.0
    end: float = 0.0
    """By the monotonic clock."""
    peer: str = ""
    """To which host and port the last connection was opened."""
    received: bool = False
    """Whether anything was read since the request was sent."""

    @contextmanager
    def followed(self) -> Iterator[Attempt]:
        """Let what this thread sends inside the block be this attempt."""
        token = _attempt.set(self)
        try:
            yield self
        finally:
            _attempt.reset(token)

    def begin(self, seconds: float) -> None:
        """Let the time of a whole answer begin now."""
        self.seconds, self.end, self.worked = seconds, time.monotonic() + seconds, False

    def left(self) -> float:
        """Return the seconds that are left; raises where there are none, or the run was interrupted."""
        if self.stopped.interrupted:
            raise BackendError("stopped, since the run was interrupted")
        left = self.end - time.monotonic()
        if left <= 0:
            raise Transient(f"no whole answer came within {self.seconds:g} s (timeout)")
        return left

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Follow a request; called by httpcore at each step of it."""
        if event.endswith(".connect_tcp.started"):
            self.peer = f"{info['host']}:{info['port']}"
        elif event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            _bind(info["return_value"])
        elif event.endswith(".send_request_headers.started"):
            self.received = False
        elif event.endswith(".send_request_headers.complete"):
            self.worked = True
        elif event.endswith(".receive_response_headers.complete") and not self.received:
            # h11 keeps what came behind an answer, and httpcore would take it for the answer to the next request.
            raise Transient("an answer was there before it was asked for")


_attempt: ContextVar[Attempt] = ContextVar("attempt")


def note_refused() -> None:
    """Say that the service refused the request that is followed, where one is."""
    if (attempt := _attempt.get(None)) is not None:
        attempt.worked = False


def may_be_billed() -> bool:
    """Return whether the service may have worked on the last request of this thread."""
    attempt = _attempt.get(None)
    return attempt is not None and attempt.worked


class BoundedTransport(httpx.BaseTransport):
    """Sends requests to one server; several threads share its connections, which are opened at the first request.

    Proxies and certificates come from the environment, as httpx reads it.
    """

    def __init__(self, *, timeout: float, connections: int, largest: int = MOST_BYTES) -> None:
        """Take the seconds of a whole answer, the most connections at once, and the bytes of an answer, unpacked."""
        self._timeout = timeout
        self._connections = connections
        self._largest = min(largest, MOST_BYTES)
        self._lock = Lock()
        self._client: httpx.Client | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and return its whole answer, unpacked.

        Raises:
            Transient: no whole answer in time, or the connection broke.
            BackendError: an answer that is too large, a redirection, a certificate or a name that is wrong.
            InputError: the environment names a proxy or a file of certificates that is none.
        """
        client = self._opened()
        with (_attempt.get(None) or Attempt(Stop())).followed() as attempt:
            attempt.begin(self._timeout)
            request.headers["Accept-Encoding"] = "gzip"
            timeouts = dict.fromkeys(("connect", "read", "write", "pool"), self._timeout)
            request.extensions = {"timeout": timeouts, "trace": attempt.trace}
            try:
                answer = client.send(request, stream=True)
                try:
                    body = self._body(answer)
                finally:
                    answer.close()
            except httpx.RequestError as failure:
                raise _to_exception(failure, attempt) from None
            attempt.worked = answer.is_success
        headers = [(name, value) for name, value in answer.headers.raw if name.lower() not in _OF_THE_CODING]
        return httpx.Response(answer.status_code, headers=headers, content=body, request=request)

    def close(self) -> None:
        """Close the connections; the next request opens others."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _body(self, answer: httpx.Response) -> bytes:
        if answer.status_code in _REDIRECTIONS:
            note_refused()
            where = without_secrets(answer.headers.get("location", "nowhere"))
            raise BackendError(f"the server redirects to {where}, which is not followed: write that address instead")
        return unpacked_body(answer.iter_raw(), answer.headers, self._largest)

    def _opened(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                limits = httpx.Limits(max_connections=self._connections, keepalive_expiry=30)
                logging.getLogger("httpx").addFilter(_is_not_ours)
                try:
                    self._client = httpx.Client(limits=limits)
                except ImportError:
                    what = "names a SOCKS proxy, which needs socksio"
                    raise InputError(Problem("HTTP_PROXY", what, "pip install socksio")) from None
                except (ValueError, httpx.InvalidURL):  # its words would repeat the address
                    remedy = "write http://user:password@host:port"
                    what = "holds an invalid address of a proxy"
                    raise InputError(Problem("HTTP_PROXY, HTTPS_PROXY or ALL_PROXY", what, remedy)) from None
                except OSError as failure:
                    what = f"cannot be read: {failure.strerror}"
                    raise InputError(Problem("SSL_CERT_FILE", what, "name a file that is there")) from None
                weakref.finalize(self, self._client.close)  # nobody else knows when the last request was sent
            return self._client


def _bind(stream: Any) -> None:
    """Let every read and write of a connection ask the attempt that it serves how long it may take."""
    read, write = stream.read, stream.write

    def bounded_read(max_bytes: int, timeout: float | None = None) -> bytes:
        attempt = _attempt.get()
        _await_bytes(stream, attempt)
        data: bytes = read(max_bytes, attempt.left())
        attempt.received = True
        return data

    def bounded_write(buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _WRITTEN_AT_ONCE):
            write(buffer[start : start + _WRITTEN_AT_ONCE], _attempt.get().left())

    stream.read, stream.write = bounded_read, bounded_write


def _await_bytes(stream: Any, attempt: Attempt) -> None:
    """Wait until something can be read, and look now and then at whether to go on."""
    secure = stream.get_extra_info("ssl_object")
    if isinstance(secure, ssl.SSLObject):  # TLS within a proxy's TLS: nobody can say what lies between the two
        return
    with selectors.DefaultSelector() as selector:
        selector.register(stream.get_extra_info("socket"), selectors.EVENT_READ)
        while not (secure is not None and secure.pending()) and not selector.select(min(attempt.left(), _LOOK)):
            continue


def _is_not_ours(record: logging.LogRecord) -> bool:
    """Whether a message of httpx's is about somebody else's request: our addresses may hold keys."""
    return _attempt.get(None) is None


def _to_exception(failure: httpx.RequestError, attempt: Attempt) -> Exception:
    """Return what a request that brought no answer means."""
    cause: BaseException = failure
    while (inner := cause.__cause__ or cause.__context__) is not None:
        cause = inner
    if isinstance(cause, ssl.SSLCertVerificationError):
        why = f"the server's certificate is refused: {cause.verify_message}"
        return BackendError(f"{why}; set SSL_CERT_FILE to the authority that signed it")
    if isinstance(cause, socket.gaierror):
        if cause.errno == socket.EAI_AGAIN:
            return Transient(f"the server's name cannot be looked up: {cause.strerror}")
        return BackendError(f"the server's name is not known: {cause.strerror}")
    if isinstance(cause, ssl.SSLError) and "WRONG_VERSION_NUMBER" in str(cause):
        return BackendError("the server does not speak TLS: write http:// in its address")
    if isinstance(failure, httpx.TimeoutException):
        return Transient(f"no whole answer came within {attempt.seconds:g} s (timeout)")
    if isinstance(failure, httpx.ProxyError):
        return BackendError(f"the proxy refuses: {failure}{PROXY_REMEDY}")
    if isinstance(failure, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
        return BackendError(f"the request cannot be sent: {type(failure).__name__}")
    if isinstance(failure, httpx.ConnectError):
        host = attempt.peer.rpartition(":")[0]
        here = isinstance(cause, ConnectionRefusedError) and (host in {"localhost", "::1"} or host.startswith("127."))
        reason = f"{attempt.peer}: {getattr(cause, 'strerror', None) or failure}"
        return Transient(f"no whole answer came: {reason}", refused_here=here)
    return Transient(f"no whole answer came: {failure or type(failure).__name__}")


def unpacked_body(chunks: Iterable[bytes], headers: Mapping[str, str], largest: int) -> bytes:
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
