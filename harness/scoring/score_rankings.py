"""Rankings scored by labels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from harness.measures import Measure, MeasureValues, measure_rankings
from harness.measures.score import Grades
from harness.scoring.grades import ABSTAIN_MEASURE, GradedLabels
from harness.scoring.query_units import query_clusters, query_weights
from harness.scoring.score_table import scores_from_columns
from harness.scoring.scores import RankedIds, ScoreColumn, Scores
from harness.stats.settings import Statistics
from retrievers.types import Query


def score_by_labels(
    measures: Sequence[Measure],
    judged: GradedLabels,
    rankings: Mapping[str, Sequence[str]],
) -> MeasureValues:
    """Score rankings, best first; a measure by labels is undefined (NaN) for a query that has claims alone."""
    scores = measure_rankings(
        measures,
        judged.grades,
        rankings,
        groups=judged.groups or None,
        claims=judged.claims,
    )
    bare = [
        place
        for place, query in enumerate(scores.query_ids)
        if not judged.grades[query]
    ]
    by_labels = [
        row
        for row, measure in enumerate(scores.measures)
        if not measure.uses_claims and measure.name != ABSTAIN_MEASURE
    ]
    abstains = [
        row
        for row, measure in enumerate(scores.measures)
        if measure.name == ABSTAIN_MEASURE
    ]
    others = [
        place
        for place, query in enumerate(scores.query_ids)
        if query not in judged.unanswerable
    ]
    if not (bare and by_labels) and not (others and abstains):
        return scores
    values = scores.values.copy()
    values[np.ix_(by_labels, bare)] = np.nan
    values[np.ix_(abstains, others)] = np.nan
    values.setflags(write=False)
    return replace(scores, values=values)


class ScoringSetup(NamedTuple):
    """What rankings are scored by."""

    measures: tuple[Measure, ...]
    primary: Measure
    labels: GradedLabels
    queries: Mapping[str, Query]
    """At least those that are scored."""
    statistics: Statistics = Statistics()
    """Which queries belong together, and how much each counts."""


def score_rankings(
    setup: ScoringSetup, rankings: Mapping[str, Callable[[], RankedIds]]
) -> Scores:
    """Score rankings on every measure.

    Args:
        setup: measures and labels; the queries that have labels are scored.
        rankings: retriever -> what reads its rankings; a missing answer counts as an empty one.
    """
    labels = setup.labels._replace(grades=dict(sorted(setup.labels.grades.items())))
    columns: list[ScoreColumn] = []
    shares: dict[str, float] = {}
    share = Measure("Judged", setup.primary.cutoff)
    for name, read in rankings.items():
        computed = score_by_labels((*setup.measures, share), labels, answers := read())
        if not setup.primary.uses_claims:
            shares[name] = mean_judged_share(computed, share, labels.grades, answers)
        columns += [
            (str(one), name, computed.query_ids, computed.values_of(one))
            for one in setup.measures
        ]
    found = scores_from_columns(
        columns, labels.grades, rankings, setup.labels.grades, str(setup.primary)
    )
    queries, of = [setup.queries[query] for query in found.ids], setup.statistics
    return replace(
        found,
        clusters=query_clusters(queries, of.cluster),
        weights=query_weights(queries, of.weight),
        judged_by_people=setup.labels.judged_by_people,
        judged_shares=shares,
    )


def mean_judged_share(
    computed: MeasureValues, share: Measure, grades: Grades, lists: RankedIds
) -> float:
    """The mean over the queries with labels that have a hit: an empty answer is not unjudged."""
    answered = {
        query for query, documents in lists.items() if documents and grades.get(query)
    }
    return float(computed.for_queries(answered).means()[share]) if answered else 1.0
