"""Experiments run from Python.

`harness.pipeline` does the work; here are the progress display, and problems in the
words of Python.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import pipeline, records, several_sets
from harness.console.progress import progress_display
from harness.experiment import Experiment, load_sets
from harness.notebook.argument_types import check_path
from harness.notebook.python_words import problems_without_options
from harness.notebook.results import NotebookResults
from harness.running.options import RunOptions


def run(
    experiment: str | Path | Mapping[str, Any] | Experiment,
    options: RunOptions = RunOptions(),  # noqa: B008 - immutable
    *,
    progress: bool | None = None,
) -> NotebookResults:
    """Run an experiment on one data set, and write its results folder.

    The steps are check, index, search, score and compare.

    Args:
        experiment: its file; or its tables as a dict, or an `Experiment`, whose paths
            are relative to the working directory.
        options: the folder of results, and what to run; your own `on_progress` replaces
            the progress display.
        progress: whether it is shown on standard error; by default in a terminal or a
            notebook.

    Returns:
        The results, read back from their folder.

    Raises:
        InputError: a problem with the experiment, its data or its environment; nothing
            was embedded.
        BackendError: every retriever failed; earlier results are unchanged.
        OverBudget: more was billed than `max_cost`; the results are written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run("experiments/japanese.toml", RunOptions(folder), progress=False)
    <Results 'japanese': 2 retrievers, 138 queries>
    """
    _check_experiment(experiment)
    with (
        problems_without_options(),
        _with_progress(options, progress) as watched_options,
    ):
        results = pipeline.run(experiment, watched_options)
        return NotebookResults.from_results(results)


def run_sets(
    experiment: str | Path | Mapping[str, Any],
    options: RunOptions = RunOptions(),  # noqa: B008 - immutable
    *,
    progress: bool | None = None,
) -> dict[str, NotebookResults]:
    """Run an experiment on each of its data sets, as `harness run` does.

    Args:
        experiment: its file; or its tables as a dict.
        options: as for `run`.
        progress: as for `run`.

    Returns:
        The results of each data set by its name; `data_sets.csv` and the common page
        are in the parent folder. If `dataset` is no list: one, by the experiment's
        name, without these.

    Raises:
        InputError: as for `run`; all sets are checked before anything is embedded.
        BackendError: every retriever failed on a set; earlier sets are kept.
        OverBudget: as for `run`.

    >>> tables = {
    ...     "name": "two",
    ...     "dataset": ["datasets/survey-templates-en", "datasets/survey-templates-ja"],
    ...     "retrievers": [{"name": "bm25", "kind": "bm25"}],
    ...     "primary": "RR",
    ...     "measures": ["RR"],
    ... }
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     list(run_sets(tables, RunOptions(folder), progress=False))
    ['survey-templates-en', 'survey-templates-ja']
    """
    _check_experiment(experiment)
    with (
        problems_without_options(),
        _with_progress(options, progress) as watched_options,
    ):
        loaded_sets = load_sets(experiment, allow_code=options.allow_code)
        sets = several_sets.run_sets(loaded_sets, watched_options)
        return {
            results.manifest.name: NotebookResults.from_results(results)
            for results in sets
        }


def _check_experiment(experiment: Any) -> None:
    """Raise InputError if an argument cannot be an experiment."""
    if not isinstance(experiment, Mapping | Experiment):
        check_path(experiment, "experiment", "the path of a .toml file, or its tables")


@contextmanager
def _with_progress(options: RunOptions, progress: bool | None) -> Iterator[RunOptions]:
    """Yield options that show progress: by their own function, else by the display."""
    if options.on_progress is not RunOptions().on_progress:
        yield options
        return
    with progress_display(progress) as watch:
        yield options._replace(on_progress=watch)


def open_results(folder: str | Path) -> NotebookResults:
    """Read a results folder.

    Raises:
        InputError: it is not a results folder, or a part of it is missing or cannot be
            read.

    >>> from harness.notebook.evaluate import evaluate
    >>> results = evaluate(
    ...     ["red", "green"], {"q": "red"}, {"q": ["0"]}, {"bm25": "bm25"}, primary="RR"
    ... )
    >>> open_results(results.folder)
    <Results 'evaluation': 1 retrievers, 1 queries>
    """
    check_path(folder, "folder", "the path of a results folder")
    with problems_without_options():
        return NotebookResults.from_results(records.read_results(folder))
