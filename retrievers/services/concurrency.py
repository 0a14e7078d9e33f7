"""How requests run at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from threading import Lock, Thread
from typing import Any, TypeVar

from retrievers.errors import BackendError
from retrievers.meter import Stop
from retrievers.services.service_errors import RequestRefused

POLL_SECONDS = 0.2
"""Seconds between two looks at whether a pause is still wanted."""


STOPPED_MESSAGE = "stopped, since another request failed or the run was interrupted"


RequestType = TypeVar("RequestType")
AnswerType = TypeVar("AnswerType")


def run_request(request: Coroutine[Any, Any, AnswerType], stopped: Stop) -> AnswerType:
    """Run a request on the event loop and return its answer; it is cancelled where the run is interrupted.

    Raises:
        BackendError: what the request raises; in place of Refused, too.
    """
    future = asyncio.run_coroutine_threadsafe(request, _event_loop())
    try:
        while not stopped.interrupted:
            if wait([future], POLL_SECONDS).done:
                return future.result()
    except RequestRefused as refused:
        raise BackendError(str(refused)) from None
    finally:
        future.cancel()
    raise BackendError(STOPPED_MESSAGE)


_starting = Lock()
_loops: list[asyncio.AbstractEventLoop] = []


def _event_loop() -> asyncio.AbstractEventLoop:
    """The loop on which all requests of this process run."""
    with _starting:
        if not _loops:
            _loops.append(asyncio.new_event_loop())
            Thread(target=_loops[0].run_forever, name="requests", daemon=True).start()
    return _loops[0]


def close_later(close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Close a client on the event loop that it was used on; called when the model that has it is gone."""
    asyncio.run_coroutine_threadsafe(close(), _event_loop())


async def in_thread(function: Callable[[], AnswerType]) -> AnswerType:
    """Run what only blocks in a thread of its own, which is left behind where it is not waited for to the end."""
    done: Future[AnswerType] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(function())
        except BaseException as failure:
            done.set_exception(failure)

    Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(done)


def completed(
    ask: Callable[[RequestType, Stop], AnswerType],
    requests: Iterable[RequestType],
    *,
    width: int,
) -> Iterator[tuple[RequestType, AnswerType]]:
    """Yield each request with its answer in the order of arrival; as `lots_of_answers`."""
    for lot in completed_batches(ask, requests, width=width):
        yield from lot


def completed_batches(
    ask: Callable[[RequestType, Stop], AnswerType],
    requests: Iterable[RequestType],
    *,
    width: int,
) -> Iterator[list[tuple[RequestType, AnswerType]]]:
    """Yield requests with their answers as they arrive, together what came together; `width` are under way at once.

    When one fails, no further one is sent, those under way are waited for and yielded (they may have been paid
    for), and the first failure is raised at the end. The event that `ask` is given is then set, so that none of them
    tries again. When the caller is interrupted, or stops asking, what is under way is given up. Requests are taken from
    their iterator in the caller's thread, when there is room.
    """
    waiting = iter(requests)
    running: dict[Future[AnswerType], RequestType] = {}
    failures: list[BaseException] = []
    stopped = Stop()
    pool = ThreadPoolExecutor(width)
    try:
        while True:
            # Half as many again are ready, so that no thread idles while the caller treats an answer.
            room = 0 if failures else width + width // 2 - len(running)
            running.update(
                (pool.submit(ask, request, stopped), request)
                for request in islice(waiting, room)
            )
            if not running:
                break
            done = [
                (running.pop(one), one)
                for one in wait(running, return_when=FIRST_COMPLETED).done
            ]
            failures += [
                failure for _, one in done if (failure := one.exception()) is not None
            ]
            if lot := [
                (request, one.result())
                for request, one in done
                if one.exception() is None
            ]:
                yield lot
            if failures:
                stopped.set()
                running = {
                    one: some for one, some in running.items() if not one.cancel()
                }
    except BaseException:
        stopped.interrupt()
        pool.shutdown(
            wait=False, cancel_futures=True
        )  # so that the line of a stopped run comes at once
        raise
    pool.shutdown()
    if failures:
        raise failures[0]
