"""Tests over several data sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.differences import Floats
from harness.stats.intervals import (
    NOT_ESTIMABLE,
    Interval,
    mean,
    standard_deviation,
    student_interval,
)
from harness.stats.sign_flip import Contrast, FlipTest, sign_flip

MIN_SETS = 5
"""Sets from which anything is said of sets like these."""


class NewSetsDifference(NamedTuple):
    """The difference on sets like these, which are treated as a sample of them."""

    t: float
    p_value: float
    """Two-sided, of Student's t with one degree of freedom less than there are sets."""
    interval: Interval
    """Of the mean over all such sets."""
    new_set_interval: Interval
    """Of the difference on one more set (Higgins, Thompson & Spiegelhalter 2009)."""

    @property
    def negated(self) -> NewSetsDifference:
        """The same of the opposite difference."""
        return self._replace(
            t=-self.t,
            interval=self.interval.negated,
            new_set_interval=self.new_set_interval.negated,
        )


def new_sets_difference(
    means: Sequence[float], level: float = 0.95
) -> NewSetsDifference | None:
    """Return what the mean differences of several sets say of others; None below five sets, or where all are equal.

    Args:
        means: the mean difference of each set.
        level: confidence of the intervals.

    >>> found = new_sets_difference([0.02, 0.05, -0.01, 0.04, 0.03, 0.06])
    >>> round(found.t, 4), round(found.p_value, 5)
    (3.1236, 0.02615)
    >>> [round(end, 3) for end in found.interval[:2]], [round(end, 3) for end in found.new_set_interval[:2]]
    ([0.006, 0.058], [-0.037, 0.101])
    """
    values = np.array(means, dtype=np.float64)
    interval = (
        student_interval(values, level) if len(values) >= MIN_SETS else NOT_ESTIMABLE
    )
    if interval.low is None:
        return None
    count, centre, spread = len(values), mean(values), standard_deviation(values)
    t = centre / spread * math.sqrt(count)
    reach = (
        float(special.stdtrit(count - 1, (1 + level) / 2))
        * spread
        * math.sqrt(1 + 1 / count)
    )
    new_set = Interval(centre - reach, centre + reach, "t")
    return NewSetsDifference(
        t, 2 * float(special.stdtr(count - 1, -abs(t))), interval, new_set
    )


def set_mean_tests(
    sets: Sequence[Floats], contrasts: Sequence[Contrast], seed: int = 0
) -> list[FlipTest]:
    """Test the mean of the sets' mean differences by flips within the sets: each set counts alike.

    Args:
        sets: (units, k) of each set: what each query, or cluster, adds to the mean of each of k retrievers there.
        contrasts: which retrievers to compare.
        seed: of the draws.

    >>> one, other = np.array([[0.4, 0.1], [0.6, 0.2]]), np.array([[0.9, 0.5], [0.2, 0.1], [0.3, 0.2]])
    >>> set_mean_tests([one / 2, other / 3], [Contrast(0, 1)])[0].two_sided * 2**5  # all five differ the same way
    2.0
    """
    scale = sum(map(len, sets)) / len(
        sets
    )  # the means' summands are small where float noise is told beside 1
    return sign_flip(np.concatenate([units * scale for units in sets]), contrasts, seed)
