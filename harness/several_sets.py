"""One experiment on several data sets."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.build.build import BuiltExperiment, build
from harness.experiment import LoadedExperiment
from harness.pipeline import run_built, update_index
from harness.records import Results
from harness.report.sets_page import write_sets_page
from harness.running.options import RunOptions
from retrievers.errors import BackendError, InputError, Problem
from retrievers.meter import Budget


def run_sets(
    sets: Sequence[LoadedExperiment],
    options: RunOptions = RunOptions(),  # noqa: B008
    budget: Budget | None = None,
) -> list[Results]:
    """Run an experiment on each of its data sets, and write their common page.

    There is no such page if a set has no labels.

    Every set is checked before anything is embedded; `max_cost` is the limit of all
    sets together.

    Args:
        sets: what `load_sets` returned: at least one.
        options: as for `run`.
        budget: the dollars of several experiments, in place of `max_cost`.

    Returns:
        The results of each data set; their folders are in one folder, which has the
        page. A data set that is alone has neither.

    Raises:
        InputError: as `run`; sets that finished before are kept.
        BackendError: every retriever failed on a set, or it cost more than it may;
            raised when all sets have run.
    """
    if budget is None:
        budget = Budget(options.max_cost)
    finished: list[Results] = []
    failures: list[str] = []
    for loaded, built in zip(sets, _build_all(sets), strict=True):
        name = loaded.experiment.name
        set_options = options
        if loaded.set_of:  # there are several sets
            set_options = options.with_progress_prefix(name)
        try:
            with _remaining_budget(budget) as remaining:
                finished.append(run_built(loaded, built, set_options, remaining))
        except BackendError as error:
            failures.append(f"{name}: {error}" if loaded.set_of else str(error))
    set_of = sets[0].set_of
    if set_of and finished and all(results.scored for results in finished):
        folder = Path(options.results) / set_of
        write_sets_page(folder, finished, report=sets[0].experiment.report)
        update_index(Path(options.results), options)
    if failures:
        raise BackendError("\n".join(failures))
    return finished


def _build_all(sets: Sequence[LoadedExperiment]) -> list[BuiltExperiment]:
    """Build every set; the problems of all are one error, each with its set's name."""
    if len(sets) == 1:
        return [build(sets[0])]
    built: list[BuiltExperiment] = []
    problems: list[Problem] = []
    for loaded in sets:
        try:
            built.append(build(loaded))
        except InputError as error:
            for problem in error.problems:
                where = f"{loaded.experiment.name}: {problem.where}"
                problems.append(problem._replace(where=where))
    if problems:
        raise InputError(problems)
    return built


@contextmanager
def _remaining_budget(budget: Budget) -> Iterator[Budget]:
    """Yield what is left of a budget, and take off what was spent, also on failures."""
    limit = None if budget.limit is None else max(0.0, budget.limit - budget.spent)
    remaining = Budget(limit)
    try:
        yield remaining
    finally:
        budget.release(-remaining.spent)
