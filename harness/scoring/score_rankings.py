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
    """Score rankings, best first.

    A measure by labels is undefined (NaN) for a query without a relevant document, and
    Abstain for a query that has an answer.
    """
    computed = measure_rankings(
        measures,
        judged.grades,
        rankings,
        groups=judged.groups or None,
        claims=judged.claims,
    )
    unlabelled: list[int] = []
    answerable: list[int] = []
    for column, query_id in enumerate(computed.query_ids):
        if not judged.grades[query_id]:
            unlabelled.append(column)
        if query_id not in judged.unanswerable:
            answerable.append(column)
    label_rows: list[int] = []
    abstain_rows: list[int] = []
    for row, measure in enumerate(computed.measures):
        if measure.name == ABSTAIN_MEASURE:
            abstain_rows.append(row)
        elif not measure.uses_claims:
            label_rows.append(row)
    if not (unlabelled and label_rows) and not (answerable and abstain_rows):
        return computed
    values = computed.values.copy()
    values[np.ix_(label_rows, unlabelled)] = np.nan
    values[np.ix_(abstain_rows, answerable)] = np.nan
    values.setflags(write=False)
    return replace(computed, values=values)


class ScoringSetup(NamedTuple):
    """The measures and labels by which rankings are scored."""

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
        rankings: retriever -> a function that reads its rankings; a query without a
            ranking counts as an empty one.
    """
    labels = setup.labels._replace(grades=dict(sorted(setup.labels.grades.items())))
    judged_measure = Measure("Judged", setup.primary.cutoff)
    measures = (*setup.measures, judged_measure)
    columns: list[ScoreColumn] = []
    judged_shares: dict[str, float] = {}
    for retriever, read_rankings in rankings.items():
        retriever_rankings = read_rankings()
        computed = score_by_labels(measures, labels, retriever_rankings)
        if not setup.primary.uses_claims:
            judged_shares[retriever] = mean_judged_share(
                computed, judged_measure, labels.grades, retriever_rankings
            )
        columns.extend(
            ScoreColumn(
                measure=str(measure),
                retriever=retriever,
                query_ids=computed.query_ids,
                values=computed.values_of(measure),
            )
            for measure in setup.measures
        )
    scores = scores_from_columns(
        columns,
        labels.grades,
        rankings,
        source_order=setup.labels.grades,
        primary=str(setup.primary),
    )
    queries = [setup.queries[query_id] for query_id in scores.ids]
    return replace(
        scores,
        clusters=query_clusters(queries, setup.statistics.cluster),
        weights=query_weights(queries, setup.statistics.weight),
        judged_by_people=setup.labels.judged_by_people,
        judged_shares=judged_shares,
    )


def mean_judged_share(
    computed: MeasureValues, share: Measure, grades: Grades, rankings: RankedIds
) -> float:
    """Return the mean share of hits that have a label.

    Only over queries with labels and with a hit: an empty ranking is not unjudged.

    Args:
        computed: the values of the measure, and maybe of others.
        share: the measure Judged with its cutoff.
        grades: query id -> document id -> grade.
        rankings: query id -> document ids.
    """
    query_ids = {
        query_id
        for query_id, documents in rankings.items()
        if documents and grades.get(query_id)
    }
    if not query_ids:
        return 1.0
    return float(computed.for_queries(query_ids).means()[share])
