"""Errors as messages."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING

import typer

from harness.console.output import print_warnings
from retrievers.errors import HarnessError, InputError, NotConfirmed, Problem
from retrievers.options.placeholders import redact_keys

if TYPE_CHECKING:
    from typer.exceptions import TyperException

MAX_LISTED_PROBLEMS = 20
"""Problems of one error that are listed; the rest is counted."""


def error_message(error: HarnessError) -> str:
    """What is wrong; where it is more than one thing, a line each under a head that counts them."""
    return redact_keys(_message(error))


def _message(error: HarnessError) -> str:
    problems = error.problems if isinstance(error, InputError) else ()
    if isinstance(error, NotConfirmed):
        return str(error)
    if len(problems) < 2:
        return f"error: {error}"
    number, rest = (
        sum(one.occurrences for one in some)
        for some in (problems, problems[MAX_LISTED_PROBLEMS:])
    )
    lines = [
        f"error: {number:,} problems",
        *(f"  {problem}" for problem in problems[:MAX_LISTED_PROBLEMS]),
    ]
    return "\n".join([*lines, *([f"  and {rest:,} more"] if rest else [])])


def usage_message(error: TyperException) -> str:
    """A misspelt command line: what is wrong, and where help is."""
    option = getattr(error, "option_name", "")
    message = error.format_message()
    known = getattr(error, "possibilities", None) or ()
    if known:
        near = get_close_matches(option, known, n=1) or sorted(known)[:1]
        message = f"{message.partition(' (')[0]}; did you mean {near[0]!r}?"
    context = getattr(error, "ctx", None)
    return f"error: {message.rstrip('.')} (see {context.command_path if context else 'harness'} --help)"


def show_tracebacks() -> None:
    """Let each failure be followed by where it arose, on standard error."""
    logger = logging.getLogger("harness")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(
        CallbackHandler(
            lambda record: print_warnings(
                redact_keys(logging.Formatter().format(record))
            )
        )
    )


def hide_tracebacks() -> None:
    """Undo `show_tracebacks`, for anyone who calls several commands in one process."""
    logger = logging.getLogger("harness")
    logger.setLevel(logging.NOTSET)
    logger.handlers[:] = [
        handler
        for handler in logger.handlers
        if not isinstance(handler, CallbackHandler)
    ]


class CallbackHandler(logging.Handler):
    """Hands records on: failures, or which model is loaded, which takes seconds in which no text is counted."""

    def __init__(self, show: Callable[[logging.LogRecord], None]) -> None:
        """Take what shows a record."""
        super().__init__()
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        """Show it."""
        self._show(record)


def confirm(question: str, option: str) -> None:
    """Ask a question; without a terminal, the option must be given.

    Raises:
        InputError: the answer was no.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InputError(
            Problem(
                option,
                "is needed without a terminal",
                f"read the experiment, add {option}",
            )
        )
    if not typer.confirm(question, err=True):
        raise InputError(Problem("", "not run: not confirmed"))
