"""A connection to a Qdrant server: refused where it cannot work, insisted on where trying again may help."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from retrievers.errors import BackendError, HarnessError, InputError, Problem
from retrievers.meter import Meter
from retrievers.remote.faults import Transient
from retrievers.remote.redaction import redacted, shown
from retrievers.stores.transport import DoorTransport

if TYPE_CHECKING:
    import tenacity
    from qdrant_client import QdrantClient

ATTEMPTS = 6
FIRST_PAUSE = 0.5
"""Seconds, doubled from attempt to attempt unless the server names a time."""
TIMEOUT = 120
PASSING = {408, 429, 500, 502, 503, 504, "UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "ABORTED"}
REFUSED = {401, 403, "UNAUTHENTICATED", "PERMISSION_DENIED"}
_UNREADABLE = (ValueError, TypeError, AssertionError, AttributeError, RecursionError)
log = logging.getLogger(__name__)
Answer = TypeVar("Answer")


class Connection:
    """Sends requests through the public client; connects, and asks for the server's version, at the first."""

    def __init__(self, url: str, api_key: str | None, meter: Meter) -> None:
        self.url = url
        self._api_key = api_key
        self._meter = meter
        self._client: QdrantClient | None = None

    def call(self, request: Callable[[QdrantClient], Answer]) -> Answer:
        """Send one request, and again after a pause where that may help; every retry is counted.

        Raises:
            InputError: the server refuses access, or is of another version than the client supports.
            BackendError: no answer, or an error, that trying again did not change.
        """
        if self._client is None:
            self._client = self._connect()
        return self._insist(request, self._client, ATTEMPTS, "run again: an upload goes on from where it was cut short")

    def close(self) -> None:
        """End the connection; the next call makes another."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _insist(
        self, request: Callable[[QdrantClient], Answer], client: QdrantClient, attempts: int, remedy: str
    ) -> Answer:
        import tenacity
        from qdrant_client.common.client_exceptions import QdrantException
        from qdrant_client.http.exceptions import ApiException

        def again(state: tenacity.RetryCallState) -> None:
            self._meter.count(retries=1)

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_passing),
            wait=_pause,
            stop=tenacity.stop_after_attempt(attempts),
            before_sleep=again,
            reraise=True,
        )
        try:
            return retrying(request, client)
        except HarnessError:
            raise
        except Exception as error:
            status = _status(error)
            if status in REFUSED:
                key = 'set api_key = "${NAME}" in the store\'s table, and NAME in the environment'
                raise InputError(Problem(shown(self.url), f"the server refuses access ({status})", key)) from error
            if isinstance(error, _UNREADABLE):  # what the client raises where an answer is not what it expects
                what = f"the answer is not of Qdrant's protocol ({_in_words(error)}); look at the address"
                raise BackendError(f"{shown(self.url)}: {what}") from error
            if status is None and not isinstance(error, ApiException | QdrantException):
                raise
            if _is_final(error):
                raise BackendError(f"{shown(self.url)}: {_in_words(error)}") from error
            raise BackendError(f"{shown(self.url)}: {_in_words(error)}; {remedy}") from error

    def _connect(self) -> QdrantClient:
        from qdrant_client import QdrantClient

        url = urlsplit(self.url)
        grpc, secure = url.scheme.startswith("grpc"), url.scheme.endswith("s")
        if self._api_key and not secure and url.hostname not in ("localhost", "127.0.0.1", "::1"):
            log.warning("%s: the API key travels unencrypted; prefer https or grpcs", shown(self.url))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Api key is used with an insecure connection")
            client = QdrantClient(
                host=url.hostname,
                port=6333 if grpc else url.port or 6333,
                grpc_port=url.port or 6334,
                prefer_grpc=grpc,
                https=secure,
                prefix=url.path.strip("/") or None,
                api_key=self._api_key,
                timeout=TIMEOUT,
                check_compatibility=False,  # it would only warn
                transport=DoorTransport(self.url, TIMEOUT),
            )
        try:
            server = self._insist(lambda asked: asked.info(), client, 2, "start the server, then run again").version
            if not _supported(version("qdrant-client"), server):
                own = version("qdrant-client")
                what = f"the server is Qdrant {_plain(server)}, which qdrant-client {own} does not support"
                raise InputError(Problem(shown(self.url), what, "bring them within one minor version of each other"))
        except BaseException:
            client.close()
            raise
        return client


def _plain(server: str) -> str:
    """A version as the server tells it; whatever else it tells, shortened and in quotes."""
    return server if re.fullmatch(r"[\w.+-]{1,40}", server, re.ASCII) else repr(server[:40])


def _supported(client: str, server: str) -> bool:
    """Whether versions differ by at most one minor, as Qdrant promises to support."""
    ours, theirs = (re.match(r"v?(\d{1,9})\.(\d{1,9})", text) for text in (client, server))
    if ours is None or theirs is None:
        return False
    return ours[1] == theirs[1] and abs(int(ours[2]) - int(theirs[2])) <= 1


def _status(error: BaseException) -> int | str | None:
    """Return the HTTP status, or the name of the gRPC status, or None where no answer came."""
    code = getattr(error, "code", None)  # of a grpc.RpcError
    return getattr(error, "status_code", None) or (code().name if callable(code) else None)


def _passing(error: BaseException) -> bool:
    """Whether a failure may pass by itself: no answer, a busy server, a fault behind a proxy."""
    from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
    from qdrant_client.http.exceptions import ResponseHandlingException

    if isinstance(error, ResponseHandlingException):
        return not isinstance(error.source, ValueError) and not _is_final(error)  # what cannot be read stays so
    return isinstance(error, ResourceExhaustedResponse) or _status(error) in PASSING


def _is_final(error: BaseException) -> bool:
    """Whether the door refused what came, or where it leads, for good."""
    return isinstance(getattr(error, "source", None), BackendError)


def _pause(state: tenacity.RetryCallState) -> float:
    asked = getattr(state.outcome.exception() if state.outcome else None, "retry_after_s", None)
    return FIRST_PAUSE * 2.0 ** (state.attempt_number - 1) if asked is None else float(asked)


def _in_words(error: Exception) -> str:
    details = getattr(error, "details", None)  # of a grpc.RpcError, whose text is a page
    if callable(details):
        return f"{_status(error)}: {redacted(str(details()))}"
    source = getattr(error, "source", error)
    if isinstance(source, HarnessError | Transient):
        return redacted(str(source))
    return f"{type(source).__name__}: {redacted(str(source)) or 'no answer'}"
