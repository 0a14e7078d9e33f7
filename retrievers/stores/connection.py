"""A connection to Qdrant."""

from __future__ import annotations

import asyncio
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from retrievers.errors import BackendError, HarnessError, InputError, Problem
from retrievers.meter import Meter, Stop
from retrievers.options.placeholders import error_line, redact_url, resolve_secret
from retrievers.prices import is_on_this_machine
from retrievers.services.caller import STORE_PATIENCE, Retries
from retrievers.services.concurrency import in_thread, run_request
from retrievers.services.service_errors import (
    NOT_STARTED_REMEDY,
    UNREADABLE_ERRORS,
    TransientFailure,
)
from retrievers.stores.open import COLLECTION_PREFIX
from retrievers.stores.options import MEMORY_LOCATION, StoreOptions
from retrievers.stores.points import explain_engine_errors

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

SERVER_TIMEOUT = 120
MIN_SERVER_VERSION = (1, 16)
"""The release of the server since which a collection has metadata, which say that it is complete."""
PASSING_STATUSES = {
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
ACCESS_DENIED_STATUSES = {401, 403, "UNAUTHENTICATED", "PERMISSION_DENIED"}
AnswerType = TypeVar("AnswerType")


@contextmanager
def _without_its_warnings() -> Iterator[None]:
    """Without the client's advice against more than 20,000 points, which `StoreOptions.resolved` heeds.

    And without SQLite's of a database that the client opens to learn about threads, and leaves open.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Local mode is not recommended")
        warnings.filterwarnings("ignore", "unclosed database", ResourceWarning)
        yield


class Connection:
    """Sends requests through the public client, which is opened at the first of them.

    Args:
        options: where the engine is.
        collection: in a folder, each collection has a folder of its own, since the client locks and loads a folder as a
            whole.
        meter: counts what a server was asked again.
    """

    def __init__(
        self, options: StoreOptions, collection: str = "", meter: Meter | None = None
    ) -> None:
        self.version = ""
        """Of the server, known once it was asked."""
        self._options = options
        self._client: QdrantClient | None = None
        location = options.expanded_location or MEMORY_LOCATION
        self.address = (
            location
            if location == MEMORY_LOCATION
            else str(Path(location).expanduser() / collection)
        )
        if options.on_server:
            self.address = redact_url(options.location or "")
        self._retries, self._meter = Retries(STORE_PATIENCE), meter or Meter()

    def call(self, request: Callable[[QdrantClient], AnswerType]) -> AnswerType:
        """Send one request; to a server again after a pause where that may help, and every retry is counted.

        Raises:
            InputError: the server refuses access or is too old; or the folder is used by another process or is full.
            BackendError: no answer, or an error, that trying again did not change.
        """
        if self._client is None:
            self._client = (
                self._connect() if self._options.on_server else self._opened()
            )
        client = self._client
        if self._options.on_server:
            return self._retry(lambda: request(client))
        with explain_engine_errors(self.address), _without_its_warnings():
            return request(client)

    def remove(self, collection: str) -> None:
        """Remove a collection; errors as `call`."""
        if self._options.on_server or self.address == MEMORY_LOCATION:
            self.call(lambda client: client.delete_collection(collection))
            return
        self.close()  # the client would remove the file of its database, and leave it open
        with explain_engine_errors(self.address):
            shutil.rmtree(self.address)

    def close(self) -> None:
        """End the connection; a folder is free for another process. The next call makes another connection."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _opened(self) -> QdrantClient:
        """Open the engine in this process."""
        from qdrant_client import QdrantClient

        if self.address == MEMORY_LOCATION:
            return QdrantClient(MEMORY_LOCATION)
        with explain_engine_errors(self.address), _without_its_warnings():
            try:
                return QdrantClient(path=self.address)
            except (
                RuntimeError
            ) as error:  # all that the client says where the folder is locked
                remedy = "wait until it is done, or name another folder"
                raise InputError(
                    Problem(f"store {self.address}", "another process uses it", remedy)
                ) from error

    def _connect(self) -> QdrantClient:
        """Connect to the server, and ask for its version."""
        from qdrant_client import QdrantClient

        url = urlsplit(self._options.expanded_location)
        grpc = url.scheme.startswith("grpc")
        where: Any = {
            "host": url.hostname,
            "prefix": url.path.strip("/") or None,
            "https": url.scheme.endswith("s"),
        }
        ports: Any = {
            "port": 6333 if grpc else url.port or 6333,
            "grpc_port": url.port or 6334,
            "prefer_grpc": grpc,
        }
        key = (
            resolve_secret(self._options.api_key).get_secret_value()
            if self._options.api_key
            else None
        )
        # Its check of compatibility would only warn, and not through our messages.
        client = QdrantClient(
            **where,
            **ports,
            api_key=key,
            timeout=SERVER_TIMEOUT,
            check_compatibility=False,
        )
        try:
            self.version = self._retry(lambda: client.info().version)
            if (
                tuple(map(int, re.findall(r"\d{1,9}", self.version)[:2]))
                < MIN_SERVER_VERSION
            ):
                oldest = ".".join(map(str, MIN_SERVER_VERSION))
                what = f"the server is Qdrant {self.version[:40]!r}, and metadata of collections came with {oldest}"
                raise InputError(
                    Problem(self.address, what, f"use Qdrant {oldest} or newer")
                )
        except BaseException:
            client.close()
            raise
        return client

    def _retry(self, request: Callable[[], AnswerType]) -> AnswerType:
        """Send one request until it is answered, each try in a thread that is left behind after TIMEOUT."""
        return run_request(
            self._retries.ask(partial(self._tried, request), self._meter, Stop()),
            Stop(),
        )

    async def _tried(self, request: Callable[[], AnswerType]) -> AnswerType:
        """Send one request once; raises Transient where the failure may pass: no answer, a busy server or proxy."""
        from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
        from qdrant_client.http.exceptions import ResponseHandlingException

        try:
            async with asyncio.timeout(SERVER_TIMEOUT):
                return await in_thread(request)
        except HarnessError:
            raise
        except Exception as error:
            status, words = _status(error), _in_words(error)
            told = f"{self.address}: {words}"
            # What cannot be read stays so.
            lost = isinstance(error, ResponseHandlingException) and not isinstance(
                error.source, ValueError
            )
            if (
                lost
                or status in PASSING_STATUSES
                or isinstance(error, TimeoutError | ResourceExhaustedResponse)
            ):
                asked = getattr(error, "retry_after_s", None)
                absent = "onnection refused" in words and is_on_this_machine(
                    self._options.expanded_location
                )
                told += NOT_STARTED_REMEDY if absent else ""
                raise TransientFailure(
                    told,
                    retry_after=None if asked is None else float(asked),
                    unlikely_to_pass=absent,
                ) from error
            if status in ACCESS_DENIED_STATUSES:
                key = 'set api_key = "${NAME}" in the store\'s table, and NAME in the environment'
                raise InputError(
                    Problem(self.address, f"the server refuses access ({status})", key)
                ) from error
            look = (
                "; look at the address"
                if isinstance(error, (*UNREADABLE_ERRORS, AssertionError))
                else ""
            )
            raise BackendError(f"{told}{look}") from error


def collection_notes(info: models.CollectionInfo) -> dict[str, tuple[str, ...]] | None:
    """Return the notes that a complete collection has in its metadata; None where it is not complete."""
    kept = (info.config.metadata or {}).get("finished")
    return None if kept is None else {kind: tuple(ids) for kind, ids in kept.items()}


class ServerCollection(NamedTuple):
    """A collection on a server."""

    name: str
    points: int
    complete: bool


def list_collections(server: Connection) -> list[ServerCollection]:
    """Return the collections that runs have made on a server, by name."""
    names = [
        one.name
        for one in server.call(lambda client: client.get_collections()).collections
    ]
    held = []
    for name in sorted(name for name in names if name.startswith(COLLECTION_PREFIX)):
        info = server.call(lambda client, name=name: client.get_collection(name))  # type: ignore[misc]
        held.append(
            ServerCollection(
                name, info.points_count or 0, collection_notes(info) is not None
            )
        )
    return held


def _status(error: BaseException) -> int | str | None:
    """Return the HTTP status, or the name of the gRPC status, or None where no answer came."""
    code = getattr(error, "code", None)  # of a grpc.RpcError
    return getattr(error, "status_code", None) or (
        code().name if callable(code) else None
    )


def _in_words(error: BaseException) -> str:
    details = getattr(
        error, "details", None
    )  # of a grpc.RpcError, whose text is a page
    if callable(details):
        return f"{_status(error)}: {error_line(str(details()))}"
    source = getattr(error, "source", error)
    return f"{type(source).__name__}: {error_line(str(source)) or 'no answer'}"
