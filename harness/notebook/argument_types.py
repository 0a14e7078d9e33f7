"""Types of arguments in Python.

In each check, `where` is the name of the argument, and `example` says what to give: the
place and the remedy of the problem.
"""

import os
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from retrievers.errors import InputError, Problem


def measure_names(measures: Any) -> list[str]:
    """Return the names of one or several measures; empty for an empty list.

    Whether there are such measures is not checked here.

    Raises:
        InputError: these are not texts.

    >>> measure_names("RR"), measure_names(("RR", "P@5"))
    (['RR'], ['RR', 'P@5'])
    """
    if isinstance(measures, str):
        return [measures]
    names = list(measures) if isinstance(measures, Iterable) else [measures]
    if not all(isinstance(name, str) for name in names):
        raise _wrong_type("measures", measures, 'a name, or several: ["nDCG@10", "RR"]')
    return names


def check_text(argument: Any, where: str, example: str) -> None:
    """Raise InputError if an argument is no text."""
    if not isinstance(argument, str):
        raise _wrong_type(where, argument, example)


def check_map(argument: Any, where: str, example: str) -> None:
    """Raise InputError if an argument is no mapping."""
    if not isinstance(argument, Mapping):
        raise _wrong_type(where, argument, example)


def check_path(argument: Any, where: str, example: str) -> None:
    """Raise InputError if an argument is no path."""
    if not isinstance(argument, str | PathLike):
        raise _wrong_type(where, argument, example)


def check_file(path: str | PathLike[str], where: str, example: str) -> None:
    """Raise InputError if a path is empty, or leads to no file or to a folder."""
    name = os.fspath(path)
    if not name or not Path(name).exists():
        raise InputError(Problem(where, f"there is no file {name!r}", example))
    if Path(name).is_dir():
        remedy = f"name a file in it; {example}"
        raise InputError(Problem(where, f"{name!r} is a folder", remedy))


def _wrong_type(where: str, argument: Any, example: str) -> InputError:
    problem = f"is of type {type(argument).__name__}"
    return InputError(Problem(where, problem, example))
