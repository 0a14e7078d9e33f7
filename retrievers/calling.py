"""Requests to services: several at once, one loop around each, and what a failure means.

An SDK sends the request, reads the answer and signs; its own retries are off. An attempt waits for its turn, promises
its dollars, ends after `timeout` and can be cancelled. It is tried again, after pauses that grow, until patience ends.
Everything runs on one event loop in a thread of its own, so that callers need not be asynchronous.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from itertools import islice
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from retrievers.costs import on_this_machine
from retrievers.errors import BackendError
from retrievers.meter import Call, Meter, Stop
from retrievers.placeholders import as_line
from retrievers.types import Limits

if TYPE_CHECKING:
    from tenacity import RetryCallState

PATIENCE = 30.0
"""Seconds after which a store that does not answer is given up; models and endpoints have their own."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds, at most, before the second try and before any: doubled from try to try, and less by chance."""
SILENCE = 10.0
"""Seconds between two lines about one service."""
HOPELESS = 2
"""Tries that tell that nothing listens on this machine, or that a page answers where a service should."""
LOOK = 0.2
"""Seconds between two looks at whether a pause is still wanted."""
NOT_STARTED = "; is it running? start it, then run again"
QUOTA = {"insufficient_quota", "ServiceQuotaExceededException", "402"}
"""Codes of a quota that is used up: waiting does not help."""
UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What reading an answer raises that is not of the protocol."""
_STOPPED = "stopped, since another request failed or the run was interrupted"
_PASSING = {408, 409, 424, 425, 429}
_REFUSED = {400, 413, 422}
_MARGIN = 1.05
"""Requests are sent this much slower than the declared limit, since clocks and networks are not exact."""
_PROXY = "; look at the user and the password in HTTP_PROXY or HTTPS_PROXY"
_REMEDIES = {
    "401": "; the key was refused: look at the environment variable that holds it",
    "403": "; the key may not use this model",
    "404": "; look at the model's name and at the address",
    "407": _PROXY,
    "AccessDeniedException": "; ask for access to the model in this region, and look at the credentials' policy",
    "ExpiredTokenException": "; renew the credentials and run again: what was embedded is kept",
    "ResourceNotFoundException": "; look at the model's name and the region",
    "UnrecognizedClientException": "; the credentials are not known to AWS",
}
_FINAL = {
    "SSLCertVerificationError": "; set SSL_CERT_FILE to the authority that signed it",
    "SSLError": "; if it does not speak TLS, write http:// in its address",
    "gaierror": "; look at the address",
    "ProxyError": _PROXY,
}
"""Failures of a connection that do not pass."""
log = logging.getLogger(__name__)
Request = TypeVar("Request")
Answer = TypeVar("Answer")


class Refused(Exception):
    """The provider refuses what is in this request, such as a text that is too long; `code` and `about` are its own."""

    def __init__(self, reason: str, code: str = "", about: str = "") -> None:
        super().__init__(reason)
        self.code, self.about = code, about


class Transient(Exception):
    """A failure that may not happen again."""

    def __init__(
        self, reason: str, *, retry_after: float | None = None, hopeless: bool = False
    ) -> None:
        """Take the reason, the seconds to wait for, and whether it is final of a service that has never answered."""
        super().__init__(reason)
        self.retry_after, self.hopeless = retry_after, hopeless


class Charge(NamedTuple):
    """What one request cost, or is expected to cost."""

    tokens: int
    usd: float


class RetryLoop:
    """Asks one service again where a failure may pass; all its requests run on one event loop."""

    def __init__(self, patience: float) -> None:
        """Take the seconds after which a request that keeps failing is given up; the last pause ends with them."""
        self._patience = patience
        self._answered = False
        self._said = -SILENCE

    async def ask(
        self, request: Callable[[], Awaitable[Answer]], meter: Meter, stopped: Stop
    ) -> Answer:
        """Send a request until it is answered.

        The request asks once, and raises Transient where another try may help; the meter counts `retries`.

        Raises:
            BackendError: it has failed for good.
        """
        import tenacity

        started, waited_for = time.monotonic(), ""
        exponential = tenacity.wait_random_exponential(
            multiplier=FIRST_PAUSE, max=LONGEST_PAUSE
        )

        def left() -> float:
            return max(started + self._patience - time.monotonic(), 0.0)

        def over(state: RetryCallState) -> bool:
            self._answered |= not _failure(state).hopeless
            return (
                stopped.is_set()
                or not left()
                or not (self._answered or state.attempt_number < HOPELESS)
            )

        def pause(state: RetryCallState) -> float:
            after = _failure(state).retry_after
            return min(exponential(state) if after is None else after, left())

        def before_sleep(state: RetryCallState) -> None:
            nonlocal waited_for
            meter.count(retries=1)
            ends = f"gives up in {left():.0f} s" if self._answered else "the last"
            waited_for = f"{_failure(state)}, try {state.attempt_number + 1}, {ends}"

        async def sleep(seconds: float) -> None:
            end = time.monotonic() + seconds
            while (rest := end - time.monotonic()) > 0 and not stopped.is_set():
                if time.monotonic() - self._said >= SILENCE:
                    self._said = time.monotonic()
                    log.warning("waiting for %s", waited_for)
                await asyncio.sleep(min(rest, LOOK))

        again = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(Transient),
            wait=pause,
            stop=over,
            sleep=sleep,
            before_sleep=before_sleep,
            reraise=True,
        )
        try:
            answer: Answer = await again(request)
        except Transient as last:
            tries = again.statistics["attempt_number"]
            took = f"{tries} {'try' if tries == 1 else 'tries'} in {time.monotonic() - started:.0f} s"
            raise BackendError(
                f"gave up after {took} (patience = {self._patience:g}): {last}"
            ) from last.__cause__
        self._answered = True
        return answer


def _failure(state: RetryCallState) -> Transient:
    failure = state.outcome.exception() if state.outcome else None
    return failure if isinstance(failure, Transient) else Transient("")


class Caller:
    """Sends the requests of one model or endpoint."""

    def __init__(self, limits: Limits, timeout: float, name: Callable[[], str]) -> None:
        """Take how it may be asked, the seconds of one attempt, and what messages call it."""
        self._timeout, self._name = timeout, name
        self._retries = RetryLoop(limits.patience)
        self._per_request = _MARGIN * 60 / limits.rpm if limits.rpm else 0.0
        self._per_token = _MARGIN * 60 / limits.tpm if limits.tpm else 0.0
        self._next = 0.0

    async def call(
        self,
        attempt: Callable[[], Awaitable[tuple[Answer, Charge]]],
        promised: Charge,
        call: Call,
        pace: int,
    ) -> Answer:
        """Send one request until it succeeds or fails for good, within the budget; count what it cost.

        Args:
            attempt: asks once; returns the answer, checked, and its cost. Raises Transient where another try may help.
            promised: what it is expected to cost.
            call: for which retriever it is sent, and what stops it.
            pace: tokens by which the rate is kept.

        Raises:
            Refused: the provider does not take what is in it.
            BackendError: for good; OverBudget before anything is sent.
        """

        async def once() -> Answer:
            await self._turn(pace, call.stopped)
            call.meter.budget.take(promised.usd)
            cost = Charge(0, 0.0)
            try:
                async with asyncio.timeout(self._timeout):
                    answer, cost = await attempt()
            except TimeoutError:
                what = f"no complete response within {self._timeout:g} s (timeout)"
                raise Transient(f"{self._name()}: {what}") from None
            finally:
                call.meter.budget.give_back(promised.usd - cost.usd)
                call.meter.count(tokens=cost.tokens, usd=cost.usd)
            call.meter.count(calls=1)
            return answer

        return await self._retries.ask(once, call.meter, call.stopped)

    async def _turn(self, tokens: int, stopped: Stop) -> None:
        """Wait until the declared rate allows a request of so many tokens."""
        at = max(time.monotonic(), self._next)
        self._next = at + max(self._per_request, tokens * self._per_token)
        while not stopped.is_set() and (left := at - time.monotonic()) > 0:
            await asyncio.sleep(min(left, LOOK))
        if stopped.is_set():
            raise BackendError(_STOPPED)


def wait_for(request: Coroutine[Any, Any, Answer], stopped: Stop) -> Answer:
    """Run a request on the event loop and return its answer; it is cancelled where the run is interrupted.

    Raises:
        BackendError: what the request raises; in place of Refused, too.
    """
    future = asyncio.run_coroutine_threadsafe(request, _event_loop())
    try:
        while not stopped.interrupted:
            if wait([future], LOOK).done:
                return future.result()
    except Refused as refused:
        raise BackendError(str(refused)) from None
    finally:
        future.cancel()
    raise BackendError(_STOPPED)


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


async def in_thread(function: Callable[[], Answer]) -> Answer:
    """Run what only blocks in a thread of its own, which is left behind where it is not waited for to the end."""
    done: Future[Answer] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(function())
        except BaseException as failure:
            done.set_exception(failure)

    Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(done)


def answers(
    ask: Callable[[Request, Stop], Answer], requests: Iterable[Request], *, width: int
) -> Iterator[tuple[Request, Answer]]:
    """Yield each request with its answer in the order of arrival; as `lots_of_answers`."""
    for lot in lots_of_answers(ask, requests, width=width):
        yield from lot


def lots_of_answers(
    ask: Callable[[Request, Stop], Answer], requests: Iterable[Request], *, width: int
) -> Iterator[list[tuple[Request, Answer]]]:
    """Yield requests with their answers as they arrive, together what came together; `width` are under way at once.

    When one fails, no further one is sent, those under way are waited for and yielded (they may have been paid
    for), and the first failure is raised at the end. The event that `ask` is given is then set, so that none of them
    tries again. When the caller is interrupted, or stops asking, what is under way is given up. Requests are taken from
    their iterator in the caller's thread, when there is room.
    """
    waiting = iter(requests)
    running: dict[Future[Answer], Request] = {}
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


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a provider's headers ask to wait, a number or an HTTP date.

    >>> retry_after({"retry-after": "2.5"}), retry_after({"retry-after": "soon"}), retry_after({})
    (2.5, None, None)
    """
    for read in (
        float,
        lambda date: parsedate_to_datetime(date).timestamp() - time.time(),
    ):
        with suppress(ValueError, OverflowError, OSError):
            return max(0.0, read(headers.get("retry-after", "")))
    return None


