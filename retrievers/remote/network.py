"""Connections whose every step ends when the whole request's time is over, or when the run is interrupted.

HTTP libraries bound each step of a request (to connect, one read, one write), so that a server that sends a byte now
and then is never given up. These streams are told, for the request that they serve, until when all of it must be done.
"""

from __future__ import annotations

import errno
import os
import selectors
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import httpcore

from retrievers.errors import BackendError
from retrievers.meter import Stop
from retrievers.remote.faults import Transient

_SLICE = 0.2
"""Seconds between two looks at whether to go on."""
_UNDER_WAY = {errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EALREADY, errno.EINTR}
Result = TypeVar("Result")


class _Bounds(NamedTuple):
    """What bounds one request."""

    seconds: float
    end: float
    """By the monotonic clock."""
    stopped: Stop

    def left(self) -> float:
        """Seconds that the next step may take; raises where there are none."""
        if self.stopped.interrupted:
            raise BackendError("stopped, since the run was interrupted")
        left = self.end - time.monotonic()
        if left <= 0:
            raise Transient(f"no whole answer came within {self.seconds:g} s (timeout)")
        return min(left, _SLICE)


_bounds: ContextVar[_Bounds] = ContextVar("bounds")


@contextmanager
def bounded(seconds: float, stopped: Stop) -> Iterator[None]:
    """Bound all that this thread sends and receives inside the block.

    Raises:
        Transient: the time is over.
        BackendError: the run was interrupted.
    """
    token = _bounds.set(_Bounds(seconds, time.monotonic() + seconds, stopped))
    try:
        yield
    finally:
        _bounds.reset(token)


@dataclass(slots=True)
class Followed:
    """What became of a request."""

    worked: bool = False
    """Whether the service may have worked on it, and so may bill it: it was sent, and not refused."""


_fate: ContextVar[Followed | None] = ContextVar("fate", default=None)


@contextmanager
def followed() -> Iterator[Followed]:
    """Follow the last request that this thread sends inside the block."""
    fate = Followed()
    token = _fate.set(fate)
    try:
        yield fate
    finally:
        _fate.reset(token)


def note_worked(worked: bool) -> None:
    """Say whether the service may have worked on the request that is followed, where one is."""
    if (fate := _fate.get()) is not None:
        fate.worked = worked


class BoundedBackend(httpcore.NetworkBackend):
    """Opens connections for httpcore; used inside `bounded` alone."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address that answers; only the look-up of the name is not bounded."""
        failure: OSError = OSError(f"{host} has no address")
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            connection = socket.socket(family, kind, protocol)
            try:
                _connect(connection, address)
            except OSError as error:
                connection.close()
                failure = error
            except BaseException:
                connection.close()
                raise
            else:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return _Stream(connection)
        raise httpcore.ConnectError(f"{host}:{port}: {failure.strerror or failure}") from failure

    def sleep(self, seconds: float) -> None:
        """Wait; httpcore does so only between its own retries, which are off."""
        time.sleep(seconds)


class _Stream(httpcore.NetworkStream):
    """One connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._patiently(lambda: self._connection.recv(max_bytes), httpcore.ReadError)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        rest = memoryview(buffer)
        while rest:
            sent = self._patiently(lambda: self._connection.send(rest), httpcore.WriteError)  # noqa: B023 - at once
            rest = rest[sent:]
            note_worked(True)  # a connection that fails before has carried nothing

    def close(self) -> None:
        self._connection.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        try:
            secure = ssl_context.wrap_socket(
                self._connection, server_hostname=server_hostname, do_handshake_on_connect=False
            )
            self._connection = secure
            self._patiently(secure.do_handshake, httpcore.ConnectError)
        except BaseException:
            self.close()
            raise
        return _Stream(secure)

    def get_extra_info(self, info: str) -> Any:
        match info:
            case "ssl_object":
                return self._connection if isinstance(self._connection, ssl.SSLSocket) else None
            case "socket":
                return self._connection
            case "is_readable":  # a connection that was kept and has something to say was closed by the server
                return _ready(self._connection, selectors.EVENT_READ, 0)
        return None

    def _patiently(self, step: Callable[[], Result], kind: type[Exception]) -> Result:
        """Try one step, in slices of time, until it is done or the request is over."""
        while True:
            self._connection.settimeout(_bounds.get().left())
            try:
                return step()
            except TimeoutError:
                continue
            except ssl.SSLCertVerificationError:
                raise
            except OSError as failure:
                raise kind(str(failure)) from failure


def _connect(connection: socket.socket, address: Any) -> None:
    connection.setblocking(False)
    error = connection.connect_ex(address)
    while error in _UNDER_WAY:
        if _ready(connection, selectors.EVENT_WRITE, _bounds.get().left()):
            error = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            break
    if error:
        raise OSError(error, os.strerror(error))


def _ready(connection: socket.socket, event: int, seconds: float) -> bool:
    if connection.fileno() < 0:
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(connection, event)
        return bool(selector.select(seconds))
