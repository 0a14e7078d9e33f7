"""How a request to a provider may fail: for now, for its length, or for good."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_LIMIT = re.compile(
    r"(?:maxLength:|(?:maximum|model's) context length is(?: only)?|max input tokens:|maximum input length is"
    r"|must have less than|max)\s*([\d,]*\d)",
    re.IGNORECASE,
)
_LENGTH = re.compile(r"(?:actual:|passed|requested|token count:|given:)\s*([\d,]*\d)", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"context length|maximum input length|too many (?:input )?tokens|max_tokens_per_request|tokens per request"
    r"|must have less than \d+ tokens|maxLength: \d+|input (?:text |is )*too long|maximum allowed batch",
    re.IGNORECASE,
)


class Transient(Exception):
    """A failure that may not happen again: the reason, and how many seconds the provider asks to wait."""

    def __init__(self, reason: str, *, retry_after: float | None = None, throttled: bool = False) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        self.throttled = throttled


class TooLong(Exception):
    """The provider refuses a request for its length: the limit and the length that it names, if it names them."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        limit = _LIMIT.search(reason)
        length = _LENGTH.search(reason)
        self.limit = int(limit[1].replace(",", "")) if limit else None
        self.length = int(length[1].replace(",", "")) if length else None
        self.characters = "maxLength" in reason


def says_too_long(message: str) -> bool:
    """Tell whether a refusal is for length, in the words of OpenAI, vLLM, Titan, Cohere or TEI.

    >>> says_too_long("This model's maximum context length is 8192 tokens, however you requested 9000 tokens")
    True
    """
    return _TOO_LONG.search(message) is not None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a provider's headers ask to wait: a number, or an HTTP date."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            return max(float(value) / unit, 0.0)
        except ValueError:
            pass
        try:
            return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
        except ValueError:
            pass
    return None
