"""The whole: which retrievers are shown worse than the best, which within its margin, which are not resolved."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from harness.stats.comparing import compare
from harness.stats.comparison import Comparison, swapped
from harness.stats.differences import differences
from harness.stats.facts import Facts, ScoreTable, check_finite
from harness.stats.intervals import mean
from harness.stats.plan import FEWEST, Detectable, Needed, Plan, minimum_detectable, plan, queries_needed
from harness.stats.power import Criterion
from harness.stats.settings import Settings
from harness.stats.verdicts import BETTER, BUT_NEGLIGIBLE, EQUIVALENT
from retrievers.errors import InputError, Problem

EXAMPLE = 0.05
"""Of the measure's range: the difference that a plan is for where none was declared."""


@dataclass(frozen=True, slots=True)
class Power:
    """What these queries could find between the leader and another, and what more would take."""

    detectable: Detectable
    """The smallest true difference between the two that these queries would have found."""
    plan: Plan | None
    """Queries (clusters, where declared) for the declared difference; None: fewer than ten differ, which foretells
    nothing."""
    needed: Needed | None
    """For the observed difference, which is biased: details only."""


@dataclass(frozen=True, slots=True)
class Whole:
    """All retrievers against the one with the highest mean, on the primary measure."""

    measure: str
    n: int
    """Queries."""
    clusters: int | None
    """Clusters of queries; None where none are declared."""
    means: Mapping[str, float]
    """Highest first."""
    shown_worse: tuple[str, ...]
    within_margin: tuple[str, ...]
    """The leader, and all that are shown within the margin of it: only these are as good as the best."""
    unresolved: Mapping[str, Power]
    """What these queries cannot tell from the leader."""
    against: Mapping[str, Comparison]
    """Of the leader (a) with each other (b)."""
    measured: bool
    """False where every score is 0: then there is no verdict."""
    difference: float
    """The true difference that the plans are for."""

    @property
    def leader(self) -> str:
        """The retriever with the highest mean; among equals the first in the experiment's order."""
        return next(iter(self.means))


def whole(
    scores: ScoreTable,
    declared: Sequence[Comparison],
    *,
    measure: str,
    settings: Settings,
    facts: Facts = Facts(),  # noqa: B008 - frozen
    difference: float | None = None,
) -> Whole:
    """Sort the retrievers into the three sets against the highest mean.

    A pair of the declared family keeps its verdict. The leader is chosen by the data, so its pairs outside the
    family (where a baseline does not lead) are corrected over all pairs.

    Args:
        scores: retriever -> (n,) scores of the primary measure, queries in the order of their ids; n >= 1.
        declared: the rows of `compare` on it.
        measure: its name.
        settings: those of `compare`; without a margin nothing but the leader is within it.
        facts: those of `compare`.
        difference: the smallest worth finding; left out, the margin, else 0.05 of the measure's range.

    Raises:
        InputError: no retriever, no query, or a score that is not finite.
    """
    if not scores or not all(len(values) for values in scores.values()):
        raise InputError(Problem(measure, "has no scores to compare", "give each retriever as many, 1 or more"))
    check_finite({measure: scores})
    means = dict(sorted(((name, mean(values)) for name, values in scores.items()), key=lambda item: -item[1]))
    leader, *others = means
    n = len(scores[leader])
    units, bounds = facts.units(n), facts.range_of(measure, scores)
    span = 1.0 if bounds is None else bounds.span
    wanted = difference or settings.margin or EXAMPLE * span
    against = _against(leader, declared)
    rows = dict.fromkeys(against, max(1, len(declared)))
    if len(against) < len(others):
        pairs = compare(scores, measure=measure, settings=settings, facts=facts)
        against = _against(leader, pairs) | against
        rows = dict.fromkeys(others, len(pairs)) | rows
    close = [o for o in others if against[o].word == EQUIVALENT or against[o].word.endswith(BUT_NEGLIGIBLE)]
    worse = [o for o in others if against[o].word == BETTER]
    open_ = [o for o in others if o not in close and o not in worse]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        powers = pool.map(
            lambda o: power_of(scores, (leader, o), asked_of(settings, rows[o]), (facts, span, wanted)), open_
        )
    return Whole(
        measure=measure,
        n=n,
        clusters=len(units) if units.clustered else None,
        means=means,
        shown_worse=tuple(worse),
        within_margin=(leader, *close),
        unresolved=dict(zip(open_, powers, strict=True)),
        against={other: against[other] for other in others},
        measured=any(values.any() for values in scores.values()),
        difference=wanted,
    )


def asked_of(settings: Settings, rows: int) -> Criterion:
    """Return the deciding test at alpha over the rows of the family; under Tukey that of the mean."""
    test = "randomization" if settings.correction == "tukey" else settings.test
    return Criterion(test, settings.alpha / rows, settings.zeros, settings.seed)


def power_of(scores: ScoreTable, pair: tuple[str, str], asked: Criterion, about: tuple[Facts, float, float]) -> Power:
    """Return what so many queries, or clusters, could find between two retrievers.

    Args:
        scores: retriever -> (n,) scores.
        pair: the leader and the other.
        asked: the deciding test and its level.
        about: facts, the measure's range, and the difference that is worth finding.
    """
    facts, span, wanted = about
    a, b = scores[pair[0]], scores[pair[1]]
    units = facts.units(len(a))
    d = differences(units.means(a), units.means(b))
    few = d.wins + d.losses < FEWEST
    return Power(
        minimum_detectable(d, asked=asked, span=span),
        None if few or d.constant else plan(d, wanted, asked=asked, span=span),
        queries_needed(d, asked=asked),
    )


def _against(leader: str, rows: Sequence[Comparison]) -> dict[str, Comparison]:
    turned = (row if row.a == leader else swapped(row) for row in rows if leader in (row.a, row.b))
    return {row.b: row for row in turned}
