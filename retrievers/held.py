"""Objects of this process in the tables of an experiment: a text carries the object for which it stands."""

from __future__ import annotations

from typing import Any, Self

OBJECT = "object:"
"""Begins the text that stands for an object: all that is left of it where the text was written down."""


class Held(str):
    """A text that carries the object for which it stands, wherever texts pass.

    >>> held = Held.of(len, "mine")
    >>> held, held.value("abc")
    ('object:mine (len)', 3)
    """

    __slots__ = ("value",)
    value: Any

    def __new__(cls, text: str, value: object) -> Self:
        """Make a text of an object."""
        held = super().__new__(cls, text)
        held.value = value
        return held

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """What is written down, or goes to another process, is the text."""
        return str, (str(self),)

    @classmethod
    def of(cls, value: object, name: str) -> Self:
        """Hold an object under the name of what it is part of."""
        called = getattr(value, "__qualname__", type(value).__qualname__)
        return cls(f"{OBJECT}{name} ({called})", value)
