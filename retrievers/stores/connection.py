"""A connection to Qdrant.

A request is a function of the public client. One to a server is tried again while its
failures may pass; every failure becomes one of this program's errors. `qdrant.py` has
the requests of a collection.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import urlsplit

from retrievers.errors import BackendError, HarnessError, InputError, Problem
from retrievers.files.text_files import user_path
from retrievers.meter import Meter, Stop
from retrievers.options.placeholders import error_line, redact_url, resolve_secret
from retrievers.prices import is_on_this_machine
from retrievers.services.caller import STORE_PATIENCE, Retries
from retrievers.services.concurrency import in_thread, run_request
from retrievers.services.service_errors import (
    NOT_STARTED_REMEDY,
    UNREADABLE_ERRORS,
    TransientFailure,
    is_redirect,
    redirect_error,
)
from retrievers.stores.open import COLLECTION_PREFIX
from retrievers.stores.options import MEMORY_LOCATION, StoreOptions
from retrievers.stores.points import explain_engine_errors

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

SERVER_TIMEOUT = 120
"""Seconds of one try."""
MIN_SERVER_VERSION = (1, 16)
"""Since this version a collection has metadata, which mark it complete."""
DEFAULT_HTTP_PORT = 6333
DEFAULT_GRPC_PORT = 6334
TRANSIENT_STATUSES = {  # of HTTP, of gRPC
    408,
    429,
    500,
    502,
    503,
    504,
    "UNAVAILABLE",
    "DEADLINE_EXCEEDED",
    "RESOURCE_EXHAUSTED",
    "ABORTED",
}
"""Statuses after which another try may succeed."""
ACCESS_DENIED_STATUSES = {401, 403, "UNAUTHENTICATED", "PERMISSION_DENIED"}
AnswerType = TypeVar("AnswerType")


@contextmanager
def _without_client_warnings() -> Iterator[None]:
    """Suppress two warnings of the client.

    One is its advice against more than 20,000 points, which are in memory only if the
    experiment names that; the other SQLite's about a database that the client opens and
    leaves open.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Local mode is not recommended")
        warnings.filterwarnings("ignore", "unclosed database", ResourceWarning)
        yield


class Connection:
    """Sends requests through the public client, which is opened at the first of them.

    Args:
        options: the location of the engine.
        collection: in a folder, each collection has a folder of its own, since the
            client locks and loads a folder as a whole.
        meter: counts retries of requests to a server.
    """

    def __init__(
        self, options: StoreOptions, collection: str = "", meter: Meter | None = None
    ) -> None:
        self.version = ""
        """The server's version; empty before the first request, and in this process."""
        self._options = options
        self._client: QdrantClient | None = None
        self.address = _address(options, collection)
        """The location in messages; in this process also the folder to open."""
        self._retries = Retries(STORE_PATIENCE)
        self._meter = meter or Meter()

    def call(self, request: Callable[[QdrantClient], AnswerType]) -> AnswerType:
        """Send one request; to a server again, after a pause, if that may help.

        Raises:
            InputError: the server denies access or is too old, or its key is not set;
                or the folder is used by another process, or the disk is full.
            BackendError: no answer, or an error, also after retries.
        """
        if self._client is None:
            self._client = self._connect() if self._options.on_server else self._open()
        client = self._client
        if self._options.on_server:
            return self._retry(lambda: request(client))
        with explain_engine_errors(self.address), _without_client_warnings():
            return request(client)

    def remove(self, collection: str) -> None:
        """Remove a collection; raises as `call`."""
        if self._options.on_server or self.address == MEMORY_LOCATION:
            self.call(lambda client: client.delete_collection(collection))
            return
        # The client would delete its database's file, and leave it open.
        self.close()
        with explain_engine_errors(self.address):
            shutil.rmtree(self.address)

    def close(self) -> None:
        """Close the connection, which the next call opens again.

        Another process may open the folder.
        """
        if self._client is not None:
            self._client.close()
            self._client = None

    def _open(self) -> QdrantClient:
        """Open the engine in this process."""
        from qdrant_client import QdrantClient

        if self.address == MEMORY_LOCATION:
            return QdrantClient(MEMORY_LOCATION)
        with explain_engine_errors(self.address), _without_client_warnings():
            try:
                return QdrantClient(path=self.address)
            except RuntimeError as error:
                # The client raises nothing more specific for a locked folder.
                remedy = "wait until it is done, or name another folder"
                raise InputError(
                    Problem(f"store {self.address}", "another process uses it", remedy)
                ) from error

    def _connect(self) -> QdrantClient:
        """Connect to the server, and check its version."""
        from qdrant_client import QdrantClient

        url = urlsplit(self._options.expanded_location)
        is_grpc = url.scheme.startswith("grpc")
        is_encrypted = url.scheme.endswith("s")
        http_port = url.port or DEFAULT_HTTP_PORT
        api_key = None
        if self._options.api_key:
            api_key = resolve_secret(self._options.api_key).get_secret_value()
        client = QdrantClient(
            host=url.hostname,
            prefix=url.path.strip("/") or None,
            https=is_encrypted,
            # Certificates take 17 ms to read.
            verify=is_encrypted,
            port=DEFAULT_HTTP_PORT if is_grpc else http_port,
            grpc_port=url.port or DEFAULT_GRPC_PORT,
            prefer_grpc=is_grpc,
            api_key=api_key,
            timeout=SERVER_TIMEOUT,
            # It would only warn, and not through our messages.
            check_compatibility=False,
            follow_redirects=False,
        )
        try:
            self.version = self._retry(lambda: client.info().version)
            self._check_version()
        except BaseException:
            client.close()
            raise
        return client

    def _check_version(self) -> None:
        """Raise InputError if the server is too old."""
        version_numbers = re.findall(r"\d{1,9}", self.version)[:2]
        if tuple(map(int, version_numbers)) >= MIN_SERVER_VERSION:
            return
        oldest = ".".join(map(str, MIN_SERVER_VERSION))
        problem = (
            f"the server is Qdrant {self.version[:40]!r}, "
            f"and metadata of collections came with {oldest}"
        )
        raise InputError(
            Problem(self.address, problem, f"use Qdrant {oldest} or newer")
        )

    def _retry(self, request: Callable[[], AnswerType]) -> AnswerType:
        """Send one request until it is answered, or patience ends.

        Each try has a thread of its own, which is abandoned after SERVER_TIMEOUT.
        """
        try_request = partial(self._try, request)
        answer = self._retries.ask(try_request, self._meter, Stop())
        return run_request(answer, Stop())

    async def _try(self, request: Callable[[], AnswerType]) -> AnswerType:
        """Send one request once.

        Raises:
            TransientFailure: no answer, or a busy server or proxy.
            InputError: the server denies access.
            BackendError: any other error.
        """
        try:
            async with asyncio.timeout(SERVER_TIMEOUT):
                return await in_thread(request)
        except HarnessError:
            raise
        except Exception as error:
            raise self._explain(error) from error

    def _explain(self, error: Exception) -> Exception:
        """Return the exception of this program for an error of the client."""
        status = _status(error)
        description = _describe_error(error)
        message = f"{self.address}: {description}"
        if status in TRANSIENT_STATUSES or _is_lost_or_busy(error):
            is_refused = "connection refused" in description.lower()
            is_not_started = is_refused and is_on_this_machine(
                self._options.expanded_location
            )
            retry_after = getattr(error, "retry_after_s", None)
            return TransientFailure(
                message + (NOT_STARTED_REMEDY if is_not_started else ""),
                retry_after=None if retry_after is None else float(retry_after),
                unlikely_to_pass=is_not_started,
            )
        if is_redirect(status):
            headers: Mapping[str, str] = getattr(error, "headers", {})
            return redirect_error(self.address, status, headers)
        if status in ACCESS_DENIED_STATUSES:
            problem = f"the server refuses access ({status})"
            remedy = (
                'set api_key = "${NAME}" in the store\'s table, '
                "and NAME in the environment"
            )
            return InputError(Problem(self.address, problem, remedy))
        is_unreadable = isinstance(error, (*UNREADABLE_ERRORS, AssertionError))
        remedy = "; look at the address" if is_unreadable else ""
        return BackendError(f"{message}{remedy}")


