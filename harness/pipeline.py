"""One run of an experiment."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness import records
from harness.build.build import BuiltExperiment, build
from harness.build.extras import all_extras_named
from harness.build.stored_vectors import import_stored_vectors
from harness.dataset import Dataset
from harness.evaluation.costs import price_points
from harness.experiment import Experiment, LoadedExperiment, load
from harness.records import Results, Run
from harness.report.write import write_report
from harness.running.accounts import RunAccounts
from harness.running.claims import (
    judge_claims,
    open_judging,
    with_judge_and_times,
)
from harness.running.context import build_run_context
from harness.running.evaluate_rankings import evaluate_rankings
from harness.running.options import RunOptions
from harness.running.reuse import ReusableRuns, find_reusable
from harness.running.run_retrievers import order_runs, run_retrievers
from harness.wording.reading import reading_line
from harness.writing.describe_run import describe_run
from harness.writing.write_results import RunOutput, write_qrels_files, write_results
from retrievers.cache import Cache, default_cache_path
from retrievers.errors import InputError
from retrievers.meter import Budget

ExperimentSource = str | Path | Mapping[str, Any] | Experiment | LoadedExperiment
"""An experiment file, its tables as a dict, an `Experiment`, or a loaded one."""


def run(
    source: ExperimentSource,
    options: RunOptions = RunOptions(),  # noqa: B008
) -> Results:
    """Run an experiment: load, build, run, evaluate, write.

    Args:
        source: the experiment.
        options: where results go, and what to run.

    Returns:
        The results, read back from their folder.

    Raises:
        InputError: a problem of the experiment, its data or its environment; nothing
            was embedded.
        BackendError: every retriever failed; earlier results are unchanged.
        OverBudget: more was billed than `max_cost`, or the judge of a measure that is
            not the primary one would have cost more; the results are written.
    """
    loaded = load(source, allow_code=options.allow_code)
    return run_built(loaded, build(loaded), options)


def run_built(
    loaded: LoadedExperiment,
    built: BuiltExperiment,
    options: RunOptions,
    budget: Budget | None = None,
) -> Results:
    """Run an experiment that is loaded and built; returns and raises as `run`.

    Qrels are written first, so that the rankings of a stopped run can be scored. The
    judge is opened before anything is sent: it may be refused for its price. The budget
    is checked when all results are in their folder; without one, it is `max_cost`.
    """
    announce_unread_files(built.dataset, options)
    folder = Path(options.results) / loaded.set_of / loaded.experiment.name
    reusable = find_reusable(folder, built, options)
    accounts = RunAccounts.start(options, budget)
    meter = accounts.meter
    with records.staging_folder(folder) as staging:
        write_qrels_files(staging, built.labels)
        with Cache(default_cache_path(), fresh=options.fresh) as cache:
            judging = open_judging(loaded, accounts, cache)
            import_stored_vectors(loaded.experiment.vectors, built.retrievers, cache)
            runs = run_all_retrievers(
                loaded, built, cache, accounts, reusable=reusable, staging=staging
            )
            judged = judge_claims(
                judging, runs, built.dataset, meter, staging=staging, earlier=folder
            )
        built = built.with_claims(judged.claims)
        manifest = describe_run(loaded, built, runs, folder, looks=options.looks)
        costs = records.write_costs(staging, runs, meter.stages())
        prices = price_points(manifest, costs)
        evaluated = evaluate_rankings(
            loaded, built, runs, manifest, prices=prices, accounts=accounts
        )
        manifest = with_judge_and_times(manifest, judged, accounts)
        output = RunOutput(manifest, built.dataset, runs, evaluated)
        results = write_results(staging, output)
        if loaded.experiment.report:
            with meter.stage("reporting"):
                write_report(results)
        announce_moved_folder(records.publish(staging, folder), options)
    update_index(Path(options.results), options)
    accounts.check_budget(judged, folder)
    return replace(results, folder=folder)


def run_all_retrievers(
    loaded: LoadedExperiment,
    built: BuiltExperiment,
    cache: Cache,
    accounts: RunAccounts,
    *,
    reusable: ReusableRuns,
    staging: Path,
) -> list[Run]:
    """Answer all queries with every retriever, and write each one's rankings.

    Returns:
        The runs in the order of the experiment, those of failed retrievers too.

    Raises:
        InputError: a part lacks a key, a price or a package.
        BackendError: every retriever failed.
    """
    on_finished = partial(records.write_run_files, staging)
    with all_extras_named(built.find_missing_extras):
        context = build_run_context(loaded, built, cache, accounts, reusable=reusable)
        runs = run_retrievers(
            built.retrievers, context, reusable.runs, on_finished=on_finished
        )
    return order_runs(runs, tuple(built.resolved.retriever_by_name))


def announce_unread_files(dataset: Dataset, options: RunOptions) -> None:
    """Say how many files of the data set are not read, if any."""
    sentence = reading_line(dataset)
    if sentence:
        options.on_message(sentence)


def announce_moved_folder(sentence: str, options: RunOptions) -> None:
    """Say where other results of the same name were moved; "" if there were none."""
    if sentence:
        options.on_message(sentence)


def update_index(results: Path, options: RunOptions) -> None:
    """Write the page of all results; a problem with it is no problem of the run."""
    if not find_spec("harness.report.index"):  # it can be deleted
        return
    from harness.report.index import write_index

    try:
        write_index(results)
    except InputError as error:
        options.on_message(f"the page of all results is not written: {error}")
