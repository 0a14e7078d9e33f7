"""What counts as one observation: a query, or a cluster of queries that ask for the same thing."""

from __future__ import annotations

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
    """Whether clusters were declared."""

    def __len__(self) -> int:
        """How many units there are."""
        return len(self.sizes)

    def sums(self, values: Floats) -> Floats:
        """Sum (n,) or (n, k) values within each unit: (units,) or (units, k)."""
        if not self.clustered:
            return values
        sums: Floats = np.zeros((len(self.sizes), *values.shape[1:]))
        np.add.at(sums, self.members, values)
        return sums

    def means(self, values: Floats) -> Floats:
        """Return the mean of (n,) values within each unit: (units,)."""
        return self.sums(values) / self.sizes if self.clustered else values


def singles(n: int) -> Units:
    """Return n units of one query each."""
    return Units(np.arange(n), np.ones(n), clustered=False)


def units_of(clusters: Sequence[str]) -> Units:
    """Return the units of named clusters; a query whose cluster is "" stands alone.

    >>> units_of(["x", "", "x", ""]).sizes.tolist()
    [2.0, 1.0, 1.0]
    """
    keys = [("cluster", name) if name else ("alone", str(place)) for place, name in enumerate(clusters)]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    members = np.array([numbers[key] for key in keys], dtype=np.int64)
    return Units(members, np.bincount(members, minlength=len(numbers)).astype(np.float64), clustered=True)
