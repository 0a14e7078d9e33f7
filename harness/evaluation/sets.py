"""Several data sets together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harness.evaluation.compare import family_pairs
from harness.evaluation.verdict import Verdict
from harness.records import RetrieverFailure
from harness.records.data_sets_csv import SET_COLUMN_PREFIX, SETS_COLUMNS
from harness.scoring.scores import Scores, best_by_mean, order_by_mean
from harness.stats.corrections import adjust_p_values
from harness.stats.differences import SCORE_TOLERANCE, Floats
from harness.stats.intervals import mean
from harness.stats.over_sets import (
    NewSetsDifference,
    new_sets_difference,
    set_mean_tests,
)
from harness.stats.settings import Settings
from harness.stats.sign_flip import Contrast, FlipTest
from retrievers.errors import InputError, Problem


@dataclass(frozen=True, slots=True)
class PairOnSets:
    """Two retrievers on several data sets, all with the same weight."""

    a: str
    b: str
    differences: tuple[float, ...]
    """mean(a) - mean(b) on each set, in the order of the sets."""
    mean_difference: float
    """The mean over the sets of their mean differences."""
    p_value: float
    """Two-sided p on these sets: signs are flipped within them."""
    p_adjusted: float
    """The p corrected over the compared pairs."""
    method: str
    """How `p_value` was computed, as in `FlipTest`."""
    verdict: Verdict
    """The verdict on a against b, on these sets alone."""
    new_sets: NewSetsDifference | None
    """The difference on other sets like these; None below five sets."""

    @property
    def sets_ahead(self) -> int:
        """How many sets a has the higher mean on."""
        return sum(difference > SCORE_TOLERANCE for difference in self.differences)

    @property
    def leader_first(self) -> PairOnSets:
        """The same with the retriever of the higher mean as `a`."""
        return self if self.mean_difference >= 0 else self.swapped

    @property
    def swapped(self) -> PairOnSets:
        """The same with `a` and `b` swapped."""
        return replace(
            self,
            a=self.b,
            b=self.a,
            differences=tuple(-difference for difference in self.differences),
            mean_difference=-self.mean_difference,
            verdict=self.verdict.swapped,
            new_sets=None if self.new_sets is None else self.new_sets.negated,
        )

    def as_row(self, sets: Iterable[str]) -> dict[str, Any]:
        """The pair as a row of data_sets.csv; cells that need five sets may be None."""
        new_sets_cells: tuple[float | None, ...] = (None,) * 6
        if self.new_sets is not None:
            new_sets_cells = (
                self.new_sets.t,
                self.new_sets.p_value,
                *self.new_sets.interval[:2],
                *self.new_sets.new_set_interval[:2],
            )
        cells = (
            self.a,
            self.b,
            len(self.differences),
            self.sets_ahead,
            self.mean_difference,
            self.p_value,
            self.p_adjusted,
            self.method,
            self.verdict.value,
            *new_sets_cells,
        )
        row = dict(zip(SETS_COLUMNS, cells, strict=True))
        for name, difference in zip(sets, self.differences, strict=True):
            row[f"{SET_COLUMN_PREFIX}{name}"] = difference
        return row


@dataclass(frozen=True, slots=True)
class SetsComparison:
    """The comparison over several data sets, on their one primary measure."""

    measure: str
    sets: Mapping[str, Scores]
    """Data set -> its scores on the primary measure.

    They are of the queries for which every retriever has a value.
    """
    retrievers: tuple[str, ...]
    """The retrievers that have scores on every set."""
    pairs: tuple[PairOnSets, ...]
    settings: Settings
    undeclared: tuple[str, ...] = ()
    """Choices made after the runs: the comparison is exploratory."""
    failed: tuple[RetrieverFailure, ...] = ()
    """The retrievers that failed on a set: then nothing is recommended.

    Each once, with its reason on the first of these sets.
    """

    def mean(self, name: str, retriever: str) -> float:
        """The mean of a retriever on one set."""
        return self.sets[name].mean(self.measure, retriever)

    def best_on(self, name: str) -> tuple[str, ...]:
        """The retrievers with the highest mean on one set."""
        means = {retriever: self.mean(name, retriever) for retriever in self.retrievers}
        return best_by_mean(means)

    def rows(self) -> list[dict[str, Any]]:
        """The rows of data_sets.csv."""
        return [pair.as_row(self.sets) for pair in self.pairs]

    @property
    def ranked_retrievers(self) -> tuple[str, ...]:
        """The retrievers by the mean of their means over the sets, highest first."""
        overall_means: dict[str, float] = {}
        for retriever in self.retrievers:
            set_means = [self.mean(name, retriever) for name in self.sets]
            overall_means[retriever] = mean(np.array(set_means))
        return tuple(order_by_mean(overall_means))


def compare_over_sets(
    sets: Mapping[str, Scores], baseline: str | None, settings: Settings
) -> SetsComparison:
    """Compare retrievers over several data sets: never one test over pooled queries.

    Args:
        sets: data set -> scores, whose primary measure is the same.
        baseline: each other retriever is compared with it; all pairs if it is None, or
            lacks scores on a set.
        settings: level and correction.

    Raises:
        InputError: the sets are decided by different measures, or have no retriever in
            common; on one of them no query has a value from every retriever.
    """
    measure = _common_measure(sets)
    complete = {
        name: scores.select_measures(measure).select_queries(scores.defined(measure))
        for name, scores in sets.items()
    }
    by_people = all(scores.judged_by_people for scores in complete.values())
    settings = replace(
        settings, judged_by_people=settings.judged_by_people and by_people
    )
    _refuse_empty_sets(complete)
    retrievers = _common_retrievers(list(complete.values()))
    name_pairs = family_pairs(retrievers, baseline if baseline in retrievers else None)
    contrasts = [
        Contrast(retrievers.index(a), retrievers.index(b)) for a, b in name_pairs
    ]
    tests: list[FlipTest] = []
    if name_pairs:
        shares = [_shares_of_means(scores, retrievers) for scores in complete.values()]
        tests = set_mean_tests(shares, contrasts)
    p_values = adjust_p_values([test.two_sided for test in tests], settings.correction)
    pairs_on_sets: list[PairOnSets] = []
    for (a, b), test, p_adjusted in zip(name_pairs, tests, p_values, strict=True):
        differences = tuple(
            scores.mean(measure, a) - scores.mean(measure, b)
            for scores in complete.values()
        )
        mean_difference = mean(np.array(differences))
        pairs_on_sets.append(
            PairOnSets(
                a=a,
                b=b,
                differences=differences,
                mean_difference=mean_difference,
                p_value=test.two_sided,
                p_adjusted=p_adjusted,
                method=test.method,
                verdict=_verdict(mean_difference, p_adjusted, settings),
                new_sets=new_sets_difference(differences, settings.level),
            )
        )
    return SetsComparison(
        measure, complete, tuple(retrievers), tuple(pairs_on_sets), settings
    )


def _common_measure(sets: Mapping[str, Scores]) -> str:
    """Return the one primary measure.

    Raises:
        InputError: the sets have different ones.
    """
    set_by_measure = {scores.primary: name for name, scores in sets.items()}
    if len(set_by_measure) > 1:
        differences = [
            f"{name} by {measure}" for measure, name in set_by_measure.items()
        ]
        problem = f"are decided by different measures: {', '.join(differences)}"
        raise InputError(Problem("data sets", problem, "run them with one"))
    return next(iter(set_by_measure))


def _refuse_empty_sets(sets: Mapping[str, Scores]) -> None:
    """Refuse sets without a query that has a value from every retriever.

    Raises:
        InputError: there are any.
    """
    problems: list[Problem] = []
    for name, scores in sets.items():
        if not scores.n:
            problem = f"has no query with a value of {scores.primary} from everyone"
            problems.append(Problem(name, problem, "use another measure"))
    if problems:
        raise InputError(problems)


def _common_retrievers(sets: Sequence[Scores]) -> list[str]:
    """Return the retrievers that have scores on every set.

    Raises:
        InputError: no retriever has.
    """
    retrievers = [
        name
        for name in sets[0].retrievers
        if all(name in scores.retrievers for scores in sets)
    ]
    if not retrievers:
        problem = "have no retriever with scores in common"
        remedy = "run the same retrievers on all of them"
        raise InputError(Problem("data sets", problem, remedy))
    return retrievers


def _shares_of_means(scores: Scores, retrievers: Sequence[str]) -> Floats:
    """Return how much each unit adds to the mean of each retriever: (units, k)."""
    columns = scores.values[scores.primary]
    table = np.column_stack([columns[name] for name in retrievers])
    shares: Floats = scores.units.sums(table) / scores.units.totals.sum()
    return shares


def _verdict(difference: float, p_adjusted: float, settings: Settings) -> Verdict:
    if not settings.judged_by_people or settings.alpha_spent:
        return Verdict.UNDECIDED
    if p_adjusted > settings.alpha:
        return Verdict.UNDECIDED
    return Verdict.BETTER if difference > 0 else Verdict.WORSE
