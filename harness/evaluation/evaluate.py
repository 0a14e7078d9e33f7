"""From scores to the evaluation: of any scores, of a run with all that its experiment declares, of a results folder."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import ValidationError

from harness.evaluation.compare import MOST_PAIRS, compare, equivalence_of, family
from harness.evaluation.csv_views import (
    Prices,
    by_price,
    equivalence_family,
    slice_families,
    uplift_family,
)
from harness.evaluation.evaluation import (
    Abstention,
    Ceilings,
    Evaluation,
    NextLook,
    SweepChoice,
)
from harness.evaluation.evidence import (
    CUTOFF,
    abstention_of,
    comparable,
    fragile_warnings,
    run_warnings,
)
from harness.evaluation.grading import GradedLabels, grade_labels
from harness.evaluation.readers import judged_shares, relevance_of, scores_of_results
from harness.evaluation.scores import Lists, Scores, by_mean
from harness.evaluation.verdict import Comparison, Finding, Reason, TestRow, Verdict
from harness.measures import parse, score
from harness.records import Manifest, Results, create
from harness.stats.differences import Differences, differences
from harness.stats.intervals import Summary, deviation, mean, summarize
from harness.stats.power import at_look, look_at, queries_needed, t_power
from harness.stats.settings import EXAMPLE, Settings, check_margin
from harness.stats.sign_flip import max_t_pairs
from retrievers.errors import HarnessError, InputError, Problem, did_you_mean
from retrievers.opening import file_digest
from retrievers.types import Query, Ranking

FILE = "evaluation.json"
RECALL = parse("SetR")


def evaluate(
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
    settings = replace(settings, by_people=settings.by_people and scores.by_people)
    scores = replace(scores, low_is_good=frozenset(low_is_good))
    rows = compare(scores, baseline=baseline, settings=settings)
    return conclude(scores, rows, settings, baseline=baseline)


class RunInputs(NamedTuple):
    """What a run is evaluated from."""

    manifest: Manifest
    scores: Scores
    """Of the retrievers that finished, of one query or more."""
    graded: GradedLabels
    queries: Mapping[str, Query]
    """Every scored query, by id; their texts and fields make the slices."""
    prices: Prices
    answers: Mapping[str, Callable[[], Iterable[tuple[str, Ranking]]]] = {}
    """Retriever -> what reads its rankings, of those that finished."""


def evaluate_run(run: RunInputs) -> Evaluation:
    """Evaluate a run: what `evaluate` does, with every other family, its sweep, looks and warnings.

    Args:
        run: its scores, and what is known beside them.

    Raises:
        InputError: no query has a value of the primary measure from everyone.
    """
    manifest, scores, resolved = run.manifest, run.scores, run.manifest.resolved
    declared = replace(settings_of(manifest), by_people=run.graded.by_people)
    settings = at_look(declared, scores.n)
    # A declared baseline that failed has no rankings: then all pairs are compared.
    baseline = resolved.baseline if resolved.baseline in scores.retrievers else None
    pairs = family(list(scores.retrievers), baseline)
    decided = scores.of(scores.primary).only(scores.defined(scores.primary))
    equivalence = equivalence_of(decided, pairs, settings) if decided.n else {}
    rows = compare(
        scores, baseline=baseline, settings=settings, equivalence=equivalence
    )
    choice = None
    if resolved.sweep is not None:
        from harness.evaluation.sweep import (
            choose,
            sweep_of,
        )  # a wing: what has no sweep needs none of it

        choice = choose(scores, sweep_of(resolved.sweep), settings, run.prices)
    found = conclude(scores, rows, settings, baseline=baseline, sweep=choice)
    return found.model_copy(
        update={
            "look": look_at(declared, scores.n),
            "next_look": _next_look(declared, scores, found),
            "judgments": sum(map(len, run.graded.grades.values())),
            "tests": (
                *equivalence_family(decided, equivalence),
                *_tests(run, decided, pairs, found),
            ),
            "judged": scores.judged,
            "abstention": _abstention(run, settings.level),
            "ceilings": _ceilings(run, found),
            "warnings": (*found.warnings, *run_warnings(manifest, found, scores)),
            "failed": manifest.failed,
        }
    )


def _next_look(
    declared: Settings, scores: Scores, found: Evaluation
) -> NextLook | None:
    planned = declared.looks.queries if declared.looks is not None else ()
    queries = next((number for number in planned if number > found.n), None)
    if queries is None or not found.plans or not found.measured:
        return None
    if None in found.plans.values():
        return NextLook(queries, None)
    kept = scores.of(scores.primary).only(scores.defined(scores.primary))
    scatter = max(
        deviation(_scattering(kept, (found.leader, other)).values)
        for other in found.plans
    )
    level = at_look(declared, queries).alpha / max(
        1, len(found.comparisons[found.measure])
    )
    return NextLook(queries, t_power(found.difference / scatter, queries, level))


def _abstention(run: RunInputs, level: float) -> Abstention | None:
    if not any(query.unanswerable for query in run.queries.values()):
        return None
    names = [
        name
        for name in comparable(run.manifest.resolved.retrievers)
        if name in run.answers
    ]
    rankings = {name: dict(run.answers[name]()) for name in names}
    return abstention_of(
        run.queries,
        run.graded.grades,
        rankings,
        parse(run.scores.primary).cutoff or CUTOFF,
        level,
    )


def _ceilings(run: RunInputs, found: Evaluation) -> Ceilings | None:
    """The ceilings of a router and of a union, over the queries with a relevant document."""
    relevant = {query: of for query, of in run.graded.grades.items() if of}
    if len(run.answers) < 2 or not relevant or not found.measured or found.low_is_good:
        return None
    scores, cutoff = (
        run.scores.of(run.scores.primary),
        parse(run.scores.primary).cutoff or CUTOFF,
    )
    kept = scores.only(scores.defined(scores.primary))
    router = mean(
        np.max([*kept.values[scores.primary].values()], axis=0), kept.units.weights
    )
    tops: list[Lists] = [
        {query: ranking.doc_ids[:cutoff] for query, ranking in read()}
        for read in run.answers.values()
    ]
    together: Lists = {
        query: list({doc for top in tops for doc in top.get(query, ())})
        for query in relevant
    }
    union, *alone = (
        float(score([RECALL], relevant, one).values.mean()) for one in (together, *tops)
    )
    return Ceilings(router, cutoff, union, max(alone))


@lru_cache(maxsize=1)
def evaluation_of(results: Results) -> Evaluation:
    """Return the evaluation of a results folder; what was read last is kept.

    It is computed again from the scores where none of this version is there as it was written.
    """
    if (written := read_evaluation(results.folder, results.manifest)) is not None:
        return written
    labels = {query: labelled.labels for query, labelled in results.queries.items()}
    queries = {query: labelled.query for query, labelled in results.queries.items()}
    scores = scores_of_results(results)
    scores = replace(scores, judged=judged_shares(results, scores.primary))
    graded = grade_labels(labels, relevance_of(results))
    prices = by_price(results.manifest, results.cost_rows)
    answers = {name: partial(results.answers, name) for name in results.retrievers}
    found = evaluate_run(
        RunInputs(results.manifest, scores, graded, queries, prices, answers)
    )
    return found.model_copy(update={"recomputed": True})


def write_evaluation(folder: Path, evaluation: Evaluation) -> None:
    """Write evaluation.json."""
    with create(folder / FILE) as file:
        file.write(evaluation.model_dump_json(indent=1, exclude={"recomputed"}) + "\n")


def read_evaluation(folder: Path, manifest: Manifest) -> Evaluation | None:
    """Read evaluation.json; None where it is missing, damaged, or of another version."""
    try:
        if manifest.tables.get(FILE) != file_digest(folder / FILE):
            return None
        written = Evaluation.model_validate_json((folder / FILE).read_bytes())
    except (OSError, ValidationError, HarnessError):
        return None
    return written.model_copy(update={"failed": manifest.failed})


def settings_of(manifest: Manifest) -> Settings:
    """The statistics that a run was made with."""
    return Settings.of(
        manifest.resolved.statistics, manifest.resolved.seed, manifest.earlier_looks
    )


def summaries(scores: Scores, level: float) -> dict[str, dict[str, Summary]]:
    """Describe every retriever on every measure: measure -> retriever -> statistics, none where nothing is defined."""
    found: dict[str, dict[str, Summary]] = {}
    for measure, group in scores.values.items():
        for name, values in group.items():
            if (kept := scores.defined(measure, name)).any():
                found.setdefault(measure, {})[name] = summarize(
                    values[kept],
                    level,
                    binary=measure in scores.binary,
                    bounds=scores.range_of(measure),
                    units=scores.only(kept).units,
                )
    return found


def conclude(
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
    decided = scores.of(measure).only(kept)
    group = decided.values[measure]
    means = by_mean(
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
        against = _of_leader(leader, compare(decided, settings=settings)) | against
    wanted = settings.margin or EXAMPLE * (decided.span_of(measure) or 1.0)
    found = Evaluation(
        measure=measure,
        settings=settings,
        n=decided.n,
        clusters=len(decided.units) if decided.clusters is not None else None,
        effective=decided.units.effective if decided.weights is not None else None,
        low_is_good=scores.low_is_good,
        summary=summaries(scores, settings.level),
        comparisons={
            one: tuple(row for row in rows if row.measure == one)
            for one in scores.values
        },
        means=means,
        against={other: against[other] for other in others},
        plans={},
        measured=any(np.any(values) for values in group.values()),
        difference=wanted,
        baseline=baseline if baseline in means else "",
        sweep=sweep,
    )
    done = {*found.within_margin, *found.shown_worse}
    alphas = {
        other: settings.alpha / tests[other] for other in others if other not in done
    }
    plans = {
        other: _needed(decided, (leader, other), alpha, wanted)
        for other, alpha in alphas.items()
    }
    return found.model_copy(
        update={"plans": plans, "warnings": tuple(fragile_warnings(decided, found))}
    )


def _leading_a_sweep(
    scores: Scores, leader: str, settings: Settings
) -> dict[str, Comparison]:
    """The leader's pairs, judged by max-T over all pairs: each by every other test would take minutes."""
    pairs = _of_leader(leader, compare(scores, baseline=leader, settings=settings))
    if not settings.by_people or settings.spent:
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
    return queries_needed(_scattering(scores, pair), difference, alpha)


def _scattering(scores: Scores, pair: tuple[str, str]) -> Differences:
    """The differences of two retrievers on the primary measure, as plans take them."""
    group, units = scores.values[scores.primary], scores.units
    # Unequal weights tell as much as fewer queries of equal weight: as if the differences scattered more.
    more = math.sqrt(len(units) / units.effective)
    return differences(
        more * units.means(group[pair[0]]), more * units.means(group[pair[1]])
    )


def _of_leader(leader: str, rows: Sequence[Comparison]) -> dict[str, Comparison]:
    turned = (
        row if row.a == leader else row.swapped
        for row in rows
        if leader in (row.a, row.b)
    )
    return {row.b: row for row in turned}


def _tests(
    run: RunInputs, decided: Scores, pairs: Sequence[tuple[str, str]], found: Evaluation
) -> Iterator[TestRow]:
    """The other families, on the queries for which everyone has a value."""
    if 0 < len(pairs) <= MOST_PAIRS:  # one slice is as much work as the whole
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