def refusal(
    name: str, status: int, body: str, headers: Mapping[str, str], code: str = ""
) -> Exception:
    """Return what an answer that is no success means for its request; `code` is the error's, else the body's."""
    said, words, about = error_in(body)
    code = code or said
    message = f"{name}: {status} {as_line(words or body)}".rstrip()
    if not QUOTA.isdisjoint((code, str(status))):
        return BackendError(
            f"{message}; the quota is used up: raise it, then run again: what was paid for is kept"
        )
    if status in _PASSING or status >= 500:
        return Transient(message, retry_after=retry_after(headers))
    if status in _REFUSED:
        return Refused(message, code, about)
    if 300 <= status < 400:
        return BackendError(
            f"{message}; the server redirects: write the address that it names"
        )
    return BackendError(
        message + (_REMEDIES.get(code) or _REMEDIES.get(str(status), ""))
    )


def error_in(body: str) -> tuple[str, str, str]:
    """Return the code of an error, its words, and the parameter that it is about, in the forms that services use.

    >>> error_in('{"message": "no such model", "code": 404}'), error_in('{"error": {"message": "no", "param": "top"}}')
    (('404', 'no such model', ''), ('', 'no', 'top'))
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    error = content.get("error", content) if isinstance(content, dict) else {}
    if not isinstance(error, dict):
        error = {**content, "message": error or content.get("message")}
    words = next(filter(None, map(error.get, ("message", "detail", "Message"))), "")
    code = next(
        filter(None, map(error.get, ("code", "error_type", "type", "__type"))), ""
    )
    words = words if isinstance(words, str) else json.dumps(words, ensure_ascii=False)
    return str(code), words, str(error.get("param") or "")


@contextmanager
def readable(name: str, body: object) -> Iterator[None]:
    """Read an answer inside: one that cannot be read, or is an error with the status of a success, may pass.

    A page that comes again and again from a server that never gave anything else is no service.
    """
    try:
        yield
    except UNREADABLE:
        text = body if isinstance(body, str) else json.dumps(body)
        what = f"an error with the status of a success came back: {as_line(error_in(text)[1])}"
        if not error_in(text)[1]:
            begun = f"it begins with {as_line(text)[:80]!r}"
            what = f"an answer that is not of the protocol came back; {begun}; look at the address"
        raise Transient(f"{name}: {what}", hopeless=text.lstrip()[:1] == "<") from None


def unanswered(name: str, url: str, failure: BaseException) -> Exception:
    """Return what a request that brought no answer means: where it may pass, and what to do where it does not."""
    causes = list(_causes(failure))
    for cause in causes:
        remedy = _FINAL.get(type(cause).__name__)
        if remedy is not None and getattr(cause, "errno", None) != socket.EAI_AGAIN:
            return BackendError(f"{name}: {as_line(str(cause))}{remedy}")
    refused = any(isinstance(cause, ConnectionRefusedError) for cause in causes)
    why = (
        "connection refused"
        if refused
        else as_line(str(causes[-1])) or type(causes[-1]).__name__
    )
    hopeless = refused and on_this_machine(url)
    return Transient(
        f"{name}: no complete response: {why}{NOT_STARTED if hopeless else ''}",
        hopeless=hopeless,
    )


def _causes(failure: BaseException | None) -> Iterator[BaseException]:
    """An exception and what caused it, one after the other."""
    while failure is not None:
        yield failure
        several = failure.exceptions if isinstance(failure, BaseExceptionGroup) else ()
        failure = several[0] if several else failure.__cause__ or failure.__context__
