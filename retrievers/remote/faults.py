"""How a request to a provider may fail: for now, for its length, or for good."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_LIMIT = re.compile(
    r"(?:maxLength:|(?:maximum|model's) context length is(?: only)?|max input tokens:|maximum input length is"
    r"|must have less than|current batch size:|max)\s*([\d,]*\d)",
    re.IGNORECASE,
)
_LENGTH = re.compile(
    r"(?:actual:|passed|requested|token count:|given:|your request has|input \()\s*([\d,]*\d)", re.IGNORECASE
)
_TOO_LONG = re.compile(
    r"context length|maximum input length|too many (?:input )?tokens|max_tokens_per_request|tokens per request"
    r"|must have less than \d+ tokens|maxLength: \d+|input (?:text |is )*too long|maximum allowed batch"
    r"|is too large to process",
    re.IGNORECASE,
)


_TEXTS = re.compile(
    r"(?:maximum (?:allowed )?batch size(?: of| is)?|batch size limit(?: of)?|number of (?:texts|inputs|documents) "
    r"must be at most|(?:at most|maximum of|limit of|up to) (?=\d+ (?:texts|inputs|requests|documents|items|strings)))"
    r"\s*+:?\s*+(\d+)",
    re.IGNORECASE,
)
_DAY = 86_400.0


class Transient(Exception):
    """A failure that may not happen again: the reason, and how many seconds the provider asks to wait.

    `refused_here`: nothing listens on this machine where the server should be.
    """

    def __init__(
        self, reason: str, *, retry_after: float | None = None, throttled: bool = False, refused_here: bool = False
    ) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        self.throttled = throttled
        self.refused_here = refused_here


class TooLong(Exception):
    """The provider refuses a request for its length: the limit and the length that it names, if it names them.

    `texts` is the number of texts that a request may have, where that is the reason; never 0.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        texts = _TEXTS.search(reason)
        self.texts = int(texts[1]) or None if texts and len(texts[1]) < 9 else None
        if self.texts is not None:
            self.limit = self.length = None
            self.characters = False
            return
        limit = _LIMIT.search(reason)
        length = _LENGTH.search(reason)
        self.limit = _number(limit)
        self.length = _number(length)
        self.characters = "maxLength" in reason


def says_too_long(message: str) -> bool:
    """Tell whether a refusal is for the length of a text or of a request, in the words of the known providers.

    >>> says_too_long("This model's maximum context length is 8192 tokens, however you requested 9000 tokens")
    True
    """
    return _TOO_LONG.search(message) is not None or _TEXTS.search(message) is not None


def _number(match: re.Match[str] | None) -> int | None:
    """The number in a provider's words; None where there is none, or none that can be meant."""
    return int(match[1].replace(",", "")) if match and len(match[1]) < 13 else None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a provider's headers ask to wait, a number or an HTTP date; a day at most.

    >>> retry_after({"retry-after": "2.5"}), retry_after({"retry-after": "nan"}), retry_after({})
    (2.5, None, None)
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / unit
        except ValueError:
            seconds = _seconds_until(value)
        if not math.isnan(seconds):
            return min(max(seconds, 0.0), _DAY)
    return None


def _seconds_until(date: str) -> float:
    """The seconds to an HTTP date, NaN where it is none."""
    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except (ValueError, OverflowError, OSError):
        return math.nan
