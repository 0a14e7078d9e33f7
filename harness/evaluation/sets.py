"""Several data sets together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harness.evaluation.compare import family_pairs
from harness.evaluation.verdict import Verdict
from harness.records.data_sets_csv import SET_COLUMN_PREFIX, SETS_COLUMNS
from harness.scoring.scores import Scores, order_by_mean
from harness.stats.corrections import adjust_p_values
from harness.stats.differences import SCORE_TOLERANCE
from harness.stats.intervals import mean
from harness.stats.over_sets import (
    NewSetsDifference,
    new_sets_difference,
    set_mean_tests,
)
from harness.stats.settings import Settings
from harness.stats.sign_flip import Contrast
from retrievers.errors import InputError, Problem


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
    new_sets: NewSetsDifference | None
    """On sets like these; None below five sets."""

    @property
    def sets_ahead(self) -> int:
        """Sets on which a has the higher mean."""
        return sum(value > SCORE_TOLERANCE for value in self.differences)

    @property
    def leader_first(self) -> PairOnSets:
        """The same with the one of the higher mean as `a`."""
        return self if self.mean_difference >= 0 else self.swapped

    @property
    def swapped(self) -> PairOnSets:
        """The same with `a` and `b` in each other's place."""
        turned = tuple(-value for value in self.differences)
        like = None if self.new_sets is None else self.new_sets.negated
        return replace(
            self,
            a=self.b,
            b=self.a,
            differences=turned,
            mean_difference=-self.mean_difference,
            verdict=self.verdict.swapped,
            new_sets=like,
        )

    def as_row(self, sets: Iterable[str]) -> dict[str, Any]:
        """The pair as a row of data_sets.csv; None where five sets would be needed."""
        like = self.new_sets
        beyond = (
            (None,) * 6
            if like is None
            else (like.t, like.p_value, *like.interval[:2], *like.new_set_interval[:2])
        )
        own = (
            self.a,
            self.b,
            len(self.differences),
            self.sets_ahead,
            self.mean_difference,
        )
        known = (
            *own,
            self.p_value,
            self.p_adjusted,
            self.method,
            self.verdict.value,
            *beyond,
        )
        on_each = {
            f"{SET_COLUMN_PREFIX}{name}": value
            for name, value in zip(sets, self.differences, strict=True)
        }
        return {**dict(zip(SETS_COLUMNS, known, strict=True)), **on_each}


@dataclass(frozen=True, slots=True)
class SetsComparison:
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
        return [pair.as_row(self.sets) for pair in self.pairs]

    @property
    def ranked_retrievers(self) -> tuple[str, ...]:
        """The retrievers by the mean of their means over the sets, highest first."""
        return tuple(
            order_by_mean(
                {
                    o: mean(np.array([self.mean(name, o) for name in self.sets]))
                    for o in self.retrievers
                }
            )
        )


def compare_over_sets(
    sets: Mapping[str, Scores], baseline: str | None, settings: Settings
) -> SetsComparison:
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
        name: one.select_measures(measure).select_queries(one.defined(measure))
        for name, one in sets.items()
    }
    settings = replace(
        settings,
        judged_by_people=settings.judged_by_people
        and all(scores.judged_by_people for scores in kept.values()),
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
    pairs = family_pairs(common, baseline if baseline in common else None)
    tables = [
        np.column_stack([s.values[measure][one] for one in common])
        for s in kept.values()
    ]
    parts = [
        s.units.sums(table) / s.units.totals.sum()
        for s, table in zip(kept.values(), tables, strict=True)
    ]
    contrasts = [Contrast(common.index(a), common.index(b)) for a, b in pairs]
    tests = set_mean_tests(parts, contrasts) if pairs else []
    rows = []
    p_values = adjust_p_values([one.two_sided for one in tests], settings.correction)
    for (a, b), test, p in zip(pairs, tests, p_values, strict=True):
        gaps = tuple(s.mean(measure, a) - s.mean(measure, b) for s in kept.values())
        gap = mean(np.array(gaps))
        shown = (
            p <= settings.alpha
            and settings.judged_by_people
            and not settings.alpha_spent
        )
        verdict = (
            Verdict.UNDECIDED
            if not shown
            else Verdict.BETTER
            if gap > 0
            else Verdict.WORSE
        )
        like = new_sets_difference(gaps, settings.level)
        rows.append(
            PairOnSets(a, b, gaps, gap, test.two_sided, p, test.method, verdict, like)
        )
    return SetsComparison(measure, kept, tuple(common), tuple(rows), settings)
