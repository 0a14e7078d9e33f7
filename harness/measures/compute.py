"""Rankings and labels in, a row of values per measure out; the winner under other grade rules and gains."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from harness.measures.batch import Batch, Floats, by_score, in_order
from harness.measures.grades import RULES, STEEPEST, Groups, Named, grade, group_value
from harness.measures.measure import NONE, Claimed, Measure, claim_value, own_value
from harness.measures.table import parse, row_of
from retrievers.errors import InputError, Problem

Judgments = Mapping[str, Mapping[str, int]]
Precision = Literal["single", "double"]
Retrieved = TypeVar("Retrieved", bound=Collection[str])

CELLS = 2**18
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

    def of(self, measure: Measure) -> Floats:
        """(queries,): the values of one measure."""
        row: Floats = self.values[self.measures.index(measure)]
        return row

    def only(self, query_ids: Collection[str]) -> MeasureValues:
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


def score(
    measures: Iterable[Measure],
    judgments: Judgments,
    rankings: Mapping[str, Sequence[str]],
    *,
    groups: Mapping[str, Groups] | None = None,
    claims: Mapping[str, Claimed] | None = None,
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

    >>> score([parse("P@2"), parse("RR")], {"q": {"a": 1}}, {"q": ["b", "a"]}).values.tolist()
    [[0.5], [0.5]]
    """
    everything = tuple(measures)
    by_claims = claims is not None
    plain = tuple(
        m
        for m in everything
        if not m.get("groups") and not m.own and not (by_claims and m.claimed)
    )
    known = _each_once(judgments, rankings)
    scores = _scored(plain, judgments, zip(judgments, known, strict=True), in_order)
    if plain == everything:
        return scores
    rows = dict(zip(plain, scores.values, strict=True))
    for measure in everything:
        if measure.get("groups"):
            wanted = groups_for(measure, judgments, groups)
            rows[measure] = np.array(
                [
                    group_value(measure, wanted[q], rankings.get(q, ()))
                    for q in judgments
                ]
            )
        elif measure.own:
            rows[measure] = np.array(
                [
                    own_value(measure, judgments[q], rankings.get(q, ()), q)
                    for q in judgments
                ]
            )
        elif claims is not None and measure.claimed:
            rows[measure] = np.array(
                [
                    claim_value(measure, claims.get(q, NONE), rankings.get(q, ()))
                    for q in judgments
                ]
            )
    return _sealed(
        everything,
        judgments,
        np.array([rows[m] for m in everything]),
        scores.largest_grade,
    )


