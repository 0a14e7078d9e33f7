"""The values in nested tables."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from retrievers.errors import Problem
from retrievers.options.placeholders import VARIABLE_REFERENCE

MAX_WHOLE_NUMBER, MAX_SEED = 2**31 - 1, 2**63 - 1
"""Whole numbers of an experiment, at most."""
_NAMES = "api[_-]?key|authorization|secret|password|passwd|token|credential"
SECRET_KEY_PATTERN = re.compile(rf"({_NAMES})s?$", re.IGNORECASE)
SECRET_URL_PATTERN = re.compile(
    rf"://([^/@\s:]*:[^/@\s]+@|\S*[?&]([\w-]*({_NAMES})|key|sig)=[^&#\s{{])",
    re.IGNORECASE,
)
AUTHORIZATION_SCHEME = re.compile(r"^(basic|bearer|apikey|token)\b", re.IGNORECASE)
"""What comes before a secret in a header."""


def walk_values(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a value and all that is in it, each with its place, such as `retrievers[0].name`.

    >>> list(walk_values({"a": [1]}))
    [('', {'a': [1]}), ('a', [1]), ('a[0]', 1)]
    """
    yield where, value
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from walk_values(inner, f"{where}.{key}" if where else str(key))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from walk_values(inner, f"{where}[{number}]")


def walk_texts(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text in nested tables, with its place."""
    return (
        (place, one) for place, one in walk_values(value, where) if isinstance(one, str)
    )


def oversized_numbers(written: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the whole numbers that the libraries behind cannot hold; a seed may be longer."""
    for place, value in walk_values(written):
        if isinstance(value, int) and abs(value) > (
            MAX_SEED if place == "seed" else MAX_WHOLE_NUMBER
        ):
            yield Problem(
                place, "is too large a number", f"at most {MAX_WHOLE_NUMBER:,}"
            )


def literal_secrets(written: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the keys and passwords that are in the file itself."""
    for place, value in walk_texts(written):
        plain = AUTHORIZATION_SCHEME.sub(
            "", VARIABLE_REFERENCE.sub("", value).strip()
        ).strip()
        if (
            SECRET_KEY_PATTERN.search(place.rpartition(".")[2]) and plain
        ) or SECRET_URL_PATTERN.search(plain):
            yield Problem(
                place,
                "a secret does not belong in a file",
                'put it in the environment, write "${NAME}"',
            )


def unset_variables(written: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield each `${NAME}` that the environment lacks."""
    for place, value in walk_texts(written):
        for reference in VARIABLE_REFERENCE.finditer(value):
            if reference[1] not in os.environ:
                yield Problem(
                    place,
                    f"${{{reference[1]}}} is not set in the environment",
                    f"export {reference[1]}=…",
                )
