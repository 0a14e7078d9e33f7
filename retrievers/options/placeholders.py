"""`${NAME}` in options.

Options keep `${NAME}` in files, so no key has to be removed from them. The exception is
an error of a provider, or of a user's function, which may repeat a key: it passes
`redact_keys`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from retrievers.errors import InputError, Problem

if TYPE_CHECKING:
    from pydantic import SecretStr

KEY_MASK = "***"
VARIABLE_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
MIN_KEY_LENGTH = 6
"""A shorter key is like any other word, and hiding it would make messages
unreadable."""
KEY_VARIABLES = (
    "OPENAI_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "CO_API_KEY",
    "VOYAGE_API_KEY",
    "JINA_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "QDRANT_API_KEY",
    "HF_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
)
"""Variables that libraries, or users' code, read by themselves."""
_MAX_ERROR_CHARACTERS = 400
"""Characters of a provider's error that a message repeats."""
_URL_USER = re.compile(r"(?<=://)[^/?#\s]*@")
"""The user and password of an address: up to the last @ before its path."""
_used: set[str] = set()
"""Keys that this process has used."""


def expand(value: Any) -> Any:
    """Return an option with the environment's values for every `${NAME}`.

    A name that is not set stays as it is.

    >>> os.environ["MODEL_OF_DOCTEST"] = "minilm"
    >>> expand({"model": "${MODEL_OF_DOCTEST}", "of": ["${NOT_SET_ANYWHERE}"]})
    {'model': 'minilm', 'of': ['${NOT_SET_ANYWHERE}']}
    """
    if isinstance(value, str):
        if "${" not in value:
            return value
        return VARIABLE_REFERENCE.sub(_variable_value, value)
    if isinstance(value, Mapping):
        return {key: expand(inner) for key, inner in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(expand, value))
    return value


def _variable_value(reference: re.Match[str]) -> str:
    """Return the value of a variable; the reference itself if it is not set."""
    return os.environ.get(reference[1], reference[0])


def instantiate(cls: Any, options: Mapping[str, Any]) -> Any:
    """Create an object from options with `${NAME}`.

    They are expanded, unless the class does it itself.
    """
    if getattr(cls, "expands", False):
        return cls(**options)
    return cls(**expand(options))


def resolve_secret(option: str) -> SecretStr:
    """Return the value of a key, or of an option with one; errors no longer show it.

    Raises:
        InputError: a variable in the option is not set, or empty.
    """
    from pydantic import SecretStr

    for variable in VARIABLE_REFERENCE.findall(option):
        if not os.environ.get(variable):
            problem = "is not set in the environment"
            raise InputError(Problem(variable, problem, f"export {variable}=…"))
    value: str = expand(option)
    _used.add(value)
    if value != option:
        _used.update(_variable_values(option))
    return SecretStr(value)


def hide_values(*options: Any) -> None:
    """Hide the values of `${NAME}` in these options, which may be keys, in errors."""
    _used.update(_variable_values(json.dumps(options, default=str)))


def _variable_values(text: str) -> list[str]:
    """Return the values of all variables in a text."""
    return [os.environ.get(name, "") for name in VARIABLE_REFERENCE.findall(text)]


def redact_keys(text: str) -> str:
    """Return an error without keys that this process uses, or users in addresses.

    >>> _ = resolve_secret("sk-doctest")
    >>> redact_keys("refused: sk-doctest, see https://me:word@example.org")
    'refused: ***, see https://example.org'
    """
    keys = _used | {os.environ.get(name, "") for name in KEY_VARIABLES}
    for key in sorted(keys, key=len, reverse=True):
        if len(key) >= MIN_KEY_LENGTH:
            text = text.replace(key, KEY_MASK)
    return redact_url_users(text)


def error_line(message: str) -> str:
    """Return a provider's message on one line, without keys, at most 400 characters."""
    line = redact_keys(" ".join(message.split()))
    if len(line) <= _MAX_ERROR_CHARACTERS:
        return line
    return line[: _MAX_ERROR_CHARACTERS - 1] + "…"


def redact_url_users(text: str) -> str:
    """Return a text without the users and passwords in its addresses.

    >>> redact_url_users("asked https://me:w@rd@example.org/v1 in vain")
    'asked https://example.org/v1 in vain'
    """
    return _URL_USER.sub("", text)


def redact_url(url: str) -> str:
    """Return an address for messages and files: without user and query.

    `${NAME}` stays as it is.

    >>> redact_url("https://me:word@example.org/v1?key=abc"), redact_url("${SERVER}")
    ('https://example.org/v1', '${SERVER}')
    """
    try:
        parts = urlsplit(redact_url_users(url))
    except ValueError:
        return "…"
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
