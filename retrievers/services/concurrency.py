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
"""Seconds between two checks whether to stop waiting."""
CLOSE_SECONDS = 8.0
"""Seconds that the end of the program waits for a client to close."""
STOPPED_MESSAGE = "stopped, since another request failed or the run was interrupted"
RequestType = TypeVar("RequestType")
AnswerType = TypeVar("AnswerType")


def run_request(request: Coroutine[Any, Any, AnswerType], stopped: Stop) -> AnswerType:
    """Run a request on the event loop and return its answer.

    It is cancelled if the run is interrupted.

    Raises:
        BackendError: the request raised it, or was refused, or the run is interrupted.
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


_loop_lock = Lock()
_loops: list[asyncio.AbstractEventLoop] = []


def _event_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of all requests of this process."""
    with _loop_lock:
        if not _loops:
            _loops.append(asyncio.new_event_loop())
            Thread(target=_loops[0].run_forever, name="requests", daemon=True).start()
    return _loops[0]


def close_later(close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Close a client on its event loop, after its model was garbage-collected."""
    asyncio.run_coroutine_threadsafe(close(), _event_loop())


def wait_for_close(close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Close a client on its event loop, and wait for that for some seconds."""
    future = asyncio.run_coroutine_threadsafe(close(), _event_loop())
    wait([future], CLOSE_SECONDS)


async def in_thread(function: Callable[[], AnswerType]) -> AnswerType:
    """Run a blocking function in a thread of its own.

    If it is cancelled, the function runs on, and its result is lost.
    """
    future: Future[AnswerType] = Future()
    # Cannot be cancelled any more, so that a result can be set in any case.
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as failure:
            future.set_exception(failure)

    Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(future)


def completed(
    ask: Callable[[RequestType, Stop], AnswerType],
    requests: Iterable[RequestType],
    *,
    width: int,
) -> Iterator[tuple[RequestType, AnswerType]]:
    """Yield each request with its answer in the order of arrival.

    It works as `completed_batches`.
    """
    for batch in completed_batches(ask, requests, width=width):
        yield from batch


def completed_batches(
    ask: Callable[[RequestType, Stop], AnswerType],
    requests: Iterable[RequestType],
    *,
    width: int,
) -> Iterator[list[tuple[RequestType, AnswerType]]]:
    """Yield requests with their answers, those that arrive together as one list.

    When a request fails, no further one is taken, and those that wait for a thread are
    cancelled; the thread that the failure freed may have begun one. `stopped` is set at
    once, so that those under way do not try again: their answers are still yielded,
    since they may have been paid for, and a failure is raised at the end. If the caller
    is interrupted, or closes the iterator, all requests are abandoned. Requests are
    taken from their iterator in the caller's thread, when there is room.

    Args:
        ask: sends a request and returns its answer; its second argument is `stopped`.
        requests: the requests.
        width: requests at once.
    """
    remaining = iter(requests)
    running: dict[Future[AnswerType], RequestType] = {}
    failures: list[BaseException] = []
    stopped = Stop()
    pool = ThreadPoolExecutor(width)
    # Half as many again wait in the pool, so that no thread idles while the caller
    # works on an answer.
    max_submitted = width + width // 2
    try:
        while True:
            room = 0 if failures else max_submitted - len(running)
            for request in islice(remaining, room):
                running[pool.submit(ask, request, stopped)] = request
            if not running:
                break
            done = wait(running, return_when=FIRST_COMPLETED).done
            answered = [future for future in done if future.exception() is None]
            failures.extend(filter(None, (future.exception() for future in done)))
            requests_done = {future: running.pop(future) for future in done}
            if answered:
                yield [(requests_done[future], future.result()) for future in answered]
            if failures:
                stopped.set()
                running = {
                    future: request
                    for future, request in running.items()
                    if not future.cancel()
                }
    except BaseException:
        stopped.interrupt()
        # Without waiting, so that the message of a stopped run appears at once.
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    if failures:
        raise failures[0]
