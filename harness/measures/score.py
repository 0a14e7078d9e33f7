"""Rankings to the values of measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Literal, TypeVar

import numpy as np

from harness.measures.batch import Batch, Floats, batch_by_score, batch_in_order
from harness.measures.claims import NO_CLAIMS, QueryClaims, claim_value
from harness.measures.grade_rules import MAX_EXPONENTIAL_GRADE
from harness.measures.group_value import AlternativeGroups, group_value
from harness.measures.measure import Measure, own_value
from harness.measures.parse import parse_measure
from harness.measures.table import row_of
from retrievers.errors import InputError, Problem

Grades = Mapping[str, Mapping[str, int]]
Precision = Literal["single", "double"]
Retrieved = TypeVar("Retrieved", bound=Collection[str])

MAX_BATCH_CELLS = 2**18
"""Ranks treated at once: enough for NumPy to be fast, few enough (2 MiB an array) to keep memory bounded."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasureValues:
    """The values of some measures for some queries."""

    measures: tuple[Measure, ...]
    query_ids: tuple[str, ...]
    """Every judged query, in the order of the judgments."""
    values: Floats
    """(measures, queries), read-only; NaN where a measure by claims is undefined."""
    largest_grade: int
    """The largest grade in the judgments: the G of ERR."""

    def values_of(self, measure: Measure) -> Floats:
        """(queries,): the values of one measure."""
        row: Floats = self.values[self.measures.index(measure)]
        return row

    def for_queries(self, query_ids: Collection[str]) -> MeasureValues:
        """The same for some of the queries, still in the order of the judgments."""
        kept = [i for i, query_id in enumerate(self.query_ids) if query_id in query_ids]
        values = self.values[:, kept]
        values.setflags(write=False)
        return MeasureValues(
            self.measures,
            tuple(self.query_ids[i] for i in kept),
            values,
            self.largest_grade,
        )

    def means(self, weights: Mapping[str, float] | None = None) -> dict[Measure, float]:
        """The mean of each measure over the queries for which it is defined; NaN without any.

        Args:
            weights: query id -> how much it counts; those that it lacks do not count. Left out, all count alike.
        """
        counts = np.array(
            [
                1.0 if weights is None else weights.get(query, 0.0)
                for query in self.query_ids
            ]
        )
        found = {}
        for measure, row in zip(self.measures, self.values, strict=True):
            kept = ~np.isnan(row) & (counts > 0)
            found[measure] = (
                math.fsum((row * counts)[kept]) / math.fsum(counts[kept])
                if kept.any()
                else math.nan
            )
        return found


def measure_rankings(
    measures: Iterable[Measure],
    judgments: Grades,
    rankings: Mapping[str, Sequence[str]],
    *,
    groups: Mapping[str, AlternativeGroups] | None = None,
    claims: Mapping[str, QueryClaims] | None = None,
) -> MeasureValues:
    """Score rankings whose documents are already in their order, best first.

    Every judged query gets a value: one that is missing from `rankings` is an empty ranking. Rankings of
    queries without judgments are ignored.

    Args:
        measures: what to compute.
        judgments: query id -> document id -> grade.
        rankings: query id -> document ids, each at most once.
        groups: query id -> groups of alternatives, for measures with `groups=`; in a query that has none here,
            each relevant document is a group of its own.
        claims: query id -> the claims of its reference answer and what entails them, for measures by claims: NaN
            where the value is undefined, as for a query that has none here.

    Raises:
        InputError: a document occurs twice in a ranking; exponential gain meets a grade above 30; a measure asks
            for groups or claims and there are none.

    >>> measure_rankings([parse_measure("P@2"), parse_measure("RR")], {"q": {"a": 1}}, {"q": ["b", "a"]}).values.tolist()
    [[0.5], [0.5]]
    """
    everything = tuple(measures)
    by_claims = claims is not None
    plain = tuple(
        m
        for m in everything
        if not m.get("groups") and not m.is_own and not (by_claims and m.uses_claims)
    )
    known = _each_once(judgments, rankings)
    scores = _scored(
        plain, judgments, zip(judgments, known, strict=True), batch_in_order
    )
    if plain == everything:
        return scores
    rows = dict(zip(plain, scores.values, strict=True))
    for measure in everything:
        if measure.get("groups"):
            wanted = groups_by_query(measure, judgments, groups)
            rows[measure] = np.array(
                [
                    group_value(measure, wanted[q], rankings.get(q, ()))
                    for q in judgments
                ]
            )
        elif measure.is_own:
            rows[measure] = np.array(
                [
                    own_value(measure, judgments[q], rankings.get(q, ()), q)
                    for q in judgments
                ]
            )
        elif claims is not None and measure.uses_claims:
            rows[measure] = np.array(
                [
                    claim_value(measure, claims.get(q, NO_CLAIMS), rankings.get(q, ()))
                    for q in judgments
                ]
            )
    return _sealed(
        everything,
        judgments,
        np.array([rows[m] for m in everything]),
        scores.largest_grade,
    )


def measure_run(
    measures: Iterable[Measure],
    judgments: Grades,
    run: Mapping[str, Mapping[str, float]],
    *,
    precision: Precision = "single",
) -> MeasureValues:
    """Score a run as trec_eval does: score descending, then document id descending.

    Every judged query gets a value: one that the run lacks is an empty ranking; queries without judgments are ignored.

    Args:
        measures: what to compute, none with `groups=`.
        judgments: query id -> document id -> grade.
        run: query id -> document id -> score.
        precision: how scores are compared: "single" as trec_eval 9.0.8 (32-bit floats), "double" as 10.0.

    Raises:
        InputError: a score is not finite; exponential gain meets a grade above 30.

    >>> measure_run([parse_measure("P@1")], {"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.50000000001}}).values.tolist()
    [[0.0]]
    """
    hits = ((query, run.get(query, {})) for query in judgments)
    return _scored(
        tuple(measures),
        judgments,
        hits,
        partial(batch_by_score, single=precision == "single"),
    )


