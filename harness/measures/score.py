"""Rankings to the values of measures.

`measure_rankings` takes documents that are in order, `measure_run` scores to order them
by. Most measures are formulas over arrays of many queries (`table`); those of groups,
claims and passages, and the user's own, are computed query by query.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

import numpy as np

from harness.measures.batch import Batch, Floats, batch_by_score, batch_in_order
from harness.measures.claims import NO_CLAIMS, QueryClaims, claim_value
from harness.measures.grade_rules import MAX_EXPONENTIAL_GRADE
from harness.measures.group_value import AlternativeGroups, group_value
from harness.measures.measure import Measure, own_value
from harness.measures.parse import parse_measure
from harness.measures.passage_value import PassageLabels, passage_value
from harness.measures.table import row_of
from retrievers.errors import InputError, Problem
from retrievers.passage import Passage, Span

Grades = Mapping[str, Mapping[str, int]]
"""Query id -> document id -> grade."""
RankedPassages = Mapping[str, Sequence[Passage]]
"""Query id -> passages, best first."""
Precision = Literal["single", "double"]
"""Whether scores are compared as 32-bit floats, or as doubles."""
Retrieved = TypeVar("Retrieved", bound=Collection[str])
MakeBatch = Callable[[Sequence[Mapping[str, int]], Sequence[Retrieved], int], Batch]
"""Makes a batch of judgments, rankings and the largest grade."""

MAX_BATCH_CELLS = 2**18
"""Ranks computed at once.

