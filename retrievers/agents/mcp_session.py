"""One session with a server of the Model Context Protocol.

The session lives in a task of its own on the event loop of all requests, since the SDK
has to leave it in the task that entered it. It is opened by the first call.
`mcp_tool.py` makes the calls, and reads the hits in their answers.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import shlex
import tempfile
import weakref
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from retrievers.errors import BackendError, InputError, Problem, did_you_mean
from retrievers.options.placeholders import (
    error_line,
    expand,
    hide_values,
    redact_url,
)
from retrievers.options.tables import Configured
from retrievers.services.addresses import check_address, without_url_user
from retrievers.services.clients import open_http_client
from retrievers.services.concurrency import close_later, wait_for_close
from retrievers.services.headers import NO_HEADERS, Headers
from retrievers.services.service_errors import classify_connection_error

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult

MAX_ANSWER_CHARACTERS = 4_000_000
"""Characters of one answer: no list of hits is as long."""
_STDERR_CHARACTERS = 300
"""Characters of the server's last words in a message."""
_SDK_HEADERS = {"content-type", "accept"}
"""Headers that the SDK sets itself."""
_open_sessions: weakref.WeakSet[McpSession] = weakref.WeakSet()


class McpServer(Configured):
    """How a server is reached: by a command, or at an address."""

    command: tuple[str, ...] = ()
    """Starts the server, which speaks over its standard input and output."""
    env: dict[str, str] | None = None
    """Variables of the server that is started, besides a few such as PATH; a secret
    always as ${NAME}."""
    url: str = ""
    """The server's address (streamable HTTP), in place of a command."""
    headers: Headers | None = None
    """Sent along to an address; a secret always as ${NAME}."""

    def model_post_init(self, _: object) -> None:
        """Check that there is one way to it; nothing is started or sent."""
        if bool(self.command) == bool(self.url):
            problem = "needs a command that starts the server, or a url"
            raise InputError(Problem("command", problem, "write one of the two"))
        if self.url:
            check_address("url", self.url)

    @property
    def server_name(self) -> str:
        """The server in messages and files."""
        return shlex.join(self.command) or redact_url(self.url)


class ToolAnswer(NamedTuple):
    """What a tool returned."""

    text: str
    """Its texts, joined by line breaks."""
    structured: Any
    """Its structured content; None if there is none."""


