"""Functions and objects of the user's own: those of this process, and those that a module has."""

from __future__ import annotations

from typing import Any

from retrievers.errors import InputError, Problem
from retrievers.held import OBJECT, Held
from retrievers.named_function import named_function


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
