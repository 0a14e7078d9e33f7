"""Sends requests, several at once, and hands on each answer as it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from retrievers.meter import Stop

Request = TypeVar("Request")
Answer = TypeVar("Answer")


def answers(
    ask: Callable[[Request, Stop], Answer], requests: Iterable[Request], *, width: int
) -> Iterator[tuple[Request, Answer]]:
    """Yield each request with its answer in the order of arrival, `width` requests being under way at once.

    When one fails, no further one is sent, those under way are waited for and yielded (they may have been paid
    for), and the first failure is raised at the end. The event that `ask` is given is then set, so that none of them
    tries again. When the caller is interrupted, or stops asking, what is under way is given up.

    Args:
        ask: sends one request; its event belongs to this loop.
        requests: what is sent, in this order; the next one is asked for, in the caller's thread, when there is room.
        width: requests at once.
    """
    waiting = iter(requests)
    running: dict[Future[Answer], Request] = {}
    failure: BaseException | None = None
    stopped = Stop()
    pool = ThreadPoolExecutor(width)
    try:
        while True:
            # Half as many again lie ready, so that no thread idles while the caller treats an answer.
            while failure is None and len(running) < width + width // 2:
                if (request := next(waiting, None)) is None:
                    break
                running[pool.submit(ask, request, stopped)] = request
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                request = running.pop(future)
                if (error := future.exception()) is None:
                    yield request, future.result()
                elif failure is None:
                    failure = error
                    stopped.set()
                    running = {one: some for one, some in running.items() if not one.cancel()}
    except BaseException:
        stopped.interrupt()
        pool.shutdown(wait=False, cancel_futures=True)  # so that the line of a stopped run comes at once
        raise
    pool.shutdown()
    if failure is not None:
        raise failure
