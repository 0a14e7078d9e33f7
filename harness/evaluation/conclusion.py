"""All retrievers against the one with the highest mean: shown worse, within the margin of it, or not resolved."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.evaluation.compare import compare
from harness.evaluation.scores import Scores, by_mean
from harness.evaluation.sweep_choice import SweepChoice
from harness.evaluation.verdict import Comparison, Finding, Reason, Verdict
from harness.stats.differences import differences
from harness.stats.power import queries_needed
from harness.stats.settings import EXAMPLE, Settings
from harness.stats.sign_flip import told_apart
from retrievers.errors import InputError, Problem


@dataclass(frozen=True, slots=True)
class Conclusion:
    """All retrievers against the one with the highest mean, on the primary measure."""

    measure: str
    n: int
    """Queries."""
    clusters: int | None
    """Clusters of queries; None where none are declared."""
    effective: float | None
    """How many queries (clusters) of equal weight tell as much; None without weights."""
    means: Mapping[str, float]
    """Best first; weighted where weights are declared."""
    shown_worse: tuple[str, ...]
    within_margin: tuple[str, ...]
    """The leader, and all that are shown within the margin of it: only these are as good as the best."""
    unresolved: Mapping[str, int | None]
    """Undecided against the leader -> the queries (clusters, where declared) that the declared difference takes; None
    where too few differ to say."""
    against: Mapping[str, Comparison]
    """Of the leader (a) with each other (b)."""
    measured: bool
    """False where every score is 0: then there is no verdict."""
    difference: float
    """The true difference that the plans are for."""
    baseline: str = ""
    """The declared one; "" where all pairs were compared."""
    against_baseline: tuple[Comparison, ...] = ()
    """Of each other (a) with the baseline (b), highest mean first."""
    sweep: SweepChoice | None = None
    """The choice among many configurations, where the experiment has a sweep."""
    low_is_good: bool = False
    """Whether the lowest mean leads."""

    @property
    def leader(self) -> str:
        """The retriever with the best mean; among equals the first in the experiment's order."""
        return next(iter(self.means))

    @property
    def ahead(self) -> tuple[str, ...]:
        """Those that signed ranks, where they decide, show to be better than the leader on the typical query."""
        return tuple(name for name in self.unresolved if self.against[name].verdict is Verdict.WORSE)

    @property
    def others(self) -> tuple[str, ...]:
        """All but the leader, best mean first."""
        return tuple(self.means)[1:]


def conclude(
    scores: Scores,
    declared: Sequence[Comparison],
    settings: Settings,
    *,
    baseline: str | None = None,
    sweep: SweepChoice | None = None,
) -> Conclusion:
    """Sort the retrievers into the three sets against the highest mean of the primary measure.

    A pair of the declared family keeps its verdict. The leader is chosen by the data, so its pairs outside the
    family (where a baseline does not lead) are corrected over all pairs; of a sweep by max-T over all pairs.

    Args:
        scores: only the queries for which everyone has a value of the primary measure count; there must be one.
        declared: the rows of `compare`; those of the primary measure are read.
        settings: those of `compare`; without a margin nothing but the leader is within it.
        baseline: with which the declared family compares each other retriever, if any.
        sweep: the choice among many configurations, if the experiment has a sweep.

    Raises:
        InputError: no retriever, or no query with a value from everyone.
    """
    measure = scores.primary
    kept = scores.defined(measure)
    if not kept.any():
        raise InputError(
            Problem(f"measure {measure!r}", "has no query with a value from everyone", "name another first")
        )
    scores = scores.of(measure).only(kept)
    group = scores.values[measure]
    low_is_good = measure in scores.low_is_good
    means = by_mean({name: scores.mean(measure, name) for name in group}, low_is_good=low_is_good)
    leader, *others = means
    declared = [row for row in declared if row.measure == measure]
    against = _against(leader, declared)
    rows = dict.fromkeys(against, max(1, len(declared)))
    if len(against) < len(others) and sweep is not None:
        against = _leading_a_sweep(scores, leader, settings) | against
        rows = dict.fromkeys(others, len(means) * (len(means) - 1) // 2) | rows
    elif len(against) < len(others):
        pairs = compare(scores, settings=settings)
        against = _against(leader, pairs) | against
        rows = dict.fromkeys(others, len(pairs)) | rows
    findings = {other: against[other].finding for other in others}
    close = [o for o in others if findings[o].verdict is Verdict.EQUIVALENT or findings[o].negligible]
    worse = [o for o in others if findings[o].verdict is Verdict.BETTER and o not in close]
    span = scores.span_of(measure)
    wanted = settings.margin or EXAMPLE * (span or 1.0)
    return Conclusion(
        measure=measure,
        n=scores.n,
        clusters=len(scores.units) if scores.clusters is not None else None,
        effective=scores.units.effective if scores.weights is not None else None,
        means=means,
        shown_worse=tuple(worse),
        within_margin=(leader, *close),
        unresolved={
            other: _needed(scores, (leader, other), settings.alpha / rows[other], wanted)
            for other in others
            if other not in close and other not in worse
        },
        against={other: against[other] for other in others},
        measured=any(np.any(values) for values in group.values()),
        difference=wanted,
        baseline=baseline if baseline in means else "",
        against_baseline=tuple(
            row for name in means for row in declared if baseline and (row.a, row.b) == (name, baseline)
        ),
        sweep=sweep,
        low_is_good=low_is_good,
    )


def _leading_a_sweep(scores: Scores, leader: str, settings: Settings) -> dict[str, Comparison]:
    """The leader's pairs, judged by max-T over all pairs: each by every other test would take minutes."""
    pairs, group = _against(leader, compare(scores, baseline=leader, settings=settings)), scores.values[scores.primary]
    names = list(group)
    apart = told_apart(
        np.column_stack([group[name] for name in names]), scores.units, names.index(leader),
        alpha=settings.alpha, seed=settings.seed,
    )  # fmt: skip
    told = {name for name, known in zip(names, apart, strict=True) if known}
    allowed = settings.by_people and not settings.spent
    return {
        other: row
        if row.verdict is Verdict.EQUIVALENT or not allowed
        else replace(row, finding=Finding(Verdict.BETTER))
        if other in told
        else replace(row, finding=Finding(Verdict.UNDECIDED, row.reason or Reason.NOT_SHOWN))
        for other, row in pairs.items()
    }


def _needed(scores: Scores, pair: tuple[str, str], alpha: float, difference: float) -> int | None:
    """How many queries, or clusters, find a true difference between two retrievers on the primary measure."""
    group, units = scores.values[scores.primary], scores.units
    # Unequal weights tell as much as fewer queries of equal weight: as if the differences scattered more.
    more = math.sqrt(len(units) / units.effective)
    d = differences(more * units.means(group[pair[0]]), more * units.means(group[pair[1]]))
    return queries_needed(d, difference, alpha)


def _against(leader: str, rows: Sequence[Comparison]) -> dict[str, Comparison]:
    turned = (row if row.a == leader else row.swapped for row in rows if leader in (row.a, row.b))
    return {row.b: row for row in turned}
