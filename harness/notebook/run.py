"""Experiments run from Python."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import pipeline, records, several_sets
from harness.console.progress import progress_display
from harness.experiment import Experiment, load_sets
from harness.notebook.results import NotebookResults
from harness.running.context import RunOptions


def run(
    experiment: str | Path | Mapping[str, Any] | Experiment,
    options: RunOptions = RunOptions(),  # noqa: B008 - immutable
    *,
    progress: bool | None = None,
) -> NotebookResults:
    """Run an experiment: check, index, replay, score, compare, and write the results folder.

    Args:
        experiment: its file; or its tables as a dict, or an `Experiment`.
        options: the folder of results, and what to run; your own `watch` replaces the progress display.
        progress: whether it is shown on standard error; by default in a terminal or a notebook.

    Returns:
        The results, read back from their folder.

    Raises:
        InputError: a problem with the experiment, its data or its environment; nothing was embedded.
        BackendError: every retriever failed; earlier results are unchanged.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     run("experiments/japanese.toml", RunOptions(place), progress=False)
    <Results 'japanese': 2 retrievers, 138 queries>
    """
    with _watched(options, progress) as watched:
        return NotebookResults.from_results(pipeline.run(experiment, watched))


def run_sets(
    experiment: str | Path | Mapping[str, Any],
    options: RunOptions = RunOptions(),  # noqa: B008 - immutable
    *,
    progress: bool | None = None,
) -> dict[str, NotebookResults]:
    """Run an experiment on each of its data sets, as `harness run` does, and write the common page.

    Args:
        experiment: its file; or its tables as a dict.
        options: as for `run`.
        progress: as for `run`.

    Returns:
        The results of each data set by its name; `data_sets.csv` and the common page are in the parent folder.

    Raises:
        InputError: as for `run`; all sets are checked before anything is embedded.
        BackendError: every retriever failed on a set; earlier sets are kept.

    >>> tables = {"name": "two", "retrievers": [{"name": "bm25", "kind": "bm25"}], "primary": "RR", "measures": ["RR"]}
    >>> sets = ["datasets/survey-templates-en", "datasets/survey-templates-ja"]
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     list(run_sets({**tables, "dataset": sets}, RunOptions(place), progress=False))
    ['survey-templates-en', 'survey-templates-ja']
    """
    with _watched(options, progress) as watched:
        return {
            one.manifest.name: NotebookResults.from_results(one)
            for one in several_sets.run_sets(load_sets(experiment), watched)
        }


@contextmanager
def _watched(options: RunOptions, progress: bool | None) -> Iterator[RunOptions]:
    """The options with a watcher: the given one, or the progress display."""
    if options.on_progress is not RunOptions().on_progress:
        yield options
        return
    with progress_display(progress) as watch:
        yield options._replace(on_progress=watch)


def open_results(folder: str | Path) -> NotebookResults:
    """Read a results folder.

    Raises:
        InputError: it is not a results folder, or a part of it is missing or cannot be read.

    >>> from harness.notebook.evaluate import evaluate
    >>> found = evaluate(["red", "green"], {"q": "red"}, {"q": ["0"]}, {"bm25": "bm25"}, primary="RR")
    >>> open_results(found.folder)
    <Results 'evaluation': 1 retrievers, 1 queries>
    """
    return NotebookResults.from_results(records.read_results(folder))
