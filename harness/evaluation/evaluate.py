"""Any scores to an evaluation."""

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np

from harness.evaluation.compare import compare_retrievers
from harness.evaluation.evaluation import Evaluation, SweepChoice
from harness.evaluation.run_warnings import fragile_warnings
from harness.evaluation.verdict import Comparison, Finding, Reason, Verdict
from harness.scoring.scores import Scores, order_by_mean
from harness.stats.differences import PairedDifferences, paired_differences
from harness.stats.max_t import max_t_pairs
from harness.stats.power import queries_needed
from harness.stats.settings import DEFAULT_DIFFERENCE_SHARE, Settings, check_margin
from harness.stats.summary import ScoreSummary, summarize_scores
from retrievers.errors import InputError, Problem, did_you_mean


def evaluate_scores(
    scores: Scores,
    *,
    baseline: str | None,
    settings: Settings,
    low_is_good: AbstractSet[str] = frozenset(),
) -> Evaluation:
    """Compare retrievers on every measure and conclude on the primary one.

    Args:
        scores: of two retrievers or more.
        baseline: each other retriever is compared with it; None compares all pairs.
        settings: the tests.
        low_is_good: measures for which less is better.

    Raises:
        InputError: the baseline has no score; the margin is not below the primary measure's range; no query has a value
            of that measure from everyone.
    """
    if baseline is not None and baseline not in scores.retrievers:
        remedy = did_you_mean(baseline, scores.retrievers)
        raise InputError(
            Problem("--baseline", f"no retriever is called {baseline!r}", remedy)
        )
    check_margin("--margin", settings.margin, scores.span_of(scores.primary) or None)
    settings = replace(
        settings, judged_by_people=settings.judged_by_people and scores.judged_by_people
    )
    scores = replace(scores, low_is_good=frozenset(low_is_good))
    rows = compare_retrievers(scores, baseline=baseline, settings=settings)
    return conclude_scores(scores, rows, settings, baseline=baseline)


def summarize_retrievers(
    scores: Scores, level: float
) -> dict[str, dict[str, ScoreSummary]]:
    """Describe every retriever on every measure: measure -> retriever -> statistics, none where nothing is defined."""
    found: dict[str, dict[str, ScoreSummary]] = {}
    for measure, group in scores.values.items():
        for name, values in group.items():
            if (kept := scores.defined(measure, name)).any():
                found.setdefault(measure, {})[name] = summarize_scores(
                    values[kept],
                    level,
                    binary=measure in scores.binary,
                    bounds=scores.range_of(measure),
                    units=scores.select_queries(kept).units,
                )
    return found


def conclude_scores(
    scores: Scores,
    rows: Sequence[Comparison],
    settings: Settings,
    *,
    baseline: str | None = None,
    sweep: SweepChoice | None = None,
) -> Evaluation:
    """Compare all retrievers with the one of the best mean on the primary measure.

    A pair of the declared family keeps its verdict. The leader is chosen by the data, so its pairs outside the
    family (where a baseline does not lead) are corrected over all pairs; of a sweep by max-T over all pairs.

    Args:
        scores: only the queries for which everyone has a value of the primary measure count; there must be one.
        rows: those of `compare`.
        settings: those of `compare`; without a margin nothing but the leader is within it.
        baseline: with which the declared family compares each other retriever, if any.
        sweep: the choice among many configurations, if the experiment has a sweep.

    Raises:
        InputError: no retriever, or no query with a value from everyone.
    """
    measure = scores.primary
    kept = scores.defined(measure)
    if not kept.any():
        what = "has no query with a value from everyone"
        raise InputError(Problem(f"measure {measure!r}", what, "name another first"))
    decided = scores.select_measures(measure).select_queries(kept)
    group = decided.values[measure]
    means = order_by_mean(
        {name: decided.mean(measure, name) for name in group},
        low_is_good=measure in scores.low_is_good,
    )
    leader, *others = means
    declared = [row for row in rows if row.measure == measure]
    against = _of_leader(leader, declared)
    every = len(means) * (len(means) - 1) // 2
    tests = dict.fromkeys(others, every) | dict.fromkeys(against, max(1, len(declared)))
    if len(against) < len(others) and sweep is not None:
        against = _leading_a_sweep(decided, leader, settings) | against
    elif len(against) < len(others):
        against = (
            _of_leader(leader, compare_retrievers(decided, settings=settings)) | against
        )
    wanted = settings.margin or DEFAULT_DIFFERENCE_SHARE * (
        decided.span_of(measure) or 1.0
    )
    found = Evaluation(
        measure=measure,
        settings=settings,
        n=decided.n,
        clusters=len(decided.units) if decided.clusters is not None else None,
        effective=decided.units.effective if decided.weights is not None else None,
        low_is_good=scores.low_is_good,
        summary=summarize_retrievers(scores, settings.level),
        comparisons={
            one: tuple(row for row in rows if row.measure == one)
            for one in scores.values
        },
        means=means,
        leader_comparisons={other: against[other] for other in others},
        queries_needed={},
        measured=any(np.any(values) for values in group.values()),
        difference=wanted,
        baseline=baseline if baseline in means else "",
        sweep=sweep,
    )
    done = {*found.as_good_as_leader, *found.shown_worse}
    alphas = {
        other: settings.alpha / tests[other] for other in others if other not in done
    }
    plans = {
        other: _needed(decided, (leader, other), alpha, wanted)
        for other, alpha in alphas.items()
    }
    return found.model_copy(
        update={
            "queries_needed": plans,
            "warnings": tuple(fragile_warnings(decided, found)),
        }
    )


def _leading_a_sweep(
    scores: Scores, leader: str, settings: Settings
) -> dict[str, Comparison]:
    """The leader's pairs, judged by max-T over all pairs: each by every other test would take minutes."""
    pairs = _of_leader(
        leader, compare_retrievers(scores, baseline=leader, settings=settings)
    )
    if not settings.judged_by_people or settings.alpha_spent:
        return pairs
    names, table = (
        list(scores.values[scores.primary]),
        np.column_stack([*scores.values[scores.primary].values()]),
    )
    apart = max_t_pairs(
        table,
        scores.units,
        names.index(leader),
        alpha=settings.alpha,
        seed=settings.seed,
    )
    for other, row in pairs.items():
        finding = Finding(Verdict.UNDECIDED, row.reason or Reason.NOT_SHOWN)
        if row.verdict is not Verdict.EQUIVALENT:
            finding = Finding(Verdict.BETTER) if apart[names.index(other)] else finding
            pairs[other] = replace(row, finding=finding)
    return pairs


def _needed(
    scores: Scores, pair: tuple[str, str], alpha: float, difference: float
) -> int | None:
    """How many queries, or clusters, find a true difference between two retrievers on the primary measure."""
    return queries_needed(planning_differences(scores, pair), difference, alpha)


def planning_differences(scores: Scores, pair: tuple[str, str]) -> PairedDifferences:
    """The differences of two retrievers on the primary measure, as plans take them."""
    group, units = scores.values[scores.primary], scores.units
    # Unequal weights tell as much as fewer queries of equal weight: as if the differences scattered more.
    more = math.sqrt(len(units) / units.effective)
    return paired_differences(
        more * units.means(group[pair[0]]), more * units.means(group[pair[1]])
    )


def _of_leader(leader: str, rows: Sequence[Comparison]) -> dict[str, Comparison]:
    turned = (
        row if row.a == leader else row.swapped
        for row in rows
        if leader in (row.a, row.b)
    )
    return {row.b: row for row in turned}
