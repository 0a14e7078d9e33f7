"""Sends requests, several at once, and hands on each answer as it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from threading import Event
from typing import TypeVar

Request = TypeVar("Request")
Answer = TypeVar("Answer")


def answers(
    ask: Callable[[Request, Event], Answer], requests: Sequence[Request], *, width: int
) -> Iterator[tuple[Request, Answer]]:
    """Yield each request with its answer in the order of arrival, `width` requests being under way at once.

    When one fails, no further one is sent, those under way are waited for and yielded (they may have been paid
    for), and the first failure is raised at the end. The event that `ask` is given is then set, so that none of them
    tries again; it is also set when the caller is interrupted.

    Args:
        ask: sends one request; its event belongs to this loop.
        requests: what is sent, in this order.
        width: requests at once.
    """
    waiting = iter(requests)
    running: dict[Future[Answer], Request] = {}
    failure: BaseException | None = None
    stopped = Event()
    with ThreadPoolExecutor(width) as pool:
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
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if failure is not None:
        raise failure
