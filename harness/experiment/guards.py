"""What no experiment may hold: secrets, names that are not set, numbers and nesting beyond measure."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from retrievers.errors import Problem
from retrievers.remote.redaction import REFERENCE

SECRET_KEY = re.compile(r"(api[_-]?key|authorization|secret|password|passwd|token|credential)s?$", re.IGNORECASE)
PASSWORD_IN_URL = re.compile(r"://[^/@\s:]*:[^/@\s]+@")
SCHEME = re.compile(r"^(basic|bearer|apikey|token)\b", re.IGNORECASE)
"""What stands before a secret in a header."""
LARGEST, LARGEST_SEED = 2**31 - 1, 2**63 - 1
"""Whole numbers of an experiment, at most."""
DEEPEST = 32
"""Tables and lists in each other, at most."""


def walk(value: Any, where: str) -> Iterator[tuple[str, str, str]]:
    """Every string in nested tables: (its place, the key nearest to it, itself)."""
    inner: Iterable[tuple[str, Any]] = ()
    if isinstance(value, Mapping):
        inner = ((f"{where}.{key}" if where else key, v) for key, v in value.items())
    elif isinstance(value, list | tuple):
        inner = ((f"{where}[{number}]", v) for number, v in enumerate(value))
    elif isinstance(value, str):
        yield where, where.rpartition(".")[2], value
    for place, v in inner:
        yield from walk(v, place)


def secrets(written: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the keys and passwords that stand in the file itself."""
    for place, key, value in walk(written, ""):
        plain = SCHEME.sub("", REFERENCE.sub("", value).strip()).strip()
        if (SECRET_KEY.search(key) and plain) or PASSWORD_IN_URL.search(plain):
            yield Problem(place, "a secret does not belong in a file", 'put it in the environment, write "${NAME}"')


def unset(written: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield each `${NAME}` that the environment lacks."""
    for place, _, value in walk(written, ""):
        for reference in REFERENCE.finditer(value):
            if reference[1] not in os.environ:
                yield Problem(place, f"${{{reference[1]}}} is not set in the environment", f"export {reference[1]}=…")


def is_deeper(value: object, most: int) -> bool:
    """Whether tables and lists stand deeper in each other than so many."""
    level = [value]
    for _ in range(most):
        tables = [one for one in level if isinstance(one, Mapping | list)]
        level = [inner for one in tables for inner in (one.values() if isinstance(one, Mapping) else one)]
    return any(isinstance(one, Mapping | list) for one in level)


def too_large(value: object, place: str) -> Iterator[Problem]:
    """The whole numbers that the libraries behind cannot hold; a seed may be longer."""
    if isinstance(value, int):
        if abs(value) > (LARGEST_SEED if place == "seed" else LARGEST):
            yield Problem(place, "is too large a number", f"at most {LARGEST:,}")
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from too_large(inner, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from too_large(inner, f"{place}[{number}]")
