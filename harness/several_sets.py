"""One experiment on several data sets."""

import math
from collections.abc import Sequence
from pathlib import Path

from harness.build.build import build
from harness.experiment import LoadedExperiment
from harness.pipeline import run
from harness.records import Results
from harness.report.sets_page import write_sets_page
from harness.running.context import RunOptions
from retrievers.errors import BackendError, InputError, Problem


def run_sets(
    sets: Sequence[LoadedExperiment],
    options: RunOptions = RunOptions(),  # noqa: B008
) -> list[Results]:
    """Run an experiment on each of its data sets, and write what they say together.

    Every set is checked before anything is embedded; `max_cost` holds for all of them together.

    Args:
        sets: what `load_sets` gave.
        options: as for `run`.

    Returns:
        The results of each data set; their folders are together in one, which also holds their common page.

    Raises:
        As `run`; what finished before is kept. A set on which every retriever failed is reported at the end.
    """
    if len(sets) > 1 and (
        problems := [problem for one in sets for problem in _problems_of(one)]
    ):
        raise InputError(problems)
    finished: list[Results] = []
    failed: list[str] = []
    for one in sets:
        try:
            told = (
                options.with_progress_prefix(one.experiment.name)
                if one.set_of
                else options
            )
            finished.append(run(one, with_remaining_budget(told, finished)))
        except BackendError as error:
            failed.append(
                f"{one.experiment.name}: {error}" if one.set_of else str(error)
            )
    if sets[0].set_of and finished and all(one.scored for one in finished):
        write_sets_page(
            Path(options.results) / sets[0].set_of,
            finished,
            report=sets[0].experiment.report,
        )
    if failed:
        raise BackendError("\n".join(failed))
    return finished


def with_remaining_budget(
    options: RunOptions, finished: Sequence[Results]
) -> RunOptions:
    """The options with what is left of `max_cost` after some runs."""
    spent = math.fsum(row["usd"] for results in finished for row in results.cost_rows)
    return options._replace(
        max_cost=None
        if options.max_cost is None
        else max(0.0, options.max_cost - spent)
    )


def _problems_of(loaded: LoadedExperiment) -> tuple[Problem, ...]:
    try:
        build(loaded)
    except InputError as error:
        return tuple(
            problem._replace(where=f"{loaded.experiment.name}: {problem.where}")
            for problem in error.problems
        )
    return ()
