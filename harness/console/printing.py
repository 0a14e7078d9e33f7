"""What the command line says: results, rows and messages, on the two streams of a terminal."""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from harness.console import tables
from harness.console.layout import forest
from retrievers.errors import HarnessError, InputError, NotShown, Problem
from retrievers.opening import text_file, writing
from retrievers.placeholders import without_keys

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from typer.exceptions import TyperException

    from harness.evaluation.evaluation import Evaluation
    from harness.evaluation.scores import Scores
    from harness.records import Results
    from harness.report.index import Listing

LISTED = 20
"""Problems of one error that are listed; the rest is counted."""


def message(error: HarnessError) -> str:
    """What is wrong; where it is more than one thing, a line each under a head that counts them."""
    return without_keys(_message(error))


def _message(error: HarnessError) -> str:
    problems = error.problems if isinstance(error, InputError) else ()
    if isinstance(error, NotShown):
        return str(error)
    if len(problems) < 2:
        return f"error: {error}"
    number, rest = (
        sum(one.stands_for for one in some) for some in (problems, problems[LISTED:])
    )
    lines = [
        f"error: {number:,} problems",
        *(f"  {problem}" for problem in problems[:LISTED]),
    ]
    return "\n".join([*lines, *([f"  and {rest:,} more"] if rest else [])])


def usage(error: TyperException) -> str:
    """A misspelt command line: what is wrong, and where help is."""
    option = getattr(error, "option_name", "")
    message = error.format_message()
    known = getattr(error, "possibilities", None) or ()
    if known:
        near = get_close_matches(option, known, n=1) or sorted(known)[:1]
        message = f"{message.partition(' (')[0]}; did you mean {near[0]!r}?"
    context = getattr(error, "ctx", None)
    return f"error: {message.rstrip('.')} (see {context.command_path if context else 'harness'} --help)"


def warn(*lines: str) -> None:
    """Print messages, on standard error."""
    for line in lines:
        typer.echo(line, err=True)


def show_tracebacks() -> None:
    """Let each failure be followed by where it arose, on standard error."""
    logger = logging.getLogger("harness")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(
        Told(lambda record: warn(without_keys(logging.Formatter().format(record))))
    )


def hide_tracebacks() -> None:
    """Undo `show_tracebacks`, for anyone who calls several commands in one process."""
    logger = logging.getLogger("harness")
    logger.setLevel(logging.NOTSET)
    logger.handlers[:] = [
        handler for handler in logger.handlers if not isinstance(handler, Told)
    ]


class Told(logging.Handler):
    """Hands records on: failures, or which model is loaded, which takes seconds in which no text is counted."""

    def __init__(self, show: Callable[[logging.LogRecord], None]) -> None:
        """Take what shows a record."""
        super().__init__()
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        """Show it."""
        self._show(record)


def agree(question: str, option: str) -> None:
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


def print_results(
    results: Results, *, quiet: bool, as_json: bool, explain: bool = False
) -> None:
    """The verdict in words, what may change it, the paired leaderboard, and where to read on."""
    if as_json:
        from harness.evaluation.conclusions import headline
        from harness.evaluation.evaluate import evaluation_of

        failed = [
            {"retriever": name, "error": error}
            for name, error in results.manifest.failed.items()
        ]
        rows = {
            name: [*results.rows(name)] for name in ("scores", "summary", "comparisons")
        }
        evaluation = evaluation_of(results) if results.scored else None
        choice = None if evaluation is None else evaluation.sweep
        sweep = {} if choice is None else {"sweep": asdict(choice)}
        incomplete = "" if evaluation is None or not failed else headline(evaluation)
        print_json(**rows, failed=failed, incomplete=incomplete, **sweep)
    elif not quiet:
        show(tables.results, results, explain)
        warn(*(f"warning: {warning}" for warning in results.manifest.warnings))
        page = results.folder / "report.html"
        say(f"report: {page}" if page.is_file() else f"results: {results.folder}")


