"""The command line: parse, call, print (through console). The only place that exits."""

import errno
import logging
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from typer.exceptions import TyperException

from harness.console import caches, label_commands, printing, scoring, several
from harness.console import shared_options as shared
from harness.retired import retired_on
from retrievers.errors import HarnessError, InputError

log = logging.getLogger(__name__)

app = typer.Typer(
    cls=shared.HelpGroup,
    help="Which retriever should I use on my own documents, and is the difference real?",
    epilog="Start with: harness demo, or harness init FOLDER",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


FORM = typer.Option("--as", metavar="FORM", help="trec, mteb, parquet; mlflow, wandb.")


KEEPING = frozenset({"answers", "embed", "judge", "queries", "reproduce"})
"""Commands that query models through the cache; `run` has a message of its own."""


KEPT = "stopped: what was embedded is cached; the same command continues"


class Interrupted(Exception):
    """Ctrl-C, with what is kept and how to continue."""


def _version(wanted: bool) -> None:
    """Print which release this is, and stop."""
    if wanted:
        from importlib.metadata import version

        printing.say(f"harness {version('retriever-harness')}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option(
        "--version", callback=_version, is_eager=True, help="Print the version."
    ),
]


@app.callback()
def _main(
    version: Version = False,
) -> None:
    """Options of `harness` itself."""


def run(
    experiment: shared.ExperimentFiles,
    results: Annotated[
        Path, typer.Option(help="Folder for results, which go to RESULTS/<name>/.")
    ] = Path("results"),
    only: Annotated[list[str] | None, shared.ONLY] = None,
    fresh: shared.Fresh = False,
    max_cost: shared.MaxCost = None,
    no_code: shared.NoCode = False,
    debug: shared.Debug = False,
    explain: shared.Explain = False,
    quiet: shared.Quiet = False,
    as_json: shared.Json = False,
) -> None:
    """Run experiments: index, search, score, compare, report."""
    if debug:
        printing.show_tracebacks()
    spent = ""
    try:
        from harness.console.progress import Progress
        from harness.console.several import load_files, print_runs, run_files
        from harness.running.forecast import Options

        with Progress(printing.console_of(stderr=True), quiet=quiet) as progress:
            notify = (lambda line: None) if quiet else printing.warn
            options = Options(
                results,
                tuple(only or ()),
                fresh,
                max_cost,
                not no_code,
                notify,
                watch=progress.watch,
            )
            try:
                finished = run_files(load_files(experiment, code=not no_code), options)
            finally:
                spent = f"; ${progress.spent:.6f} were spent" if progress.spent else ""
    except KeyboardInterrupt:
        raise Interrupted(f"{KEPT}{spent}") from None
    print_runs(finished, quiet=quiet, as_json=as_json, explain=explain)


def demo(
    results: Annotated[
        Path, typer.Option(help="Folder for results, which go to RESULTS/<name>/.")
    ] = Path("results"),
    quiet: shared.Quiet = False,
    as_json: shared.Json = False,
) -> None:
    """Run the built-in experiment: survey templates, searched by words and (extra offline) by a model."""
    from harness.console.several import MORE, demo_experiment

    experiment = demo_experiment()
    if not quiet:
        more = [MORE] if "no-model" in experiment.name else []
        printing.warn(f"harness run {shlex.quote(experiment.as_posix())}", *more)
    run([experiment], results, quiet=quiet, as_json=as_json)


Results = Annotated[
    Path,
    typer.Argument(
        metavar="RESULTS", help="A results folder, or a folder of results folders."
    ),
]


def report(
    results: Results,
    explain: shared.Explain = False,
    quiet: shared.Quiet = False,
    as_json: shared.Json = False,
) -> None:
    """Write the report of a results folder again, or index.html over many results folders."""
    from harness import records
    from harness.evaluation.across_sets import holds_sets, read_sets
    from harness.report.write import write_report

    if holds_sets(results):
        from harness.console.several import print_sets
        from harness.report.html_page import write_sets

        sets = read_sets(results)
        write_sets(results, sets)
        print_sets(sets, quiet=quiet, as_json=as_json)
        return
    if records.holds_results(results):
        from harness.report.index import write_index

        printing.print_listing(
            write_index(results), results, quiet=quiet, as_json=as_json
        )
        return

    record = records.read(results)
    write_report(record)
    printing.print_results(record, quiet=quiet, as_json=as_json, explain=explain)
    if not quiet and not as_json:
        printing.warn(
            *(
                f"{name} failed: {reason}"
                for name, reason in record.manifest.failed.items()
            )
        )


