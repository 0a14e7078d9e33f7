"""The remedy of a problem, worded for shell, file or Python."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

SettingValue = str | bool | tuple[str, ...]
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
"""A key that TOML has without quotation marks."""
INLINE_TABLES = frozenset(("columns", "where"))
"""Tables that an experiment file writes in one line with their key."""


class Option(NamedTuple):
    """What a shell shows in parentheses, and Python leaves out.

    An option of the command line, or a whole command, for what the words before it say.
    """

    text: str


class Setting(NamedTuple):
    """A key of an experiment file, which Python has as an argument."""

    key: str
    value: SettingValue
    table: str = ""
    """The table of the key.

    Empty for a key of the data set, or where the words before it name the table.
    """

    def as_toml(self) -> str:
        """Return the setting as an experiment file writes it.

        >>> Setting("grade", "stars", "columns").as_toml()
        'columns = { grade = "stars" }'
        >>> print(Setting("my event", "click", "where").as_toml())
        where = { "my event" = "click" }
        >>> Setting("dangling", "drop", "relevance").as_toml()
        'dangling = "drop" under [relevance]'
        >>> Setting("pages", True).as_toml()
        'pages = true'
        """
        assignment = _toml_assignment(self.key, self.value)
        if self.table in INLINE_TABLES:
            return f"{self.table} = {{ {assignment} }}"
        return f"{assignment} under [{self.table}]" if self.table else assignment

    def as_python(self) -> str:
        """Return the setting as an argument of a call.

        >>> Setting("grade", "stars", "columns").as_python()
        'columns={"grade": "stars"}'
        >>> Setting("pages", True).as_python()
        'pages=True'
        """
        value = _python_value(self.value)
        if self.table:
            return f"{self.table}={{{_quoted(self.key)}: {value}}}"
        return f"{self.key}={value}"


class InlineTable(NamedTuple):
    """A table of an experiment file in one line, with several keys."""

    table: str
    values: tuple[tuple[str, SettingValue], ...]
    """Each key with its value."""

    def as_toml(self) -> str:
        """Return the table as an experiment file writes it.

        >>> InlineTable("columns", (("query", "a"), ("grade", "b"))).as_toml()
        'columns = { query = "a", grade = "b" }'
        """
        assignments = (_toml_assignment(key, value) for key, value in self.values)
        return f"{self.table} = {{ {', '.join(assignments)} }}"

    def as_python(self) -> str:
        """Return the table as an argument of a call.

        >>> InlineTable("columns", (("query", "a"), ("grade", "b"))).as_python()
        'columns={"query": "a", "grade": "b"}'
        """
        entries = (f"{_quoted(key)}: {_python_value(v)}" for key, v in self.values)
        return f"{self.table}={{{', '.join(entries)}}}"


RemedyPart = str | Option | Setting | InlineTable


@dataclass(frozen=True, slots=True)
class Remedy:
    """A sentence that says what to do, with the settings and options it names."""

    parts: tuple[RemedyPart, ...]

    def __str__(self) -> str:
        """Return the sentence for a shell, with options in parentheses."""
        return "".join(map(_shell_words, self.parts))

    def without_options(self) -> str:
        """Return the sentence without options, for Python that runs a file."""
        return "".join(_shell_words(part) for part in self.parts if not is_option(part))

    def as_python(self) -> str:
        """Return the sentence with arguments in place of settings."""
        return "".join(_python_words(part) for part in self.parts)


def compose_remedy(*parts: RemedyPart | Remedy) -> Remedy:
    """Return one remedy of words, settings, options and other remedies.

    >>> drop = compose_remedy(Setting("dangling", "drop", "relevance"))
    >>> str(compose_remedy("correct the id, or set ", drop, Option("--dangling drop")))
    'correct the id, or set dangling = "drop" under [relevance] (--dangling drop)'
    """
    flat: list[RemedyPart] = []
    for part in parts:
        if isinstance(part, Remedy):
            flat += part.parts
        else:
            flat.append(part)
    return Remedy(tuple(flat))


def join_remedies(separator: str, remedies: Iterable[Remedy]) -> Remedy:
    """Return remedies as one, each once, with a separator between them."""
    parts: list[RemedyPart] = []
    for remedy in dict.fromkeys(remedies):
        if parts:
            parts.append(separator)
        parts += remedy.parts
    return Remedy(tuple(parts))


def remedy_without_options(remedy: Remedy | str) -> str:
    """Return a remedy without options of the command line; plain words as they are."""
    return remedy.without_options() if isinstance(remedy, Remedy) else remedy


def remedy_as_python(remedy: Remedy | str) -> str:
    """Return a remedy with arguments of Python; plain words as they are.

    >>> option = Option("--columns grade=stars")
    >>> stars = Setting("grade", "stars", "columns")
    >>> remedy_as_python(compose_remedy("say which: ", stars, option))
    'say which: columns={"grade": "stars"}'
    """
    return remedy.as_python() if isinstance(remedy, Remedy) else remedy


def is_option(part: RemedyPart) -> bool:
    """Whether a part of a remedy is an option of the command line."""
    return isinstance(part, Option)


def _shell_words(part: RemedyPart) -> str:
    if isinstance(part, Option):
        return f" ({part.text})"
    return part if isinstance(part, str) else part.as_toml()


def _python_words(part: RemedyPart) -> str:
    if isinstance(part, Option):
        return ""
    return part if isinstance(part, str) else part.as_python()


def _toml_assignment(key: str, value: SettingValue) -> str:
    written_key = key if BARE_KEY.fullmatch(key) else _quoted(key)
    return f"{written_key} = {_toml_value(value)}"


def _toml_value(value: SettingValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return _python_value(value)


def _python_value(value: SettingValue) -> str:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return _quoted(value)
    return f"[{', '.join(map(_quoted, value))}]"


def _quoted(text: str) -> str:
    """Return a text in quotation marks, as TOML and Python both read it."""
    # TOML refuses the control character DEL, which JSON leaves as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
