"""Expected values over the orders of tied documents, in closed form (McSherry & Najork 2008)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from types import MappingProxyType

import numpy as np

from harness.measures.batch import Batch, Floats, Ints
from harness.measures.groups import Groups, group_value
from harness.measures.measure import Measure
from harness.measures.table import MEASURES

Block = tuple[int, int]
"""The places [start, end) of documents with one score."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One query under one measure."""

    measure: Measure
    ids: tuple[str, ...]
    grades: Ints
    """By place; one UNJUDGED where nothing came back."""
    judged: Ints
    largest: int
    groups: Groups

    @property
    def cutoff(self) -> int:
        """How many places count."""
        return min(self.measure.cutoff or len(self.ids), len(self.ids))

    @property
    def hits(self) -> list[bool]:
        """By place."""
        relevant: list[bool] = (self.grades >= self.measure.rel).tolist()
        return relevant

    @property
    def relevant(self) -> int:
        """R."""
        return int((self.judged >= self.measure.rel).sum())

    def as_it_is(self) -> Ints:
        """The order of the documents that the caller found: 0, 1, 2 and so on."""
        return np.arange(len(self.grades))

    def values(self, orders: Ints) -> Floats:
        """(n,): the measure for n orders of the documents, each a row of their places."""
        if self.measure.get("groups"):
            rankings = ([self.ids[i] for i in order[: len(self.ids)]] for order in orders.tolist())
            return np.array([group_value(self.measure, self.groups, ranking) for ranking in rankings])
        n = len(orders)
        judged = np.broadcast_to(self.judged, (n, len(self.judged)))
        batch = Batch(self.grades[orders], np.full(n, len(self.ids)), judged, self.largest)
        return MEASURES[self.measure.name].compute(batch, self.measure)


def expected(case: Case, blocks: Sequence[Block]) -> float:
    """The mean of the measure over the orders of tied documents.

    Args:
        case: a query; its measure is none of ERR, Bpref, a measure of groups, or one whose ideal depends on the order.
        blocks: all blocks of the ranking, in order, those of one document included.
    """
    return _CLOSED.get(case.measure.name, _additive)(case, blocks)


def _additive(case: Case, blocks: Sequence[Block]) -> float:
    """The mean of a measure that adds one term a place: turn each block round, so that each document has each place."""
    rows, shares = [case.as_it_is()], [0.0]
    for start, end in blocks:
        for shift in range(1, end - start):
            order = case.as_it_is()
            order[start:end] = np.roll(order[start:end], shift)
            rows.append(order)
            shares.append(1 / (end - start))
    values = case.values(np.array(rows))
    return float(values[0] + np.dot(shares, values - values[0]))


def _success(case: Case, blocks: Sequence[Block]) -> float:
    for start, end in blocks:
        size, hits, taken = end - start, sum(case.hits[start:end]), min(end, case.cutoff) - start
        if taken > 0 and hits:
            return 1.0 - comb(size - hits, taken) / comb(size, taken)
    return 0.0


def _reciprocal_rank(case: Case, blocks: Sequence[Block]) -> float:
    for start, end in blocks:
        size, hits = end - start, sum(case.hits[start:end])
        if hits:
            places = range(1, min(size - hits + 1, case.cutoff - start) + 1)
            return sum(comb(size - j, hits - 1) / comb(size, hits) / (start + j) for j in places)
    return 0.0


def _average_precision(case: Case, blocks: Sequence[Block]) -> float:
    summed, found = 0.0, 0
    for start, end in blocks:
        hits = sum(case.hits[start:end])
        summed += _precisions(start, end - start, hits, found, min(end, case.cutoff) - start)
        found += hits
    return summed / case.relevant if case.relevant else 0.0


def _precisions(start: int, size: int, hits: int, found: int, taken: int) -> float:
    """The expected sum of P@i over the hits among the first `taken` of a block with `hits` hits at random places."""
    others = (hits - 1) / (size - 1) if size > 1 else 0.0
    return sum(hits / size * (found + 1 + (j - 1) * others) / (start + j) for j in range(1, taken + 1))


def _context_precision(case: Case, blocks: Sequence[Block]) -> float:
    summed, found = 0.0, 0
    for start, end in blocks:
        size, hits, taken = end - start, sum(case.hits[start:end]), min(end, case.cutoff) - start
        if taken < size:
            return sum(
                chance * (summed + _precisions(start, taken, x, found, taken)) / (found + x)
                for x, chance in _drawn(size, hits, taken)
                if found + x
            )
        summed += _precisions(start, size, hits, found, size)
        found += hits
    return summed / found if found else 0.0


def _set_average_precision(case: Case, blocks: Sequence[Block]) -> float:
    """Hits squared / (returned x R), and the hits are hypergeometric."""
    found = 0
    for start, end in blocks:
        size, hits, taken = end - start, sum(case.hits[start:end]), min(end, case.cutoff) - start
        if taken < size:
            square = sum(chance * (found + x) ** 2 for x, chance in _drawn(size, hits, taken))
            return square / (case.cutoff * case.relevant) if case.relevant else 0.0
        found += hits
    return found**2 / (case.cutoff * case.relevant) if case.relevant else 0.0


def _drawn(size: int, hits: int, taken: int) -> Iterator[tuple[int, float]]:
    """How likely it is that `taken` of `size` documents, drawn at random, hold x of the `hits` hits."""
    for x in range(max(0, taken - (size - hits)), min(taken, hits) + 1):
        yield x, comb(hits, x) * comb(size - hits, taken - x) / comb(size, taken)


_CLOSED: Mapping[str, Callable[[Case, Sequence[Block]], float]] = MappingProxyType(
    {
        "Success": _success,
        "RR": _reciprocal_rank,
        "AP": _average_precision,
        "ContextPrecision": _context_precision,
        "SetAP": _set_average_precision,
    }
)
"""The expected values of measures that do not add one term a place."""
