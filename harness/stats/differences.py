"""Paired differences of scores, ties found in spite of float noise."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


ScoreTable = Mapping[str, Floats]
"""Retriever -> (n,) scores of one measure, queries in the order of their ids."""


SCORE_TOLERANCE = 1e-10
"""Scores (and magnitudes of differences) this near, times max(1, largest |score|), are one and the same."""


class PairedDifferences(NamedTuple):
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
    def is_constant(self) -> bool:
        """Whether all differences are equal (one query's always are): then nothing tells how far they scatter."""
        return bool(np.ptp(self.values) <= self.slack)

    def sign(self, value: float) -> int:
        """Return -1, 0 or 1: the sign of a mean or median of the differences, float noise being none."""
        return 0 if abs(value) <= self.slack else (1 if value > 0 else -1)


def paired_differences(a: Floats, b: Floats) -> PairedDifferences:
    """Return a - b with its ties found in spite of float noise.

    Sorted magnitudes whose gap is at most 1e-10 x max(1, largest |score|) form one tie group, and the group
    that begins at 0 holds the zeros. Rounding would not do: it splits neighbours at its own borders.

    Args:
        a: (n,) finite scores of one retriever, n >= 1.
        b: (n,) finite scores of the other on the same queries, in the same order.

    >>> paired_differences(np.array([0.3, 0.4, 0.5]), np.array([0.2, 0.3, 0.5])).groups.tolist()
    [1, 1, 0]
    """
    slack = SCORE_TOLERANCE * max(1.0, float(np.abs(a).max()), float(np.abs(b).max()))
    values = a - b
    sizes = np.abs(values)
    order = np.argsort(sizes)
    steps = np.diff(sizes[order], prepend=0.0) > slack
    groups = np.empty(len(sizes), dtype=np.int64)
    groups[order] = np.cumsum(steps)
    groups = np.where(a > b, groups, -groups)
    return PairedDifferences(np.where(groups == 0, 0.0, values), groups, slack)


MAX_FRAGILE_SKEWNESS, MAX_FRAGILE_UNITS = -0.5, 150
"""Skewness against a claim, and units, up to which few large losses would undo it."""


def is_fragile(values: Floats, span: float | None) -> bool:
    """Whether few queries with a large loss would undo a mean difference that was shown.

    So it is where the largest differences go against it (skewness below -0.5), or all together come to less than one
    query can lose. That holds for nine in ten false claims of 13 to 50 queries whose losses are rare and large.

    Args:
        values: (units,) differences.
        span: the measure's range; None where it is not known.

    >>> is_fragile(np.array([0.1] * 9 + [-0.4]), 1.0), is_fragile(np.linspace(0.1, 0.9, 9), 1.0)
    (True, False)
    """
    if len(values) > MAX_FRAGILE_UNITS:
        return False
    total = float(values.sum())
    off = (values - values.mean()) * np.sign(total)
    skewness = float((off**3).mean()) / (float((off**2).mean()) ** 1.5 or 1.0)
    return skewness < MAX_FRAGILE_SKEWNESS or (span is not None and abs(total) < span)


def index_of_highest(values: Floats) -> int:
    """Return the place of the highest value: the first of those that float noise alone tells apart.

    >>> index_of_highest(np.array([0.1, 0.3, 0.1 + 0.2]))
    1
    """
    return int(
        np.argmax(
            values
            >= values.max() - SCORE_TOLERANCE * max(1.0, float(np.abs(values).max()))
        )
    )


class ValueRange(NamedTuple):
    """The lowest and the highest value that a measure can have."""

    low: float
    high: float

    @property
    def span(self) -> float:
        """The worst possible loss on one query."""
        return self.high - self.low


UNIT_RANGE = ValueRange(0.0, 1.0)
