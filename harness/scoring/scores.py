"""The one table of scores.

Every evaluation, table and test reads it, wherever the scores come from: rankings
(`score_rankings`), run files (`trec_runs`), a results folder (`stored_scores`), or a
file of another tool (`foreign_csv`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from harness.stats.differences import (
    SCORE_TOLERANCE,
    UNIT_RANGE,
    Floats,
    ScoreTable,
    ValueRange,
    index_of_highest,
)
from harness.stats.intervals import mean
from harness.stats.units import Units, cluster_units, single_units
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.types import Ranking

Item = TypeVar("Item")
QueryMask = npt.NDArray[np.bool_]
"""(n,): whether each query is selected."""
RankedIds = Mapping[str, Sequence[str]]
"""Query id -> document ids, best first."""
Rankings = Mapping[str, Ranking]
"""Query id -> ranking."""
Trials = Sequence[Rankings]
"""The rankings of each trial, at least one."""


class ScoreColumn(NamedTuple):
    """The scores of one retriever on one measure."""

    measure: str
    retriever: str
    query_ids: Sequence[str]
    values: npt.ArrayLike
    """One for each query."""


class ScoreRow(NamedTuple):
    """One row of scores.csv."""

    retriever: str
    query_id: str
    measure: str
    value: float | None
    """None where the measure is undefined."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Scores:
    """Scores of retrievers on the same queries, on one or several measures.

    Raises:
        InputError: a score is outside the declared range.
    """

    ids: tuple[str, ...]
    """The queries, sorted as text: the order of every array and every random draw."""
    values: Mapping[str, ScoreTable]
    """Measure -> retriever -> (n,), NaN where undefined."""
    declared_primary: str = ""
    """The primary measure; "": the first one."""
    ranges: Mapping[str, ValueRange | None] = field(default_factory=dict)
    """Measure -> its range; None if unknown.

    A measure that is not in it has the range [0, 1] if its scores do.
    """
    binary: frozenset[str] = frozenset()
    """The measures in `ranges` whose scores are only 0 or 1."""
    low_is_good: frozenset[str] = frozenset()
    """Measures for which less is better: verdicts are reversed, numbers stay."""
    clusters: tuple[str, ...] | None = None
    """(n,): each query's cluster, "" for none. None: every query is a unit."""
    weights: tuple[float, ...] | None = None
    """(n,): how much each query counts in a mean; None: all alike."""
    identical: frozenset[frozenset[str]] = frozenset()
    """Pairs with the same rankings of every query, down to the primary's cutoff."""
    source_order: tuple[int, ...] | None = None
    """The order of the source, as indices into `ids`; None for the order of `ids`."""
    notes: tuple[str, ...] = ()
    """What a reader of the numbers must know.

    Queries that are missing, unjudged or without a relevant document.
    """
    rankings: Mapping[str, Callable[[], RankedIds]] = field(default_factory=dict)
    """Retriever -> a function that reads its rankings; empty with scores alone."""
    compared: Mapping[str, Callable[[], RankedIds]] = field(default_factory=dict)
    """Retriever -> a function that reads what is equal in rankings that are identical.

    That is documents, or passages if the primary measure reads them; an average of
    several trials has no ranking.
    """
    unmatched: tuple[Problem, ...] = ()
    """The problems of runs that have no scores, since none of their hits is judged."""
    judged_by_people: bool = True
    """False if only a model judged: nothing is claimed then."""
    judged_shares: Mapping[str, float] = field(default_factory=dict)
    """Retriever -> share of its hits within the primary measure's cutoff with a label.

    It is the mean over the queries that have a hit; empty if claims decide, or there
    are only scores.
    """
    trial_means: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Retriever -> its mean on the primary measure in each trial, if it has several."""
    has_irrelevant_labels: bool = False
    """Whether labels also name irrelevant documents.

    Otherwise an unjudged document may just be irrelevant.
    """
    absent: frozenset[tuple[str, str]] = frozenset()
    """(retriever, query id): queries that were left out for one retriever alone.

    They have no row.
    """

    def __post_init__(self) -> None:
        for measure, declared in self.ranges.items():
            if declared is None or measure not in self.values:
                continue
            if not len(self._defined_scores(measure)):
                continue
            low, high = self.extremes(measure)
            slack = SCORE_TOLERANCE * max(1.0, abs(low), abs(high))
            if low < declared.low - slack or high > declared.high + slack:
                limits = f"{declared.low:g} to {declared.high:g}"
                problem = f"scores reach from {low:g} to {high:g}, outside {limits}"
                remedy = "give the lowest and the highest possible score"
                raise InputError(Problem(f"range of {measure}", problem, remedy))

    @property
    def n(self) -> int:
        """How many queries there are."""
        return len(self.ids)

    @property
    def primary(self) -> str:
        """The measure that decides."""
        return self.declared_primary or next(iter(self.values))

    @property
    def retrievers(self) -> tuple[str, ...]:
        """The retrievers that have scores on any measure, in their order."""
        names: dict[str, None] = {}
        for scores_by_retriever in self.values.values():
            names.update(dict.fromkeys(scores_by_retriever))
        return tuple(names)

    @property
    def units(self) -> Units:
        """The units of observation: queries, or clusters of them."""
        weights = None if self.weights is None else np.array(self.weights)
        if self.clusters is None:
            return single_units(self.n, weights)
        return cluster_units(self.clusters, weights)

    @property
    def weight_of(self) -> Mapping[str, float] | None:
        """Query id -> how much it counts in a mean; None: all alike."""
        if self.weights is None:
            return None
        return dict(zip(self.ids, self.weights, strict=True))

    def mean(self, measure: str, name: str) -> float:
        """The mean of a retriever over the queries for which the measure is defined.

        NaN if it is defined for none.
        """
        scores = self.values[measure][name]
        is_defined = ~np.isnan(scores)
        if not is_defined.any():
            return math.nan
        if self.weights is None:
            return mean(scores[is_defined])
        return mean(scores[is_defined], np.array(self.weights)[is_defined])

    def extremes(self, measure: str) -> tuple[float, float]:
        """The lowest and the highest score of a measure; 0 and 0 without any."""
        defined = self._defined_scores(measure)
        if not len(defined):
            return 0.0, 0.0
        return float(defined.min()), float(defined.max())

    def _defined_scores(self, measure: str) -> Floats:
        scores = np.array([*self.values[measure].values()])
        return np.asarray(scores[~np.isnan(scores)])

    def range_of(self, measure: str) -> ValueRange | None:
        """A measure's range; None if it is unknown."""
        if measure in self.ranges:
            return self.ranges[measure]
        low, high = self.extremes(measure)
        if low >= -SCORE_TOLERANCE and high <= 1 + SCORE_TOLERANCE:
            return UNIT_RANGE
        return None

    def is_binary(self, measure: str) -> bool:
        """Whether a measure can only be 0 or 1.

        `binary` says so of measures in `ranges`, `are_zeros_and_ones` of others. An
        average of trials is neither 0 nor 1.
        """
        if measure in self.ranges or self.trial_means:
            return measure in self.binary
        return are_zeros_and_ones(self.values[measure])

    def span_of(self, measure: str) -> float | None:
        """The worst possible loss on one query; None if the range is unknown."""
        bounds = self.range_of(measure)
        return None if bounds is None else bounds.span

    def difference_range(self, measure: str) -> ValueRange | None:
        """The range of differences of means on a measure; None if unknown."""
        span = self.span_of(measure)
        return None if span is None else ValueRange(-span, span)

    def defined(self, measure: str, *names: str) -> QueryMask:
        """(n,): the queries for which each of these retrievers has a value.

        All retrievers if none is named.
        """
        scores_by_retriever = self.values[measure]
        columns = [scores_by_retriever[name] for name in names or scores_by_retriever]
        if not columns:
            return np.zeros(self.n, dtype=np.bool_)
        mask: QueryMask = ~np.isnan(np.sum(columns, axis=0))  # a sum with NaN is NaN
        return mask

    def select_queries(self, mask: QueryMask) -> Scores:
        """The scores of some of the queries.

        Ranges, binary measures and identical rankings stay those of all queries.
        """
        if mask.all():
            return self  # so that pairs over all queries share one table
        selected = np.flatnonzero(mask).tolist()
        values: dict[str, ScoreTable] = {}
        for measure, scores_by_retriever in self.values.items():
            values[measure] = {
                retriever: scores[mask]
                for retriever, scores in scores_by_retriever.items()
            }
        source_order = self.source_order
        if source_order is not None:
            new_index = {old: new for new, old in enumerate(selected)}
            source_order = tuple(
                new_index[index] for index in source_order if index in new_index
            )
        return replace(
            self,
            ids=tuple(self.ids[index] for index in selected),
            values=values,
            ranges={measure: self.range_of(measure) for measure in values},
            binary=frozenset(filter(self.is_binary, values)),
            clusters=_items_at(selected, self.clusters),
            weights=_items_at(selected, self.weights),
            source_order=source_order,
        )

    def select_ids(self, ids: Collection[str]) -> Scores:
        """The scores of some of the queries; other ids are ignored."""
        selected = frozenset(ids)
        is_selected = [query_id in selected for query_id in self.ids]
        return self.select_queries(np.array(is_selected, dtype=np.bool_))

    def select_measures(self, *measures: str) -> Scores:
        """The scores of some of the measures.

        If the primary one is not among them, the first decides.
        """
        primary = self.declared_primary if self.declared_primary in measures else ""
        return replace(
            self,
            values={measure: self.values[measure] for measure in measures},
            declared_primary=primary,
        )

    def select(
        self, measures: Sequence[str], queries: Sequence[str] | None = None
    ) -> Scores:
        """The scores of some measures, in the given order, and some queries.

        All measures if none is named, all queries if `queries` is None.

        Raises:
            InputError: a measure or a query has no score.
        """
        problems = [
            *_absent_names("measure", measures, self.values),
            *_absent_names("query", queries or (), self.ids),
        ]
        if problems:
            raise InputError(problems)
        selected = self.select_measures(*(measures or self.values))
        return selected if queries is None else selected.select_ids(queries)

    def rows(self) -> Iterator[ScoreRow]:
        """Every value: by retriever, then by measure, queries in the source's order."""
        order = range(self.n) if self.source_order is None else self.source_order
        for retriever in self.retrievers:
            for measure, scores_by_retriever in self.values.items():
                if retriever not in scores_by_retriever:
                    continue
                scores = scores_by_retriever[retriever].tolist()
                for index in order:
                    query_id = self.ids[index]
                    if (retriever, query_id) not in self.absent:
                        score = None if math.isnan(scores[index]) else scores[index]
                        yield ScoreRow(retriever, query_id, measure, score)

    def undefined_counts(self) -> dict[str, dict[str, int]]:
        """Measure -> retriever -> how many queries have no value, if any."""
        counts: dict[str, dict[str, int]] = {}
        for measure, scores_by_retriever in self.values.items():
            for retriever, scores in scores_by_retriever.items():
                count = int(np.isnan(scores).sum())
                if count:
                    counts.setdefault(measure, {})[retriever] = count
        return counts


