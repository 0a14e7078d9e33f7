"""A run to an evaluation.

`evaluate` concludes from its scores; this adds what needs more of a run: its looks,
slices, rerankers, unanswerable queries, ceilings and warnings.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from harness.evaluation.abstention import (
    Abstention,
    comparable_retrievers,
    evaluate_abstention,
)
from harness.evaluation.compare import compare_retrievers, family_pairs
from harness.evaluation.costs import RetrieverPrices
from harness.evaluation.evaluate import (
    conclude_scores,
    leader_test_counts,
    planning_differences,
)
from harness.evaluation.evaluation import (
    Ceilings,
    Evaluation,
    PlannedLook,
    SweepChoice,
)
from harness.evaluation.families import (
    MAX_SLICED_RIVALS,
    equivalence_family,
    slice_family,
    uplift_family,
)
from harness.evaluation.pair_diagnostics import DEFAULT_CUTOFF
from harness.evaluation.pair_tests import EquivalenceTests, run_equivalence_tests
from harness.evaluation.property_slices import slices_of_pair
from harness.evaluation.run_warnings import run_warnings
from harness.evaluation.verdict import TestRow
from harness.measures import measure_rankings, parse_measure
from harness.measures.score import Grades
from harness.records import Manifest, QueryProperty, QueryRanking
from harness.scoring.declared_settings import settings_of_run
from harness.scoring.grades import GradedLabels
from harness.scoring.scores import RankedIds, Scores
from harness.stats.intervals import mean, standard_deviation
from harness.stats.looks import current_look, settings_at_look
from harness.stats.power import t_power
from harness.stats.settings import Settings
from retrievers.types import Query, Ranking

UNION_RECALL = parse_measure("SetR")


class EvaluationInput(NamedTuple):
    """The input of a run's evaluation."""

    manifest: Manifest
    scores: Scores
    """Scores of the retrievers that finished, on one query or more."""
    graded: GradedLabels
    queries: Mapping[str, Query]
    """The queries by id, scored or not; their fields make slices."""
    prices: RetrieverPrices
    rankings: Mapping[str, Callable[[], Iterable[QueryRanking]]] = {}
    """Retriever -> a function that reads its rankings, of those that finished."""
    properties: Sequence[QueryProperty] = ()
    """Properties of the queries, by which they are divided into slices."""


def evaluate_run(run: EvaluationInput) -> Evaluation:
    """Evaluate a run: its comparisons, all other families, sweep, looks and warnings.

    Raises:
        InputError: no query has a value of the primary measure from every retriever.
    """
    manifest = run.manifest
    scores = run.scores
    declared = replace(
        settings_of_run(manifest), judged_by_people=run.graded.judged_by_people
    )
    settings = settings_at_look(declared, scores.n)
    # A declared baseline that failed has no rankings: then all pairs are compared.
    baseline = manifest.resolved.baseline
    if baseline not in scores.retrievers:
        baseline = None
    pairs = family_pairs(list(scores.retrievers), baseline)
    complete = _complete_queries(scores)
    equivalence: EquivalenceTests = {}
    if complete.n:
        equivalence = run_equivalence_tests(complete, pairs, settings)
    rows = compare_retrievers(
        scores, baseline=baseline, settings=settings, equivalence=equivalence
    )
    evaluation = conclude_scores(
        scores,
        rows,
        settings,
        baseline=baseline,
        sweep=_sweep_choice(run, settings),
    )
    tests = (
        *equivalence_family(complete, equivalence),
        *_other_families(run, complete, evaluation),
    )
    warnings = (*evaluation.warnings, *run_warnings(manifest, evaluation, scores))
    return evaluation.model_copy(
        update={
            "look": current_look(declared, scores.n),
            "next_look": _next_look(declared, scores, evaluation),
            "judgments": sum(map(len, run.graded.grades.values())),
            "tests": tests,
            "judged_shares": scores.judged_shares,
            "trial_means": scores.trial_means,
            "abstention": _abstention(run, settings.level),
            "ceilings": _ceilings(run, evaluation),
            "warnings": warnings,
            "failed": manifest.failed,
        }
    )


def _complete_queries(scores: Scores) -> Scores:
    """Return the primary scores of the queries with a value from every retriever."""
    primary_scores = scores.select_measures(scores.primary)
    return primary_scores.select_queries(scores.defined(scores.primary))


def _sweep_choice(run: EvaluationInput, settings: Settings) -> SweepChoice | None:
    """Return the choice among many configurations; None without a sweep."""
    sweep = run.manifest.resolved.sweep
    if sweep is None:
        return None
    # Imported here: experiments without a sweep need none of it.
    from harness.evaluation.sweep import choose_configuration

    return choose_configuration(run.scores, sweep, settings, run.prices)


