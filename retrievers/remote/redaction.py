"""Keeps keys and tokens out of every message."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

HIDDEN = "***"
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL)", re.IGNORECASE)
_SECRET_SHAPE = re.compile(
    r"(?i:bearer|basic|credential=|signature=)\s*\S+"  # authorisation headers
    r"|\b(?:sk|pk|hf|ghp|xoxb|eyJ)[-_][\w.-]{6,}"  # keys that say what they are
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{12,}"
    r"|(?=[\w+/=-]*[A-Za-z])(?=[\w+/=-]*\d)[\w+/=-]{24,}"  # any long run of letters and digits
)
_LONGEST = 400


def redacted(message: str, *, secrets: Iterable[str] = (), keep: Iterable[str] = ()) -> str:
    """Return a provider's message on one line, at most 400 characters, with whatever may be a secret hidden.

    Hidden are the given secrets, the values of environment variables that are named like one, and anything that
    looks like a key.

    Args:
        message: a provider's words.
        secrets: what must not be shown.
        keep: words that look like keys and are none, such as a model's name.

    >>> redacted("Incorrect API key provided: sk-proj-1a2b3c4d5e6f. See the docs.")
    'Incorrect API key provided: *** See the docs.'
    """
    named = (value for name, value in os.environ.items() if _SECRET_NAME.search(name))
    text = " ".join(message.split())
    for secret in sorted({*secrets, *named}, key=len, reverse=True):
        if len(secret) >= 6:
            text = text.replace(secret, HIDDEN)
    kept = set(keep)
    text = _SECRET_SHAPE.sub(lambda found: found[0] if found[0] in kept else HIDDEN, text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