class McpSession:
    """A session, opened by the first call, that lasts until it is closed.

    Args:
        server: how the server is reached.
        tool: the tool that is called.
        timeout: seconds until it has to be open, and for each call.
    """

    def __init__(self, server: McpServer, tool: str, timeout: float) -> None:
        self._server = server
        self._tool = tool
        self._timeout = timeout
        self._stderr: TextIO | None = None
        self._client: asyncio.Future[Client] | None = None
        """Has the open client as its result; None before the first call."""
        self._task: asyncio.Task[None] | None = None
        self._is_closing: asyncio.Event | None = None

    async def call(self, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Call the tool.

        Raises:
            BackendError: the server cannot be reached, has no such tool, does not
                answer in time, or answers with an error or too much.
        """
        # Shielded: a call that is cancelled does not end the session of the others.
        client = await asyncio.shield(self._opened_client())
        try:
            result = await client.call_tool(
                self._tool, dict(arguments), read_timeout_seconds=self._timeout
            )
        except Exception as failure:
            raise self._failure(failure) from None
        answer = _read_result(result)
        if result.is_error:
            message = error_line(answer.text) or "it gives no reason"
            raise self._error(f"the tool {self._tool!r} failed: {message}")
        length = len(answer.text)
        if answer.structured is not None:
            length = max(length, len(json.dumps(answer.structured)))
        if length > MAX_ANSWER_CHARACTERS:
            raise BackendError(
                f"{self._server.server_name}: the tool {self._tool!r} returned "
                f"{length:,} characters, and {MAX_ANSWER_CHARACTERS:,} are read at "
                "most: let it return fewer hits"
            )
        return answer

    def _opened_client(self) -> asyncio.Future[Client]:
        """Return the future of the open client; called on the event loop.

        A session that could not be opened is not tried again.
        """
        if self._client is None:
            self._client = asyncio.get_running_loop().create_future()
            self._is_closing = asyncio.Event()
            self._task = asyncio.create_task(
                self._stay_open(self._client, self._is_closing)
            )
            _open_sessions.add(self)
        return self._client

    async def _stay_open(
        self, opened: asyncio.Future[Client], is_closing: asyncio.Event
    ) -> None:
        """Open the session, and leave it when it is to be closed."""
        try:
            async with self._connect() as client:
                opened.set_result(client)
                await is_closing.wait()
        except BaseException as failure:
            if opened.done():
                return  # the calls have reported it
            opened.set_exception(self._failure(_first_cause(failure)))
            # If no call waits any more, nothing else retrieves the failure.
            opened.exception()
        finally:
            if self._stderr is not None:
                self._stderr.close()

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Client]:
        """Start or reach the server, and check that it has the tool."""
        from contextlib import AsyncExitStack

        from mcp import Client

        # The SDK logs tracebacks of what the server writes; errors here say enough.
        logging.getLogger("mcp").setLevel(logging.CRITICAL)
        logging.getLogger("client").setLevel(logging.CRITICAL)
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(self._timeout):
                transport = await self._transport(stack)
                client = await stack.enter_async_context(
                    Client(transport, read_timeout_seconds=self._timeout)
                )
                await self._check_tool(client)
            yield client

    async def _transport(self, stack: Any) -> Any:
        """Return how messages reach the server."""
        import httpx2
        from mcp import StdioServerParameters, stdio_client
        from mcp.client.streamable_http import streamable_http_client

        server = self._server
        hide_values(server.command, server.env, server.url)
        if server.command:
            program, *arguments = expand(server.command)
            parameters = StdioServerParameters(
                command=program, args=arguments, env=expand(server.env or {})
            )
            # Read until the session is left, where it is closed.
            stderr = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
            self._stderr = stderr
            return stdio_client(parameters, errlog=stderr)
        headers = server.headers or NO_HEADERS
        further_headers = {
            name: content
            for name, content in headers.in_request(server.url).items()
            if name.lower() not in _SDK_HEADERS
        }
        http_client = open_http_client(
            httpx2.AsyncClient, headers=further_headers, timeout=self._timeout
        )
        await stack.enter_async_context(http_client)
        address = without_url_user(expand(server.url))
        return streamable_http_client(address, http_client=http_client)

    async def _check_tool(self, client: Client) -> None:
        """Check that the server has the tool, in any page of its list.

        Raises:
            BackendError: it has not.
        """
        names: list[str] = []
        cursor: str | None = None
        while True:
            page = await client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if not cursor:
                break
        if self._tool not in names:
            raise BackendError(
                f"{self._server.server_name} has no tool {self._tool!r} "
                f"({did_you_mean(self._tool, names)})"
            )

    def _failure(self, failure: BaseException) -> BackendError:
        """Return one sentence for what the SDK raised."""
        import httpx2

        if isinstance(failure, BackendError):
            return failure
        if isinstance(failure, httpx2.RequestError):
            url = expand(self._server.url)
            name = self._server.server_name
            return BackendError(str(classify_connection_error(name, url, failure)))
        if _is_timeout(failure):
            reason = f"no answer within {self._timeout:g} s (timeout)"
        elif _is_closed(failure):
            reason = "the server has ended, or closed the connection"
        else:
            reason = error_line(str(failure)) or type(failure).__name__
        return self._error(reason)

    def _error(self, reason: str) -> BackendError:
        """Return an error with the server's name and its last words."""
        message = f"{self._server.server_name}: {reason}"
        last_words = self._last_words()
        if last_words:
            message += f"; its standard error ends: {last_words!r}"
        return BackendError(message)

    def _last_words(self) -> str:
        """Return the end of what the server wrote to standard error, on one line."""
        if self._stderr is None or self._stderr.closed:
            return ""
        self._stderr.seek(0)
        words = " ".join(self._stderr.read().split())
        return error_line(words[-_STDERR_CHARACTERS:])

    async def close(self) -> None:
        """Leave the session, which ends a server that was started."""
        if self._task is not None and self._is_closing is not None:
            self._is_closing.set()
            await asyncio.wait([self._task])


@atexit.register
def _close_sessions() -> None:
    """Close all sessions, so that no server that was started outlives the program."""
    for session in list(_open_sessions):
        wait_for_close(session.close)


def close_with(owner: object, session: McpSession) -> None:
    """Close a session when its owner is garbage-collected."""
    weakref.finalize(owner, close_later, session.close)


def _read_result(result: CallToolResult) -> ToolAnswer:
    """Return the texts and the structured content of a result."""
    texts = [block.text for block in result.content if block.type == "text"]
    return ToolAnswer("\n".join(texts), result.structured_content)


def _first_cause(failure: BaseException) -> BaseException:
    """Return the first exception of a group, of that group's first and so on."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure


def _is_timeout(failure: BaseException) -> bool:
    from mcp.types import REQUEST_TIMEOUT

    has_code = getattr(failure, "code", None) == REQUEST_TIMEOUT
    return has_code or isinstance(failure, TimeoutError)


def _is_closed(failure: BaseException) -> bool:
    import anyio
    from mcp.types import CONNECTION_CLOSED

    has_code = getattr(failure, "code", None) == CONNECTION_CLOSED
    return has_code or isinstance(
        failure, anyio.ClosedResourceError | anyio.BrokenResourceError
    )
