"""Any scores to an evaluation.

`evaluate_scores` does all of it; for a run `evaluate_run` does, with what needs more
than scores. The retrievers that are compared are declared, but the data choose the
leader: its pairs that were not declared are corrected over all pairs.
"""

import math
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np

from harness.evaluation.board_intervals import board_intervals
from harness.evaluation.choice import choose_leader
from harness.evaluation.compare import RESIDUAL_PARAMETER, compare_retrievers
from harness.evaluation.evaluation import Evaluation, SweepChoice
from harness.evaluation.run_warnings import fragile_warnings
from harness.evaluation.verdict import Comparison, Finding, Reason, Verdict
from harness.scoring.scores import Scores, order_by_mean
from harness.stats.differences import PairedDifferences, paired_differences
from harness.stats.max_t import max_t_differs_from
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
        InputError: the primary measure is a residual; the baseline has no score; the
            margin is not below the primary measure's range; no query has a value of
            that measure from every retriever.
    """
    _refuse_residual(scores.primary)
    if baseline is not None and baseline not in scores.retrievers:
        problem = f"no retriever is called {baseline!r}"
        remedy = did_you_mean(baseline, scores.retrievers)
        raise InputError(Problem("baseline", problem, remedy))
    bounds = scores.range_of(scores.primary)
    # All scores of another tool may be the same: then the range is unknown.
    check_margin("margin", settings.margin, bounds if bounds and bounds.span else None)
    judged_by_people = settings.judged_by_people and scores.judged_by_people
    settings = replace(settings, judged_by_people=judged_by_people)
    scores = replace(scores, low_is_good=frozenset(low_is_good))
    rows = compare_retrievers(scores, baseline=baseline, settings=settings)
    return conclude_scores(scores, rows, settings, baseline=baseline)


def _refuse_residual(primary: str) -> None:
    """Refuse a primary measure that does not measure quality, and has no family.

    Raises:
        InputError: it is a residual.
    """
    if RESIDUAL_PARAMETER in primary:
        problem = "is no quality: unjudged documents may add it"
        raise InputError(Problem(f"measure {primary!r}", problem, "name another first"))


def summarize_retrievers(
    scores: Scores, level: float
) -> dict[str, dict[str, ScoreSummary]]:
    """Describe every retriever on every measure on which it has a value.

    Args:
        scores: of the retrievers.
        level: confidence of the intervals.

    Returns:
        Measure -> retriever -> its statistics.
    """
    summaries: dict[str, dict[str, ScoreSummary]] = {}
    for measure, scores_by_retriever in scores.values.items():
        for retriever, column in scores_by_retriever.items():
            is_defined = scores.defined(measure, retriever)
            if is_defined.any():
                summaries.setdefault(measure, {})[retriever] = summarize_scores(
                    column[is_defined],
                    level,
                    binary=scores.is_binary(measure),
                    bounds=scores.range_of(measure),
                    units=scores.select_queries(is_defined).units,
                )
    return summaries


def conclude_scores(
    scores: Scores,
    rows: Sequence[Comparison],
    settings: Settings,
    *,
    baseline: str | None = None,
    sweep: SweepChoice | None = None,
) -> Evaluation:
    """Compare all retrievers with the one of the best mean on the primary measure.

    A pair of the declared family keeps its verdict. The data choose the leader, so its
    pairs outside the family (if a baseline does not lead) are corrected over all pairs;
    those of a sweep by max-T over all pairs.

    Args:
        scores: only the queries for which every retriever has a value of the primary
            measure count; there must be one.
        rows: those of `compare_retrievers`.
        settings: those of `compare_retrievers`; without a margin only the leader is
            within it.
        baseline: the one that the declared family compares each other retriever with,
            if any.
        sweep: the choice among many configurations, if the experiment has a sweep.

    Raises:
        InputError: no retriever, or no query with a value from every retriever.
    """
    measure = scores.primary
    is_complete = scores.defined(measure)
    if not is_complete.any():
        problem = "has no query with a value from everyone"
        raise InputError(Problem(f"measure {measure!r}", problem, "name another first"))
    decided = scores.select_measures(measure).select_queries(is_complete)
    columns = decided.values[measure]
    is_low_good = measure in scores.low_is_good
    means = order_by_mean(
        {retriever: decided.mean(measure, retriever) for retriever in columns},
        low_is_good=is_low_good,
    )
    leader, *others = means
    rows_by_measure = _group_by_measure(rows, scores.values)
    declared_rows = _rows_of_leader(leader, rows_by_measure[measure])
    leader_rows = declared_rows
    if len(declared_rows) < len(others):
        further = _undeclared_rows(decided, leader, settings, has_sweep=bool(sweep))
        leader_rows = further | declared_rows
    is_measured = any(np.any(column) for column in columns.values())
    choice = None
    if sweep is None:
        choice = choose_leader(
            {other: leader_rows[other] for other in others},
            settings,
            low_is_good=is_low_good,
            measured=is_measured,
        )
    span = decided.span_of(measure) or 1.0  # 1 stands in for an unknown range
    evaluation = Evaluation(
        measure=measure,
        settings=settings,
        n=decided.n,
        clusters=len(decided.units) if decided.clusters is not None else None,
        effective=decided.units.effective if decided.weights is not None else None,
        low_is_good=scores.low_is_good,
        summary=summarize_retrievers(scores, settings.level),
        comparisons=rows_by_measure,
        means=means,
        leader_comparisons={other: leader_rows[other] for other in others},
        queries_needed={},
        measured=is_measured,
        difference=settings.margin or DEFAULT_DIFFERENCE_SHARE * span,
        baseline=baseline if baseline in means else "",
        choice=choice,
        row_intervals=board_intervals(
            decided, _board_pairs(leader, others, baseline), settings
        ),
        sweep=sweep,
    )
    return _with_plans(evaluation, decided)


def _board_pairs(
    leader: str, others: Sequence[str], baseline: str | None
) -> dict[str, tuple[str, str]]:
    """Return the pair that each row of the board is about, by the row's retriever.

    With a baseline the row less the baseline, else the leader less the row.
    """
    if baseline is None or baseline not in (leader, *others):
        return {other: (leader, other) for other in others}
    rows = [name for name in (leader, *others) if name != baseline]
    return {name: (name, baseline) for name in rows}


def _group_by_measure(
    rows: Sequence[Comparison], measures: Iterable[str]
) -> dict[str, tuple[Comparison, ...]]:
    """Return the rows of each measure; empty for one that was not compared."""
    by_measure: dict[str, list[Comparison]] = {measure: [] for measure in measures}
    for row in rows:
        by_measure[row.measure].append(row)
    return {measure: tuple(by_measure[measure]) for measure in by_measure}


def leader_test_counts(evaluation: Evaluation) -> dict[str, int]:
    """Return how many tests each of the leader's pairs is corrected over.

    Those of the declared family, or of all pairs for a pair that is not in it.
    """
    family = evaluation.comparisons[evaluation.measure]
    declared_rows = _rows_of_leader(evaluation.leader, family)
    retrievers = len(evaluation.others) + 1
    all_pairs = retrievers * (retrievers - 1) // 2
    counts: dict[str, int] = {}
    for other in evaluation.others:
        counts[other] = len(family) if other in declared_rows else all_pairs
    return counts


def _undeclared_rows(
    scores: Scores, leader: str, settings: Settings, *, has_sweep: bool
) -> dict[str, Comparison]:
    """Return the leader's pairs, corrected over all pairs."""
    if has_sweep:
        return _rows_of_leading_configuration(scores, leader, settings)
    return _rows_of_leader(leader, compare_retrievers(scores, settings=settings))


