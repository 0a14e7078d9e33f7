"""What the failure of a service means.

A response or an exception becomes one of three: `TransientFailure` (try again),
`RequestRefused` (the content of this request is at fault) or `BackendError` (final).
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from retrievers.errors import BackendError
from retrievers.options.placeholders import error_line, redact_url
from retrievers.prices import is_on_this_machine

NOT_STARTED_REMEDY = "; is the service running? start it, then run again"
QUOTA_CODES = {"insufficient_quota", "ServiceQuotaExceededException", "402"}
"""Codes of a quota that is used up: waiting does not help."""
UNREADABLE_ERRORS = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""Exceptions in reading an answer that does not follow the protocol."""
_TRANSIENT_STATUSES = {408, 409, 424, 425, 429}
"""Statuses of HTTP after which another try may succeed, besides 500 and above."""
_REFUSED_STATUSES = {400, 413, 422}
"""Statuses of HTTP for a request whose content the service does not accept."""
_PROXY_REMEDY = "; look at the user and the password in HTTP_PROXY or HTTPS_PROXY"
_REMEDY_BY_CODE = {  # a code, or a status, of an error that is final -> remedy
    "401": "; the key was refused: look at the environment variable that holds it",
    "403": "; the key may not use this model",
    "404": "; look at the model's name and at the address",
    "407": _PROXY_REMEDY,
    "AccessDeniedException": (
        "; ask for access to the model in this region, "
        "and look at the credentials' policy"
    ),
    "ExpiredTokenException": (
        "; renew the credentials and run again: what was embedded is kept"
    ),
    "ResourceNotFoundException": "; look at the model's name and the region",
    "UnrecognizedClientException": "; the credentials are not known to AWS",
}
_FINAL_CONNECTION_ERRORS = {
    "SSLCertVerificationError": ("; set SSL_CERT_FILE to the authority that signed it"),
    "SSLError": "; if it does not speak TLS, write http:// in its address",
    "gaierror": "; check the URL",
    "ProxyError": _PROXY_REMEDY,
}
"""Type of a connection's failure that does not pass -> the end of the message."""


class RequestRefused(Exception):
    """The provider refuses the content of a request, such as a text that is too long.

    Args:
        reason: the message.
        code: the provider's code.
        parameter: the parameter that the provider names.
    """

    def __init__(self, reason: str, code: str = "", parameter: str = "") -> None:
        super().__init__(reason)
        self.code = code
        self.parameter = parameter


class RepeatedError(RequestRefused):
    """The server answers the same request with the same error 500 several times.

    Ollama and llama.cpp refuse a text that is too long in this way; a server that is
    broken or overloaded does the same.
    """


class TransientFailure(Exception):
    """A failure that may not happen again.

    Args:
        reason: the message.
        retry_after: seconds to wait before the next try; None if they are unknown.
        unlikely_to_pass: whether it is final for a service that has never answered.
        is_server_error: whether it is an error 500, which says nothing about its cause.
    """

    def __init__(
        self,
        reason: str,
        *,
        retry_after: float | None = None,
        unlikely_to_pass: bool = False,
        is_server_error: bool = False,
    ) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        self.unlikely_to_pass = unlikely_to_pass
        self.is_server_error = is_server_error


