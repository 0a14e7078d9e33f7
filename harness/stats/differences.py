"""Differences of scores: when two are equal, what counts as one observation, where random numbers come from."""

import hashlib
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Result = TypeVar("Result")
Row = TypeVar("Row")


ScoreTable = Mapping[str, Floats]
"""Retriever -> (n,) scores of one measure, queries in the order of their ids."""


SLACK = 1e-10
"""Scores (and magnitudes of differences) this near, times max(1, largest |score|), are one and the same."""


class Differences(NamedTuple):
    """The paired differences a - b of one measure over the same queries."""

    values: Floats
    """(n,): a - b, exactly 0 where the two scores are equal."""
    groups: Integers
    """(n,): 0 for equal scores, else the tie group's number in order of magnitude, with the difference's sign."""
    slack: float
    """What is not farther apart than this is equal; in units of the measure."""

    @property
    def wins(self) -> int:
        """Queries where a scores higher."""
        return int(np.count_nonzero(self.groups > 0))

    @property
    def losses(self) -> int:
        """Queries where b scores higher."""
        return int(np.count_nonzero(self.groups < 0))

    @property
    def constant(self) -> bool:
        """Whether all differences are equal (one query's always are): then nothing tells how far they scatter."""
        return bool(np.ptp(self.values) <= self.slack)

    def sign(self, value: float) -> int:
        """Return -1, 0 or 1: the sign of a mean or median of the differences, float noise being none."""
        return 0 if abs(value) <= self.slack else (1 if value > 0 else -1)


def differences(a: Floats, b: Floats) -> Differences:
    """Return a - b with its ties found in spite of float noise.

    Sorted magnitudes whose gap is at most 1e-10 x max(1, largest |score|) form one tie group, and the group
    that begins at 0 holds the zeros. Rounding would not do: it splits neighbours at its own borders.

    Args:
        a: (n,) finite scores of one retriever, n >= 1.
        b: (n,) finite scores of the other on the same queries, in the same order.

    >>> differences(np.array([0.3, 0.4, 0.5]), np.array([0.2, 0.3, 0.5])).groups.tolist()
    [1, 1, 0]
    """
    slack = SLACK * max(1.0, float(np.abs(a).max()), float(np.abs(b).max()))
    values = a - b
    sizes = np.abs(values)
    order = np.argsort(sizes)
    steps = np.diff(sizes[order], prepend=0.0) > slack
    groups = np.empty(len(sizes), dtype=np.int64)
    groups[order] = np.cumsum(steps)
    groups = np.where(a > b, groups, -groups)
    return Differences(np.where(groups == 0, 0.0, values), groups, slack)


SKEWED, FEW = -0.5, 150
"""Skewness against a claim, and units, up to which few large losses would undo it."""


def fragile(values: Floats, span: float | None) -> bool:
    """Whether few queries with a large loss would undo a mean difference that was shown.

    So it is where the largest differences go against it (skewness below -0.5), or all together come to less than one
    query can lose. That holds for nine in ten false claims of 13 to 50 queries whose losses are rare and large.

    Args:
        values: (units,) differences.
        span: the measure's range; None where it is not known.

    >>> fragile(np.array([0.1] * 9 + [-0.4]), 1.0), fragile(np.linspace(0.1, 0.9, 9), 1.0)
    (True, False)
    """
    if len(values) > FEW:
        return False
    total = float(values.sum())
    off = (values - values.mean()) * np.sign(total)
    skewness = float((off**3).mean()) / (float((off**2).mean()) ** 1.5 or 1.0)
    return skewness < SKEWED or (span is not None and abs(total) < span)


def highest(values: Floats) -> int:
    """Return the place of the highest value: the first of those that float noise alone tells apart.

    >>> highest(np.array([0.1, 0.3, 0.1 + 0.2]))
    1
    """
    return int(
        np.argmax(
            values >= values.max() - SLACK * max(1.0, float(np.abs(values).max()))
        )
    )


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


def singles(n: int, weights: Floats | None = None) -> Units:
    """Return n units of one query each."""
    return Units(np.arange(n), np.ones(n), clustered=False, weights=weights)


def units_of(clusters: Sequence[str], weights: Floats | None = None) -> Units:
    """Return the units of named clusters; a query whose cluster is "" is a unit.

    >>> units_of(["x", "", "x", ""]).sizes.tolist()
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


class Range(NamedTuple):
    """The lowest and the highest value that a measure can have."""

    low: float
    high: float

    @property
    def span(self) -> float:
        """The worst possible loss on one query."""
        return self.high - self.low


UNIT = Range(0.0, 1.0)


def in_parallel(
    compute: Callable[[Row], Result], rows: Iterable[Row]
) -> Iterator[Result]:
    """Yield what a function gives of each row, in their order, computed on all cores.

    For large arrays alone: NumPy lets go of the interpreter while it computes, and threads of small steps wait for each
    other. No more than some rows are read ahead.
    """
    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:
        waiting = deque[Future[Result]]()
        for row in rows:
            waiting.append(pool.submit(compute, row))
            if len(waiting) > cores:
                yield waiting.popleft().result()
        yield from (one.result() for one in waiting)


def generator(seed: int, purpose: str, queries: int) -> np.random.Generator:
    """Return the PCG64 stream of a purpose, seeded by SHA-256 of (seed, purpose, number of queries).

    Nothing else enters the seed: all measures and pairs share the stream, so that adding a retriever moves
    no other number, and the answer does not depend on what was drawn before.

    >>> bool(generator(0, "signs", 13).random() == generator(0, "signs", 13).random())
    True
    """
    digest = hashlib.sha256(f"{seed}/{purpose}/{queries}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))
