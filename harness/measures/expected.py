"""What is declared of measures under ties: expected values in closed form (McSherry & Najork 2008), and the ends.

A row of the table names one of these functions only where it holds for that measure. Where a row declares nothing,
every order of the tied documents is tried, or many are drawn (see `ties`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import comb
from typing import NamedTuple

import numpy as np

from harness.measures.batch import Batch, Floats, Ints
from harness.measures.claims import NONE, Claimed, claim_value
from harness.measures.groups import Groups, group_value
from harness.measures.measure import Measure

TieGroup = tuple[int, int]
"""The places [start, end) of documents with one score."""


@dataclass(frozen=True, slots=True, eq=False)
class TieCase:
    """One query under one measure."""

    measure: Measure
    compute: Callable[[Batch, Measure], Floats]
    """What the measure's row computes it by."""
    ids: tuple[str, ...]
    grades: Ints
    """By place; one UNJUDGED where nothing came back."""
    judged: Ints
    largest: int
    groups: Groups
    claimed: Claimed = NONE

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
        if self.measure.claimed:
            rankings = ([self.ids[i] for i in order[: len(self.ids)]] for order in orders.tolist())
            return np.array([claim_value(self.measure, self.claimed, ranking) for ranking in rankings])
        n = len(orders)
        judged = np.broadcast_to(self.judged, (n, len(self.judged)))
        batch = Batch(self.grades[orders], np.full(n, len(self.ids)), judged, self.largest)
        return self.compute(batch, self.measure)


class Ties(NamedTuple):
    """What a row declares of its measure over the orders of tied documents; each holds for every such order."""

    ends: Callable[[TieCase, Sequence[TieGroup]], Ints]
    """The orders among which are the worst and the best; takes the blocks that matter."""
    mean: Callable[[TieCase, Sequence[TieGroup]], float] | None = None
    """The expected value in closed form; takes all blocks in order, those of one document included.

    None: by trying every order, or drawing many."""
    holds: Callable[[TieCase, Sequence[TieGroup]], bool] = lambda case, blocks: True
    """Whether both hold in this case; takes the blocks that matter."""


def order_cannot_matter_to_the_ideal(case: TieCase, blocks: Sequence[TieGroup]) -> bool:
    """Whether the ideal is the same in every order: it is not where a cutoff splits a tie and the ideal is cut too."""
    return case.measure.get("ideal") != "retrieved" or not any(start < case.cutoff < end for start, end in blocks)


def sorted_ends(case: TieCase, blocks: Sequence[TieGroup]) -> Ints:
    """In each block the grades fall, or rise: the ends of a measure that no better document higher up can lower."""
    return np.array([_sorted(case, blocks, sign) for sign in (-1, 1)])


def ends_of_context_precision(case: TieCase, blocks: Sequence[TieGroup]) -> Ints:
    """As `sorted_ends`, and every number of hits above a cutoff that splits a block: one more hit can lower this."""
    orders = []
    for sign in (-1, 1):
        order = _sorted(case, blocks, sign)
        orders.append(order)
        start, end = blocks[-1]
        if case.cutoff < end:
            inside = order[start:end]
            relevant = case.grades[inside] >= case.measure.rel
            hits, others, taken = inside[relevant], inside[~relevant], case.cutoff - start
            for x in range(max(0, taken - len(others)), min(taken, len(hits)) + 1):
                above = [hits[:x], others[: taken - x]][::-sign]
                orders.append(np.concatenate([order[:start], *above, hits[x:], others[taken - x :], order[end:]]))
    return np.array(orders)


def _sorted(case: TieCase, blocks: Sequence[TieGroup], sign: int) -> Ints:
    order = case.as_it_is()
    for start, end in blocks:
        order[start:end] = start + np.argsort(sign * case.grades[start:end], kind="stable")
    return order


def additive(case: TieCase, blocks: Sequence[TieGroup]) -> float:
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


def success(case: TieCase, blocks: Sequence[TieGroup]) -> float:
    """One minus the chance that none of the places within the cutoff falls to a hit."""
    for start, end in blocks:
        size, hits, taken = end - start, sum(case.hits[start:end]), min(end, case.cutoff) - start
        if taken > 0 and hits:
            return 1.0 - comb(size - hits, taken) / comb(size, taken)
    return 0.0


def reciprocal_rank(case: TieCase, blocks: Sequence[TieGroup]) -> float:
    """The first block with a hit decides: where its first hit stands follows the negative hypergeometric law."""
    for start, end in blocks:
        size, hits = end - start, sum(case.hits[start:end])
        if hits:
            places = range(1, min(size - hits + 1, case.cutoff - start) + 1)
            return sum(comb(size - j, hits - 1) / comb(size, hits) / (start + j) for j in places)
    return 0.0


def average_precision(case: TieCase, blocks: Sequence[TieGroup]) -> float:
    """Each place of a block expects the same share of its hits."""
    summed, above = 0.0, 0
    for start, end in blocks:
        hits = sum(case.hits[start:end])
        summed += _precisions(start, end - start, hits, above, min(end, case.cutoff) - start)
        above += hits
    return summed / case.relevant if case.relevant else 0.0


def _precisions(start: int, size: int, hits: int, above: int, taken: int) -> float:
    """The expected sum of P@i over the hits among the first `taken` of a block with `hits` hits at random places."""
    others = (hits - 1) / (size - 1) if size > 1 else 0.0
    return sum(hits / size * (above + 1 + (j - 1) * others) / (start + j) for j in range(1, taken + 1))


def context_precision(case: TieCase, blocks: Sequence[TieGroup]) -> float:
    """As average precision, but the divisor is drawn with the hits where the cutoff splits a block."""
    summed, above = 0.0, 0
    for start, end in blocks:
        size, hits, taken = end - start, sum(case.hits[start:end]), min(end, case.cutoff) - start
        if taken < size:
            return sum(
                chance * (summed + _precisions(start, taken, x, above, taken)) / (above + x)
                for x, chance in _drawn(size, hits, taken)
                if above + x
            )
        summed += _precisions(start, size, hits, above, size)
        above += hits
    return summed / above if above else 0.0


def set_average_precision(case: TieCase, blocks: Sequence[TieGroup]) -> float:
    """Hits squared / (returned x R), and the hits are hypergeometric."""
    above = 0
    for start, end in blocks:
        size, hits, taken = end - start, sum(case.hits[start:end]), min(end, case.cutoff) - start
        if taken < size:
            square = sum(chance * (above + x) ** 2 for x, chance in _drawn(size, hits, taken))
            return square / (case.cutoff * case.relevant) if case.relevant else 0.0
        above += hits
    return above**2 / (case.cutoff * case.relevant) if case.relevant else 0.0


def _drawn(size: int, hits: int, taken: int) -> Iterator[tuple[int, float]]:
    """How likely it is that `taken` of `size` documents, drawn at random, hold x of the `hits` hits."""
    for x in range(max(0, taken - (size - hits)), min(taken, hits) + 1):
        yield x, comb(hits, x) * comb(size - hits, taken - x) / comb(size, taken)
