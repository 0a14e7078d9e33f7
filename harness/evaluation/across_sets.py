"""Several data sets together: their folder, the leader on these sets, and what that says of sets like these."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from harness import records
from harness.evaluation.compare import family
from harness.evaluation.evaluate import evaluation_of
from harness.evaluation.folders import folders_apart, score_folders
from harness.evaluation.gate import GateArm, gate_retrievers
from harness.evaluation.readers import scores_of_results
from harness.evaluation.scores import Scores, by_mean
from harness.evaluation.verdict import Gate, Verdict
from harness.experiment import NAME
from harness.records import UNSCORED, Results
from harness.stats.differences import SLACK, ScoreTable
from harness.stats.intervals import mean
from harness.stats.multiplicity import (
    SetsLikeThese,
    adjust,
    sets_like_these,
    these_sets,
)
from harness.stats.power import at_look
from harness.stats.settings import Settings
from harness.stats.sign_flip import Contrast
from retrievers.errors import InputError, Problem, did_you_mean

COLUMNS = (
    "a",
    "b",
    "sets",
    "ahead",
    "mean_difference",
    "p_value",
    "p_adjusted",
    "method",
    "verdict",
    "t",
    "p_like_these",
    "ci_low",
    "ci_high",
    "new_low",
    "new_high",
)
"""Of data_sets.csv; one for each set follows."""
ON = "mean_difference on "
"""Before the name of a set, what the column of its mean difference is called."""


@dataclass(frozen=True, slots=True)
class PairOnSets:
    """Two retrievers on several data sets, each of which counts alike."""

    a: str
    b: str
    differences: tuple[float, ...]
    """mean(a) - mean(b) on each set, in the order of the sets."""
    mean_difference: float
    """Of the sets' mean differences."""
    p_value: float
    """Two-sided, on these sets: signs flipped within them."""
    p_adjusted: float
    method: str
    verdict: Verdict
    """Of a against b, on these sets alone."""
    like: SetsLikeThese | None
    """On sets like these; None below five sets."""

    @property
    def ahead(self) -> int:
        """Sets on which a has the higher mean."""
        return sum(value > SLACK for value in self.differences)

    @property
    def leading(self) -> PairOnSets:
        """The same with the one of the higher mean as `a`."""
        return self if self.mean_difference >= 0 else self.swapped

    @property
    def swapped(self) -> PairOnSets:
        """The same with `a` and `b` in each other's place."""
        turned = tuple(-value for value in self.differences)
        like = None if self.like is None else self.like.turned
        return replace(
            self,
            a=self.b,
            b=self.a,
            differences=turned,
            mean_difference=-self.mean_difference,
            verdict=self.verdict.turned,
            like=like,
        )

    def cells(self, sets: Iterable[str]) -> dict[str, Any]:
        """The pair as a row of data_sets.csv; None where five sets would be needed."""
        like = self.like
        beyond = (
            (None,) * 6
            if like is None
            else (like.t, like.p_value, *like.interval[:2], *like.new_set[:2])
        )
        own = (self.a, self.b, len(self.differences), self.ahead, self.mean_difference)
        known = (
            *own,
            self.p_value,
            self.p_adjusted,
            self.method,
            self.verdict.value,
            *beyond,
        )
        on_each = {
            f"{ON}{name}": value
            for name, value in zip(sets, self.differences, strict=True)
        }
        return {**dict(zip(COLUMNS, known, strict=True)), **on_each}


@dataclass(frozen=True, slots=True)
class SetsTogether:
    """What several data sets say together, on their one primary measure."""

    measure: str
    sets: Mapping[str, Scores]
    """Data set -> its scores on the primary measure, of the queries for which everyone has a value."""
    retrievers: tuple[str, ...]
    """Those that have scores on every set."""
    pairs: tuple[PairOnSets, ...]
    settings: Settings

    def mean(self, name: str, retriever: str) -> float:
        """The mean of a retriever on one set."""
        return self.sets[name].mean(self.measure, retriever)

    def rows(self) -> list[dict[str, Any]]:
        """The rows of data_sets.csv."""
        return [pair.cells(self.sets) for pair in self.pairs]

    @property
    def ranked(self) -> tuple[str, ...]:
        """The retrievers by the mean of their means over the sets, highest first."""
        return tuple(
            by_mean(
                {
                    o: mean(np.array([self.mean(name, o) for name in self.sets]))
                    for o in self.retrievers
                }
            )
        )


