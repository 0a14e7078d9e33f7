"""One loop around every request to a provider: its turn, its promise of dollars, its time, and asking again.

An SDK sends the request, reads the answer and signs; its own retries are off. Here an attempt ends `timeout` seconds
after it began, whatever it waits for, and can be cancelled. Everything runs on one event loop in a thread of its own,
so that callers need not be asynchronous.
"""

import asyncio
import json
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import wait
from contextlib import contextmanager
from functools import partial
from threading import Lock, Thread
from typing import Any, NamedTuple, TypeVar

from retrievers.costs import on_this_machine
from retrievers.errors import BackendError
from retrievers.meter import Call, Stop
from retrievers.placeholders import as_line
from retrievers.retrying import LOOK, NOT_STARTED, WRONG_ADDRESS, RetryLoop, Transient, retry_after
from retrievers.types import Limits

Answer = TypeVar("Answer")
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


class Refused(Exception):
    """The provider refuses what is in this request, such as a text that is too long; `code` and `about` are its own."""

    def __init__(self, reason: str, code: str = "", about: str = "") -> None:
        super().__init__(reason)
        self.code, self.about = code, about


class Charge(NamedTuple):
    """What one request cost, or is expected to cost."""

    tokens: int
    usd: float


class Caller:
    """Sends the requests of one model or endpoint."""

    def __init__(self, limits: Limits, timeout: float, name: Callable[[], str]) -> None:
        """Take how it may be asked, the seconds of one attempt, and what messages call it."""
        self._limits, self._timeout, self._name = limits, timeout, name
        self._retries = RetryLoop(limits.patience)
        self._per_request = _MARGIN * 60 / limits.rpm if limits.rpm else 0.0
        self._per_token = _MARGIN * 60 / limits.tpm if limits.tpm else 0.0
        self._next = 0.0

    async def call(
        self, attempt: Callable[[], Awaitable[tuple[Answer, Charge]]], promised: Charge, call: Call, pace: int
    ) -> Answer:
        """Send one request until it succeeds, fails for good, or patience ends, within the budget; count what it cost.

        Args:
            attempt: asks the provider once; returns the answer, checked, and its cost. Raises Transient where another
                try may help.
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

        tries, started = 1, time.monotonic()

        def again() -> None:
            nonlocal tries
            tries += 1
            call.meter.count(retries=1)

        try:
            return await self._retries.ask(once, again, call.stopped)
        except Transient as last:
            took = f"{tries} {'try' if tries == 1 else 'tries'} in {time.monotonic() - started:.0f} s"
            remedy = "; is it running? start it, then run again" if last.enough == NOT_STARTED else ""
            patience = f"(patience = {self._limits.patience:g})"
            raise BackendError(f"gave up after {took} {patience}: {last}{remedy}") from None

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
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Answer] = loop.create_future()

    def run() -> None:
        try:
            deliver: Callable[[], None] = partial(done.set_result, function())
        except BaseException as failure:
            deliver = partial(done.set_exception, failure)
        loop.call_soon_threadsafe(lambda: None if done.done() else deliver())

    Thread(target=run, daemon=True).start()
    return await done


def refusal(name: str, status: int, body: str, headers: Mapping[str, str], code: str = "") -> Exception:
    """Return what an answer that is no success means for its request.

    Args:
        name: of who refused.
        status: of HTTP.
        body: of the answer.
        headers: of the answer, names in lower case.
        code: of the error, where it is known; else the body's.
    """
    said, words, about = error_in(body)
    code = code or said
    message = f"{name}: {status} {as_line(words or body)}".rstrip()
    if code in QUOTA or str(status) in QUOTA:
        return BackendError(f"{message}; the quota is used up: raise it, then run again: what was paid for is kept")
    if status in _PASSING or status >= 500:
        return Transient(message, retry_after=retry_after(headers))
    if status in _REFUSED:
        return Refused(message, code, about)
    if 300 <= status < 400:
        return BackendError(f"{message}; the server redirects: write the address that it names")
    return BackendError(message + (_REMEDIES.get(code) or _REMEDIES.get(str(status), "")))


def error_in(body: str) -> tuple[str, str, str]:
    """Return the code of an error, its words, and the parameter that it is about, in the forms that services use.

    >>> error_in('{"message": "no such model", "code": 404}'), error_in('{"error": {"message": "no", "param": "top"}}')
    (('404', 'no such model', ''), ('', 'no', 'top'))
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return "", "", ""
    if not isinstance(content, dict):
        return "", "", ""
    error = content.get("error")
    if isinstance(error, dict):
        code = error.get("code") or error.get("type") or ""
        return str(code), str(error.get("message") or ""), str(error.get("param") or "")
    words = next(filter(None, (error, content.get("message"), content.get("detail"), content.get("Message"))), "")
    code = content.get("error_type") or content.get("code") or content.get("__type") or ""
    return str(code), words if isinstance(words, str) else json.dumps(words, ensure_ascii=False), ""


@contextmanager
def readable(name: str, body: object) -> Iterator[None]:
    """Read an answer inside: one that cannot be read, or is an error with the status of a success, may pass.

    A page that comes again and again from a server that never gave anything else is no service.
    """
    try:
        yield
    except UNREADABLE:
        text = body if isinstance(body, str) else json.dumps(body)
        words = error_in(text)[1]
        what = f"an error with the status of a success came back: {as_line(words)}" if words else (
            f"an answer that is not of the protocol came back; it begins with {as_line(text)[:80]!r}; "
            "look at the address")  # fmt: skip
        page = text.lstrip()[:1] == "<"
        raise Transient(f"{name}: {what}", enough=WRONG_ADDRESS if page else None) from None


def unanswered(name: str, url: str, failure: BaseException) -> Exception:
    """Return what a request that brought no answer means: where it may pass, and what to do where it does not."""
    causes = list(_causes(failure))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            what = f"the server's certificate is refused: {cause.verify_message}"
            return BackendError(f"{name}: {what}; set SSL_CERT_FILE to the authority that signed it")
        if isinstance(cause, socket.gaierror) and cause.errno != socket.EAI_AGAIN:
            return BackendError(f"{name}: the server's name is not known: {cause.strerror}")
        if type(cause).__name__ == "ProxyError":
            return BackendError(f"{name}: the proxy refuses: {as_line(str(cause))}{_PROXY}")
        if isinstance(cause, ssl.SSLError) and "WRONG_VERSION_NUMBER" in str(cause):
            return BackendError(f"{name}: the server does not speak TLS: write http:// in its address")
    refused = any(isinstance(cause, ConnectionRefusedError) for cause in causes)
    why = "connection refused" if refused else as_line(str(causes[-1])) or type(causes[-1]).__name__
    enough = NOT_STARTED if refused and on_this_machine(url) else None
    return Transient(f"{name}: no complete response: {why}", enough=enough)


def _causes(failure: BaseException | None) -> Iterator[BaseException]:
    """An exception and what caused it, one after the other."""
    while failure is not None:
        yield failure
        several = failure.exceptions if isinstance(failure, BaseExceptionGroup) else ()
        failure = several[0] if several else failure.__cause__ or failure.__context__
