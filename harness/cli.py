"""The table of commands."""

import errno
import logging
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import typer
from typer.exceptions import TyperException

from harness.console import cache_commands, compare_command, label_commands
from harness.console import options as shared
from harness.console.answer_commands import answers_app
from harness.console.check_command import check
from harness.console.explain_command import explain
from harness.console.gate_command import gate
from harness.console.messages import error_message, hide_tracebacks, usage_message
from harness.console.output import print_lines, print_warnings
from harness.console.pool_commands import judge, pool
from harness.console.prefer_command import prefer
from harness.console.query_commands import queries_app
from harness.console.run_commands import (
    Interrupted,
    demo,
    export,
    init,
    report,
    reproduce,
    run,
)
from harness.console.score_command import score
from harness.console.try_command import try_
from retrievers.errors import HarnessError, InputError

log = logging.getLogger(__name__)

app = typer.Typer(
    cls=shared.HelpGroup,
    help=(
        "Which retriever should I use on my own documents, and is the difference real?"
    ),
    epilog="Start with: harness demo, or harness try FOLDER",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
CACHING_COMMANDS = frozenset({"answers", "embed", "judge", "queries", "reproduce"})
"""Commands that query models through the cache; `run` has a message of its own."""


def _version(requested: bool) -> None:
    """Print the version, and stop."""
    if requested:
        from importlib.metadata import version

        print_lines(f"harness {version('retriever-harness')}")
        raise typer.Exit


VersionOption = Annotated[
    bool,
    typer.Option(
        "--version", callback=_version, is_eager=True, help="Print the version."
    ),
]


@app.callback()
def _main(
    version: VersionOption = False,
) -> None:
    """Options of `harness` itself."""


COMPARE_HEADING = "Compare"
LABEL_HEADING = "Label"
MAINTAIN_HEADING = "Maintain"
"""Headings of `harness --help`."""

app.command("try", rich_help_panel=COMPARE_HEADING)(try_)
for heading, commands in {
    COMPARE_HEADING: (
        demo,
        init,
        check,
        run,
        score,
        compare_command.compare,
        explain,
        gate,
        report,
    ),
    LABEL_HEADING: (pool, judge, prefer),
    MAINTAIN_HEADING: (cache_commands.embed, export, reproduce),
}.items():
    for command in commands:
        app.command(rich_help_panel=heading)(command)
app.add_typer(queries_app, name="queries", rich_help_panel=LABEL_HEADING)
app.add_typer(label_commands.labels_app, name="labels", rich_help_panel=LABEL_HEADING)
app.add_typer(cache_commands.cache_app, name="cache", rich_help_panel=MAINTAIN_HEADING)
app.add_typer(answers_app, name="answers", rich_help_panel=MAINTAIN_HEADING)


MEMORY_MESSAGE = (
    "error: not enough memory for this process; "
    "raise its limit (ulimit -v, the container's), or set a smaller batch_size"
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, then exit: this never returns.

    A user's mistake ends in one message and an exit code, never in a traceback.

    Args:
        arguments: the words after `harness`; None: those of this process.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    words = sys.argv[1:] if arguments is None else list(arguments)
    code = _exit_code(words)
    hide_tracebacks()
    sys.exit(code or 0)


def _exit_code(words: list[str]) -> int | str | None:
    """Run a command line, print its errors, and return the exit code; None is 0."""
    try:
        return _run(words)
    except HarnessError as error:
        log.debug("stopped", exc_info=error)
        print_warnings(error_message(error))
        return error.exit_code
    except TyperException as error:
        print_warnings(usage_message(error))
        return InputError.exit_code
    except SystemExit as stop:
        # Typer and rich exit with 1 if a pipe was closed. A failed gate does not come
        # here: it raises typer.Exit, whose code `_run` returns.
        return 0 if stop.code == 1 else stop.code
    except OSError as error:
        log.debug("stopped", exc_info=error)
        return _os_error_code(error)
    except MemoryError as error:
        log.debug("stopped", exc_info=error)
        print_warnings(MEMORY_MESSAGE)
        return InputError.exit_code
    except (Interrupted, KeyboardInterrupt) as stop:
        message = "stopped"
        if CACHING_COMMANDS & {*words[:1]}:
            message += ": what was paid for is kept; the same command continues"
        print_warnings(str(stop) or message)
        return 130


def _run(words: list[str]) -> int | None:
    """Run a command, and return the code of its typer.Exit; None if it had none."""
    # Typer reports an interrupt only by its exit code.
    code: int | None = app(
        words or ["--help"], prog_name="harness", standalone_mode=False
    )
    sys.stdout.flush()
    if code == 130:
        raise KeyboardInterrupt
    return code


def _os_error_code(error: OSError) -> int:
    """Return the exit code, and print the error; a closed pipe is none."""
    code = 0 if error.errno == errno.EPIPE else InputError.exit_code
    if code:
        print_warnings(f"error: {error}")
    if error.filename is None:
        # Then it was standard output that failed. If it stays open, Python tries to
        # write the remaining text at its end, and complains.
        with suppress(OSError):
            sys.stdout.close()
    return code
