"""Functions and objects of the user's own: those of this process, and those that a module has."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from retrievers.errors import BackendError, InputError, Problem, did_you_mean
from retrievers.failures import faults_of
from retrievers.held import OBJECT, Held


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