def are_zeros_and_ones(scores_by_retriever: ScoreTable) -> bool:
    """Whether all scores are 0, 1 or undefined, and both 0 and 1 occur."""
    scores = np.array([*scores_by_retriever.values()])
    is_zero = scores == 0
    is_one = scores == 1
    is_either = is_zero | is_one | np.isnan(scores)
    return bool(is_either.all() and is_zero.any() and is_one.any())


def _items_at(
    indices: Sequence[int], items: Sequence[Item] | None
) -> tuple[Item, ...] | None:
    return None if items is None else tuple(items[index] for index in indices)


def _absent_names(
    kind: str, names: Sequence[str], scored_names: Collection[str]
) -> list[Problem]:
    """Return the problems of measures, or queries, that have no score."""
    return [
        Problem(
            f"{kind} {name!r}",
            "has no score in the file",
            did_you_mean(name, scored_names),
        )
        for name in names
        if name not in scored_names
    ]


def ranked_ids(rankings: Rankings) -> RankedIds:
    """Return the documents of each query, best first."""
    return {query_id: ranking.doc_ids for query_id, ranking in rankings.items()}


def widest_range(tables: Iterable[Scores], measure: str) -> ValueRange | None:
    """Return the widest of several tables' ranges of a measure.

    A range may depend on the grades of each: the widest holds for all. None if all are
    unknown.
    """
    ranges = [table.range_of(measure) for table in tables]
    bounded = [bounds for bounds in ranges if bounds is not None]
    return max(bounded, key=lambda bounds: bounds.span, default=None)


def best_by_mean(
    means: Mapping[str, float], *, low_is_good: bool = False
) -> tuple[str, ...]:
    """Return the names with the best mean; only float noise separates several.

    >>> best_by_mean({"a": 0.3, "b": 0.1 + 0.2, "c": 0.1})
    ('a', 'b')
    """
    ordered = order_by_mean(means, low_is_good=low_is_good)
    best = next(iter(ordered.values()))
    tolerance = SCORE_TOLERANCE * max(1.0, abs(best))
    return tuple(name for name in ordered if abs(ordered[name] - best) <= tolerance)


def order_by_mean(
    means: Mapping[str, float], *, low_is_good: bool = False
) -> dict[str, float]:
    """Return means best first, NaN last.

    Those that only float noise separates stay in the given order.
    """
    goodness = {
        name: -mean if low_is_good else mean
        for name, mean in means.items()
        if not math.isnan(mean)
    }
    ordered: dict[str, float] = {}
    while goodness:
        best = list(goodness)[index_of_highest(np.array([*goodness.values()]))]
        ordered[best] = means[best]
        del goodness[best]
    return {**ordered, **means}
