"""What is wrong, in words for the terminal."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from retrievers.errors import HarnessError, InputError, NotShown

if TYPE_CHECKING:
    from typer.exceptions import TyperException

LISTED = 20
"""Problems of one error that are listed; the rest is counted."""


def message(error: HarnessError) -> str:
    """What is wrong; where it is more than one thing, a line each under a head that counts them."""
    problems = error.problems if isinstance(error, InputError) else ()
    if isinstance(error, NotShown):
        return str(error)
    if len(problems) < 2:
        return f"error: {error}"
    number = sum(problem.stands_for for problem in problems)
    shown = problems[:LISTED]
    rest = number - sum(problem.stands_for for problem in shown)
    lines = [f"  {problem}" for problem in shown]
    return "\n".join([f"error: {number:,} problems", *lines, *([f"  and {rest:,} more"] if rest else [])])


def usage(error: TyperException) -> str:
    """A misspelt command line: what is wrong, and where help is."""
    from harness.experiment.retired import retired_in

    option = getattr(error, "option_name", "")
    if retired := next(retired_in([("", option)]), None):
        return f"error: {retired}"
    message = error.format_message()
    known = getattr(error, "possibilities", None) or ()
    if known:
        near = get_close_matches(option, known, n=1) or sorted(known)[:1]
        message = f"{message.partition(' (')[0]}; did you mean {near[0]!r}?"
    context = getattr(error, "ctx", None)
    return f"error: {message.rstrip('.')} (see {context.command_path if context else 'harness'} --help)"
