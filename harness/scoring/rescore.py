"""A results folder scored anew."""

import json
import math
from collections.abc import Collection, Sequence

from harness.experiment import RelevanceConfig
from harness.measures import Measure, QueryClaims, parse_measure
from harness.records import Results
from harness.records.judge_files import ANSWERS_FOLDER, read_passages, read_readings
from harness.records.judge_readings import JudgeIdentity, claims_by_query
from harness.scoring.grades import ABSTAIN_MEASURE, grade_labels
from harness.scoring.score_rankings import ScoringSetup, score_rankings
from harness.scoring.scores import Scores
from harness.scoring.stored_scores import rankings_by_retriever
from harness.stats.settings import Statistics
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
        measures: what to compute; the first decides.
        relevance: how its labels become grades.
        queries: only these; all with a relevant document if left out.

    Raises:
        InputError: the grade rule does not fit the labels or the measures; a query has no relevant document; a
            measure looks below the depth that was kept, and there was more.
    """
    labels = grade_labels(
        {id_: question.labels for id_, question in results.queries.items()}, relevance
    )
    claims = (
        stored_claims(results, measures)
        if any(measure.uses_claims for measure in measures)
        else None
    )
    grades = labels.grades
    bare = frozenset(
        id_ for id_, question in results.queries.items() if question.query.unanswerable
    )
    bare = (
        bare
        if any(measure.name == ABSTAIN_MEASURE for measure in measures)
        else frozenset()
    )
    if claims is not None or bare:  # queries that have claims alone were scored, too
        scored = results.score_columns["query_id"] if claims is not None else ()
        grades = {**{query: {} for query in (*scored, *bare)}, **grades}
    if unknown := [query for query in queries or () if query not in grades]:
        what = "is not a query with a relevant document here"
        raise InputError(
            [
                Problem(f"query {query!r}", what, did_you_mean(query, grades))
                for query in unknown
            ]
        )
    kept = {
        query: given
        for query, given in grades.items()
        if queries is None or query in queries
    }
    depth = results.manifest.resolved.depth
    deeper = [measure for measure in measures if (measure.cutoff or 0) > depth]
    if deeper and any(
        len(r.doc_ids) >= depth
        for name in results.retrievers
        for _, r in results.iter_rankings(name)
    ):
        remedy = f"the run has depth {depth}: raise it and run the experiment again"
        raise InputError(
            [
                Problem(f"measure {str(one)!r}", f"needs depth {one.cutoff}", remedy)
                for one in deeper
            ]
        )
    declared = results.manifest.resolved.statistics
    judged = ScoringSetup(
        tuple(measures),
        measures[0],
        labels._replace(grades=kept, claims=claims, unanswerable=bare),
        {query: results.queries[query].query for query in kept},
        Statistics(cluster=declared.get("cluster"), weight=declared.get("weight")),
    )
    return score_rankings(judged, rankings_by_retriever(results))


def recomputable_measures(measures: Sequence[str]) -> list[str]:
    """Return the measures that can be computed again: functions of the user's own ended with their process."""
    return [name for name in measures if not parse_measure(name).is_own] or list(
        measures
    )


def stored_claims(
    results: Results, measures: Sequence[Measure]
) -> dict[str, QueryClaims]:
    """The claims of a results folder's queries, with the verdicts that its judge gave.

    Raises:
        InputError: no claims were judged there, or not as deep as a measure looks.
    """
    facts = results.manifest.judge
    if not facts:
        remedy = (
            "name a measure by claims and a [judge] in the experiment, and run it again"
        )
        raise InputError(
            Problem(str(results.folder), "holds no verdicts on claims", remedy)
        )
    depth = math.inf if facts["depth"] == "all" else int(facts["depth"])
    if deeper := [
        measure
        for measure in measures
        if measure.uses_claims and (measure.cutoff or math.inf) > depth
    ]:
        what = f"needs more hits than depth {facts['depth']}, and no further hits were judged"
        remedy = "name it among the measures of the experiment, and run it again"
        raise InputError(
            [Problem(f"measure {str(measure)!r}", what, remedy) for measure in deeper]
        )
    folder = results.folder / ANSWERS_FOLDER
    readings = read_readings(folder, JudgeIdentity(facts["judge"], facts["prompt"]))
    queries = [given.query for given in results.queries.values()]
    return claims_by_query(queries, readings, read_passages(folder))


def relevance_by_rule(
    results: Results, grade_rule: str | None = None
) -> RelevanceConfig:
    """Return the grade rule of an experiment, or another in its place.

    Args:
        results: whose experiment.
        grade_rule: "linear", "binary", "reciprocal", "explicit", or buckets such as "[[1, 3], [10, 1]]".

    Raises:
        InputError: there is no such rule.
    """
    declared = results.manifest.resolved.relevance
    if grade_rule is None:
        return validated(RelevanceConfig, declared, "[relevance]")
    # What a measure's name leaves open is linear on the command line, whatever the experiment declared.
    try:
        grades = json.loads(grade_rule) if grade_rule.startswith("[") else grade_rule
        return validated(
            RelevanceConfig, {**declared, "grades": grades, "gain": "linear"}, ""
        )
    except (json.JSONDecodeError, InputError):
        remedy = (
            "linear, binary, reciprocal, explicit, or buckets such as [[1, 3], [10, 1]]"
        )
        raise InputError(
            Problem("--grades", f"{grade_rule!r} is not a grade rule", remedy)
        ) from None