def print_listing(read: Listing, place: Path, *, quiet: bool, as_json: bool) -> None:
    """The runs of a folder of results, newest first, what is not listed, and where the page is."""
    if as_json:
        runs = [
            {
                "folder": entry.folder,
                "started": entry.manifest.started,
                "experiment": entry.manifest.name,
                "dataset": entry.manifest.dataset.path,
                "digest": entry.manifest.dataset.digest,
                "measure": entry.primary,
                "means": dict(entry.means),
                "failed": list(entry.manifest.failed),
            }
            for entry in read.entries
        ]
        print_json(runs=runs, not_listed=[one._asdict() for one in read.unread])
    elif not quiet:
        show(tables.runs, read.entries)
        warn(*(f"not listed: {one.folder}: {one.reason}" for one in read.unread))
        say("", f"index: {place / 'index.html'}")


def print_scores(
    scores: Scores,
    evaluation: Evaluation,
    notes: Sequence[str],
    *,
    as_json: bool,
    explain: bool = False,
) -> None:
    """Per-query scores of any tool: means, comparisons, the verdict in words, what to know about the numbers."""
    from harness.evaluation.csv_views import comparison_rows, summary_rows

    summary = summary_rows(evaluation.summary)
    if as_json:
        rows = [row._asdict() for row in scores.rows()]
        print_json(
            scores=rows,
            summary=summary,
            comparisons=comparison_rows(evaluation),
            notes=list(notes),
        )
        return
    show(tables.scoreboard, summary)
    say("")
    show(tables.verdict, evaluation, explain=explain)
    say(*notes)


def print_json(**values: object) -> None:
    """One object, numbers in full precision."""
    typer.echo(json.dumps(_plain(values), ensure_ascii=False))


def _plain(value: Any) -> Any:
    """A value as JSON has it: records by the names of their fields; NaN, which it has no word for, becomes null."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and value != value else value


def print_result(lines: Iterable[str], *, as_json: bool, **values: object) -> None:
    """What a command found: lines for people, or the same as one object.

    Args:
        lines: for people.
        as_json: whether the object is wanted.
        values: what is in it.
    """
    if as_json:
        print_json(**values)
    else:
        say(*lines)


def print_csv(rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows as in the CSV files of a results folder; a terminal shows what programs read as it is."""
    from harness.records import as_cell

    written = io.StringIO()
    writer = csv.DictWriter(written, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {key: as_cell(one) if isinstance(one, str) else one for key, one in row.items()}
        for row in rows
    )
    typer.echo(written.getvalue(), nl=False)


def say(*lines: str) -> None:
    """Print lines, on standard output."""
    for line in lines:
        typer.echo(line)


def show(
    build: Callable[..., Iterable[RenderableType]], *args: object, **named: object
) -> None:
    """Print what fits the terminal."""
    console = console_of()
    for part in build(*args, width=console.width, **named):
        console.print(part)


def console_of(*, stderr: bool = False) -> Console:
    """A console on one of the two streams."""
    from rich.console import Console

    return Console(stderr=stderr)


SUMMARY = "GITHUB_STEP_SUMMARY"
"""The environment variable that names the file of the job's summary."""


def tell_github(results: Results, sentence: str, *, passed: bool, which: str) -> None:
    """Print the annotation, and add the paired leaderboard to the summary of the job; outside of one, print it, too.

    Args:
        results: whose leaderboard is shown.
        sentence: what the gate found.
        passed: whether it lets the change pass.
        which: run it speaks of.

    Raises:
        InputError: the summary cannot be written.
    """
    outcome = "passed" if passed else "failed"
    say(
        f"::{'notice' if passed else 'error'} title=Retrieval gate {outcome}::{_escaped(f'{sentence}; {which}')}"
    )
    text = f"### Retrieval gate {outcome}\n\n{sentence}.\n\n```text\n{_in_letters(results)}\n```\n\n{which}\n"
    place = os.environ.get(SUMMARY, "")
    if not place:
        say(*text.splitlines())
        return
    with writing(Path(place)), text_file(place, "a") as file:
        file.write(text)


def _in_letters(results: Results) -> str:
    from harness.evaluation.evaluate import evaluation_of

    # A fence in a name would end the block.
    return tables.as_text(forest, evaluation_of(results).board).replace("`", "'")


def _escaped(text: str) -> str:
    r"""A message of a workflow command on one line.

    >>> _escaped("97 %\nof all")
    '97 %25%0Aof all'
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
