"""Objects in the tables of an experiment: a text that carries an object of this process, or names one of a module."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, Self

from retrievers.errors import BackendError, InputError, Problem, did_you_mean
from retrievers.failures import faults_of

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


def imported(call: str) -> Any:
    """Return the object that a text carries, or what "package.module:name" names: then the code of the module runs.

    Raises:
        InputError: there is no such thing; or the text was written down, and its object was of another process.
    """
    if isinstance(call, Held):
        return call.value
    if call.startswith(OBJECT):
        what = f"{call.removeprefix(OBJECT)} was an object of another process"
        raise InputError(Problem("call", what, 'give it again in Python, or name it: "package.module:function"'))
    module, colon, name = call.partition(":")
    if not colon or not module or not name:
        raise InputError(Problem("call", f"{call!r} is no function", 'write "package.module:function"'))
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        with faults_of((module,)):
            found = importlib.import_module(module)
    except BackendError as failure:
        raise InputError(
            Problem("call", f"cannot be imported: {failure}", "install it, or run where it lies")
        ) from failure
    if not hasattr(found, name):
        raise InputError(Problem("call", f"{module!r} has no function {name!r}", did_you_mean(name, dir(found))))
    return getattr(found, name)
