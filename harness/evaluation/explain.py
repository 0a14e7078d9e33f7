"""Why one retriever loses to another.

`shown_slices` tests on which slices of the queries they differ more, or less, than on
the others; here each that is shown becomes a finding, about the side where they differ
more.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from harness.evaluation.evaluation_file import read_or_evaluate
from harness.evaluation.property_slices import (
    Condition,
    PropertySlice,
    SliceName,
    slices_of_pair,
)
from harness.evaluation.shown_slices import ShownSlice, shown_slices
from harness.evaluation.suggestion import Suggestion, suggestion_for
from harness.records import NO_SCORES, Manifest, Results
from harness.scoring.scores import QueryMask, Scores
from harness.scoring.stored_scores import stored_scores
from harness.stats.differences import paired_differences
from harness.stats.settings import Settings
from retrievers.errors import InputError, Problem, did_you_mean


class Silence(Enum):
    """Why no slice is named."""

    NOTHING_FOUND = "nothing found"
    """Slices were tested, and none is shown to differ from the other queries."""
    NO_SLICES = "no slices"
    """No property divides the queries into parts of ten or more."""
    MODEL_ALONE = "model alone"
    """No person judged these queries."""
    ALPHA_SPENT = "alpha spent"
    """The planned looks have spent the level."""


class SliceFinding(NamedTuple):
    """A slice on which one retriever scores lower, unlike on the other queries."""

    name: SliceName
    loser: str
    """The retriever with the lower mean on the slice."""
    winner: str
    queries: int
    """Queries in the slice."""
    other_queries: int
    difference: float
    """Mean of the loser minus mean of the winner, on the slice."""
    other_difference: float
    """The mean difference on the other queries."""
    ci_low: float | None
    """Both ends of the interval of the gap, which holds for all slices at once; None if
    it cannot be estimated."""
    ci_high: float | None
    p_adjusted: float
    """The p corrected over all slices of all properties and fields."""
    explained: float
    """The share of the scatter of the differences that the slice explains."""
    confirmed: bool | None
    """Whether one half of the queries proposes the slice, and the other half alone
    shows it; None with fewer than 120 observations."""
    suggestion: Suggestion | None
    """What to try; None if that is unknown."""
    mask: QueryMask
    """(n,): the queries of the slice."""

    @property
    def gap(self) -> float:
        """The difference on the slice minus that on the other queries."""
        return self.difference - self.other_difference


class Explanation(NamedTuple):
    """The slices of the queries in which one retriever loses to another."""

    a: str
    b: str
    measure: str
    n: int
    """How many queries have a score from every retriever."""
    level: float
    """Confidence of the intervals, which hold for all slices at once."""
    tested: int
    """How many slices were tested."""
    findings: tuple[SliceFinding, ...]
    """Strongest first; at most five."""
    silence: Silence | None
    """Why there is no finding; None if there is one."""


def explain_results(results: Results, a: str, b: str) -> Explanation:
    """Explain the difference of two retrievers of a results folder.

    Args:
        results: the folder.
        a: the name of a retriever.
        b: that of another.

    Raises:
        InputError: a retriever did not finish, both are the same, or the folder has no
            scores or no properties.
    """
    for retriever in (a, b):
        if retriever not in results.retrievers:
            problem = f"no retriever is called {retriever!r}"
            hint = did_you_mean(retriever, results.retrievers)
            raise InputError(Problem(str(results.folder), problem, hint))
    if a == b:
        problem = f"A and B are the same retriever, {a!r}"
        raise InputError(Problem(str(results.folder), problem, "name two"))
    if not results.scored:
        raise InputError(Problem(str(results.folder), *NO_SCORES))
    if not results.query_properties:
        problem = "has no properties.csv: an earlier version wrote it"
        hint = "run the experiment again; the cache makes it free"
        raise InputError(Problem(str(results.folder), problem, hint))
    scores = stored_scores(results)
    settings = read_or_evaluate(results).settings
    return explain_scores(results, scores, settings, a, b=b)


def explain_scores(
    results: Results, scores: Scores, settings: Settings, a: str, *, b: str
) -> Explanation:
    """Explain the difference of two retrievers on the primary measure.

    Args:
        results: their queries with the properties.
        scores: of the run; queries that a retriever has no score of are left out, as
            where the retrievers are compared.
        settings: the level, the declared cluster, the seed.
        a: a retriever.
        b: another one.
    """
    scores = scores.select_measures(scores.primary)
    scores = scores.select_queries(scores.defined(scores.primary))
    slices = slices_of_pair(
        [results.queries[query_id].query for query_id in scores.ids],
        results.query_properties,
        results.manifest,
        pair=(a, b),
        cluster=settings.cluster,
    )
    silence = _silence(settings, slices)
    findings: tuple[SliceFinding, ...] = ()
    if silence is None:
        findings = tuple(_find_slices(results, scores, settings, slices, pair=(a, b)))
        if not findings:
            silence = Silence.NOTHING_FOUND
    return Explanation(
        a=a,
        b=b,
        measure=scores.primary,
        n=scores.n,
        level=settings.level,
        tested=len(slices),
        findings=findings,
        silence=silence,
    )


def _silence(settings: Settings, slices: Sequence[PropertySlice]) -> Silence | None:
    """Return why nothing may be claimed, before any test."""
    if not settings.judged_by_people:
        return Silence.MODEL_ALONE
    if settings.alpha_spent:
        return Silence.ALPHA_SPENT
    return None if slices else Silence.NO_SLICES


def _find_slices(
    results: Results,
    scores: Scores,
    settings: Settings,
    slices: Sequence[PropertySlice],
    *,
    pair: tuple[str, str],
) -> list[SliceFinding]:
    """Return the slices that differ from the other queries, strongest first."""
    a, b = pair
    columns = scores.values[scores.primary]
    differences = paired_differences(columns[a], columns[b]).values
    return [
        _describe_slice(shown_slice, pair, results.manifest)
        for shown_slice in shown_slices(
            differences, slices, scores.units, scores.ids, settings=settings
        )
    ]


def _describe_slice(
    shown_slice: ShownSlice, pair: tuple[str, str], manifest: Manifest
) -> SliceFinding:
    """Return the finding, about the side on which the retrievers differ more."""
    property_slice = shown_slice.property_slice
    contrast = shown_slice.contrast
    name = property_slice.name
    mask = property_slice.mask
    inside = contrast.inside
    outside = contrast.outside
    interval = (contrast.low, contrast.high)
    others = property_slice.others
    if others is not None and describes_others(name, inside, outside):
        name = others
        mask = ~mask
        inside, outside = outside, inside
        interval = _negated(interval)
    loser, winner = pair
    if inside > 0:
        loser, winner = winner, loser
        inside, outside = -inside, -outside
        interval = _negated(interval)
    queries = int(mask.sum())
    return SliceFinding(
        name=name,
        loser=loser,
        winner=winner,
        queries=queries,
        other_queries=len(mask) - queries,
        difference=inside,
        other_difference=0.0 + outside,  # -0.0 would be printed
        ci_low=interval[0],
        ci_high=interval[1],
        p_adjusted=contrast.p_adjusted,
        explained=contrast.explained,
        confirmed=shown_slice.confirmed,
        suggestion=suggestion_for(name, loser, manifest),
        mask=mask,
    )


def describes_others(name: SliceName, inside: float, outside: float) -> bool:
    """Whether a finding is about the queries outside of a slice.

    It is if the retrievers differ more on those. But a value that favours the other
    retriever is named: "is a typo" says more than "is no typo".
    """
    has_value = name.condition is Condition.IS
    if has_value and inside * outside < 0:
        return False
    return abs(outside) > abs(inside)


def _negated(
    interval: tuple[float | None, float | None],
) -> tuple[float | None, float | None]:
    """Return the interval of the opposite number."""
    low, high = interval
    if low is None or high is None:
        return interval
    return -high, -low
