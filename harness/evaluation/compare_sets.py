"""Several folders of data sets compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from harness.evaluation.evaluation_file import read_or_evaluate
from harness.evaluation.join_folders import refuse_unscored, score_folders
from harness.evaluation.sets import SetsComparison, compare_over_sets
from harness.records import Results, RetrieverFailure
from harness.records.data_sets_csv import read_sets
from harness.scoring.run_names import unique_folder_names
from harness.scoring.scores import Scores
from harness.scoring.stored_scores import stored_scores
from harness.stats.differences import ScoreTable
from harness.stats.looks import settings_at_look
from harness.stats.settings import Settings
from retrievers.errors import InputError, Problem, did_you_mean


def compare_sets_of_folder(sets: Sequence[Results]) -> SetsComparison:
    """Compare retrievers over several data sets.

    If only a model judged one of them, nothing is claimed.

    Raises:
        InputError: a set has no scores, or they are not comparable
            (`compare_over_sets`).
    """
    refuse_unscored(sets)
    settings = _strictest(read_or_evaluate(results).settings for results in sets)
    scores = {results.manifest.name: stored_scores(results) for results in sets}
    baseline = sets[0].manifest.resolved.baseline
    comparison = compare_over_sets(scores, baseline, settings)
    return replace(comparison, failed=_first_failures(sets))


def _first_failures(sets: Iterable[Results]) -> tuple[RetrieverFailure, ...]:
    """Return each retriever that failed, with its reason on the first set."""
    failures: dict[str, RetrieverFailure] = {}
    for results in sets:
        for failure in results.manifest.failed:
            failures.setdefault(failure.retriever, failure)
    return tuple(failures.values())


def _strictest(settings: Iterable[Settings]) -> Settings:
    """Return those that claim least: sets of different sizes are at different looks."""

    def strictness(set_settings: Settings) -> tuple[bool, bool, float]:
        has_alpha = not set_settings.alpha_spent
        return set_settings.judged_by_people, has_alpha, set_settings.alpha

    return min(settings, key=strictness)


class SharedSetsComparison(NamedTuple):
    """A comparison over the data sets that several folders share."""

    comparison: SetsComparison
    notes: list[str]
    """Which sets are shared and which are not."""


def compare_set_folders(
    folders: Sequence[Path],
    measures: Sequence[str],
    baseline: str | None,
    settings: Settings,
) -> SharedSetsComparison:
    """Compare retrievers of several folders of sets, on the sets that they share.

    Args:
        folders: each with results of several data sets.
        measures: names of measures, the first decides; empty for those that the
            experiments have.
        baseline: each other retriever is compared with it; None compares all pairs.
        settings: the tests; the looks are counted on each data set.

    Raises:
        InputError: no data set is in all folders, a set cannot be scored
            (`score_folders`) or compared (`compare_over_sets`), or no retriever has the
            baseline's name.
    """
    sets_by_folder = [_sets_by_name(folder) for folder in folders]
    shared = _shared_sets(folders, sets_by_folder)
    notes = [_shared_note(folders, sets_by_folder, shared)]
    folder_names = unique_folder_names(folders)
    scores: dict[str, Scores] = {}
    for name in shared:
        set_folders = [sets[name].folder for sets in sets_by_folder]
        scores[name] = score_folders(set_folders, measures, folder_names=folder_names)
        notes += [f"{name}: {note}" for note in scores[name].notes]
    runs = dict(zip(folder_names, sets_by_folder, strict=True))
    scores = _with_folder_names(scores, runs)
    retrievers: set[str] = set()
    for set_scores in scores.values():
        retrievers.update(set_scores.retrievers)
    if baseline is not None and baseline not in retrievers:
        problem = f"no retriever is called {baseline!r}"
        remedy = did_you_mean(baseline, retrievers)
        raise InputError(Problem("--baseline", problem, remedy))
    strictest = _strictest(
        settings_at_look(settings, set_scores.n) for set_scores in scores.values()
    )
    comparison = compare_over_sets(scores, baseline, strictest)
    shared_runs: list[Results] = []
    for sets in sets_by_folder:
        shared_runs += [sets[name] for name in shared]
    comparison = replace(comparison, failed=_first_failures(shared_runs))
    return SharedSetsComparison(comparison, notes)


def _sets_by_name(folder: Path) -> dict[str, Results]:
    return {results.manifest.name: results for results in read_sets(folder)}


def _shared_sets(
    folders: Sequence[Path], sets_by_folder: Sequence[Mapping[str, Results]]
) -> list[str]:
    """Return the names of the data sets that all folders have.

    Raises:
        InputError: the folders have no data set in common.
    """
    shared = [
        name
        for name in sets_by_folder[0]
        if all(name in sets for sets in sets_by_folder)
    ]
    if not shared:
        where = ", ".join(map(str, folders))
        problem = "share no data set of one name"
        remedy = "; ".join(_sets_elsewhere(folders, sets_by_folder, shared))
        raise InputError(Problem(where, problem, remedy))
    return shared


def _sets_elsewhere(
    folders: Sequence[Path],
    sets_by_folder: Sequence[Mapping[str, Results]],
    shared: Sequence[str],
) -> list[str]:
    """Return the data sets that are only in some folders, in words."""
    others: list[str] = []
    for folder, sets in zip(folders, sets_by_folder, strict=True):
        others += [f"{name} only in {folder}" for name in sets if name not in shared]
    return others


def _shared_note(
    folders: Sequence[Path],
    sets_by_folder: Sequence[Mapping[str, Results]],
    shared: Sequence[str],
) -> str:
    others = _sets_elsewhere(folders, sets_by_folder, shared)
    return "; ".join([f"Shared data sets: {', '.join(shared)}", *others]) + "."


def _with_folder_names(
    scores: Mapping[str, Scores], runs: Mapping[str, Mapping[str, Results]]
) -> dict[str, Scores]:
    """Return the scores with one name for each retriever on all data sets.

    A retriever that is the same in all folders has one name on a data set; if it
    differs on another set, it has a name with each folder's on all of them.

    Args:
        scores: data set -> the scores of all folders.
        runs: name of a folder -> data set -> its results.
    """
    prefixed_names: set[str] = set()
    for set_scores in scores.values():
        for retriever in set_scores.retrievers:
            if retriever.rpartition("/")[0] in runs:
                prefixed_names.add(retriever)
    renamed: dict[str, Scores] = {}
    for name, set_scores in scores.items():
        finished = {folder: sets[name].retrievers for folder, sets in runs.items()}
        values = {
            measure: _split_names(table, prefixed_names, finished)
            for measure, table in set_scores.values.items()
        }
        renamed[name] = replace(set_scores, values=values)
    return renamed


def _split_names(
    scores: ScoreTable,
    prefixed_names: set[str],
    finished: Mapping[str, Sequence[str]],
) -> ScoreTable:
    """Return one set's scores, under names with a folder for those that have them.

    Args:
        scores: of one set.
        prefixed_names: the names with a folder, on any set.
        finished: name of a folder -> the retrievers that finished there on this set.
    """
    plain_names = {name.rpartition("/")[2] for name in prefixed_names}
    split = {name: column for name, column in scores.items() if name not in plain_names}
    for prefixed_name in sorted(prefixed_names):
        folder_name, _, name = prefixed_name.rpartition("/")
        if name in scores and name in finished[folder_name]:
            split[prefixed_name] = scores[name]
    return split
