"""The commands on runs.

`run`, `demo`, `report`, `reproduce`, `init` and `export`.
"""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from harness.console import options as shared
from harness.console import results_text
from harness.console.dataset_arguments import (
    DatasetOptions,
    dataset_reference,
    takes_dataset_options,
)
from harness.console.listing_text import print_listing
from harness.console.messages import confirm, show_tracebacks
from harness.console.output import (
    open_console,
    print_lines,
    print_result,
    print_warnings,
)

EXPORT_FORM = typer.Option(
    "--as", metavar="FORM", help="trec, mteb, parquet; mlflow, wandb."
)
RUN_STOPPED_MESSAGE = "stopped: what was embedded is cached; the same command continues"


class Interrupted(Exception):
    """Ctrl-C; the message says how to continue."""


def run(
    *,
    experiment: shared.ExperimentFiles,
    results: Annotated[
        Path, typer.Option(help="Folder for results, which go to RESULTS/<name>/.")
    ] = Path("results"),
    only: Annotated[list[str] | None, shared.ONLY_OPTION] = None,
    fresh: shared.FreshOption = False,
    max_cost: shared.MaxCost = None,
    no_code: shared.NoCode = False,
    debug: shared.DebugOption = False,
    explain: shared.ExplainOption = False,
    quiet: shared.QuietOption = False,
    as_json: shared.JsonOutput = False,
) -> None:
    """Run experiments: index, search, score, compare, report."""
    if debug:
        show_tracebacks()
    spent = ""
    try:
        from harness.console.progress import Progress
        from harness.console.several_runs import (
            load_files,
            print_several_runs,
            read_finished_files,
            run_files,
        )
        from harness.running.options import RunOptions

        with Progress(open_console(stderr=True), quiet=quiet) as progress:
            options = RunOptions(
                results,
                tuple(only or ()),
                fresh,
                max_cost,
                not no_code,
                _ignore_notice if quiet else print_warnings,
                on_progress=progress.watch,
            )
            try:
                files = load_files(experiment, allow_code=not no_code)
                # With --explain, the results of an unchanged experiment are printed
                # from their folder: nothing runs again.
                finished = read_finished_files(files, options) if explain else []
                finished = finished or run_files(files, options)
            finally:
                if progress.spent:
                    spent = f"; ${progress.spent:.6f} were spent"
    except KeyboardInterrupt:
        raise Interrupted(f"{RUN_STOPPED_MESSAGE}{spent}") from None
    print_several_runs(finished, quiet=quiet, as_json=as_json, explain=explain)


def _ignore_notice(*_: str) -> None:
    """Print nothing."""


def demo(
    results: Annotated[
        Path, typer.Option(help="Folder for results, which go to RESULTS/<name>/.")
    ] = Path("results"),
    quiet: shared.QuietOption = False,
    as_json: shared.JsonOutput = False,
) -> None:
    """Run the built-in experiment: survey templates, searched by words and (extra
    offline) by a model.
    """  # noqa: D205
    from harness.shipped_files import OFFLINE_HINT, demo_experiment

    experiment = demo_experiment()
    if not quiet:
        print_warnings(f"harness run {shlex.quote(experiment.as_posix())}")
        if "no-model" in experiment.name:
            print_warnings(OFFLINE_HINT)
    run(experiment=[experiment], results=results, quiet=quiet, as_json=as_json)


ResultsArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RESULTS", help="A results folder, or a folder of results folders."
    ),
]


