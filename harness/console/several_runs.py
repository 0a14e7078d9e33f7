"""Several experiments, run in turn.

An experiment may have several data sets: so each file is a list of loaded experiments,
and each run a list of results, one for each set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness.console.columns import TextColumn, fit_table, text_line
from harness.console.output import print_json, print_lines, print_to_fit, print_warnings
from harness.console.results_text import print_results
from harness.english import count_of
from retrievers.errors import BackendError, InputError, Problem, collect_errors
from retrievers.meter import Budget

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.evaluation.sets import SetsComparison
    from harness.experiment import LoadedExperiment
    from harness.records import Results, RetrieverFailure
    from harness.running.options import RunOptions
    from harness.scoring.declared_settings import DeclaredSettings
    from harness.stats.settings import Settings


def load_files(
    paths: Sequence[Path], *, allow_code: bool
) -> list[list[LoadedExperiment]]:
    """Load several experiment files, each with its data sets.

    Args:
        paths: of the files.
        allow_code: whether the files may name Python code; else one that does is
            refused.

    Returns:
        For each file its experiment on each data set: one or more.

    Raises:
        InputError: the problems of all files together, or two files would write to one
            folder.
    """
    from harness.experiment import load_sets

    files: list[list[LoadedExperiment]] = []
    problems: list[Problem] = []
    for path in paths:
        with collect_errors(problems):
            files.append(load_sets(path, allow_code=allow_code))
    # Names of folders: some file systems do not tell small letters from capitals.
    folders = [_experiment_name(sets).lower() for sets in files]
    repeated = [
        sets for sets in files if folders.count(_experiment_name(sets).lower()) > 1
    ]
    if repeated:
        last = repeated[-1]
        problem = f"{_experiment_name(last)!r} is in two files"
        problems.append(Problem(f"{last[0].path}: name", problem, "rename one"))
    if problems:
        raise InputError(problems)
    return files


def read_finished_files(
    files: Sequence[Sequence[LoadedExperiment]], options: RunOptions
) -> list[list[Results]]:
    """Return the results of experiments that ran before.

    Empty if any of them has to run: its data or its settings have changed since, or
    `fresh` or `only` is set.
    """
    from harness.running.reuse import read_finished_sets

    if options.fresh or options.only:
        return []
    finished: list[list[Results]] = []
    for sets in files:
        stored = read_finished_sets(sets, Path(options.results))
        if not stored:
            return []
        finished.append(stored)
    return finished


def run_files(
    files: Sequence[Sequence[LoadedExperiment]], options: RunOptions
) -> list[list[Results]]:
    """Run experiments one after another.

    An experiment whose retrievers all fail is left out, and the others go on. The limit
    of cost is that of all together.

    Raises:
        InputError: as `run_sets`.
        BackendError: none of them finished.
    """
    from harness.several_sets import run_sets

    budget = Budget(options.max_cost)
    finished: list[list[Results]] = []
    failed: list[str] = []
    for sets in files:
        try:
            file_options = options
            if len(files) > 1:
                file_options = options.with_progress_prefix(_experiment_name(sets))
            finished.append(run_sets(sets, file_options, budget))
        except BackendError as error:
            if len(files) == 1:
                raise
            failed.append(f"{_experiment_name(sets)}: {error}")
            print_warnings(failed[-1])
    if not finished:
        raise BackendError("\n".join(failed))
    return finished


def print_several_runs(
    runs: Sequence[Sequence[Results]], *, quiet: bool, as_json: bool, explain: bool
) -> None:
    """Print the whole result of one experiment; of several, a line for each.

    Of several data sets of which one has no labels, a line for each, too.

    Args:
        runs: for each experiment its results on each data set: one or more.
        quiet: whether only failures are printed.
        as_json: whether one object is printed.
        explain: whether everything is printed of one experiment on one data set.

    Raises:
        BackendError: a retriever failed.
    """
    from harness.records.data_sets_csv import holds_sets

    first_sets = runs[0]
    # Sets are compared only if all have scores; one run alone may do without.
    has_own_text = len(first_sets) == 1 or all(results.scored for results in first_sets)
    if len(runs) > 1 or not has_own_text:
        _print_run_lines(runs, quiet=quiet, as_json=as_json)
    # A `dataset` that is a list has a page of its sets, even with one set in it.
    elif len(first_sets) > 1 or holds_sets(first_sets[0].folder.parent):
        print_sets(first_sets, quiet=quiet, as_json=as_json)
    else:
        print_results(first_sets[0], quiet=quiet, as_json=as_json, explain=explain)
    failures = _failure_lines(runs)
    if failures:
        raise BackendError("\n".join(failures))


def _print_run_lines(
    runs: Sequence[Sequence[Results]], *, quiet: bool, as_json: bool
) -> None:
    """Print the verdict and the folder of each run."""
    rows: list[RunLine] = []
    for sets in runs:
        rows.extend(_run_line(results, sets) for results in sets)
    if as_json:
        print_json(runs=[{**row._asdict(), "failed": dict(row.failed)} for row in rows])
    elif not quiet:
        for row in rows:
            print_lines(f"{row.name}: {row.headline}", f"  {row.folder}")


class RunLine(NamedTuple):
    """The result of one run of several."""

    name: str
    """EXPERIMENT, or EXPERIMENT/SET."""
    headline: str
    folder: str
    failed: tuple[RetrieverFailure, ...]


def _run_line(results: Results, sets: Sequence[Results]) -> RunLine:
    from harness.evaluation.evaluation_file import read_or_evaluate
    from harness.wording.conclusion import verdict_lines

    name = results.manifest.name
    if len(sets) > 1:
        name = f"{results.folder.parent.name}/{name}"
    headline = "rankings without labels"
    if results.scored:
        headline = verdict_lines(read_or_evaluate(results)).headline
    folder = results.folder.as_posix()
    return RunLine(name, headline, folder, results.manifest.failed)


def _failure_lines(runs: Sequence[Sequence[Results]]) -> list[str]:
    """Return the retrievers that failed; of several runs with the run's name."""
    from harness.wording.failures import failure_lines

    all_results = [results for sets in runs for results in sets]
    lines: list[str] = []
    for results in all_results:
        run = results.manifest.name if len(all_results) > 1 else ""
        lines += failure_lines(results.manifest.failed, run)
    return lines


