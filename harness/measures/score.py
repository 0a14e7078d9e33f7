"""Rankings and judgments in, one row of values per measure out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.measures.batch import Floats, batch
from harness.measures.measure import Measure
from harness.measures.table import MEASURES
from retrievers.errors import InputError, Problem

Judgments = Mapping[str, Mapping[str, int]]

CELLS = 2**21
"""Ranks treated at once: enough for NumPy to be fast, small enough (16 MiB an array) to stay in bounds."""

STEEPEST = 30
"""The largest grade for exponential gain: beyond it the best document is all that counts."""


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The values of some measures for some queries."""

    measures: tuple[Measure, ...]
    query_ids: tuple[str, ...]
    """Every judged query, in the order of the judgments."""
    values: Floats
    """(measures, queries), read-only."""
    largest_grade: int
    """The largest grade in the judgments: the G of ERR."""

    def of(self, measure: Measure) -> Floats:
        """(queries,): the values of one measure."""
        row: Floats = self.values[self.measures.index(measure)]
        return row

    def means(self) -> dict[Measure, float]:
        """The mean of each measure over all queries; NaN without queries."""
        n = len(self.query_ids)
        sums = (math.fsum(row.tolist()) for row in self.values)
        return {m: s / n if n else math.nan for m, s in zip(self.measures, sums, strict=True)}


def score(measures: Iterable[Measure], judgments: Judgments, rankings: Mapping[str, Sequence[str]]) -> Scores:
    """Score rankings whose documents already stand in their order, best first.

    Every judged query gets a value: one that is missing from `rankings` is an empty ranking. Rankings of
    queries without judgments are left aside.

    Args:
        measures: what to compute.
        judgments: query id -> document id -> grade.
        rankings: query id -> document ids, each at most once.

    Raises:
        InputError: a document stands twice in a ranking; a grade above 30 meets exponential gain.

    >>> from harness.measures import parse
    >>> score([parse("P@2"), parse("RR")], {"q": {"a": 1}}, {"q": ["b", "a"]}).values.tolist()
    [[0.5], [0.5]]
    """
    wanted = tuple(measures)
    largest = _largest_grade(wanted, judgments)
    values = np.zeros((len(wanted), len(judgments)))
    start = 0
    for ids in _portions(judgments, rankings):
        answers = [rankings.get(q, ()) for q in ids]
        _refuse_duplicates(ids, answers)
        one = batch([judgments[q] for q in ids], answers, largest=largest)
        for row, measure in enumerate(wanted):
            values[row, start : start + len(ids)] = MEASURES[measure.name].compute(one, measure)
        start += len(ids)
    values.setflags(write=False)
    return Scores(wanted, tuple(judgments), values, largest)


def _portions(judgments: Judgments, rankings: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """Cut the judged queries into portions whose padded arrays keep to CELLS."""
    ids: list[str] = []
    width = 1
    for query_id, judged in judgments.items():
        wider = max(width, len(judged), len(rankings.get(query_id, ())))
        if ids and wider * (len(ids) + 1) > CELLS:
            yield ids
            ids, wider = [], max(1, len(judged), len(rankings.get(query_id, ())))
        ids.append(query_id)
        width = wider
    if ids:
        yield ids


def _largest_grade(measures: Sequence[Measure], judgments: Judgments) -> int:
    largest = max((max(judged.values(), default=0) for judged in judgments.values()), default=0)
    steep = next((m for m in measures if m.get("dcg") == "exp-log2"), None)
    if steep and largest > STEEPEST:
        what = f"exponential gain of grade {largest}: nothing but the best document would count"
        raise InputError(Problem(f"measure {str(steep)!r}", what, f"use linear gain, or grades up to {STEEPEST}"))
    return max(largest, 0)


def _refuse_duplicates(query_ids: Sequence[str], rankings: Sequence[Sequence[str]]) -> None:
    problems = [
        Problem(f"query {q!r}", f"document {next(d for d in ranking if ranking.count(d) > 1)!r} is ranked twice")
        for q, ranking in zip(query_ids, rankings, strict=True)
        if len(set(ranking)) < len(ranking)
    ]
    if problems:
        raise InputError(problems)
