"""The results of one experiment on several data sets: a folder that holds a results folder for each."""

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from harness import records
from harness.evaluation.across_sets import ON, SetsTogether, together
from harness.evaluation.evaluate import evaluation_of
from harness.evaluation.folders import folders_apart, score_folders
from harness.evaluation.gate import GateArm, gate_retrievers
from harness.evaluation.readers import scores_of_results
from harness.evaluation.verdict import Gate
from harness.experiment import NAME
from harness.records import UNSCORED, Results
from harness.stats.differences import ScoreTable
from harness.stats.power import at_look
from harness.stats.settings import Settings
from retrievers.errors import InputError, Problem, did_you_mean

SETS = "data_sets.csv"
"""The file by which such a folder is known."""


def holds_sets(place: Path) -> bool:
    """Whether a folder holds the results of one experiment on several data sets."""
    return (place / SETS).is_file() and not (place / "manifest.json").exists()


def read_sets(place: Path) -> list[Results]:
    """Read the results of each data set of a folder, in the order of the experiment.

    Raises:
        InputError: the folder does not hold several data sets, or one of them cannot be read.
    """
    if not holds_sets(place):
        remedy = "give folders that `harness run` wrote of several data sets each, or of one each"
        raise InputError(Problem(str(place), "holds no results of several data sets", remedy))
    with (place / SETS).open(encoding="utf-8", errors="replace") as file:
        head = file.readline()
    names = [column.removeprefix(ON) for column in next(csv.reader([head]), []) if column.startswith(ON)]
    if not names or not all(re.fullmatch(NAME, name) for name in names):  # they lead to folders
        raise InputError(Problem(str(place / SETS), "names no data set", "run the experiment again"))
    return [records.read(place / name) for name in names]


def results_together(sets: Sequence[Results]) -> SetsTogether:
    """Put the results of several data sets together; where a model alone judged one, nothing is claimed."""
    if unscored := [one for one in sets if not one.scored]:
        raise InputError([Problem(str(one.folder), *UNSCORED) for one in unscored])
    settings = _strictest(evaluation_of(one).settings for one in sets)
    scores = {one.manifest.name: scores_of_results(one) for one in sets}
    return together(scores, sets[0].manifest.resolved.baseline, settings)


def _strictest(settings: Iterable[Settings]) -> Settings:
    """Those that claim least: sets of different sizes are at different planned looks."""
    return min(settings, key=lambda one: (one.by_people, not one.spent, one.alpha))


def compared_sets(
    places: Sequence[Path], measures: Sequence[str], baseline: str | None, settings: Settings
) -> tuple[SetsTogether, list[str]]:
    """Compare the retrievers of several such folders on the data sets that all of them share.

    Returns:
        What the shared sets say together; and which sets are shared and which are not.
    """
    every = [{one.manifest.name: one for one in read_sets(place)} for place in places]
    shared = [name for name in every[0] if all(name in sets for sets in every)]
    alone = [f"{name} only in {place}" for place, sets in zip(places, every, strict=True)
             for name in sets if name not in shared]  # fmt: skip
    if not shared:
        raise InputError(Problem(", ".join(map(str, places)), "share no data set of one name", "; ".join(alone)))
    notes = [f"Shared data sets: {', '.join(shared)}{''.join(f'; {one}' for one in alone)}."]
    called, scores = folders_apart(places), {}
    for name in shared:
        scores[name] = score_folders([sets[name].folder for sets in every], measures, called=called)
        notes += [f"{name}: {note}" for note in scores[name].notes]
    split = {full for one in scores.values() for full in one.retrievers if full.rpartition("/")[0] in called}
    scores = {name: replace(one, values={m: _split(of, split) for m, of in one.values.items()})
              for name, one in scores.items()}  # fmt: skip
    known = {name for one in scores.values() for name in one.retrievers}
    if baseline is not None and baseline not in known:
        raise InputError(Problem("--baseline", f"no retriever is called {baseline!r}", did_you_mean(baseline, known)))
    return together(scores, baseline, _strictest(at_look(settings, one.n) for one in scores.values())), notes


def _split(scores: ScoreTable, names: set[str]) -> ScoreTable:
    """One set's scores. What is the same in both folders has both names if another set shows a difference."""
    again = {full: scores[full.rpartition("/")[2]] for full in sorted(names) if full.rpartition("/")[2] in scores}
    kept = {name: values for name, values in scores.items() if all(name != full.rpartition("/")[2] for full in names)}
    return {**kept, **again}


def gate_sets(place: Path, challenger: str, baseline: str, margins: dict[str, float]) -> dict[str, Gate]:
    """Gate each data set by its margin: the whole passes where every one does, which needs no correction.

    Args:
        place: the folder of several data sets' results.
        challenger: the retriever that would take the other's place.
        baseline: the retriever in use.
        margins: data set -> margin; "" is for those that are not named.

    Raises:
        InputError: a set that is named is not there, or one has no margin; else as `gate_retrievers`.
    """
    sets = {one.manifest.name: one for one in read_sets(place)}
    problems = [Problem("--margin", f"{place} has no data set {name!r}", did_you_mean(name, sets))
                for name in margins if name and name not in sets]  # fmt: skip
    problems += [Problem("--margin", f"names none for {name}", f"--margin {name}=0.02")
                 for name in sets if name not in margins and "" not in margins]  # fmt: skip
    if problems:
        raise InputError(problems)
    return {
        name: gate_retrievers(
            GateArm(one, challenger), GateArm(one, baseline), margin=margins.get(name, margins.get("", 0))
        )
        for name, one in sets.items()
    }
