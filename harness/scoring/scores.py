"""The one table of scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.stats.differences import (
    SCORE_TOLERANCE,
    UNIT_RANGE,
    ScoreTable,
    ValueRange,
    index_of_highest,
)
from harness.stats.intervals import mean
from harness.stats.units import Units, cluster_units, single_units
from retrievers.errors import InputError, Problem, did_you_mean

QueryMask = npt.NDArray[np.bool_]
"""(n,): which queries stay."""
ScoreColumn = tuple[str, str, Sequence[str], npt.ArrayLike]
"""A measure, a retriever, queries, and the value of each."""
RankedIds = Mapping[str, Sequence[str]]
"""Query id -> document ids, best first."""


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
        InputError: a score is outside the range that was declared.
    """

    ids: tuple[str, ...]
    """The queries, sorted as text: the order of every array, and of every random draw."""
    values: Mapping[str, ScoreTable]
    """Measure -> retriever -> (n,), NaN where undefined."""
    declared_primary: str = ""
    """The primary measure; left out, the first one."""
    ranges: Mapping[str, ValueRange | None] = field(default_factory=dict)
    """Measure -> its range; None if unknown. A measure that is not named has the range [0, 1] if its scores do."""
    binary: frozenset[str] = frozenset()
    """Measures that can only be 0 or 1."""
    low_is_good: frozenset[str] = frozenset()
    """Measures for which less is better: their verdicts are turned round, their numbers stay."""
    clusters: tuple[str, ...] | None = None
    """(n,): each query's cluster, "" for none. None: every query is a unit."""
    weights: tuple[float, ...] | None = None
    """(n,): how much each query counts in a mean; None: all alike."""
    identical: frozenset[frozenset[str]] = frozenset()
    """Pairs whose rankings are the same, down to the primary measure's cutoff, on every query."""
    source_order: tuple[int, ...] | None = None
    """Positions in `ids` in the order of the source; None: as they are sorted."""
    notes: tuple[str, ...] = ()
    """What a reader of the numbers must know: queries that are missing, unjudged or without a relevant document."""
    rankings: Mapping[str, Callable[[], RankedIds]] = field(default_factory=dict)
    """Retriever -> what reads its rankings; absent where scores are all there is."""
    unmatched: tuple[Problem, ...] = ()
    """Of runs that have no scores, since none of their hits is judged."""
    judged_by_people: bool = True
    """False where a model alone judged: nothing is claimed then."""
    judged_shares: Mapping[str, float] = field(default_factory=dict)
    """Retriever -> share of its hits within the primary measure's cutoff that have a label, a mean over the queries
    that have a hit; empty where claims decide, or scores are all there is."""
    has_irrelevant_labels: bool = False
    """Whether labels also name irrelevant documents: else nothing tells an unjudged document from one."""
    absent: frozenset[tuple[str, str]] = frozenset()
    """(retriever, query id): queries that were left out for one retriever alone, which have no row."""

    def __post_init__(self) -> None:
        for measure, declared in self.ranges.items():
            if declared is None or measure not in self.values:
                continue
            low, high = self.extremes(measure)
            slack = SCORE_TOLERANCE * max(1.0, abs(low), abs(high))
            if low < declared.low - slack or high > declared.high + slack:
                what = f"scores reach from {low:g} to {high:g}, outside {declared.low:g} to {declared.high:g}"
                raise InputError(
                    Problem(
                        f"range of {measure}",
                        what,
                        "give the lowest and the highest possible score",
                    )
                )

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
        """Everyone who has scores on any measure, in the given order."""
        return tuple(
            dict.fromkeys(name for group in self.values.values() for name in group)
        )

    @property
    def units(self) -> Units:
        """What counts as one observation: a query, or a cluster of them."""
        weights = None if self.weights is None else np.array(self.weights)
        return (
            single_units(self.n, weights)
            if self.clusters is None
            else cluster_units(self.clusters, weights)
        )

    @property
    def weight_of(self) -> Mapping[str, float] | None:
        """Query id -> how much it counts in a mean; None: all alike."""
        return (
            None
            if self.weights is None
            else dict(zip(self.ids, self.weights, strict=True))
        )

    def mean(self, measure: str, name: str) -> float:
        """The mean of a retriever over the queries for which the measure is defined; NaN without any."""
        values = self.values[measure][name]
        kept = ~np.isnan(values)
        weights = None if self.weights is None else np.array(self.weights)[kept]
        return mean(values[kept], weights) if kept.any() else math.nan

    def extremes(self, measure: str) -> tuple[float, float]:
        """The lowest and the highest score of a measure; 0 and 0 without any."""
        values = np.array([*self.values[measure].values()])
        known = values[~np.isnan(values)]
        return (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)

    def range_of(self, measure: str) -> ValueRange | None:
        """A measure's range; None where it is not known."""
        if measure in self.ranges:
            return self.ranges[measure]
        low, high = self.extremes(measure)
        return (
            UNIT_RANGE
            if low >= -SCORE_TOLERANCE and high <= 1 + SCORE_TOLERANCE
            else None
        )

    def span_of(self, measure: str) -> float | None:
        """The worst possible loss on one query; None where the range is not known."""
        bounds = self.range_of(measure)
        return None if bounds is None else bounds.span

    @property
    def gap_range(self) -> ValueRange | None:
        """What no difference of means on the primary measure leaves; None where the range is not known."""
        span = self.span_of(self.primary)
        return None if span is None else ValueRange(-span, span)

    def defined(self, measure: str, *names: str) -> QueryMask:
        """(n,): the queries for which each of these retrievers (all, if none is named) has a value."""
        group = self.values[measure]
        chosen = [group[name] for name in names or group]
        kept: QueryMask = (
            ~np.isnan(np.sum(chosen, axis=0))
            if chosen
            else np.zeros(self.n, dtype=np.bool_)
        )
        return kept  # a sum with NaN is NaN

    def select_queries(self, kept: QueryMask) -> Scores:
        """The same on some of the queries; ranges and identical rankings are those of all."""
        if kept.all():
            return self
        places = {old: new for new, old in enumerate(np.flatnonzero(kept).tolist())}
        return replace(
            self,
            ids=tuple(self.ids[old] for old in places),
            values={
                m: {name: values[kept] for name, values in group.items()}
                for m, group in self.values.items()
            },
            clusters=None
            if self.clusters is None
            else tuple(self.clusters[old] for old in places),
            weights=None
            if self.weights is None
            else tuple(self.weights[old] for old in places),
            source_order=None
            if self.source_order is None
            else tuple(places[old] for old in self.source_order if old in places),
        )

    def select_measures(self, *measures: str) -> Scores:
        """The same on some of the measures; where the primary one is none of them, the first decides."""
        decides = self.declared_primary if self.declared_primary in measures else ""
        return replace(
            self,
            values={measure: self.values[measure] for measure in measures},
            declared_primary=decides,
        )

    def select(
        self, measures: Sequence[str], queries: Sequence[str] | None = None
    ) -> Scores:
        """Keep some measures, in the order in which they are named, and some queries; all of them where none is named.

        Raises:
            InputError: a measure or a query is not there.
        """
        problems = [
            Problem(
                f"{what} {name!r}",
                "has no score in the file",
                did_you_mean(name, known),
            )
            for what, names, known in (
                ("measure", measures, self.values),
                ("query", queries or (), self.ids),
            )
            for name in names
            if name not in known
        ]
        if problems:
            raise InputError(problems)
        kept = np.array(
            [queries is None or query in queries for query in self.ids], dtype=np.bool_
        )
        return self.select_measures(*(measures or self.values)).select_queries(kept)

    def rows(self) -> Iterator[ScoreRow]:
        """Every value: retriever by retriever, measure by measure, queries in the order of the source."""
        places = range(self.n) if self.source_order is None else self.source_order
        for name in self.retrievers:
            for measure, group in self.values.items():
                values = group[name].tolist() if name in group else []
                for place in places if values else ():
                    if (name, self.ids[place]) not in self.absent:
                        value = None if math.isnan(values[place]) else values[place]
                        yield ScoreRow(name, self.ids[place], measure, value)

    def undefined_counts(self) -> dict[str, dict[str, int]]:
        """Measure -> retriever -> how many queries have no value there, where there are any."""
        counted = {
            m: {r: int(np.isnan(v).sum()) for r, v in of.items()}
            for m, of in self.values.items()
        }
        return {
            m: {r: n for r, n in of.items() if n}
            for m, of in counted.items()
            if any(of.values())
        }


def order_by_mean(
    means: Mapping[str, float], *, low_is_good: bool = False
) -> dict[str, float]:
    """Return means best first, NaN last; those that float noise alone tells apart stay in the given order."""
    left, ordered = (
        {
            name: -m if low_is_good else m
            for name, m in means.items()
            if not math.isnan(m)
        },
        {},
    )
    while left:
        name = list(left)[index_of_highest(np.array([*left.values()]))]
        ordered[name] = left.pop(name)
    return {**ordered, **means}  # the order of the first, the values of the second