def _address(options: StoreOptions, collection: str) -> str:
    """Return where a collection is: a server without user, ":memory:", or a folder."""
    if options.on_server:
        return redact_url(options.location or "")
    location = options.expanded_location or MEMORY_LOCATION
    if location == MEMORY_LOCATION:
        return location
    return str(user_path(location) / collection)


def _is_lost_or_busy(error: Exception) -> bool:
    """Return whether no answer arrived, or the server was busy."""
    from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
    from qdrant_client.http.exceptions import ResponseHandlingException

    if isinstance(error, ResponseHandlingException):
        # An answer that cannot be read will not become readable.
        return not isinstance(error.source, ValueError)
    return isinstance(error, TimeoutError | ResourceExhaustedResponse)


def collection_notes(info: models.CollectionInfo) -> dict[str, tuple[str, ...]] | None:
    """Return the notes in the metadata of a complete collection; None for any other."""
    notes = (info.config.metadata or {}).get("finished")
    if notes is None:
        return None
    return {kind: tuple(ids) for kind, ids in notes.items()}


class ServerCollection(NamedTuple):
    """A collection on a server."""

    name: str
    points: int
    complete: bool


def list_collections(server: Connection) -> list[ServerCollection]:
    """Return the collections that runs have built on a server, by name."""
    response = server.call(lambda client: client.get_collections())
    names = sorted(collection.name for collection in response.collections)
    return [
        _read_collection(server, name)
        for name in names
        if name.startswith(COLLECTION_PREFIX)
    ]


def _read_collection(server: Connection, name: str) -> ServerCollection:
    info = server.call(lambda client: client.get_collection(name))
    is_complete = collection_notes(info) is not None
    return ServerCollection(name, info.points_count or 0, is_complete)


def _status(error: BaseException) -> int | str | None:
    """Return the HTTP status, or the name of the gRPC status; None without answer."""
    http_status: int | None = getattr(error, "status_code", None)
    if http_status:
        return http_status
    grpc_code = getattr(error, "code", None)
    if not callable(grpc_code):
        return None
    name: str = grpc_code().name
    return name


def _describe_error(error: BaseException) -> str:
    """Return an error on one line."""
    # The text of a grpc.RpcError is a page; its details are not.
    details = getattr(error, "details", None)
    if callable(details):
        return f"{_status(error)}: {error_line(str(details()))}"
    source = getattr(error, "source", error)
    return f"{type(source).__name__}: {error_line(str(source)) or 'no answer'}"
