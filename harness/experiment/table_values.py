"""The values in nested tables.

Whatever a key means, no value may be a secret, an unset variable or a number that is
too large: these are looked for before tables are checked by their kinds.
"""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from retrievers.errors import Problem
from retrievers.options.placeholders import VARIABLE_REFERENCE

MAX_WHOLE_NUMBER = 2**31 - 1
"""The largest number of 32 bits, which every library accepts."""
MAX_SEED = 2**63 - 1
"""The largest whole number of TOML."""
_PROTECTED_NAMES = "api[_-]?key|authorization|secret|password|passwd|token|credential"
"""Names of what is secret, as a part of a pattern."""
SECRET_KEY_PATTERN = re.compile(rf"({_PROTECTED_NAMES})s?$", re.IGNORECASE)
"""Ends the key of a value that may be a secret."""
SECRET_URL_PATTERN = re.compile(
    rf"://([^/@\s:]*:[^/@\s]+@|\S*[?&]([\w-]*({_PROTECTED_NAMES})|key|sig)=[^&#\s{{])",
    re.IGNORECASE,
)
"""A URL with a user and password, or with a secret among its parameters."""
AUTHORIZATION_SCHEME = re.compile(r"^(basic|bearer|apikey|token)\b", re.IGNORECASE)
"""The word before a secret in a header."""


class NestedValue(NamedTuple):
    """A value in nested tables, with its path."""

    key_path: str
    """Such as `retrievers[0].name`; empty for the outermost value."""
    value: Any


class NestedText(NamedTuple):
    """A text in nested tables, with its path."""

    key_path: str
    text: str


def walk_values(value: Any, key_path: str = "") -> Iterator[NestedValue]:
    """Yield a value and all values in it, each with its path.

    >>> [tuple(nested) for nested in walk_values({"a": [1]})]
    [('', {'a': [1]}), ('a', [1]), ('a[0]', 1)]
    """
    yield NestedValue(key_path, value)
    if isinstance(value, Mapping):
        for key, inner in value.items():
            inner_path = f"{key_path}.{key}" if key_path else str(key)
            yield from walk_values(inner, inner_path)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from walk_values(inner, f"{key_path}[{number}]")


def walk_texts(value: Any, key_path: str = "") -> Iterator[NestedText]:
    """Yield every text in nested tables, with its path."""
    for nested in walk_values(value, key_path):
        if isinstance(nested.value, str):
            yield NestedText(nested.key_path, nested.value)


def oversized_numbers(tables: object) -> Iterator[Problem]:
    """Yield a problem for each whole number that is too large for a library.

    The seed of the experiment may be larger: no library reads it.
    """
    for key_path, value in walk_values(tables):
        limit = MAX_SEED if key_path == "seed" else MAX_WHOLE_NUMBER
        if isinstance(value, int) and abs(value) > limit:
            remedy = f"at most {limit:,}"
            yield Problem(key_path, "is too large a number", remedy)


def literal_secrets(tables: object) -> Iterator[Problem]:
    """Yield a problem for each key or password that is in the file itself."""
    for key_path, text in walk_texts(tables):
        # What is left of the text may be a secret: a variable and a scheme are none.
        secret = VARIABLE_REFERENCE.sub("", text).strip()
        secret = AUTHORIZATION_SCHEME.sub("", secret).strip()
        key = re.sub(r"(\[\d+\])+$", "", key_path.rpartition(".")[2])
        has_secret_key = secret and SECRET_KEY_PATTERN.search(key)
        if has_secret_key or SECRET_URL_PATTERN.search(secret):
            problem = "a secret does not belong in a file"
            remedy = 'put it in the environment, write "${NAME}"'
            yield Problem(key_path, problem, remedy)


def unset_variables(tables: object) -> Iterator[Problem]:
    """Yield a problem for each `${NAME}` that the environment does not have."""
    for key_path, text in walk_texts(tables):
        for reference in VARIABLE_REFERENCE.finditer(text):
            variable = reference[1]
            if variable not in os.environ:
                problem = f"${{{variable}}} is not set in the environment"
                yield Problem(key_path, problem, f"export {variable}=…")
