"""A results folder scored again.

The rankings and labels are those that it stores; the measures, the grade rule, or the
queries may be others than its experiment declares.
"""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from harness.experiment import RelevanceConfig
from harness.measures import Measure, QueryClaims, parse_measure
from harness.records import Results
from harness.records.judge_files import ANSWERS_FOLDER, read_passages, read_readings
from harness.records.judge_readings import JudgeIdentity, claims_by_query
from harness.scoring.grades import (
    ABSTAIN_MEASURE,
    GradedLabels,
    grade_labels,
    unmeasured_abstention,
)
from harness.scoring.query_units import query_units
from harness.scoring.score_rankings import ScoringSetup, score_rankings
from harness.scoring.scores import Scores
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.options.tables import validated


def rescore(
    results: Results,
    measures: Sequence[Measure],
    *,
    relevance: RelevanceConfig,
    queries: Collection[str] | None = None,
) -> Scores:
    """Score the rankings of a results folder again.

    Args:
        results: the folder.
        measures: the measures to compute; the first decides.
        relevance: how its labels become grades.
        queries: only these; None: all that a measure scores.

    Raises:
        InputError: the grade rule does not fit the labels or the measures; one of
            `queries` is not scored; a measure needs more hits than were stored, and
            there were more, or claims or passages that were not stored; Abstain
            decides, and every query has an answer.
    """
    graded = _grade_stored_labels(results, measures, relevance)
    if measures[0].name == ABSTAIN_MEASURE and not graded.unanswerable:
        raise InputError(unmeasured_abstention(f"measure {ABSTAIN_MEASURE!r}"))
    if queries is not None:
        _refuse_unscored(queries, graded.grades)
        graded = graded._replace(
            grades={
                query_id: judged
                for query_id, judged in graded.grades.items()
                if query_id in queries
            }
        )
    _refuse_deeper_measures(results, measures)
    declared = results.manifest.resolved.statistics
    queries_in_score_order = [
        results.queries[query_id].query for query_id in sorted(graded.grades)
    ]
    setup = ScoringSetup(
        measures=tuple(measures),
        primary=measures[0],
        labels=graded,
        units=query_units(queries_in_score_order, declared.cluster, declared.weight),
    )
    trials = {
        retriever: partial(results.trials, retriever)
        for retriever in results.retrievers
    }
    return score_rankings(setup, trials)


def _grade_stored_labels(
    results: Results, measures: Sequence[Measure], relevance: RelevanceConfig
) -> GradedLabels:
    """Return the grades, with the queries that have only claims, or no answer.

    Those are added only if a measure scores them.
    """
    labels = {
        query_id: judged_query.labels
        for query_id, judged_query in results.queries.items()
    }
    graded = grade_labels(labels, relevance)
    claims: dict[str, QueryClaims] | None = None
    added: dict[str, dict[str, int]] = {}
    if any(measure.uses_claims for measure in measures):
        claims = stored_claims(results, measures)
        # Queries that have only claims were scored, too.
        added.update({query_id: {} for query_id in results.score_columns["query_id"]})
    unanswerable: set[str] = set()
    if any(measure.name == ABSTAIN_MEASURE for measure in measures):
        for query_id, judged_query in results.queries.items():
            if judged_query.query.unanswerable:
                unanswerable.add(query_id)
                added[query_id] = {}
    return graded._replace(
        grades={**added, **graded.grades},
        claims=claims,
        unanswerable=frozenset(unanswerable),
    )


def _refuse_unscored(
    queries: Collection[str], grades: Mapping[str, Mapping[str, int]]
) -> None:
    """Refuse queries that are not scored.

    Raises:
        InputError: there are any.
    """
    problem = "is not a query with a relevant document here"
    problems = [
        Problem(f"query {query_id!r}", problem, did_you_mean(query_id, grades))
        for query_id in queries
        if query_id not in grades
    ]
    if problems:
        raise InputError(problems)


def _refuse_deeper_measures(results: Results, measures: Sequence[Measure]) -> None:
    """Refuse measures that need more hits than were stored, if there were more.

    Raises:
        InputError: there are any.
    """
    depth = results.manifest.resolved.depth
    deeper = [measure for measure in measures if (measure.cutoff or 0) > depth]
    if not deeper or not _has_cut_rankings(results, depth):
        return
    remedy = f"the run has depth {depth}: raise it and run the experiment again"
    raise InputError(
        [
            Problem(
                f"measure {str(measure)!r}", f"needs depth {measure.cutoff}", remedy
            )
            for measure in deeper
        ]
    )


def _has_cut_rankings(results: Results, depth: int) -> bool:
    """Whether any ranking is as long as the depth, so that it may be cut."""
    for retriever in results.retrievers:
        for _, ranking in results.iter_rankings(retriever):
            if len(ranking.doc_ids) >= depth:
                return True
    return False


def recomputable_measures(measures: Sequence[str]) -> list[str]:
    """Return the measures that can be computed again; all of them if none can.

    Functions of the user ended with their process.
    """
    computable = [name for name in measures if not parse_measure(name).is_own]
    return computable or list(measures)


def stored_claims(
    results: Results, measures: Sequence[Measure]
) -> dict[str, QueryClaims]:
    """Return the claims of a results folder's queries, with the judge's verdicts.

    Raises:
        InputError: no claims were judged there, or not as deep as a measure needs.
    """
    judge = results.manifest.judge
    if judge is None:
        remedy = (
            "name a measure by claims and a [judge] in the experiment, and run it again"
        )
        where = str(results.folder)
        raise InputError(Problem(where, "holds no verdicts on claims", remedy))
    depth = math.inf if judge.depth is None else judge.depth
    deeper = [
        measure
        for measure in measures
        if measure.uses_claims and (measure.cutoff or math.inf) > depth
    ]
    if deeper:
        limit = f"depth {judge.depth}, and no further hits were judged"
        remedy = "name it among the measures of the experiment, and run it again"
        raise InputError(
            [
                Problem(
                    f"measure {str(measure)!r}", f"needs more hits than {limit}", remedy
                )
                for measure in deeper
            ]
        )
    folder = results.folder / ANSWERS_FOLDER
    readings = read_readings(folder, JudgeIdentity(judge.judge, judge.prompt))
    queries = [judged_query.query for judged_query in results.queries.values()]
    return claims_by_query(queries, readings, read_passages(folder))


def relevance_by_rule(
    results: Results, grade_rule: str | None = None
) -> RelevanceConfig:
    """Return the grade rule of an experiment, or another instead, with linear gain.

    Args:
        results: the folder of the experiment.
        grade_rule: "linear", "binary", "reciprocal", "explicit", or buckets such as
            "[[1, 3], [10, 1]]".

    Raises:
        InputError: there is no such rule.
    """
    declared = results.manifest.resolved.relevance
    if grade_rule is None:
        return declared
    # On the command line the gain is linear if a measure's name has none, whatever the
    # experiment declared.
    try:
        grades = json.loads(grade_rule) if grade_rule.startswith("[") else grade_rule
        changed = {**declared.model_dump(), "grades": grades, "gain": "linear"}
        return validated(RelevanceConfig, changed, "")
    except (json.JSONDecodeError, RecursionError, InputError):
        problem = f"{grade_rule!r} is not a grade rule"
        remedy = (
            "linear, binary, reciprocal, explicit, or buckets such as [[1, 3], [10, 1]]"
        )
        raise InputError(Problem("--grades", problem, remedy)) from None