def reproduce(
    results: shared.Folder,
    fresh: shared.Fresh = False,
    max_cost: shared.MaxCost = None,
    no_code: shared.NoCode = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Run the experiment without asking first.")
    ] = (False),
    quiet: shared.Quiet = False,
    as_json: shared.Json = False,
) -> None:
    """Run the experiment of a results folder again: exit 0 if the results are the same, else 1."""
    from harness import records
    from harness.console.progress import Progress
    from harness.reproduce import reproduce as again
    from harness.running.forecast import Options

    if not trust:
        records.read_manifest(
            results
        )  # an unreadable folder is reported before the question
        printing.agree(
            f"Run the experiment of {results}? It may run code, read files and send texts.",
            "--trust",
        )
    with Progress(printing.console_of(stderr=True), quiet=quiet) as progress:
        options = Options(
            fresh=fresh, max_cost=max_cost, code=not no_code, watch=progress.watch
        )
        reproduction = again(results, options)
    if as_json:
        printing.print_json(**reproduction._asdict())
    elif not quiet:
        printing.say(reproduction.sentence())


Output = Annotated[
    Path | None,
    typer.Option(help="File to write; default: <folder>.toml in the current folder."),
]


def init(
    folder: Annotated[
        str,
        typer.Argument(
            metavar="DATASET", help="A folder, a file, or the name of a data set."
        ),
    ],
    output: Output = None,
    columns: shared.Columns = None,
    documents: shared.Documents = None,
    queries: shared.QueryFiles = None,
    labels: shared.LabelFile = None,
    form: shared.DatasetForm = None,
    split: shared.Split = None,
    header: shared.Header = None,
    dangling: shared.Dangling = None,
    match: shared.Match = None,
) -> None:
    """Read documents and labels, show how they were read, and write an experiment."""
    from harness.experiment.init import write_experiment

    given = shared.DatasetOptions(
        columns, documents, queries, labels, form, split, header, dangling, match
    )
    written = write_experiment(shared.data_set(folder, given), output)
    printing.say(*written.lines())


def export(
    results: shared.Folder,
    form: Annotated[str, FORM],
    output: Annotated[
        Path | None,
        typer.Option(help="Folder for the files; default: RESULTS/export/FORM."),
    ] = None,
    as_json: shared.Json = False,
) -> None:
    """Write a results folder in the format of another program, or log it to an experiment tracker."""
    from harness import records
    from harness.evaluation.across_sets import holds_sets, read_sets
    from harness.records.atomic_write import TRACKERS, export_sets, log_to
    from harness.records.atomic_write import export as write

    if form in TRACKERS:
        shared.refuse(
            {"--output": output}, f"cannot go with --as {form}, which writes no file"
        )
        logged = log_to(records.read(results), form)
        printing.print_result([f"{form}: run {logged}"], as_json=as_json, run=logged)
        return
    if holds_sets(results):
        written = export_sets(results, read_sets(results), form, output)
    else:
        written = write(records.read(results), form, output)
    files = [file.as_posix() for file in written]
    printing.print_result(files, as_json=as_json, files=files)


COMPARE, LABEL, MAINTAIN = "Compare", "Label", "Maintain"
"""Headings of `harness --help`."""

for heading, commands in {
    COMPARE: (
        demo,
        init,
        several.check,
        run,
        scoring.score,
        scoring.compare,
        scoring.gate,
        report,
    ),
    LABEL: (label_commands.pool, label_commands.judge),
    MAINTAIN: (caches.embed, export, reproduce),
}.items():
    for command in commands:
        app.command(rich_help_panel=heading)(command)
app.add_typer(label_commands.queries_app, name="queries", rich_help_panel=LABEL)
app.add_typer(label_commands.labels_app, name="labels", rich_help_panel=LABEL)
app.add_typer(caches.app, name="cache", rich_help_panel=MAINTAIN)
app.add_typer(label_commands.answers_app, name="answers", rich_help_panel=MAINTAIN)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a user's mistake ends in one message and an exit code, never in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        if gone := list(retired_on(words)):
            raise InputError(gone)
        # Typer reports an interrupt only by its exit code.
        code = app(words or ["--help"], prog_name="harness", standalone_mode=False)
        sys.stdout.flush()
        if code == 130:
            raise KeyboardInterrupt
    except HarnessError as error:
        log.debug("stopped", exc_info=error)
        printing.warn(printing.message(error))
        code = error.exit_code
    except TyperException as error:
        printing.warn(printing.usage(error))
        code = InputError.exit_code
    except SystemExit as gone:
        # Typer and rich exit with 1 if a pipe was closed: that is no failed gate.
        code = 0 if gone.code == 1 else gone.code
    except OSError as error:  # of a closed pipe nothing is said
        log.debug("stopped", exc_info=error)
        code = 0 if error.errno == errno.EPIPE else InputError.exit_code
        if code:
            printing.warn(f"error: {error}")
        if error.filename is None:
            with suppress(OSError):
                sys.stdout.close()  # else Python tries again to write the rest, and complains
    except (Interrupted, KeyboardInterrupt) as stop:
        kept = (
            ": what was paid for is kept; the same command continues"
            if KEEPING & {*words[:1]}
            else ""
        )
        printing.warn(str(stop) or f"stopped{kept}")
        code = 130
    printing.hide_tracebacks()
    sys.exit(code or 0)