def _next_look(
    declared: Settings, scores: Scores, evaluation: Evaluation
) -> PlannedLook | None:
    """Return the planned look that comes next.

    Its power is the chance to find `evaluation.difference`, for which queries are
    planned, in the undecided pair in which that is hardest. None if nothing is
    undecided, if no look is to come, or if every score is 0.
    """
    if declared.looks is None or not evaluation.measured:
        return None
    if declared.no_more_queries:
        return None
    later_looks = [size for size in declared.looks.queries if size > scores.n]
    if not later_looks or not evaluation.queries_needed:
        return None
    queries = later_looks[0]
    if None in evaluation.queries_needed.values():
        # Too few queries differ to know how a pair scatters.
        return PlannedLook(queries, None)
    complete = _complete_queries(scores)
    with_this_look = replace(declared, earlier=(*declared.earlier, scores.n))
    level = settings_at_look(with_this_look, queries).alpha
    # The new queries are assumed to be in as many clusters as those that were scored.
    units = round(queries * len(complete.units) / complete.n)
    test_counts = leader_test_counts(evaluation)
    powers: list[float] = []
    for other in evaluation.queries_needed:
        differences = planning_differences(complete, (evaluation.leader, other))
        deviation = standard_deviation(differences.values)
        if deviation:  # without one, any difference is found
            effect = evaluation.difference / deviation
            powers.append(t_power(effect, units, level / test_counts[other]))
    return PlannedLook(queries, min(powers, default=1.0))


def _abstention(run: EvaluationInput, level: float) -> Abstention | None:
    if not any(query.unanswerable for query in run.queries.values()):
        return None
    rankings: dict[str, dict[str, Ranking]] = {}
    for name in comparable_retrievers(run.manifest.resolved.retrievers):
        if name in run.rankings:
            rankings[name] = dict(run.rankings[name]())
    return evaluate_abstention(
        run.queries,
        run.graded.grades,
        rankings,
        cutoff=_primary_cutoff(run.scores),
        level=level,
        cluster=run.manifest.resolved.statistics.cluster,
    )


def _primary_cutoff(scores: Scores) -> int:
    return parse_measure(scores.primary).cutoff or DEFAULT_CUTOFF


def _ceilings(run: EvaluationInput, evaluation: Evaluation) -> Ceilings | None:
    """Return what a router, and a union of all retrievers, could reach at most.

    The router's is a mean over the queries with a value from every retriever, recall
    over those with a relevant document. None with fewer than two retrievers, without
    a relevant document, if every score is 0, or if less may be better.
    """
    relevant = {
        query_id: judged for query_id, judged in run.graded.grades.items() if judged
    }
    if len(run.rankings) < 2 or not relevant:
        return None
    if not evaluation.measured or evaluation.low_is_good:
        return None
    complete = _complete_queries(run.scores)
    columns = [*complete.values[complete.primary].values()]
    best_per_query = mean(np.max(columns, axis=0), complete.units.weights)
    cutoff = _primary_cutoff(run.scores)
    union: dict[str, dict[str, None]] = {query_id: {} for query_id in relevant}
    recalls: list[float] = []
    for read_rankings in run.rankings.values():
        top: dict[str, Sequence[str]] = {}
        for query_id, ranking in read_rankings():
            top[query_id] = ranking.doc_ids[:cutoff]
            if query_id in union:
                union[query_id].update(dict.fromkeys(top[query_id]))
        recalls.append(_mean_recall(relevant, top))
    union_rankings = {
        query_id: list(documents) for query_id, documents in union.items()
    }
    return Ceilings(
        best_per_query=best_per_query,
        cutoff=cutoff,
        union_recall=_mean_recall(relevant, union_rankings),
        best_recall=max(recalls),
    )


def _mean_recall(grades: Grades, rankings: RankedIds) -> float:
    return float(measure_rankings([UNION_RECALL], grades, rankings).values.mean())


def _slice_rows(
    run: EvaluationInput, complete: Scores, evaluation: Evaluation
) -> Iterator[TestRow]:
    """Yield the tests of slices, of the leader against its first rivals."""
    settings = evaluation.settings
    queries = [run.queries[query_id] for query_id in complete.ids]
    for other in evaluation.rivals[:MAX_SLICED_RIVALS]:
        pair = (evaluation.leader, other)
        slices = slices_of_pair(
            queries,
            run.properties,
            run.manifest,
            pair=pair,
            cluster=settings.cluster,
        )
        yield from slice_family(complete, pair, slices, settings)


def _other_families(
    run: EvaluationInput, complete: Scores, evaluation: Evaluation
) -> Iterator[TestRow]:
    """Yield the rows of slices, rerankers and the sweep.

    Args:
        run: the run.
        complete: the primary scores of the queries with a value from every retriever.
        evaluation: what is concluded from them.
    """
    yield from _slice_rows(run, complete, evaluation)
    yield from uplift_family(complete, run.manifest, run.graded, evaluation.settings)
    choice = evaluation.sweep
    if choice is not None:
        yield TestRow(
            family="sweep",
            measure=complete.primary,
            a=choice.chosen,
            b=choice.default,
            n=complete.n,
            statistic=None,
            p_value=choice.p_value,
            p_adjusted=choice.p_value,
            method=choice.method,
            note=f"best of {choice.configurations}",
            mean_difference=choice.gain,
        )
