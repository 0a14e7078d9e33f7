"""Keeps keys and tokens out of every message, and what `${NAME}` stood for out of every file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any
from urllib.parse import urlsplit, urlunsplit

HIDDEN = "***"
REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
SHORTEST = 6
"""Characters of a secret below which it is a word like any other, and hiding it would hide what is said."""
_READ = 4096
"""Characters beyond the end of a beginning that are looked at for secrets."""
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL)", re.IGNORECASE)
_SECRET_SHAPE = re.compile(
    r"(?i:\b(?:bearer|basic)\s+)[\w+/=.~-]{16,}"  # authorisation headers
    r"|(?i:\b(?:credential|signature|api[-_]?key|key|token|secret|password)=)[^\s&,;\"']+"
    r"|\b(?:sk|pk|pa|hf|ghp|gho|gsk|jina|xox[a-z])[-_][\w.-]{6,}"  # keys that say what they are
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{12,}"
    r"|\bAIza[\w-]{20,}"
    r"|\beyJ[\w-]{8,}(?:\.[\w-]+)*"  # JSON web tokens
    r"|(?<![\w/+-])(?=[\w/+]*[a-z])(?=[\w/+]*[A-Z])(?=[\w/+]*\d)[\w/+]{40}(?![\w/+=-])"  # AWS's secret keys
    r"|(?<![\w-])(?=\w*[A-Za-z])(?=\w*\d)\w{24,}(?![\w-])"  # any long run of letters and digits
)
_USER = re.compile(r"(?<=://)[^/?#\s]*@")  # to the last @ before the path, as addresses are read
_LONGEST = 400


_used: set[str] = set()
"""Names of variables whose values this process has used: no file that it writes may hold them."""


def from_environment(name: str) -> str:
    """Return the value of a variable: whatever is written from now on says `${NAME}` for it; KeyError: it is unset."""
    _used.add(name)
    return os.environ[name]


def filled(text: str) -> str:
    """Return a text with the environment's values for every `${NAME}`; what is not set stays as it is written."""
    return REFERENCE.sub(lambda name: from_environment(name[1]) if name[1] in os.environ else name[0], text)


def environment_values() -> dict[str, str]:
    """Return what no file may hold, the longest first, with what stands there instead.

    It is what was used of the environment, and what variables hold that are named like a secret: the user's own code
    may have read them. Short values, and plain words that nothing used, are words like any other.
    """
    values: dict[str, str] = {}
    for name, whole in os.environ.items():
        value = whole.strip()
        if len(value) >= SHORTEST and (name in _used or (_SECRET_NAME.search(name) and not value.isalpha())):
            for form in (value, json.dumps(value, ensure_ascii=False)[1:-1], json.dumps(value)[1:-1], escape(value)):
                values.setdefault(form, f"${{{name}}}")
    return dict(sorted(values.items(), key=lambda item: len(item[0]), reverse=True))


def masked(text: str, values: Mapping[str, str] | None = None) -> str:
    """Return a text as it may be written: whatever the environment holds stands in it as `${NAME}`.

    Args:
        text: what is to be written, or shown.
        values: `environment_values`, for who writes much.
    """
    for value, name in (environment_values() if values is None else values).items():
        if value in text:
            text = text.replace(value, name)
    return text


class Expanded(str):
    """A value of the experiment in which `${NAME}` was replaced; `written` is what stands in the file.

    What is shown or kept is what was written: see `as_written`.
    """

    __slots__ = ("written",)
    written: str

    def __new__(cls, value: str, written: str) -> Expanded:
        """Return the value, which remembers how it was written."""
        one = super().__new__(cls, value)
        one.written = written
        return one

    def __reduce__(self) -> tuple[type[Expanded], tuple[str, str]]:
        """Let libraries copy the value, as they do with a model's name."""
        return Expanded, (str(self), self.written)


def as_written(value: str) -> str:
    """Return a value of the experiment as it may be shown and kept: with its `${NAME}`, and no user in its address.

    >>> as_written(Expanded("https://me:word@example.org/v1", "${SERVER}"))
    '${SERVER}'
    >>> as_written("https://me@example.org/v1")
    'https://example.org/v1'
    """
    return value.written if isinstance(value, Expanded) else without_user(value)


def as_written_json(table: Mapping[str, Any]) -> str:
    """Return a table of the experiment as JSON, as it may be shown and kept."""
    return json.dumps(_as_written(table), ensure_ascii=False, sort_keys=True)


def secrets_in(*values: Any) -> list[str]:
    """Return what must not be shown of values of the experiment: what `${NAME}` was replaced by, alone and whole."""
    secrets: list[str] = []
    for value in values:
        if isinstance(value, Expanded):
            secrets += [str(value), *(os.environ.get(name, "") for name in REFERENCE.findall(value.written))]
        elif isinstance(value, Mapping):
            secrets += secrets_in(*value.values())
        elif isinstance(value, list | tuple):
            secrets += secrets_in(*value)
    return secrets


def without_user(text: str) -> str:
    """Return a text, the users and passwords of the addresses in it cut out.

    >>> without_user("asked https://me:w@rd@example.org/v1 in vain")
    'asked https://example.org/v1 in vain'
    """
    return _USER.sub("", text)


def without_secrets(url: str) -> str:
    """Return the part of an address that may be shown: no user, no query.

    >>> without_secrets("https://me:word@example.org/v1?key=abc")
    'https://example.org/v1'
    """
    parts = urlsplit(without_user(url))
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))


def shown(url: str) -> str:
    """Return an address as it may be shown and kept: as it was written, without user and query."""
    written = as_written(url)
    return written if written != str(url) and "${" in written else without_secrets(written)


def shown_or_hidden(url: str) -> str:
    """Return an address that may be malformed, as it may be shown."""
    try:
        return shown(url)
    except ValueError:
        return "…"


def redacted(message: str, *, secrets: Iterable[str] = (), keep: Iterable[str] = ()) -> str:
    """Return a provider's message on one line, at most 400 characters, with whatever may be a key hidden.

    Hidden are the given secrets, the values of environment variables that are named like one, users in addresses, and
    what looks like a key; nothing else.

    Args:
        message: a provider's words.
        secrets: what must not be shown.
        keep: words that look like keys and are none, such as a model's name.

    >>> redacted("Incorrect API key provided: sk-proj-1a2b3c4d5e6f. See https://host/v1/models/e5?page=2")
    'Incorrect API key provided: *** See https://host/v1/models/e5?page=2'
    """
    named = (value for name, value in os.environ.items() if _SECRET_NAME.search(name))
    text = without_user(" ".join(message.split()))
    for secret in sorted({*secrets, *named}, key=len, reverse=True):
        if len(secret) >= SHORTEST:
            text = text.replace(secret, HIDDEN)
    kept = set(keep)
    text = _SECRET_SHAPE.sub(lambda match: match[0] if match[0] in kept else HIDDEN, text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def beginning_of(body: bytes, length: int, *, secrets: Iterable[str] = (), keep: Iterable[str] = ()) -> str:
    """Return the first characters of an answer, redacted before they are cut: else half a secret would stand there."""
    text = body[: length + _READ].decode("utf-8", "replace")
    return redacted(text, secrets=secrets, keep=keep)[:length]


def _as_written(value: Any) -> Any:
    if isinstance(value, str):
        return as_written(value)
    if isinstance(value, Mapping):
        return {key: _as_written(inner) for key, inner in value.items()}
    return [_as_written(inner) for inner in value] if isinstance(value, list | tuple) else value
