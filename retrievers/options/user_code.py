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
from typing import Any, NamedTuple, Self

from retrievers.errors import (
    BackendError,
    HarnessError,
    InputError,
    Problem,
    did_you_mean,
)

PACKAGE_FOLDER = Path(__file__).parents[1]
"""The folder of the package `retrievers`, whose code is not the user's."""
OBJECT_PREFIX = "object:"
"""The beginning of a text for an object; in a file the text is all that is stored."""
MAX_FAILURE_CHARACTERS = 300
"""Characters of an error in a user's code that a message repeats."""


class NamedObject(str):
    """A text that carries an object, wherever texts can be passed.

    >>> named_object = NamedObject.wrap(len, "mine")
    >>> named_object, named_object.value("abc")
    ('object:mine (len)', 3)
    """

    __slots__ = ("value",)
    value: Any

    def __new__(cls, text: str, value: object) -> Self:
        """Create a text that carries an object."""
        named_object = super().__new__(cls, text)
        named_object.value = value
        return named_object

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Pickle only the text."""
        return str, (str(self),)

    @classmethod
    def wrap(cls, value: object, name: str = "part") -> Self:
        """Return a text for an object, with the name of the part that it belongs to."""
        object_name = getattr(value, "__qualname__", type(value).__qualname__)
        return cls(f"{OBJECT_PREFIX}{name} ({object_name})", value)


class _FunctionPath(NamedTuple):
    """The two parts of "package.module:function"."""

    module: str
    function: str


def resolve_callable(call: str) -> Any:
    """Return the object that a text carries, or import "package.module:name".

    Raises:
        InputError: there is no such function; or the text was read from a file, and its
            object belonged to another process.
    """
    if isinstance(call, NamedObject):
        return call.value
    if call.startswith(OBJECT_PREFIX):
        name = call.removeprefix(OBJECT_PREFIX)
        problem = f"{name} was an object of another process"
        remedy = 'give it again in Python, or name it: "package.module:function"'
        raise InputError(Problem("call", problem, remedy))
    return import_function(call)


def import_function(call: str, where: str = "call") -> Callable[..., Any]:
    """Import "package.module:function"; the code of its module runs.

    Modules in the working directory are found, too.

    Args:
        call: the function's path.
        where: the option with the path.

    Raises:
        InputError: there is no such module or function, or the module cannot be
            imported.
    """
    path = _parse_path(call, where)
    _search_working_directory()
    try:
        with wrap_user_errors((path.module,)):
            module = importlib.import_module(path.module)
    except BackendError as failure:
        problem = f"cannot be imported: {failure}"
        raise InputError(Problem(where, problem, _remedy(path.module))) from failure
    function = getattr(module, path.function, None)
    if not callable(function):
        problem = f"{path.module!r} has no function {path.function!r}"
        functions = [
            attribute
            for attribute in dir(module)
            if callable(getattr(module, attribute, None))
        ]
        remedy = did_you_mean(path.function, functions)
        raise InputError(Problem(where, problem, remedy))
    imported_function: Callable[..., Any] = function
    return imported_function


def require_module(call: str, where: str = "call") -> None:
    """Check that the module of "package.module:function" exists, without running it.

    Args:
        call: the function's path; or a text that carries the function itself.
        where: the option with the path.

    Raises:
        InputError: there is no such module.
    """
    if isinstance(call, NamedObject):
        return
    module = _parse_path(call, where).module
    _search_working_directory()
    top_name, *inner_names = module.split(".")
    # Its package has run already: the import itself may find out what is missing.
    if top_name in sys.modules:
        return
    # For the whole path, find_spec would run the packages above the module.
    spec = importlib.util.find_spec(top_name)
    for name in inner_names:
        locations = spec.submodule_search_locations if spec else None
        if not locations:
            spec = None
            break
        spec = PathFinder.find_spec(name, locations)
    if spec is None:
        problem = f"there is no module {module!r}"
        raise InputError(Problem(where, problem, _remedy(module)))


def _parse_path(call: str, where: str) -> _FunctionPath:
    """Return the parts of a path."""
    module, _, function = call.partition(":")
    if not module or not function:
        problem = f"{call!r} is not a function"
        raise InputError(Problem(where, problem, 'write "package.module:function"'))
    return _FunctionPath(module, function)


def _remedy(module: str) -> str:
    """Return what to do if a module cannot be imported."""
    if module.endswith(".py") or "/" in module:
        return 'name the module, not its file: "package.module:function"'
    return "install it, or run in its folder"


def _search_working_directory() -> None:
    """Let imports find modules in the working directory, after all others."""
    working_directory = str(Path.cwd())
    if working_directory not in sys.path:
        sys.path.append(working_directory)


@contextmanager
def wrap_user_errors(parts: Iterable[object]) -> Iterator[None]:
    """Turn any exception of a retriever into BackendError, so that others continue.

    Only Ctrl-C and errors of this program pass.

    Args:
        parts: the parts of the retriever: classes, objects, or names of functions.

    Raises:
        BackendError: names the parts of other packages, and the line of the user's code
            that failed.
    """
    try:
        yield
    except (HarnessError, KeyboardInterrupt):
        raise
    except BaseException as failure:
        # Also SystemExit: user code does not end the program.
        foreign_names = [_foreign_name(part) for part in parts if part is not None]
        names = " or ".join(filter(None, foreign_names))
        lines = traceback.format_exception_only(failure)
        description = " ".join("".join(lines).split())[:MAX_FAILURE_CHARACTERS]
        location = _failure_location(failure.__traceback__, includes_own=not names)
        message = ": ".join(filter(None, [names, description]))
        if location:
            message += f" ({location})"
        raise BackendError(message) from failure


def _foreign_name(part: object) -> str:
    """Return the name of a part of another package; empty for parts of this one."""
    if isinstance(part, str):
        return part
    cls = part if isinstance(part, type) else type(part)
    is_own = cls.__module__.partition(".")[0] == PACKAGE_FOLDER.name
    return "" if is_own else cls.__name__


def _failure_location(trace: TracebackType | None, *, includes_own: bool) -> str:
    """Return the last line that ran of the user's files, else of other packages.

    Args:
        trace: the traceback.
        includes_own: whether a line of any file is returned if there is no other.
    """
    packages = sysconfig.get_path("purelib")
    standard_library = sysconfig.get_path("stdlib")
    user_location = ""
    package_location = ""
    last_location = ""
    for frame in traceback.extract_tb(trace):
        path = Path(frame.filename)
        last_location = f"{path.name}:{frame.lineno}"
        if not path.is_file() or path.is_relative_to(PACKAGE_FOLDER):
            continue
        if path.is_relative_to(packages):
            package_location = last_location
        elif not path.is_relative_to(standard_library):
            user_location = last_location
    if not includes_own:
        last_location = ""
    return user_location or package_location or last_location
