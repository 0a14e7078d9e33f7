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
"""Problems of one error that are listed; the others are counted."""


def error_message(error: HarnessError) -> str:
    """The problem; several problems have a line each, under a head that counts them."""
    return redact_keys(_message(error))


def _message(error: HarnessError) -> str:
    problems = error.problems if isinstance(error, InputError) else ()
    if isinstance(error, NotConfirmed):
        return str(error)
    if len(problems) < 2:
        return f"error: {error}"
    total = sum(problem.occurrences for problem in problems)
    lines = [f"error: {total:,} problems"]
    lines += [f"  {problem}" for problem in problems[:MAX_LISTED_PROBLEMS]]
    unlisted = sum(problem.occurrences for problem in problems[MAX_LISTED_PROBLEMS:])
    if unlisted:
        lines.append(f"  and {unlisted:,} more")
    return "\n".join(lines)


MIN_LIKENESS = 0.7
"""The likeness (difflib's ratio) to a misspelt option that one needs to be named."""


def usage_message(error: TyperException) -> str:
    """The problem of a misspelt command line, and the command for help."""
    option = getattr(error, "option_name", "")
    message = error.format_message()
    options = getattr(error, "possibilities", None) or ()
    if options:
        near = get_close_matches(option, options, n=1, cutoff=MIN_LIKENESS)
        message = message.partition(" (")[0]
        if near:
            message += f"; did you mean {near[0]!r}?"
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "harness"
    message = message.rstrip(".")
    if context and message.startswith("Missing option"):
        # Typer stops at the first: the others would be asked for one by one.
        required = [param.opts[0] for param in context.command.params if param.required]
        options = [name for name in required if name.startswith("--")]
        if len(options) > 1:
            message += f"; {command} needs {', '.join(options)}"
    return f"error: {message} (see {command} --help)"


def show_tracebacks() -> None:
    """Print the traceback of each failure from now on, on standard error."""

    def print_record(record: logging.LogRecord) -> None:
        print_warnings(redact_keys(logging.Formatter().format(record)))

    logger = logging.getLogger("harness")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(CallbackHandler(print_record))


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
    """Passes log records to a function: failures, or that a model is being loaded."""

    def __init__(self, show: Callable[[logging.LogRecord], None]) -> None:
        """Pass each record to a function."""
        super().__init__()
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a record on."""
        self._show(record)


def confirm(question: str, option: str) -> None:
    """Ask a question; without a terminal, the option must be given.

    Raises:
        InputError: the answer was no, or there is no terminal.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        remedy = f"read the experiment, add {option}"
        raise InputError(Problem(option, "is needed without a terminal", remedy))
    if not typer.confirm(question, err=True):
        raise InputError(Problem("", "not run: not confirmed"))
