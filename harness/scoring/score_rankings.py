"""Rankings scored by labels.

`score_rankings` makes the table of scores of a run, several trials of a retriever
averaged for each query; `score_by_labels` scores one set of rankings.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean as mean
from typing import NamedTuple

import numpy as np

from harness.measures import Measure, MeasureValues, measure_rankings
from harness.measures.score import Grades, RankedPassages
from harness.scoring.grades import ABSTAIN_MEASURE, GradedLabels
from harness.scoring.query_units import QueryUnits
from harness.scoring.ranked_passages import (
    compared_ids,
    passages_of_rankings,
)
from harness.scoring.score_table import scores_from_columns
from harness.scoring.scores import (
    RankedIds,
    Rankings,
    ScoreColumn,
    Scores,
    Trials,
    ranked_ids,
)
from retrievers.types import Floats


def score_by_labels(
    measures: Sequence[Measure],
    judged: GradedLabels,
    rankings: RankedIds,
    passages: RankedPassages | None = None,
) -> MeasureValues:
    """Score rankings, best first.

    A measure by labels is undefined (NaN) for a query without a relevant document, and
    Abstain for a query that has an answer.

    Args:
        measures: the measures to compute.
        judged: the labels.
        rankings: query id -> document ids.
        passages: query id -> passages, if a measure reads them.
    """
    computed = measure_rankings(
        measures,
        judged.grades,
        rankings,
        groups=judged.groups or None,
        claims=judged.claims,
        passages=passages,
        spans=judged.spans,
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
    units: QueryUnits
    """The clusters and weights of the graded queries, sorted by id."""


def score_rankings(
    setup: ScoringSetup, trials: Mapping[str, Callable[[], Trials]]
) -> Scores:
    """Score rankings on every measure.

    A retriever with several trials has the average of its scores for each query.

    Args:
        setup: measures and labels; the graded queries are scored.
        trials: retriever -> a function that reads its rankings in each trial; a query
            without a ranking counts as an empty one.
    """
    labels = setup.labels._replace(grades=dict(sorted(setup.labels.grades.items())))
    columns: list[ScoreColumn] = []
    judged_shares: dict[str, float] = {}
    trial_means: dict[str, tuple[float, ...]] = {}
    for retriever, read_trials in trials.items():
        scored = _score_trials(setup._replace(labels=labels), retriever, read_trials())
        if scored.judged_share is not None:
            judged_shares[retriever] = scored.judged_share
        if len(scored.primary_means) > 1:
            trial_means[retriever] = scored.primary_means
        columns += scored.columns
    scores = scores_from_columns(
        columns,
        labels.grades,
        _with_each(ranked_ids, trials),
        source_order=setup.labels.grades,
        primary=str(setup.primary),
        # An average of trials has no ranking, so that none is identical to another's.
        compared=_with_each(
            partial(compared_ids, setup.primary),
            {
                name: reader
                for name, reader in trials.items()
                if name not in trial_means
            },
        ),
    )
    if trial_means:  # an average of 0 and 1 is neither
        scores = replace(scores, binary=frozenset())
    return replace(
        scores,
        clusters=setup.units.clusters,
        weights=setup.units.weights,
        judged_by_people=setup.labels.judged_by_people,
        judged_shares=judged_shares,
        trial_means=trial_means,
    )


class _ScoredTrials(NamedTuple):
    """The scores of one retriever."""

    columns: list[ScoreColumn]
    """Its scores on each measure, each query's averaged over the trials."""
    primary_means: tuple[float, ...]
    """The mean of the primary measure in each trial."""
    judged_share: float | None
    """Share of its first hits with a label, the mean of all trials.

    None if claims decide.
    """


def _average(by_trial: Sequence[Floats]) -> Floats:
    """Return the mean over trials; a score that is the same in all stays as it is.

    The plain mean of three equal numbers can differ from them in the last digit.
    """
    first = by_trial[0]
    further = np.subtract(by_trial, first)
    average: Floats = first + np.mean(further, axis=0)
    return average


def _score_trials(setup: ScoringSetup, retriever: str, trials: Trials) -> _ScoredTrials:
    """Score every trial of one retriever."""
    judged_measure = Measure("Judged", setup.primary.cutoff)
    measures = (*setup.measures, judged_measure)
    computed: list[MeasureValues] = []
    shares: list[float] = []
    for rankings in trials:
        doc_ids = ranked_ids(rankings)
        passages = passages_of_rankings(measures, retriever, rankings)
        values = score_by_labels(measures, setup.labels, doc_ids, passages)
        computed.append(values)
        shares.append(
            mean_judged_share(values, judged_measure, setup.labels.grades, doc_ids)
        )
    columns: list[ScoreColumn] = []
    for measure in setup.measures:
        by_trial = [values.values_of(measure) for values in computed]
        averaged = _average(by_trial)
        query_ids = computed[0].query_ids
        columns.append(ScoreColumn(str(measure), retriever, query_ids, averaged))
    weight_by_query = None
    if setup.units.weights is not None:
        weighted = zip(computed[0].query_ids, setup.units.weights, strict=True)
        weight_by_query = dict(weighted)
    return _ScoredTrials(
        columns,
        tuple(values.means(weight_by_query)[setup.primary] for values in computed),
        None if setup.primary.uses_claims else mean(shares),
    )


def _with_each(
    convert: Callable[[Rankings], RankedIds],
    trials: Mapping[str, Callable[[], Trials]],
) -> dict[str, Callable[[], RankedIds]]:
    """Return, for each retriever, a function that reads its first trial, converted.

    Its other trials have scores only.
    """

    def read(read_trials: Callable[[], Trials]) -> RankedIds:
        return convert(read_trials()[0])

    return {name: partial(read, reader) for name, reader in trials.items()}


def mean_judged_share(
    computed: MeasureValues, share: Measure, grades: Grades, rankings: RankedIds
) -> float:
    """Return the mean share of hits that have a label.

    It is over queries with labels and with a hit: an empty ranking is not unjudged. 1
    without such a query.

    Args:
        computed: the values of `share`, and maybe of other measures.
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
