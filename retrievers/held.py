"""What is the user's own: objects of this process, which a text carries, and functions that a module has."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
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


def called(call: str) -> Any:
    """Return the object that a text carries, or the function that "package.module:name" names, whose module runs then.

    Raises:
        InputError: there is no such function; or the text was written down, and its object was of another process.
    """
    if isinstance(call, Held):
        return call.value
    if call.startswith(OBJECT):
        what = f"{call.removeprefix(OBJECT)} was an object of another process"
        raise InputError(Problem("call", what, 'give it again in Python, or name it: "package.module:function"'))
    return named_function(call)


def named_function(call: str, where: str = "call") -> Callable[..., Any]:
    """Import "package.module:function", found as Python finds modules, the working directory included.

    Args:
        call: its name. The code of its module runs.
        where: the key that names it.

    Raises:
        InputError: there is no such module or function, or the module cannot be imported.
    """
    module, colon, name = call.partition(":")
    if not colon or not module or not name:
        raise InputError(Problem(where, f"{call!r} is no function", 'write "package.module:function"'))
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        with faults_of((module,)):
            imported = importlib.import_module(module)
    except BackendError as failure:
        raise InputError(
            Problem(where, f"cannot be imported: {failure}", "install it, or run where it lies")
        ) from failure
    function = getattr(imported, name, None)
    if not callable(function):
        remedy = did_you_mean(name, dir(imported))
        raise InputError(Problem(where, f"{module!r} has no function {name!r}", remedy))
    found: Callable[..., Any] = function
    return found
