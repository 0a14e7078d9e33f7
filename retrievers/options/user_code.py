"""Code of the user."""

import importlib.util
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from retrievers.errors import (
    BackendError,
    HarnessError,
    InputError,
    Problem,
    did_you_mean,
)

PACKAGE_FOLDER = Path(__file__).parents[1]

OBJECT_PREFIX = "object:"
"""Begins the text that stands for an object: all that is left of it where the text was written down."""


class NamedObject(str):
    """A text that carries the object for which it stands, wherever texts pass.

    >>> held = NamedObject.wrap(len, "mine")
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
    def wrap(cls, value: object, name: str = "part") -> Self:
        """Hold an object under the name of what it is part of, which may have none yet."""
        called = getattr(value, "__qualname__", type(value).__qualname__)
        return cls(f"{OBJECT_PREFIX}{name} ({called})", value)


def resolve_callable(call: str) -> Any:
    """Return the object that a text carries, or the function that "package.module:name" names, whose module runs then.

    Raises:
        InputError: there is no such function; or the text was written down, and its object was of another process.
    """
    if isinstance(call, NamedObject):
        return call.value
    if call.startswith(OBJECT_PREFIX):
        what = f"{call.removeprefix(OBJECT_PREFIX)} was an object of another process"
        raise InputError(
            Problem(
                "call",
                what,
                'give it again in Python, or name it: "package.module:function"',
            )
        )
    return import_function(call)


def import_function(call: str, where: str = "call") -> Callable[..., Any]:
    """Import "package.module:function", found as Python finds modules, the working directory included.

    Args:
        call: its name. The code of its module runs.
        where: the key that names it.

    Raises:
        InputError: there is no such module or function, or the module cannot be imported.
    """
    module, name = _parts(call, where)
    try:
        with wrap_user_errors((module,)):
            imported = importlib.import_module(module)
    except BackendError as failure:
        what = f"cannot be imported: {failure}"
        raise InputError(
            Problem(where, what, "install it, or run in its folder")
        ) from failure
    function = getattr(imported, name, None)
    if not callable(function):
        remedy = did_you_mean(name, dir(imported))
        raise InputError(Problem(where, f"{module!r} has no function {name!r}", remedy))
    found: Callable[..., Any] = function
    return found


def require_module(call: str, where: str = "call") -> None:
    """See that the module of "package.module:function" is there; none of its code runs.

    Args:
        call: its name; or a text that carries the function itself.
        where: the key that names it.

    Raises:
        InputError: there is no such module.
    """
    if isinstance(call, NamedObject):
        return
    module, _ = _parts(call, where)
    top, *parts = module.split(".")
    if top in sys.modules:
        return
    spec = importlib.util.find_spec(
        top
    )  # of a whole path it would run the packages above
    for part in parts:
        spec = PathFinder.find_spec(
            part, (spec and spec.submodule_search_locations) or []
        )
    if spec is None:
        raise InputError(
            Problem(
                where,
                f"there is no module {module!r}",
                "install it, or run in its folder",
            )
        )


def _parts(call: str, where: str) -> tuple[str, str]:
    """The module and the function of "package.module:function", found in the working directory too."""
    module, colon, name = call.partition(":")
    if not colon or not module or not name:
        raise InputError(
            Problem(
                where, f"{call!r} is not a function", 'write "package.module:function"'
            )
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    return module, name


@contextmanager
def wrap_user_errors(parts: Iterable[object]) -> Iterator[None]:
    """Turn whatever a retriever raises into its own failure, so that others go on: only Ctrl-C passes, and our errors.

    Args:
        parts: what the retriever uses; a class or an object, or the name of the user's function.

    Raises:
        BackendError: names what is not ours among the parts, and the line of the user's code where it failed.
    """
    try:
        yield
    except (HarnessError, KeyboardInterrupt):
        raise
    except (
        BaseException
    ) as failure:  # SystemExit too: user code does not end the program
        names = " or ".join(
            name for part in parts if part is not None and (name := _foreign(part))
        )
        said = " ".join("".join(traceback.format_exception_only(failure)).split())[:300]
        place = _place(failure.__traceback__, ours=not names)
        raise BackendError(
            ": ".join(filter(None, [names, said])) + (f" ({place})" if place else "")
        ) from failure


def _foreign(part: object) -> str:
    """What a part is called that is not ours; "" for one of ours."""
    if isinstance(part, str):
        return part
    cls = part if isinstance(part, type) else type(part)
    return (
        "" if cls.__module__.partition(".")[0] == PACKAGE_FOLDER.name else cls.__name__
    )


def _place(trace: TracebackType | None, *, ours: bool) -> str:
    """The last line that ran of the user's own files, else of other packages, else of `ours` if it is to be told."""
    packages, python = sysconfig.get_path("purelib"), sysconfig.get_path("stdlib")
    frames = [
        (Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(trace)
    ]
    others = [
        one
        for one in frames
        if one[0].is_file() and not one[0].is_relative_to(PACKAGE_FOLDER)
    ]
    own = [
        one
        for one in others
        if not one[0].is_relative_to(packages) and not one[0].is_relative_to(python)
    ]
    found = (
        own
        or [one for one in others if one[0].is_relative_to(packages)]
        or (frames if ours else [])
    )
    return f"{found[-1][0].name}:{found[-1][1]}" if found else ""
