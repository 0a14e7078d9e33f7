"""Clusters of queries that count as one observation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.stats.differences import Floats, Integers


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Which of n queries belong together: signs are flipped and queries drawn again by unit."""

    members: Integers
    """(n,): the number of each query's unit, 0 … len(units) - 1."""
    sizes: Floats
    """(units,): how many queries each holds."""
    clustered: bool
    """Whether queries belong together: by a declared field, or by equal texts."""
    weights: Floats | None = None
    """(n,): how much each query counts; None: all alike."""

    def __len__(self) -> int:
        """How many units there are."""
        return len(self.sizes)

    @property
    def totals(self) -> Floats:
        """(units,): the weight of each; its queries, where all count alike."""
        return self.sizes if self.weights is None else self._summed(self.weights)

    @property
    def effective(self) -> float:
        """How many units of equal weight would tell as much: (sum w)^2 / sum w^2 over the units."""
        totals = self.totals
        return math.fsum(totals) ** 2 / math.fsum(totals**2)

    def sums(self, values: Floats) -> Floats:
        """Sum (n,) or (n, k) values, each times its query's weight, within each unit: (units,) or (units, k)."""
        return self._summed(
            values if self.weights is None else (values.T * self.weights).T
        )

    def _summed(self, values: Floats) -> Floats:
        if not self.clustered:
            return values
        sums: Floats = np.zeros((len(self.sizes), *values.shape[1:]))
        np.add.at(sums, self.members, values)
        return sums

    def means(self, values: Floats) -> Floats:
        """Return the plain mean of (n,) values within each unit: (units,)."""
        return self._summed(values) / self.sizes if self.clustered else values


def single_units(n: int, weights: Floats | None = None) -> Units:
    """Return n units of one query each."""
    return Units(np.arange(n), np.ones(n), clustered=False, weights=weights)


def cluster_units(clusters: Sequence[str], weights: Floats | None = None) -> Units:
    """Return the units of named clusters; a query whose cluster is "" is a unit.

    >>> cluster_units(["x", "", "x", ""]).sizes.tolist()
    [2.0, 1.0, 1.0]
    """
    keys = [
        ("cluster", name) if name else ("alone", str(place))
        for place, name in enumerate(clusters)
    ]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    members = np.array([numbers[key] for key in keys], dtype=np.int64)
    sizes = np.bincount(members, minlength=len(numbers)).astype(np.float64)
    return Units(members, sizes, clustered=True, weights=weights)