def score_run(
    measures: Iterable[Measure],
    judgments: Judgments,
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

    >>> score_run([parse("P@1")], {"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.50000000001}}).values.tolist()
    [[0.0]]
    """
    hits = ((query, run.get(query, {})) for query in judgments)
    return _scored(
        tuple(measures),
        judgments,
        hits,
        partial(by_score, single=precision == "single"),
    )


def span(measure: Measure, judgments: Judgments) -> float:
    """How far apart two values of a measure can be on these queries: what equivalence calls its range.

    1 for a measure between 0 and 1; for the others the largest value that an ideal ranking reaches.

    Raises:
        InputError: exponential gain meets a grade above 30.

    >>> names = "nDCG@2", "CG@1", "own.effort(low=1, high=5)"
    >>> [span(parse(name), {"q": {"a": 3, "b": 1}}) for name in names]
    [1.0, 3.0, 4.0]
    """
    low, high = bounds(measure, judgments)
    return high - low


def bounds(measure: Measure, judgments: Judgments) -> tuple[float, float]:
    """The least and the largest value that a measure can have on these queries, as `span` has it."""
    if measure.own:
        return measure.limits
    if row_of(measure).bounded:
        return 0.0, 1.0
    ideal = {
        query: sorted(judged, key=lambda d: -judged[d])
        for query, judged in judgments.items()
    }
    return 0.0, float(score([measure], judgments, ideal).values.max(initial=0.0))


def value(name: str, judged: Mapping[str, int], ranking: Sequence[str]) -> float:
    """Score one ranking by the name of a measure.

    >>> value("nDCG@2", {"a": 2, "b": 1}, ["a", "b"])
    1.0
    """
    return float(score([parse(name)], {"": judged}, {"": ranking}).values[0, 0])


def _scored(
    measures: tuple[Measure, ...],
    judgments: Judgments,
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


def groups_for(
    measure: Measure, judgments: Judgments, groups: Mapping[str, Groups] | None
) -> dict[str, Groups]:
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
    measures: tuple[Measure, ...], judgments: Judgments, values: Floats, largest: int
) -> MeasureValues:
    values.setflags(write=False)
    return MeasureValues(measures, tuple(judgments), values, largest)


def _portions(
    judgments: Judgments, answers: Iterable[tuple[str, Retrieved]]
) -> Iterator[tuple[list[str], list[Retrieved]]]:
    """Cut the answers into portions whose padded arrays keep to CELLS."""
    ids: list[str] = []
    portion: list[Retrieved] = []
    width = 1
    for query_id, answer in answers:
        own = max(1, len(answer), len(judgments[query_id]))
        if ids and max(width, own) * (len(ids) + 1) > CELLS:
            yield ids, portion
            ids, portion, width = [], [], 1
        ids.append(query_id)
        portion.append(answer)
        width = max(width, own)
    if ids:
        yield ids, portion


def _each_once(
    judgments: Judgments, rankings: Mapping[str, Sequence[str]]
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


def _largest_grade(measures: Sequence[Measure], judgments: Judgments) -> int:
    """The largest grade of all judgments, at least 0.

    Raises:
        InputError: it is above 30 and one of the measures has exponential gain.
    """
    largest = max(
        chain.from_iterable(judged.values() for judged in judgments.values()), default=0
    )
    steep = next((m for m in measures if m.get("dcg") == "exp-log2"), None)
    if steep and largest > STEEPEST:
        what = f"exponential gain of grade {largest}: nothing but the best document would count"
        raise InputError(
            Problem(
                f"measure {str(steep)!r}",
                what,
                f"use linear gain, or grades up to {STEEPEST}",
            )
        )
    return max(largest, 0)


EQUAL = 1e-10
"""Means nearer than this share one place."""


class Sensitivity(NamedTuple):
    """The outcome under one grade rule and gain."""

    rule: str
    measure: Measure
    """With the gain of this row."""
    means: dict[str, float]
    """Retriever -> mean over the queries."""
    winners: tuple[str, ...]
    """The retrievers with the highest mean."""
    changed: bool
    """Whether they are others than in the first row."""


def sensitivity(
    measure: Measure,
    rules: Mapping[str, Judgments],
    rankings: Iterable[tuple[str, Mapping[str, Sequence[str]]]],
    weights: Mapping[str, float] | None = None,
) -> list[Sensitivity]:
    """Score every retriever under every grade rule, and under both gains where the measure has a gain.

    The first row is the first rule with the measure's own gain. Exponential gain is left out where it is not
    allowed: under `reciprocal`, and with a grade above 30.

    Args:
        measure: whose winner is in question; none is found of a function of the user's own.
        rules: the name of a rule -> judgments under it, the experiment's own rule first; `by_rule` makes them.
        rankings: each retriever with query id -> document ids, best first; read one after the other.
        weights: query id -> how much it counts in a mean; left out, all alike.

    >>> rows = sensitivity(
    ...     Measure("nDCG", 2),
    ...     by_rule({"q": ["a", "b", "c", "d"]}),
    ...     {"x": {"q": ["a", "z"]}, "y": {"q": ["b", "c"]}}.items(),
    ... )
    >>> [(row.rule, str(row.measure), row.winners) for row in rows[:2]]
    [('linear', 'nDCG@2', ('y',)), ('linear', "nDCG(dcg='exp-log2')@2", ('x',))]
    """
    if measure.own:  # its function may have gone with its process
        return []
    variants = {
        rule: _allowed(measure, rule, judgments) for rule, judgments in rules.items()
    }
    means: dict[tuple[str, Measure], dict[str, float]] = {}
    for name, run in rankings:
        for rule, under in variants.items():
            for variant, mean in score(under, rules[rule], run).means(weights).items():
                means.setdefault((rule, variant), {})[name] = mean
    rows: list[Sensitivity] = []
    for (rule, variant), of in means.items():
        top = max(of.values(), default=0.0)
        winners = tuple(name for name, mean in of.items() if top - mean <= EQUAL)
        rows.append(
            Sensitivity(
                rule, variant, of, winners, bool(rows) and winners != rows[0].winners
            )
        )
    return rows


def by_rule(
    lists: Mapping[str, Sequence[str]], first: Named = "linear"
) -> dict[str, dict[str, dict[str, int]]]:
    """Grade the ordered lists of all queries under `first` and the other rules.

    >>> by_rule({"q": ["a", "b"]}, first="binary")["binary"]
    {'q': {'a': 1, 'b': 1}}
    """
    ordered = sorted(RULES, key=lambda rule: rule != first)
    return {
        rule: {q: grade(documents, rule) for q, documents in lists.items()}
        for rule in ordered
    }


def _allowed(measure: Measure, rule: str, judgments: Judgments) -> list[Measure]:
    """The measure with its own gain, then with the other one; without the exponential one where it is not allowed."""
    largest = max(
        (g for judged in judgments.values() for g in judged.values()), default=0
    )
    steep = rule == "reciprocal" or largest > STEEPEST
    variants = [measure]
    if "dcg" in row_of(measure).options and not measure.get("groups"):
        params = dict(measure.params)
        if params.pop("dcg", None) is None:
            params["dcg"] = "exp-log2"
        variants.append(replace(measure, params=tuple(sorted(params.items()))))
    return [
        variant
        for variant in variants
        if not (steep and variant.get("dcg") == "exp-log2")
    ]
