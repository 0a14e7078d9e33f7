"""What the failure of a service means."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime

from retrievers.errors import BackendError
from retrievers.options.placeholders import error_line
from retrievers.prices import is_on_this_machine

NOT_STARTED_REMEDY = "; is it running? start it, then run again"
QUOTA_CODES = {"insufficient_quota", "ServiceQuotaExceededException", "402"}
"""Codes of a quota that is used up: waiting does not help."""
UNREADABLE_ERRORS = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What reading an answer raises that is not of the protocol."""


_PASSING = {408, 409, 424, 425, 429}
_REFUSED = {400, 413, 422}


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


class RequestRefused(Exception):
    """The provider refuses what is in this request, such as a text that is too long; `code` and `about` are its own."""

    def __init__(self, reason: str, code: str = "", parameter: str = "") -> None:
        super().__init__(reason)
        self.code, self.parameter = code, parameter


class TransientFailure(Exception):
    """A failure that may not happen again."""

    def __init__(
        self,
        reason: str,
        *,
        retry_after: float | None = None,
        unlikely_to_pass: bool = False,
    ) -> None:
        """Take the reason, the seconds to wait for, and whether it is final of a service that has never answered."""
        super().__init__(reason)
        self.retry_after, self.unlikely_to_pass = retry_after, unlikely_to_pass


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


def classify_response_error(
    name: str, status: int, body: str, headers: Mapping[str, str], code: str = ""
) -> Exception:
    """Return what an answer that is no success means for its request; `code` is the error's, else the body's."""
    said, words, about = parse_error(body)
    code = code or said
    message = f"{name}: {status} {error_line(words or body)}".rstrip()
    if not QUOTA_CODES.isdisjoint((code, str(status))):
        return BackendError(
            f"{message}; the quota is used up: raise it, then run again: what was paid for is kept"
        )
    if status in _PASSING or status >= 500:
        return TransientFailure(message, retry_after=retry_after(headers))
    if status in _REFUSED:
        return RequestRefused(message, code, about)
    if 300 <= status < 400:
        return BackendError(
            f"{message}; the server redirects: write the address that it names"
        )
    return BackendError(
        message + (_REMEDIES.get(code) or _REMEDIES.get(str(status), ""))
    )


def parse_error(body: str) -> tuple[str, str, str]:
    """Return the code of an error, its words, and the parameter that it is about, in the forms that services use.

    >>> parse_error('{"message": "no such model", "code": 404}'), parse_error('{"error": {"message": "no", "param": "top"}}')
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
def explain_unreadable(name: str, body: object) -> Iterator[None]:
    """Read an answer inside: one that cannot be read, or is an error with the status of a success, may pass.

    A page that comes again and again from a server that never gave anything else is no service.
    """
    try:
        yield
    except UNREADABLE_ERRORS:
        text = body if isinstance(body, str) else json.dumps(body)
        what = f"an error with the status of a success came back: {error_line(parse_error(text)[1])}"
        if not parse_error(text)[1]:
            begun = f"it begins with {error_line(text)[:80]!r}"
            what = f"an answer that is not of the protocol came back; {begun}; look at the address"
        raise TransientFailure(
            f"{name}: {what}", unlikely_to_pass=text.lstrip()[:1] == "<"
        ) from None


def classify_connection_error(name: str, url: str, failure: BaseException) -> Exception:
    """Return what a request that brought no answer means: where it may pass, and what to do where it does not."""
    causes = list(_causes(failure))
    for cause in causes:
        remedy = _FINAL.get(type(cause).__name__)
        if remedy is not None and getattr(cause, "errno", None) != socket.EAI_AGAIN:
            return BackendError(f"{name}: {error_line(str(cause))}{remedy}")
    refused = any(isinstance(cause, ConnectionRefusedError) for cause in causes)
    why = (
        "connection refused"
        if refused
        else error_line(str(causes[-1])) or type(causes[-1]).__name__
    )
    hopeless = refused and is_on_this_machine(url)
    return TransientFailure(
        f"{name}: no complete response: {why}{NOT_STARTED_REMEDY if hopeless else ''}",
        unlikely_to_pass=hopeless,
    )


def _causes(failure: BaseException | None) -> Iterator[BaseException]:
    """An exception and what caused it, one after the other."""
    while failure is not None:
        yield failure
        several = failure.exceptions if isinstance(failure, BaseExceptionGroup) else ()
        failure = several[0] if several else failure.__cause__ or failure.__context__
