"""Clusters of queries that count as one observation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.stats.differences import Floats, Integers


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """The observations of n queries, whose signs are flipped: queries or clusters."""

    members: Integers
    """(n,): the number of each query's unit, 0 … len(units) - 1."""
    sizes: Floats
    """(units,): how many queries each unit has."""
    clustered: bool
    """Whether the units are clusters (`scoring/query_units.py` says which).

    Each cluster may have one query all the same.
    """
    weights: Floats | None = None
    """(n,): how much each query counts; None: all alike."""

    def __len__(self) -> int:
        """How many units there are."""
        return len(self.sizes)

    @property
    def totals(self) -> Floats:
        """(units,): the weight of each; its number of queries, if all count alike."""
        if self.weights is None:
            return self.sizes
        return self._sum_by_unit(self.weights)

    @property
    def effective(self) -> float:
        """How many units of equal weight have as much information.

        (sum w)^2 / sum w^2 over the units; one must have a weight.
        """
        totals = self.totals
        return math.fsum(totals) ** 2 / math.fsum(totals**2)

    def sums(self, scores: Floats) -> Floats:
        """Return the weighted sums of (n,) or (n, k) scores within each unit.

        (units,) or (units, k).
        """
        if self.weights is None:
            return self._sum_by_unit(scores)
        return self._sum_by_unit((scores.T * self.weights).T)

    def means(self, scores: Floats) -> Floats:
        """Return the mean of (n,) scores within each unit, without weights: (units,).

        It is for ranks, which have no weights, and plans, which correct for them.
        """
        if not self.clustered:
            return scores
        return self._sum_by_unit(scores) / self.sizes

    def select(self, mask: npt.NDArray[np.bool_]) -> Units:
        """Return the units of the queries of a mask, numbered anew."""
        weights = None if self.weights is None else self.weights[mask]
        if not self.clustered:
            return single_units(int(mask.sum()), weights)
        return cluster_units([str(unit) for unit in self.members[mask]], weights)

    def _sum_by_unit(self, scores: Floats) -> Floats:
        if not self.clustered:
            return scores
        sums: Floats = np.zeros((len(self.sizes), *scores.shape[1:]))
        np.add.at(sums, self.members, scores)
        return sums


def single_units(n: int, weights: Floats | None = None) -> Units:
    """Return n units of one query each."""
    return Units(np.arange(n), np.ones(n), clustered=False, weights=weights)


def cluster_units(clusters: Sequence[str], weights: Floats | None = None) -> Units:
    """Return the units of named clusters; a query whose cluster is "" is a unit.

    >>> cluster_units(["x", "", "x", ""]).sizes.tolist()
    [2.0, 1.0, 1.0]
    """
    keys: list[str | int] = []
    for query_index, cluster in enumerate(clusters):
        keys.append(cluster or query_index)
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    members = np.array([numbers[key] for key in keys], dtype=np.int64)
    sizes = np.bincount(members, minlength=len(numbers)).astype(np.float64)
    return Units(members, sizes, clustered=True, weights=weights)