class ServiceError(NamedTuple):
    """An error as a service describes it."""

    code: str
    message: str
    parameter: str
    """The parameter of the request that it is about."""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a provider's headers ask to wait: a number, an HTTP date.

    >>> retry_after({"retry-after": "2.5"})
    2.5
    >>> retry_after({"retry-after": "soon"}) is None, retry_after({}) is None
    (True, True)
    """
    header = headers.get("retry-after", "")
    try:
        return max(0.0, float(header))
    except (ValueError, OverflowError):
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, OverflowError, OSError):
        return None


def classify_response_error(
    name: str, status: int, body: str, headers: Mapping[str, str], *, code: str = ""
) -> Exception:
    """Return the exception for a response that is not a success.

    It is one of the three that the module names.

    Args:
        name: the service's name in messages.
        status: the HTTP status.
        body: the response's text.
        headers: the response's headers.
        code: the error's code; empty for the code in the body.
    """
    error = parse_error(body)
    code = code or error.code
    message = f"{name}: {status} {error_line(error.message or body)}".rstrip()
    # Before the statuses: a quota that is used up often has the status 429.
    if not QUOTA_CODES.isdisjoint((code, str(status))):
        return BackendError(
            f"{message}; the quota is used up: raise it, then run again: "
            "what was paid for is kept"
        )
    if status in _TRANSIENT_STATUSES or status >= 500:
        pause = retry_after(headers)
        is_server_error = status == 500 and pause is None
        return TransientFailure(
            message, retry_after=pause, is_server_error=is_server_error
        )
    if status in _REFUSED_STATUSES:
        return RequestRefused(message, code, error.parameter)
    if is_redirect(status):
        return redirect_error(name, status, headers)
    remedy = _REMEDY_BY_CODE.get(code) or _REMEDY_BY_CODE.get(str(status), "")
    return BackendError(message + remedy)


def is_redirect(status: object) -> bool:
    """Return whether a status sends the client to another address."""
    return isinstance(status, int) and 300 <= status < 400


def redirect_error(
    name: str, status: object, headers: Mapping[str, str]
) -> BackendError:
    """Return the exception for a redirect, which no client follows.

    Texts and keys go only to the server that the experiment names.

    >>> str(redirect_error("http://a", 307, {"location": "http://b/v1?key=x"}))
    'http://a: redirects to http://b/v1 (307): if you trust it, write that address'
    """
    location = error_line(redact_url(headers.get("location", "")))
    return BackendError(
        f"{name}: redirects to {location or 'an address that it does not name'} "
        f"({status}): if you trust it, write that address"
    )


def parse_error(body: str) -> ServiceError:
    """Return the error in a response, in one of the forms that services use.

    What the response does not have is "".

    >>> parse_error('{"message": "no such model", "code": 404}')
    ServiceError(code='404', message='no such model', parameter='')
    >>> parse_error('{"error": {"message": "no", "param": "top"}}')
    ServiceError(code='', message='no', parameter='top')
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    error = content.get("error", content) if isinstance(content, dict) else {}
    if not isinstance(error, dict):
        error = {**content, "message": error or content.get("message")}
    message = _first_true(error, "message", "detail", "Message")
    if not isinstance(message, str):
        message = json.dumps(message, ensure_ascii=False)
    code = str(_first_true(error, "code", "error_type", "type", "__type"))
    return ServiceError(code, message, parameter=str(error.get("param") or ""))


def _first_true(error: Mapping[str, Any], *keys: str) -> Any:
    """Return the first of these keys' values that is true; "" if none is."""
    return next(filter(None, map(error.get, keys)), "")


@contextmanager
def explain_unreadable(name: str, body: object) -> Iterator[None]:
    """Turn what fails while an answer is read inside into a failure that may pass.

    Another try may bring a readable answer. A web page is unlikely to pass: a server
    that gives nothing else is no service.

    Args:
        name: the server's name in messages.
        body: what it answered.

    Raises:
        TransientFailure: the answer cannot be read.
    """
    try:
        yield
    except UNREADABLE_ERRORS:
        text = body if isinstance(body, str) else json.dumps(body)
        is_web_page = text.lstrip().startswith("<")
        error_message = parse_error(text).message
        if error_message:
            problem = (
                f"an error with the status of a success: {error_line(error_message)}"
            )
        else:
            problem = (
                f"expected JSON, got {error_line(text)[:80]!r}; "
                "check the URL and the login"
            )
        raise TransientFailure(
            f"{name}: {problem}", unlikely_to_pass=is_web_page
        ) from None


def check_indexed(name: str, rows: Any) -> None:
    """Refuse a reply without `index`: nothing else says which text a row is about.

    A server that leaves it out does so every time, and each try would be paid for.

    Raises:
        BackendError: a row has no index.

    >>> check_indexed("http://a", [{"index": 0}])
    """
    for row in rows:
        if isinstance(row, dict) and "index" not in row:
            raise BackendError(
                f"{name}: a row of the reply has no `index`, so it is unknown which "
                "text it is about; use a server that sends `index`"
            )


def classify_connection_error(name: str, url: str, failure: BaseException) -> Exception:
    """Return the exception for a request without a response: final, or transient."""
    causes = list(_causes(failure))
    for cause in causes:
        remedy = _FINAL_CONNECTION_ERRORS.get(type(cause).__name__)
        is_temporary = getattr(cause, "errno", None) == socket.EAI_AGAIN
        if remedy is not None and not is_temporary:
            reason = error_line(str(cause))
            if isinstance(cause, socket.gaierror):
                host = urlsplit(url).hostname or name
                reason = f"cannot reach {host}: no such host, or no network"
            return BackendError(f"{name}: {reason}{remedy}")
    reason = error_line(str(causes[-1])) or type(causes[-1]).__name__
    is_refused = any(isinstance(cause, ConnectionRefusedError) for cause in causes)
    if is_refused:
        reason = "connection refused"
    is_not_started = is_refused and is_on_this_machine(url)
    message = f"no response from {name} ({reason})"
    if is_not_started:
        message = f"cannot reach {name}: {reason}{NOT_STARTED_REMEDY}"
    return TransientFailure(message, unlikely_to_pass=is_not_started)


def _causes(failure: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception, its cause, the cause's cause and so on."""
    while failure is not None:
        yield failure
        cause = failure.__cause__ or failure.__context__
        if isinstance(failure, BaseExceptionGroup):
            cause = failure.exceptions[0]
        failure = cause
