"""The command line: parse, call, print. The only place that speaks to people or exits."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retrievers.errors import BackendError, HarnessError

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

app = typer.Typer(
    help="Which retriever should I use on my own documents, and is the difference real?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
ExperimentFile = Annotated[Path, typer.Argument(metavar="EXPERIMENT", help="An experiment file (TOML).")]
Folder = Annotated[Path, typer.Argument(metavar="RESULTS", help="A results folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no tables.")]


@app.command()
def run(
    experiment: ExperimentFile,
    results: Annotated[Path, typer.Option(help="Where results go: RESULTS/<name>/.")] = Path("results"),
    only: Annotated[list[str] | None, typer.Option(help="Run this retriever, take the others' rankings.")] = None,
    fresh: Annotated[bool, typer.Option(help="Embed anew what the cache holds.")] = False,
    max_cost: Annotated[float | None, typer.Option(min=0, help="Dollars that may be spent.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run an experiment: index, replay, score, compare, report."""
    from harness import run as runs
    from harness import terminal

    with terminal.Progress(_stderr(), quiet=quiet or as_json) as progress:
        options = runs.Options(results, tuple(only or ()), fresh, max_cost, progress.watch)
        found = runs.run(experiment, options)
    if as_json:
        _print_json(scores=found.scores, summary=found.summary, comparisons=found.comparisons)
    elif not quiet:
        resolved = found.manifest["resolved"]
        out = _stdout()
        out.print(terminal.leaderboard(found.summary, resolved["measures"], resolved["primary"]))
        out.print(terminal.comparisons(found.comparisons, resolved["primary"]))
        for warning in found.manifest["warnings"]:
            _stderr().print(f"warning: {warning}", style="yellow", highlight=False, markup=False)
    failed = {name: told["error"] for name, told in found.manifest["retrievers"].items() if told["error"]}
    if not as_json:
        typer.echo(f"report: {found.folder / 'report.html'}")
    if failed:
        raise BackendError("\n".join(f"{name}: {error}" for name, error in failed.items()))


@app.command()
def check(
    target: Annotated[Path, typer.Argument(metavar="EXPERIMENT|DATASET", help="An experiment file, or a data set.")],
    as_json: Json = False,
) -> None:
    """Tell all that is wrong, and what will be counted, before anything is embedded."""
    from harness.check import check as look

    report = look(target)
    if as_json:
        typer.echo(json.dumps(report.as_json(), ensure_ascii=False))
        return
    for line in report.lines():
        typer.echo(line)


@app.command()
def report(results: Folder) -> None:
    """Write the report of a results folder anew."""
    from harness import records
    from harness.report import write_report

    found = records.read(results)
    write_report(found)
    typer.echo(f"report: {found.folder / 'report.html'}")


def main() -> None:
    """Run the command line; a user's mistake ends in one message and an exit code, never in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    with _told():
        app()


@contextmanager
def _told() -> Iterator[None]:
    """Turn the error family into a message and an exit code."""
    try:
        yield
    except HarnessError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("stopped: what was embedded is cached; the same command goes on from there", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


def _print_json(**tables: pd.DataFrame) -> None:
    """One object with a list of rows for each table, undefined values as null."""
    rows: dict[str, list[dict[str, Any]]] = {
        name: json.loads(table.to_json(orient="records", double_precision=15)) for name, table in tables.items()
    }
    typer.echo(json.dumps(rows, ensure_ascii=False))


def _stdout() -> Console:
    from rich.console import Console

    return Console()


def _stderr() -> Console:
    from rich.console import Console

    return Console(stderr=True)


if __name__ == "__main__":
    main()