def together(
    sets: Mapping[str, Scores], baseline: str | None, settings: Settings
) -> SetsTogether:
    """Compare retrievers over several data sets: never one test over pooled queries.

    Args:
        sets: data set -> scores, whose primary measure is the same.
        baseline: each other retriever is compared with it; all pairs where it is None, or lacks scores on a set.
        settings: level, correction and seed.

    Raises:
        InputError: the sets are decided by different measures, or have no retriever in common.
    """
    measures = {scores.primary: name for name, scores in sets.items()}
    if len(measures) > 1:
        told = ", ".join(f"{name} by {measure}" for measure, name in measures.items())
        raise InputError(
            Problem(
                "data sets",
                f"are decided by different measures: {told}",
                "run them with one",
            )
        )
    measure = next(iter(measures))
    kept = {
        name: one.of(measure).only(one.defined(measure)) for name, one in sets.items()
    }
    settings = replace(
        settings,
        by_people=settings.by_people
        and all(scores.by_people for scores in kept.values()),
    )
    common = [
        one
        for one in next(iter(kept.values())).retrievers
        if all(one in s.retrievers for s in kept.values())
    ]
    if not common or not all(scores.n for scores in kept.values()):
        remedy = "run the same retrievers on all of them"
        raise InputError(
            Problem("data sets", "have no retriever with scores in common", remedy)
        )
    pairs = family(common, baseline if baseline in common else None)
    tables = [
        np.column_stack([s.values[measure][one] for one in common])
        for s in kept.values()
    ]
    parts = [
        s.units.sums(table) / s.units.totals.sum()
        for s, table in zip(kept.values(), tables, strict=True)
    ]
    contrasts = [Contrast(common.index(a), common.index(b)) for a, b in pairs]
    tests = these_sets(parts, contrasts, settings.seed) if pairs else []
    rows = []
    p_values = adjust([one.two_sided for one in tests], settings.correction)
    for (a, b), test, p in zip(pairs, tests, p_values, strict=True):
        gaps = tuple(s.mean(measure, a) - s.mean(measure, b) for s in kept.values())
        gap = mean(np.array(gaps))
        shown = p <= settings.alpha and settings.by_people and not settings.spent
        verdict = (
            Verdict.UNDECIDED
            if not shown
            else Verdict.BETTER
            if gap > 0
            else Verdict.WORSE
        )
        like = sets_like_these(gaps, settings.level)
        rows.append(
            PairOnSets(a, b, gaps, gap, test.two_sided, p, test.method, verdict, like)
        )
    return SetsTogether(measure, kept, tuple(common), tuple(rows), settings)


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
        raise InputError(
            Problem(str(place), "holds no results of several data sets", remedy)
        )
    with (place / SETS).open(encoding="utf-8", errors="replace") as file:
        head = file.readline()
    names = [
        column.removeprefix(ON)
        for column in next(csv.reader([head]), [])
        if column.startswith(ON)
    ]
    if not names or not all(
        re.fullmatch(NAME, name) for name in names
    ):  # they lead to folders
        raise InputError(
            Problem(str(place / SETS), "names no data set", "run the experiment again")
        )
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
    places: Sequence[Path],
    measures: Sequence[str],
    baseline: str | None,
    settings: Settings,
) -> tuple[SetsTogether, list[str]]:
    """Compare the retrievers of several such folders on the data sets that all of them share.

    Returns:
        What the shared sets say together; and which sets are shared and which are not.
    """
    every = [{one.manifest.name: one for one in read_sets(place)} for place in places]
    shared = [name for name in every[0] if all(name in sets for sets in every)]
    alone = [
        f"{name} only in {place}"
        for place, sets in zip(places, every, strict=True)
        for name in sets
        if name not in shared
    ]
    if not shared:
        raise InputError(
            Problem(
                ", ".join(map(str, places)),
                "share no data set of one name",
                "; ".join(alone),
            )
        )
    notes = [
        f"Shared data sets: {', '.join(shared)}{''.join(f'; {one}' for one in alone)}."
    ]
    called, scores = folders_apart(places), {}
    for name in shared:
        scores[name] = score_folders(
            [sets[name].folder for sets in every], measures, called=called
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
    return together(
        scores,
        baseline,
        _strictest(at_look(settings, one.n) for one in scores.values()),
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


def gate_sets(
    place: Path, challenger: str, baseline: str, margins: dict[str, float]
) -> dict[str, Gate]:
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
    problems = [
        Problem(
            "--margin", f"{place} has no data set {name!r}", did_you_mean(name, sets)
        )
        for name in margins
        if name and name not in sets
    ]
    problems += [
        Problem("--margin", f"names none for {name}", f"--margin {name}=0.02")
        for name in sets
        if name not in margins and "" not in margins
    ]
    if problems:
        raise InputError(problems)
    return {
        name: gate_retrievers(
            GateArm(one, challenger),
            GateArm(one, baseline),
            margin=margins.get(name, margins.get("", 0)),
        )
        for name, one in sets.items()
    }