def report(
    results: ResultsArgument,
    *,
    explain: shared.ExplainOption = False,
    no_texts: Annotated[
        bool,
        typer.Option(
            "--no-texts", help="Ids in place of the texts of queries and documents."
        ),
    ] = False,
    quiet: shared.QuietOption = False,
    as_json: shared.JsonOutput = False,
) -> None:
    """Write the report of a results folder again, or index.html over many results
    folders.
    """  # noqa: D205
    from harness import records
    from harness.records.data_sets_csv import holds_sets, read_sets
    from harness.report.write import write_report
    from harness.wording.failures import failure_lines

    if holds_sets(results):
        no_effect = {"--explain": explain}
        shared.refuse_options(no_effect, "is for the results of one data set")
        from harness.console.several_runs import print_sets
        from harness.report.sets_page import write_sets_page

        sets = read_sets(results)
        write_sets_page(results, sets, shows_texts=not no_texts)
        print_sets(sets, quiet=quiet, as_json=as_json)
        return
    if records.holds_results_folders(results) or any(
        map(holds_sets, results.glob("*"))
    ):
        no_effect = {"--explain": explain, "--no-texts": no_texts}
        shared.refuse_options(no_effect, "is for the results of one experiment")
        from harness.report.index import write_index

        listing = write_index(results)
        print_listing(listing, results, quiet=quiet, as_json=as_json)
        return
    stored = records.read_results(results)
    write_report(stored, shows_texts=not no_texts)
    results_text.print_results(stored, quiet=quiet, as_json=as_json, explain=explain)
    if not quiet and not as_json:
        print_warnings(*failure_lines(stored.manifest.failed))


def reproduce(
    *,
    results: shared.ResultsFolder,
    fresh: shared.FreshOption = False,
    max_cost: shared.MaxCost = None,
    no_code: shared.NoCode = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Run the experiment without asking first.")
    ] = False,
    quiet: shared.QuietOption = False,
    as_json: shared.JsonOutput = False,
) -> None:
    """Run the experiment of a results folder again: exit 0 if the results are the same,
    else 1.
    """  # noqa: D205
    from harness import records
    from harness.console.progress import Progress
    from harness.reproduce import reproduce as reproduce_results
    from harness.running.options import RunOptions

    if not trust:
        # An unreadable folder is reported before the question.
        records.read_manifest(results)
        confirm(
            f"Run the experiment of {results}? "
            "It may run code, read files and send texts.",
            "--trust",
        )
    with Progress(open_console(stderr=True), quiet=quiet) as progress:
        options = RunOptions(
            fresh=fresh,
            max_cost=max_cost,
            allow_code=not no_code,
            on_progress=progress.watch,
        )
        # Other results are a NotConfirmed, which ends the command with exit code 1.
        reproduction = reproduce_results(results, options)
    from harness.console.reproduction_text import (
        print_reproduction,
        reproduction_sentence,
    )

    if as_json:
        print_reproduction(reproduction)
    elif not quiet:
        print_lines(reproduction_sentence(reproduction))


OutputOption = Annotated[
    Path | None,
    typer.Option(help="File to write; default: <folder>.toml in the current folder."),
]


@takes_dataset_options
def init(
    *,
    folder: Annotated[
        str,
        typer.Argument(
            metavar="DATASET", help="A folder, a file, or the name of a data set."
        ),
    ],
    output: OutputOption = None,
    dataset_options: DatasetOptions,
) -> None:
    """Read documents and labels, show how they were read, and write an experiment."""
    from harness.console.init_text import new_experiment_lines
    from harness.init.write_experiment import write_experiment

    experiment = write_experiment(dataset_reference(folder, dataset_options), output)
    print_lines(*new_experiment_lines(experiment))


def export(
    results: shared.ResultsFolder,
    form: Annotated[str, EXPORT_FORM],
    output: Annotated[
        Path | None,
        typer.Option(help="Folder for the files; default: RESULTS/export/FORM."),
    ] = None,
    as_json: shared.JsonOutput = False,
) -> None:
    """Write a results folder in the format of another program, or log it to an
    experiment tracker.
    """  # noqa: D205
    from harness import records
    from harness.export.formats import export_results, export_sets
    from harness.export.trackers import TRACKERS, log_to_tracker
    from harness.records.data_sets_csv import holds_sets, read_sets

    if form in TRACKERS:
        shared.refuse_options(
            {"--output": output}, f"cannot go with --as {form}, which writes no file"
        )
        run_id = log_to_tracker(records.read_results(results), form)
        print_result([f"{form}: run {run_id}"], as_json=as_json, run=run_id)
        return
    if holds_sets(results):
        paths = export_sets(results, read_sets(results), form, output)
    else:
        paths = export_results(records.read_results(results), form, output)
    files = [path.as_posix() for path in paths]
    print_result(files, as_json=as_json, files=files)
