"""The command `check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.console import options as shared
from harness.console.dataset_arguments import (
    DatasetOptions,
    dataset_reference,
    takes_dataset_options,
)
from harness.console.output import print_json, print_result
from retrievers.errors import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.dataset import DatasetReference
    from harness.experiment import LoadedExperiment

RESULTS_FOLDER = Path("results")
"""The folder in which runs write by default."""


@takes_dataset_options
def check(
    *,
    target: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT|DATASET", help="An experiment file, or a data set."
        ),
    ],
    results: Annotated[
        Path,
        typer.Option(help="Folder of earlier runs, which show how fast models are."),
    ] = RESULTS_FOLDER,
    online: Annotated[
        bool, typer.Option("--online", help="Send one text to every service.")
    ] = False,
    no_code: shared.NoCode = False,
    dataset_options: DatasetOptions,
    as_json: shared.JsonOutput = False,
) -> None:
    """List every problem, how the data were read, and what a run takes: texts, tokens,
    dollars, minutes. Nothing is sent.
    """  # noqa: D205
    from retrievers.texts.languages import preload_language_model

    preload_language_model()  # on another core, while the rest is imported
    reference: DatasetReference | None = None
    if target.lower().endswith(".toml"):
        shared.refuse_options(
            dataset_options.given_options(),
            "is set in the experiment file, under dataset",
            "write it there",
        )
    else:
        shared.refuse_options(
            {"--results": results != RESULTS_FOLDER, "--online": online},
            "is for an experiment file",
        )
        reference = dataset_reference(target, dataset_options)
    from harness.console.check_text import check_lines, check_object
    from harness.preflight.check import check_target

    try:
        subjects: Sequence[Path | DatasetReference | LoadedExperiment] = (
            experiments_to_check(Path(target), allow_code=not no_code)
            if reference is None
            else [reference]
        )
        reports = [
            check_target(subject, allow_code=not no_code, results=results, ping=online)
            for subject in subjects
        ]
    except InputError as error:
        if not as_json:
            raise
        problems = error.problems or (Problem(target, str(error)),)
        listed = [problem._replace(remedy=str(problem.remedy)) for problem in problems]
        print_json(problems=listed)
        raise typer.Exit(error.exit_code) from None
    tables = [check_object(report) for report in reports]
    table = tables[0] if len(tables) == 1 else {"data_sets": tables}
    lines = (line for report in reports for line in check_lines(report))
    print_result(lines, as_json=as_json, problems=[], **table)


def experiments_to_check(
    path: Path, *, allow_code: bool
) -> list[Path | LoadedExperiment]:
    """Return an experiment on each of its data sets; for one data set, the path.

    The path also if it cannot be loaded: its check finds the problems of the data, too.
    """
    from harness.experiment import load_sets

    try:
        sets = load_sets(path, allow_code=allow_code)
    except InputError:
        return [path]
    return [*sets] if sets[0].set_of else [path]