Enough for NumPy to be fast, few enough (2 MiB an array) to keep memory bounded.
"""


@dataclass(frozen=True, slots=True, eq=False)
class MeasureValues:
    """The values of some measures for some queries."""

    measures: tuple[Measure, ...]
    query_ids: tuple[str, ...]
    """Every judged query, in the order of the judgments."""
    values: Floats
    """(measures, queries), read-only; NaN where a measure is undefined.

    Undefined are a measure by claims for a query without claims, or where an unknown
    verdict decides, and ClaimPrecision of nothing returned; a measure of characters for
    a query without labelled spans; one of the user's own for a query without labels,
    unless the ranking is empty.
    """
    largest_grade: int
    """The largest grade in the judgments: the G of ERR."""

    def values_of(self, measure: Measure) -> Floats:
        """(queries,): the values of one measure."""
        row: Floats = self.values[self.measures.index(measure)]
        return row

    def for_queries(self, query_ids: Collection[str]) -> MeasureValues:
        """The values of some of the queries, in the order of the judgments."""
        columns = [
            index
            for index, query_id in enumerate(self.query_ids)
            if query_id in query_ids
        ]
        values = self.values[:, columns]
        values.setflags(write=False)
        return MeasureValues(
            self.measures,
            tuple(self.query_ids[index] for index in columns),
            values,
            self.largest_grade,
        )

    def means(self, weights: Mapping[str, float] | None = None) -> dict[Measure, float]:
        """The mean of each measure over the queries for which it is defined.

        NaN if it is defined for none.

        Args:
            weights: query id -> how much it counts; those that it lacks do not count.
                Without weights, all count alike.
        """
        counts = np.ones(len(self.query_ids))
        if weights is not None:
            counts = np.array([weights.get(query, 0.0) for query in self.query_ids])
        means: dict[Measure, float] = {}
        for measure, row in zip(self.measures, self.values, strict=True):
            counting = ~np.isnan(row) & (counts > 0)
            means[measure] = math.nan
            if counting.any():
                total = math.fsum((row * counts)[counting])
                means[measure] = total / math.fsum(counts[counting])
        return means


def measure_rankings(
    measures: Iterable[Measure],
    judgments: Grades,
    rankings: Mapping[str, Sequence[str]],
    *,
    groups: Mapping[str, AlternativeGroups] | None = None,
    claims: Mapping[str, QueryClaims] | None = None,
    passages: RankedPassages | None = None,
    spans: Mapping[str, Sequence[Span]] | None = None,
) -> MeasureValues:
    """Score rankings whose documents are in order, best first.

    Every judged query gets a value: one that is missing from `rankings` is an empty
    ranking. Rankings of queries without judgments are ignored.

    Args:
        measures: the measures to compute.
        judgments: query id -> document id -> grade.
        rankings: query id -> document ids, each at most once.
        groups: query id -> groups of alternatives, for measures with `groups=`; if a
            query has none, each relevant document is a group.
        claims: query id -> the claims of its reference answer and the documents that
            entail them, for measures by claims: NaN where the value is undefined, as
            for a query without claims.
        passages: query id -> passages, best first, for measures of passages.
        spans: query id -> its labelled characters; measures of characters are NaN for a
            query without any, if another has some.

    Raises:
        InputError: a document occurs twice in a ranking; exponential gain meets a grade
            above 30; a measure needs groups, claims or passages, and the argument is
            None, or spans, and no query has any; one of the user's own failed, or left
            its range.

    >>> measures = [parse_measure("P@2"), parse_measure("RR")]
    >>> measure_rankings(measures, {"q": {"a": 1}}, {"q": ["b", "a"]}).values.tolist()
    [[0.5], [0.5]]
    """
    all_measures = tuple(measures)
    # Without claims or passages, the measures that read them stay among those of
    # arrays, where their rows in `table` refuse them.
    array_measures: list[Measure] = []
    for measure in all_measures:
        uses_claims = claims is not None and measure.uses_claims
        uses_passages = passages is not None and measure.uses_passages
        if not (_is_of_one_ranking(measure) or uses_claims or uses_passages):
            array_measures.append(measure)
    ordered_rankings = _judged_rankings(judgments, rankings)
    array_values = _compute_values(
        tuple(array_measures), judgments, ordered_rankings, batch_in_order
    )
    if len(array_measures) == len(all_measures):
        return array_values
    rows = dict(zip(array_measures, array_values.values, strict=True))
    for measure in all_measures:
        if measure in rows:
            continue
        if measure.uses_passages:
            rows[measure] = _passage_values(measure, judgments, passages or {}, spans)
        else:
            compute = _ranking_scorer(measure, judgments, groups, claims)
            rows[measure] = np.array([*map(compute, judgments, ordered_rankings)])
    return _read_only_values(
        all_measures,
        judgments,
        np.array([rows[measure] for measure in all_measures]),
        array_values.largest_grade,
    )


def _is_of_one_ranking(measure: Measure) -> bool:
    """Whether a measure is computed ranking by ranking, whatever the labels are."""
    return measure.is_own or measure.get("groups") is not None


def _passage_values(
    measure: Measure,
    judgments: Grades,
    passages: RankedPassages,
    spans: Mapping[str, Sequence[Span]] | None,
) -> Floats:
    """(queries,): the values of a measure of passages.

    Raises:
        InputError: it counts characters and no query has labelled spans.
    """
    spans_by_query = spans or {}
    if measure.uses_spans and not spans_by_query:
        problem = "needs labelled spans, and no query has any"
        remedy = "give labels spans, or measure documents"
        raise InputError(Problem(f"measure {str(measure)!r}", problem, remedy))
    _largest_grade([measure], judgments)  # refuses grades too high for the gain
    values: list[float] = []
    for query_id, judged in judgments.items():
        labels = PassageLabels(judged, spans_by_query.get(query_id, ()))
        if measure.uses_spans and not labels.spans:
            values.append(math.nan)
        else:
            query_passages = passages.get(query_id, ())
            values.append(passage_value(measure, labels, query_passages))
    return np.array(values, dtype=np.float64)


def _ranking_scorer(
    measure: Measure,
    judgments: Grades,
    groups: Mapping[str, AlternativeGroups] | None,
    claims: Mapping[str, QueryClaims] | None,
) -> Callable[[str, Sequence[str]], float]:
    """Return the function that scores one query's ranking by itself.

    Raises:
        InputError: the measure needs groups and there are none.
    """
    if measure.get("groups"):
        query_groups = groups_by_query(measure, judgments, groups)
        return lambda query_id, ranking: group_value(
            measure, query_groups[query_id], ranking
        )
    if measure.is_own:
        return lambda query_id, ranking: own_value(
            measure, judgments[query_id], ranking, query_id
        )
    query_claims = claims or {}
    return lambda query_id, ranking: claim_value(
        measure, query_claims.get(query_id, NO_CLAIMS), ranking
    )


def measure_run(
    measures: Iterable[Measure],
    judgments: Grades,
    run: Mapping[str, Mapping[str, float]],
    *,
    precision: Precision = "single",
) -> MeasureValues:
    """Score a run as trec_eval does: score descending, then document id descending.

    Every judged query gets a value: one that the run lacks is an empty ranking; queries
    without judgments are ignored.

    Args:
        measures: the measures to compute, none with `groups=`: it would be ignored.
        judgments: query id -> document id -> grade.
        run: query id -> document id -> score.
        precision: how scores are compared: "single" as trec_eval 9.0.8 (32-bit floats),
            "double" as 10.0.

    Raises:
        InputError: a score is not finite; exponential gain meets a grade above 30; a
            measure reads claims, passages, or ranked ids (one of the user's own).

    >>> run = {"q": {"a": 0.5, "b": 0.50000000001}}
    >>> measure_run([parse_measure("P@1")], {"q": {"a": 1}}, run).values.tolist()
    [[0.0]]
    """
    hits = (run.get(query_id, {}) for query_id in judgments)
    make_batch = partial(batch_by_score, single=precision == "single")
    return _compute_values(tuple(measures), judgments, hits, make_batch)


def value_span(measure: Measure, judgments: Grades) -> float:
    """How far apart two values of a measure can be on these queries.

    The test of equivalence calls it the range: 1 for a measure between 0 and 1; that of
    its limits for the user's own; else the largest value that an ideal ranking reaches.

    Raises:
        InputError: exponential gain meets a grade above 30.

    >>> names = "nDCG@2", "CG@1", "own.effort(low=1, high=5)"
    >>> [value_span(parse_measure(name), {"q": {"a": 3, "b": 1}}) for name in names]
    [1.0, 3.0, 4.0]
    """
    low, high = value_bounds(measure, judgments)
    return high - low


def value_bounds(measure: Measure, judgments: Grades) -> tuple[float, float]:
    """The least and the largest value that a measure can have on these queries.

    Raises:
        InputError: exponential gain meets a grade above 30.
    """
    if measure.is_own:
        return measure.value_limits
    if row_of(measure).bounded:
        return 0.0, 1.0
    ideal: dict[str, Sequence[str]] = {}
    for query_id, judged in judgments.items():
        ideal[query_id] = sorted(judged, key=judged.__getitem__, reverse=True)
    ideal_values = measure_rankings([measure], judgments, ideal).values
    return 0.0, float(ideal_values.max(initial=0.0))


def measure_ranking(
    name: str, judged: Mapping[str, int], ranking: Sequence[str]
) -> float:
    """Score one ranking by the name of a measure.

    >>> measure_ranking("nDCG@2", {"a": 2, "b": 1}, ["a", "b"])
    1.0
    """
    measures = [parse_measure(name)]
    scores = measure_rankings(measures, {"": judged}, {"": ranking})
    return float(scores.values[0, 0])


def groups_by_query(
    measure: Measure, judgments: Grades, groups: Mapping[str, AlternativeGroups] | None
) -> dict[str, AlternativeGroups]:
    """The groups of each judged query; each relevant document if it has none.

    Raises:
        InputError: `groups` is None.
    """
    if groups is None:
        problem = "there are no AND/OR groups in these labels"
        raise InputError(Problem(f"measure {str(measure)!r}", problem))
    by_query: dict[str, AlternativeGroups] = {}
    for query_id, judged in judgments.items():
        single_documents = [[document] for document in judged if judged[document] > 0]
        by_query[query_id] = groups.get(query_id) or single_documents
    return by_query


def _judged_rankings(
    judgments: Grades, rankings: Mapping[str, Sequence[str]]
) -> list[Sequence[str]]:
    """Return the ranking of each judged query.

    Raises:
        InputError: a ranking has a document twice.
    """
    judged_rankings = [rankings.get(query_id, ()) for query_id in judgments]
    for query_id, ranking in zip(judgments, judged_rankings, strict=True):
        if len({*ranking}) < len(ranking):
            repeated = next(
                document for document in ranking if ranking.count(document) > 1
            )
            problem = f"document {repeated!r} is ranked twice"
            raise InputError(Problem(f"query {query_id!r}", problem))
    return judged_rankings


def _compute_values(
    measures: tuple[Measure, ...],
    judgments: Grades,
    rankings: Iterable[Retrieved],
    make_batch: MakeBatch[Retrieved],
) -> MeasureValues:
    """Compute the values of all rankings, batch by batch.

    Args:
        measures: the measures to compute.
        judgments: query id -> document id -> grade.
        rankings: one for each judged query, in their order.
        make_batch: makes the arrays of some judgments and rankings.
    """
    largest = _largest_grade(measures, judgments)
    all_judged = list(judgments.values())
    values = np.zeros((len(measures), len(judgments)))
    start = 0
    for batch_rankings in _split_rankings(all_judged, rankings):
        end = start + len(batch_rankings)
        batch = make_batch(all_judged[start:end], batch_rankings, largest)
        for row, measure in enumerate(measures):
            values[row, start:end] = row_of(measure).compute(batch, measure)
        start = end
    return _read_only_values(measures, judgments, values, largest)


def _split_rankings(
    judgments: Sequence[Mapping[str, int]], rankings: Iterable[Retrieved]
) -> Iterator[list[Retrieved]]:
    """Split the rankings so that the padded arrays of a batch fit MAX_BATCH_CELLS.

    A ranking that alone is longer is a batch by itself.
    """
    batch: list[Retrieved] = []
    batch_width = 1
    for judged, ranking in zip(judgments, rankings, strict=True):
        width = max(1, len(ranking), len(judged))
        if batch and max(batch_width, width) * (len(batch) + 1) > MAX_BATCH_CELLS:
            yield batch
            batch = []
            batch_width = 1
        batch.append(ranking)
        batch_width = max(batch_width, width)
    if batch:
        yield batch


def _read_only_values(
    measures: tuple[Measure, ...], judgments: Grades, values: Floats, largest: int
) -> MeasureValues:
    values.setflags(write=False)
    return MeasureValues(measures, tuple(judgments), values, largest)


def _largest_grade(measures: Sequence[Measure], judgments: Grades) -> int:
    """Return the largest grade of all judgments, at least 0.

    Raises:
        InputError: it is above 30 and one of the measures has exponential gain.
    """
    largest = 0
    for judged in judgments.values():
        largest = max(largest, max(judged.values(), default=0))
    if largest <= MAX_EXPONENTIAL_GRADE:
        return largest
    for measure in measures:
        if measure.get("dcg") == "exp-log2":
            raise InputError(
                Problem(
                    f"measure {str(measure)!r}",
                    f"exponential gain of grade {largest}: "
                    "nothing but the best document would count",
                    f"use linear gain, or grades up to {MAX_EXPONENTIAL_GRADE}",
                )
            )
    return largest
