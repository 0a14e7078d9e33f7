"""A run to an evaluation."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from harness.evaluation.abstention import (
    Abstention,
    comparable_retrievers,
    evaluate_abstention,
)
from harness.evaluation.compare import (
    MAX_FAMILY_PAIRS,
    compare_retrievers,
    family_pairs,
)
from harness.evaluation.costs import RetrieverPrices
from harness.evaluation.evaluate import conclude_scores, planning_differences
from harness.evaluation.evaluation import Ceilings, Evaluation, PlannedLook
from harness.evaluation.families import (
    equivalence_family,
    slice_families,
    uplift_family,
)
from harness.evaluation.pair_diagnostics import DEFAULT_CUTOFF
from harness.evaluation.pair_tests import run_equivalence_tests
from harness.evaluation.run_warnings import run_warnings
from harness.evaluation.verdict import TestRow
from harness.measures import measure_rankings, parse_measure
from harness.records import Manifest
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
    """What a run is evaluated from."""

    manifest: Manifest
    scores: Scores
    """Of the retrievers that finished, of one query or more."""
    graded: GradedLabels
    queries: Mapping[str, Query]
    """Every scored query, by id; their texts and fields make the slices."""
    prices: RetrieverPrices
    answers: Mapping[str, Callable[[], Iterable[tuple[str, Ranking]]]] = {}
    """Retriever -> what reads its rankings, of those that finished."""


def evaluate_run(run: EvaluationInput) -> Evaluation:
    """Evaluate a run: what `evaluate` does, with every other family, its sweep, looks and warnings.

    Args:
        run: its scores, and what is known beside them.

    Raises:
        InputError: no query has a value of the primary measure from everyone.
    """
    manifest, scores, resolved = run.manifest, run.scores, run.manifest.resolved
    declared = replace(
        settings_of_run(manifest), judged_by_people=run.graded.judged_by_people
    )
    settings = settings_at_look(declared, scores.n)
    # A declared baseline that failed has no rankings: then all pairs are compared.
    baseline = resolved.baseline if resolved.baseline in scores.retrievers else None
    pairs = family_pairs(list(scores.retrievers), baseline)
    decided = scores.select_measures(scores.primary).select_queries(
        scores.defined(scores.primary)
    )
    equivalence = run_equivalence_tests(decided, pairs, settings) if decided.n else {}
    rows = compare_retrievers(
        scores, baseline=baseline, settings=settings, equivalence=equivalence
    )
    choice = None
    if resolved.sweep is not None:
        from harness.evaluation.sweep import (
            choose_configuration,
            resolved_sweep,
        )  # a wing: what has no sweep needs none of it

        choice = choose_configuration(
            scores, resolved_sweep(resolved.sweep), settings, run.prices
        )
    found = conclude_scores(scores, rows, settings, baseline=baseline, sweep=choice)
    return found.model_copy(
        update={
            "look": current_look(declared, scores.n),
            "next_look": _next_look(declared, scores, found),
            "judgments": sum(map(len, run.graded.grades.values())),
            "tests": (
                *equivalence_family(decided, equivalence),
                *_tests(run, decided, pairs, found),
            ),
            "judged_shares": scores.judged_shares,
            "abstention": _abstention(run, settings.level),
            "ceilings": _ceilings(run, found),
            "warnings": (*found.warnings, *run_warnings(manifest, found, scores)),
            "failed": manifest.failed,
        }
    )


def _next_look(
    declared: Settings, scores: Scores, found: Evaluation
) -> PlannedLook | None:
    planned = declared.looks.queries if declared.looks is not None else ()
    queries = next((number for number in planned if number > found.n), None)
    if queries is None or not found.queries_needed or not found.measured:
        return None
    if None in found.queries_needed.values():
        return PlannedLook(queries, None)
    kept = scores.select_measures(scores.primary).select_queries(
        scores.defined(scores.primary)
    )
    scatter = max(
        standard_deviation(planning_differences(kept, (found.leader, other)).values)
        for other in found.queries_needed
    )
    level = settings_at_look(declared, queries).alpha / max(
        1, len(found.comparisons[found.measure])
    )
    return PlannedLook(queries, t_power(found.difference / scatter, queries, level))


def _abstention(run: EvaluationInput, level: float) -> Abstention | None:
    if not any(query.unanswerable for query in run.queries.values()):
        return None
    names = [
        name
        for name in comparable_retrievers(run.manifest.resolved.retrievers)
        if name in run.answers
    ]
    rankings = {name: dict(run.answers[name]()) for name in names}
    return evaluate_abstention(
        run.queries,
        run.graded.grades,
        rankings,
        parse_measure(run.scores.primary).cutoff or DEFAULT_CUTOFF,
        level,
    )


def _ceilings(run: EvaluationInput, found: Evaluation) -> Ceilings | None:
    """The ceilings of a router and of a union, over the queries with a relevant document."""
    relevant = {query: of for query, of in run.graded.grades.items() if of}
    if len(run.answers) < 2 or not relevant or not found.measured or found.low_is_good:
        return None
    scores, cutoff = (
        run.scores.select_measures(run.scores.primary),
        parse_measure(run.scores.primary).cutoff or DEFAULT_CUTOFF,
    )
    kept = scores.select_queries(scores.defined(scores.primary))
    router = mean(
        np.max([*kept.values[scores.primary].values()], axis=0), kept.units.weights
    )
    tops: list[RankedIds] = [
        {query: ranking.doc_ids[:cutoff] for query, ranking in read()}
        for read in run.answers.values()
    ]
    together: RankedIds = {
        query: list({doc for top in tops for doc in top.get(query, ())})
        for query in relevant
    }
    union, *alone = (
        float(measure_rankings([UNION_RECALL], relevant, one).values.mean())
        for one in (together, *tops)
    )
    return Ceilings(router, cutoff, union, max(alone))


def _tests(
    run: EvaluationInput,
    decided: Scores,
    pairs: Sequence[tuple[str, str]],
    found: Evaluation,
) -> Iterator[TestRow]:
    """The other families, on the queries for which everyone has a value."""
    if 0 < len(pairs) <= MAX_FAMILY_PAIRS:  # one slice is as much work as the whole
        yield from slice_families(
            decided,
            pairs,
            [run.queries[query] for query in decided.ids],
            found.settings,
        )
    yield from uplift_family(decided, run.manifest, run.graded, found.settings)
    if (choice := found.sweep) is not None:
        yield TestRow(
            "sweep",
            decided.primary,
            choice.chosen,
            choice.default,
            decided.n,
            None,
            choice.p_value,
            choice.p_value,
            choice.method,
            f"best of {choice.configurations}",
            choice.gain,
        )
