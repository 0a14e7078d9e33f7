"""The way of qdrant-client's requests through the one door to services: bounded in time and size, nothing followed."""

from __future__ import annotations

import httpx

from retrievers.meter import Stop
from retrievers.remote.http import MOST_BYTES, HttpDoor

CONNECTIONS = 8
"""At once; uploads use four."""
_WRITTEN_BY_THE_CLIENT = {"accept-encoding", "connection", "content-length", "host", "transfer-encoding"}
"""Headers that the door writes itself."""


class DoorTransport(httpx.BaseTransport):
    """Sends what an httpx client asks; several threads may share it."""

    def __init__(self, url: str, timeout: float) -> None:
        """Take the server's address, and the seconds of a whole answer."""
        self._door = HttpDoor(url, timeout=timeout, connections=CONNECTIONS, largest=MOST_BYTES)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and return its whole answer, unpacked; raises as `HttpDoor.ask` does."""
        headers = {name: value for name, value in request.headers.items() if name not in _WRITTEN_BY_THE_CLIENT}
        answer = self._door.ask(str(request.url), request.read(), headers, Stop(), method=request.method)
        received = {name: value for name, value in answer.headers.items() if name != "content-encoding"}
        return httpx.Response(answer.status, headers=received, content=answer.body, request=request)