def value_span(measure: Measure, judgments: Grades) -> float:
    """How far apart two values of a measure can be on these queries: what equivalence calls its range.

    1 for a measure between 0 and 1; for the others the largest value that an ideal ranking reaches.

    Raises:
        InputError: exponential gain meets a grade above 30.

    >>> names = "nDCG@2", "CG@1", "own.effort(low=1, high=5)"
    >>> [value_span(parse_measure(name), {"q": {"a": 3, "b": 1}}) for name in names]
    [1.0, 3.0, 4.0]
    """
    low, high = value_bounds(measure, judgments)
    return high - low


def value_bounds(measure: Measure, judgments: Grades) -> tuple[float, float]:
    """The least and the largest value that a measure can have on these queries, as `span` has it."""
    if measure.is_own:
        return measure.value_limits
    if row_of(measure).bounded:
        return 0.0, 1.0
    ideal = {
        query: sorted(judged, key=lambda d: -judged[d])
        for query, judged in judgments.items()
    }
    return 0.0, float(
        measure_rankings([measure], judgments, ideal).values.max(initial=0.0)
    )


def measure_ranking(
    name: str, judged: Mapping[str, int], ranking: Sequence[str]
) -> float:
    """Score one ranking by the name of a measure.

    >>> measure_ranking("nDCG@2", {"a": 2, "b": 1}, ["a", "b"])
    1.0
    """
    return float(
        measure_rankings([parse_measure(name)], {"": judged}, {"": ranking}).values[
            0, 0
        ]
    )


def _scored(
    measures: tuple[Measure, ...],
    judgments: Grades,
    answers: Iterable[tuple[str, Retrieved]],
    make: Callable[[Sequence[Mapping[str, int]], Sequence[Retrieved], int], Batch],
) -> MeasureValues:
    """Compute the columns of all answers, portion by portion."""
    largest = _largest_grade(measures, judgments)
    column = {query_id: i for i, query_id in enumerate(judgments)}
    values = np.zeros((len(measures), len(judgments)))
    for ids, portion in _portions(judgments, answers):
        batch = make([judgments[query_id] for query_id in ids], portion, largest)
        columns = [column[query_id] for query_id in ids]
        for row, measure in enumerate(measures):
            values[row, columns] = row_of(measure).compute(batch, measure)
    return _sealed(measures, judgments, values, largest)


def groups_by_query(
    measure: Measure, judgments: Grades, groups: Mapping[str, AlternativeGroups] | None
) -> dict[str, AlternativeGroups]:
    """The groups of each judged query; each relevant document is one of its own where a query has none.

    Raises:
        InputError: there are no groups at all.
    """
    if groups is None:
        raise InputError(
            Problem(
                f"measure {str(measure)!r}",
                "there are no AND/OR groups in these labels",
            )
        )
    return {
        q: groups.get(q) or [[d] for d, g in judged.items() if g > 0]
        for q, judged in judgments.items()
    }


def _sealed(
    measures: tuple[Measure, ...], judgments: Grades, values: Floats, largest: int
) -> MeasureValues:
    values.setflags(write=False)
    return MeasureValues(measures, tuple(judgments), values, largest)


def _portions(
    judgments: Grades, answers: Iterable[tuple[str, Retrieved]]
) -> Iterator[tuple[list[str], list[Retrieved]]]:
    """Cut the answers into portions whose padded arrays keep to CELLS."""
    ids: list[str] = []
    portion: list[Retrieved] = []
    width = 1
    for query_id, answer in answers:
        own = max(1, len(answer), len(judgments[query_id]))
        if ids and max(width, own) * (len(ids) + 1) > MAX_BATCH_CELLS:
            yield ids, portion
            ids, portion, width = [], [], 1
        ids.append(query_id)
        portion.append(answer)
        width = max(width, own)
    if ids:
        yield ids, portion


def _each_once(
    judgments: Grades, rankings: Mapping[str, Sequence[str]]
) -> list[Sequence[str]]:
    """The ranking of each judged query; refuses one that holds a document twice."""
    known = [rankings.get(query_id, ()) for query_id in judgments]
    for query_id, ranking in zip(judgments, known, strict=True):
        if len({*ranking}) < len(ranking):
            again = next(d for d in ranking if ranking.count(d) > 1)
            raise InputError(
                Problem(f"query {query_id!r}", f"document {again!r} is ranked twice")
            )
    return known


def _largest_grade(measures: Sequence[Measure], judgments: Grades) -> int:
    """The largest grade of all judgments, at least 0.

    Raises:
        InputError: it is above 30 and one of the measures has exponential gain.
    """
    largest = max(
        chain.from_iterable(judged.values() for judged in judgments.values()), default=0
    )
    steep = next((m for m in measures if m.get("dcg") == "exp-log2"), None)
    if steep and largest > MAX_EXPONENTIAL_GRADE:
        what = f"exponential gain of grade {largest}: nothing but the best document would count"
        raise InputError(
            Problem(
                f"measure {str(steep)!r}",
                what,
                f"use linear gain, or grades up to {MAX_EXPONENTIAL_GRADE}",
            )
        )
    return max(largest, 0)
