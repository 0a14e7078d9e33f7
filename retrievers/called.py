"""Functions and objects of the user's own: those of this process, and those that a module has."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from retrievers.errors import BackendError, InputError, Problem, did_you_mean
from retrievers.failures import faults_of
from retrievers.fingerprints import fingerprint
from retrievers.held import OBJECT, Held
from retrievers.remote.redaction import as_written
from retrievers.types import Model


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


class CalledModel(Model):
    """What a model that is a function of the user's own says of itself."""

    def __init__(self, call: str, cache: str) -> None:
        """Name the function, and the version of it under which its answers may be kept."""
        self._name, self._cache = call, cache

    @property
    def fingerprint(self) -> str:
        """The name of its version."""
        return fingerprint("python", self._cache or self._name)

    @property
    def lasting(self) -> bool:
        """Whether a name says which version this is."""
        return bool(self._cache)

    @property
    def provenance(self) -> Mapping[str, str]:
        """What is called, and which version of it."""
        return {"call": as_written(self._name), **({"version": self._cache} if self._cache else {})}