def print_sets(sets: Sequence[Results], *, quiet: bool, as_json: bool) -> None:
    """Print the comparison over several data sets, and the path of their page."""
    from harness.evaluation.compare_sets import compare_sets_of_folder

    comparison = compare_sets_of_folder(sets)
    if as_json:
        rows = [
            {
                "set": set_name,
                "retriever": retriever,
                "n": scores.n,
                "mean": comparison.mean(set_name, retriever),
            }
            for set_name, scores in comparison.sets.items()
            for retriever in comparison.retrievers
        ]
        print_json(data_sets=rows, together=comparison.rows())
    elif not quiet:
        print_to_fit(sets_table, comparison)
        folder = sets[0].folder.parent
        page = folder / "report.html"
        print_lines(f"report: {page}" if page.is_file() else f"results: {folder}")


def print_compared_sets(
    paths: Sequence[Path],
    measures: Sequence[str],
    baseline: str | None,
    declared: DeclaredSettings,
    *,
    used: Settings,
    as_json: bool,
) -> None:
    """Print the comparison of folders of several data sets, on the shared sets.

    Args:
        paths: of the folders.
        measures: the first decides; without one, the folders' primary measure.
        baseline: each other retriever is compared with it; None: all pairs.
        declared: the statistics that the folders declare.
        used: those of this comparison; if they differ, it recommends nothing.
        as_json: whether one object is printed.
    """
    from harness.evaluation.compare_sets import compare_set_folders
    from harness.evaluation.score_paths import missing_retriever_notes
    from harness.records.data_sets_csv import read_sets
    from harness.scoring.undeclared import undeclared_choices

    comparison, set_notes = compare_set_folders(paths, measures, baseline, used)
    folders = [results.folder for path in paths for results in read_sets(path)]
    choices = undeclared_choices(folders, comparison.measure, declared.settings, used)
    comparison = replace(comparison, undeclared=choices)
    missing_notes = missing_retriever_notes(folders)
    notes = [*missing_notes, *filter(None, [declared.note]), *set_notes]
    print_warnings(*notes)
    if as_json:
        print_json(together=comparison.rows(), notes=notes)
    else:
        print_to_fit(sets_table, comparison)


def sets_table(comparison: SetsComparison, *, width: int) -> Iterator[RenderableType]:
    """The verdict on all sets, retrievers by data sets, and every pair.

    If room is short, the last data sets are left out of the table.
    """
    from harness.wording.sets import sets_sentences

    retrievers = list(comparison.ranked_retrievers)
    columns = [TextColumn("", retrievers, left_aligned=True, wraps=True)]
    for drop_rank, (set_name, scores) in enumerate(comparison.sets.items()):
        means = [comparison.mean(set_name, retriever) for retriever in retrievers]
        best = comparison.best_on(set_name)
        best_rows = frozenset(i for i, name in enumerate(retrievers) if name in best)
        columns.append(
            TextColumn(
                f"{set_name}\nn = {scores.n:,}",
                [f"{mean:.3f}" for mean in means],
                drop_rank=drop_rank,
                bold_rows=best_rows,
            )
        )
    verdict, *pair_sentences = sets_sentences(comparison, limit=len(comparison.pairs))
    sets = count_of(len(comparison.sets), "data set")
    yield text_line(f"{comparison.measure} on {sets}", "bold")
    yield text_line(verdict)
    yield from fit_table(columns, width)
    yield from map(text_line, pair_sentences)


def _experiment_name(sets: Sequence[LoadedExperiment]) -> str:
    """Return the name of an experiment: that of its folder among the results."""
    return sets[0].set_of or sets[0].experiment.name
