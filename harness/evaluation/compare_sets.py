"""Several folders of data sets compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from harness.evaluation.evaluation_file import read_or_evaluate
from harness.evaluation.join_folders import score_folders
from harness.evaluation.sets import SetsComparison, compare_over_sets
from harness.records import NO_SCORES, Results
from harness.records.data_sets_csv import read_sets
from harness.scoring.run_names import unique_labels
from harness.scoring.stored_scores import stored_scores
from harness.stats.differences import ScoreTable
from harness.stats.looks import settings_at_look
from harness.stats.settings import Settings
from retrievers.errors import InputError, Problem, did_you_mean


def compare_sets_of_folder(sets: Sequence[Results]) -> SetsComparison:
    """Put the results of several data sets together; where a model alone judged one, nothing is claimed."""
    if unscored := [one for one in sets if not one.scored]:
        raise InputError([Problem(str(one.folder), *NO_SCORES) for one in unscored])
    settings = _strictest(read_or_evaluate(one).settings for one in sets)
    scores = {one.manifest.name: stored_scores(one) for one in sets}
    return compare_over_sets(scores, sets[0].manifest.resolved.baseline, settings)


def _strictest(settings: Iterable[Settings]) -> Settings:
    """Those that claim least: sets of different sizes are at different planned looks."""
    return min(
        settings, key=lambda one: (one.judged_by_people, not one.alpha_spent, one.alpha)
    )


def compare_set_folders(
    folders: Sequence[Path],
    measures: Sequence[str],
    baseline: str | None,
    settings: Settings,
) -> tuple[SetsComparison, list[str]]:
    """Compare the retrievers of several such folders on the data sets that all of them share.

    Returns:
        What the shared sets say together; and which sets are shared and which are not.
    """
    every = [{one.manifest.name: one for one in read_sets(place)} for place in folders]
    shared = [name for name in every[0] if all(name in sets for sets in every)]
    alone = [
        f"{name} only in {place}"
        for place, sets in zip(folders, every, strict=True)
        for name in sets
        if name not in shared
    ]
    if not shared:
        raise InputError(
            Problem(
                ", ".join(map(str, folders)),
                "share no data set of one name",
                "; ".join(alone),
            )
        )
    notes = [
        f"Shared data sets: {', '.join(shared)}{''.join(f'; {one}' for one in alone)}."
    ]
    called, scores = unique_labels(folders), {}
    for name in shared:
        scores[name] = score_folders(
            [sets[name].folder for sets in every], measures, folder_labels=called
        )
        notes += [f"{name}: {note}" for note in scores[name].notes]
    split = {
        full
        for one in scores.values()
        for full in one.retrievers
        if full.rpartition("/")[0] in called
    }
    scores = {
        name: replace(
            one, values={m: _split(of, split) for m, of in one.values.items()}
        )
        for name, one in scores.items()
    }
    known = {name for one in scores.values() for name in one.retrievers}
    if baseline is not None and baseline not in known:
        raise InputError(
            Problem(
                "--baseline",
                f"no retriever is called {baseline!r}",
                did_you_mean(baseline, known),
            )
        )
    return compare_over_sets(
        scores,
        baseline,
        _strictest(settings_at_look(settings, one.n) for one in scores.values()),
    ), notes


def _split(scores: ScoreTable, names: set[str]) -> ScoreTable:
    """One set's scores. What is the same in both folders has both names if another set shows a difference."""
    again = {
        full: scores[full.rpartition("/")[2]]
        for full in sorted(names)
        if full.rpartition("/")[2] in scores
    }
    kept = {
        name: values
        for name, values in scores.items()
        if all(name != full.rpartition("/")[2] for full in names)
    }
    return {**kept, **again}
