"""The orders of documents with equal scores among which a measure is lowest and highest.

A row of the table names one of these functions only where it holds for that measure. Where a row declares nothing,
every order of the tied documents is tried, or many are drawn (see `tie_range`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from harness.measures.batch import Batch, Floats, Ints
from harness.measures.claims import NONE, Claimed, claim_value
from harness.measures.groups import Groups, group_value
from harness.measures.measure import Measure, own_value

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
    by_id: Mapping[str, int] = field(default_factory=dict)
    """Every judged document's grade."""

    @property
    def cutoff(self) -> int:
        """How many places count."""
        return min(self.measure.cutoff or len(self.ids), len(self.ids))

    def as_it_is(self) -> Ints:
        """The order of the documents that the caller found: 0, 1, 2 and so on."""
        return np.arange(len(self.grades))

    def values(self, orders: Ints) -> Floats:
        """(n,): the measure for n orders of the documents, each a row of their places."""
        if not self.measure.by_grades:
            rankings = ([self.ids[i] for i in order[: len(self.ids)]] for order in orders.tolist())
            return np.array([self._of_list(ranking) for ranking in rankings])
        n = len(orders)
        judged = np.broadcast_to(self.judged, (n, len(self.judged)))
        batch = Batch(self.grades[orders], np.full(n, len(self.ids)), judged, self.largest)
        return self.compute(batch, self.measure)

    def _of_list(self, ranking: Sequence[str]) -> float:
        if self.measure.own:
            return own_value(self.measure, self.by_id, ranking)
        if self.measure.claimed:
            return claim_value(self.measure, self.claimed, ranking)
        return group_value(self.measure, self.groups, ranking)


class Ties(NamedTuple):
    """What a row declares of its measure over the orders of tied documents; each holds for every such order."""

    ends: Callable[[TieCase, Sequence[TieGroup]], Ints]
    """The orders among which are the worst and the best; takes the blocks that matter."""
    holds: Callable[[TieCase, Sequence[TieGroup]], bool] = lambda case, blocks: True
    """Whether that holds in this case; takes the blocks that matter."""


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
