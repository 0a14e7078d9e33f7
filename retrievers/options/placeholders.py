"""`${NAME}` in options.

So there is nothing to take out of files again. The one exception is the error of a provider, or of somebody's function,
which may repeat a key: it passes `without_keys`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

if TYPE_CHECKING:
    from pydantic import SecretStr

KEY_MASK = "***"
VARIABLE_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
MIN_KEY_LENGTH = 6
"""Characters of a key below which it is a word like any other, and hiding it would hide what is said."""
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
"""Variables that libraries here, or code of the user's own, read by themselves."""
_LONGEST = 400
_USER = re.compile(
    r"(?<=://)[^/?#\s]*@"
)  # to the last @ before the path, as addresses are read
_used: set[str] = set()
"""Keys that this process has used."""


def expand(value: Any) -> Any:
    """Return an option with the environment's values for every `${NAME}`; what is not set stays as it is written.

    >>> os.environ["MODEL_OF_DOCTEST"] = "minilm"
    >>> expand({"model": "${MODEL_OF_DOCTEST}", "of": ["${NOT_SET_ANYWHERE}"]})
    {'model': 'minilm', 'of': ['${NOT_SET_ANYWHERE}']}
    """
    if isinstance(value, str):
        return (
            VARIABLE_REFERENCE.sub(lambda name: os.environ.get(name[1], name[0]), value)
            if "${" in value
            else value
        )
    if isinstance(value, Mapping):
        return {key: expand(inner) for key, inner in value.items()}
    return type(value)(map(expand, value)) if type(value) in (list, tuple) else value


def instantiate(cls: Any, options: Mapping[str, Any]) -> Any:
    """Make an object from options as they are written: values are put in here, unless its class does so itself."""
    return cls(**(options if getattr(cls, "expands", False) else expand(options)))


def resolve_secret(written: str) -> SecretStr:
    """Return the value of a key, or of what may hold one; no error shows it from now on."""
    from pydantic import SecretStr

    value: str = expand(written)
    _used.update(
        [value]
        if value == written
        else [value, *(os.environ.get(name, "") for name in _names(written))]
    )
    return SecretStr(value)


def hide_values(*options: Any) -> None:
    """Let no error show what `${NAME}` stands for in these options, which may hold keys."""
    _used.update(
        os.environ.get(name, "") for name in _names(json.dumps(options, default=str))
    )


def redact_keys(text: str) -> str:
    """Return an error without the keys that this process uses, and without the users of addresses.

    >>> _ = resolve_secret("sk-doctest")
    >>> redact_keys("refused: sk-doctest, see https://me:word@example.org")
    'refused: ***, see https://example.org'
    """
    found = _used | {os.environ.get(name, "") for name in KEY_VARIABLES}
    for value in sorted(found, key=len, reverse=True):
        if len(value) >= MIN_KEY_LENGTH:
            text = text.replace(value, KEY_MASK)
    return redact_url_users(text)


def error_line(words: str) -> str:
    """Return a provider's words on one line, without keys, at most 400 characters."""
    text = redact_keys(" ".join(words.split()))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def redact_url_users(text: str) -> str:
    """Return a text, the users and passwords of the addresses in it cut out.

    >>> redact_url_users("asked https://me:w@rd@example.org/v1 in vain")
    'asked https://example.org/v1 in vain'
    """
    return _USER.sub("", text)


def redact_url(url: str) -> str:
    """Return an address as it may be shown and kept: as it is written, without user and query.

    >>> redact_url("https://me:word@example.org/v1?key=abc"), redact_url("${SERVER}")
    ('https://example.org/v1', '${SERVER}')
    """
    try:
        parts = urlsplit(redact_url_users(url))
    except ValueError:
        return "…"
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))


def _names(written: str) -> list[str]:
    return VARIABLE_REFERENCE.findall(written)
