"""A function of the user's own by its name, taken from the environment that runs the harness."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from retrievers.errors import BackendError, InputError, Problem, did_you_mean
from retrievers.failures import faults_of


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