def _with_plans(evaluation: Evaluation, scores: Scores) -> Evaluation:
    """Add the queries that undecided pairs need, and the warnings.

    Args:
        evaluation: without them.
        scores: of the queries that count.
    """
    test_counts = leader_test_counts(evaluation)
    decided = {*evaluation.as_good_as_leader, *evaluation.shown_worse}
    needed: dict[str, int | None] = {}
    for other in evaluation.others:
        if other in decided:
            continue
        needed[other] = queries_needed(
            planning_differences(scores, (evaluation.leader, other)),
            evaluation.difference,
            evaluation.settings.alpha / test_counts[other],
        )
    warnings = tuple(fragile_warnings(scores, evaluation))
    return evaluation.model_copy(
        update={"queries_needed": needed, "warnings": warnings}
    )


def _rows_of_leading_configuration(
    scores: Scores, leader: str, settings: Settings
) -> dict[str, Comparison]:
    """Return the leader's pairs in a sweep, decided by max-T over all pairs.

    Every other test of all pairs would take minutes.
    """
    leader_rows = compare_retrievers(scores, baseline=leader, settings=settings)
    by_other = _rows_of_leader(leader, leader_rows)
    if not settings.judged_by_people or settings.alpha_spent:
        return by_other  # all are undecided, for this reason
    columns = scores.values[scores.primary]
    names = list(columns)
    differs = max_t_differs_from(
        np.column_stack([*columns.values()]),
        scores.units,
        names.index(leader),
        alpha=settings.alpha,
        seed=settings.seed,
    )
    for other, row in by_other.items():
        if row.verdict is Verdict.EQUIVALENT:
            continue
        finding = Finding(Verdict.UNDECIDED, row.reason or Reason.NOT_SHOWN)
        if differs[names.index(other)]:
            finding = Finding(Verdict.BETTER)
        by_other[other] = replace(row, finding=finding)
    return by_other


def planning_differences(scores: Scores, pair: tuple[str, str]) -> PairedDifferences:
    """Return the differences of two retrievers on the primary measure, for plans.

    With unequal weights there is less information, as if there were fewer queries of
    equal weight: the differences scatter more.
    """
    columns = scores.values[scores.primary]
    units = scores.units
    scale = math.sqrt(len(units) / units.effective)
    a, b = pair
    return paired_differences(
        scale * units.means(columns[a]), scale * units.means(columns[b])
    )


def _rows_of_leader(leader: str, rows: Sequence[Comparison]) -> dict[str, Comparison]:
    """Return the rows of the leader (a), by the other retriever (b)."""
    by_other: dict[str, Comparison] = {}
    for row in rows:
        if row.a == leader:
            by_other[row.b] = row
        elif row.b == leader:
            by_other[row.a] = row.swapped
    return by_other
