"""Differences over several data sets.

`new_sets_difference` speaks of new data sets, `set_mean_tests` of new queries of these.
"""

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
"""Data sets below which nothing follows for other data sets."""


class NewSetsDifference(NamedTuple):
    """The difference on new sets, if these sets are a sample of them."""

    t: float
    p_value: float
    """Two-sided p of Student's t with one degree of freedom less than sets."""
    interval: Interval
    """Interval of the mean over all such sets."""
    new_set_interval: Interval
    """Interval of the difference on one more set (Higgins et al. 2009)."""

    @property
    def negated(self) -> NewSetsDifference:
        """The result for the opposite difference."""
        return self._replace(
            t=-self.t,
            interval=self.interval.negated,
            new_set_interval=self.new_set_interval.negated,
        )


def new_sets_difference(
    means: Sequence[float], level: float = 0.95
) -> NewSetsDifference | None:
    """Return what the mean differences of several sets say about other sets.

    None below five sets, or if all are equal.

    Args:
        means: the mean difference of each set.
        level: confidence of the intervals.

    >>> result = new_sets_difference([0.02, 0.05, -0.01, 0.04, 0.03, 0.06])
    >>> round(result.t, 4), round(result.p_value, 5)
    (3.1236, 0.02615)
    >>> [round(end, 3) for end in result.interval[:2]]
    [0.006, 0.058]
    >>> [round(end, 3) for end in result.new_set_interval[:2]]
    [-0.037, 0.101]
    """
    differences = np.array(means, dtype=np.float64)
    count = len(differences)
    interval = NOT_ESTIMABLE
    if count >= MIN_SETS:
        interval = student_interval(differences, level)
    if interval.low is None:
        return None
    centre = mean(differences)
    deviation = standard_deviation(differences)
    t = centre / deviation * math.sqrt(count)
    quantile = float(special.stdtrit(count - 1, (1 + level) / 2))
    half_width = quantile * deviation * math.sqrt(1 + 1 / count)
    return NewSetsDifference(
        t=t,
        p_value=2 * float(special.stdtr(count - 1, -abs(t))),
        interval=interval,
        new_set_interval=Interval(centre - half_width, centre + half_width, "t"),
    )


def set_mean_tests(
    sets: Sequence[Floats], contrasts: Sequence[Contrast]
) -> list[FlipTest]:
    """Test the mean of the sets' mean differences by flips within the sets.

    Each set counts alike.

    Args:
        sets: (units, k) of each set: how much each query, or cluster, adds to the mean
            of each of k retrievers on it.
        contrasts: which retrievers to compare.

    All five queries differ in the same direction, so that p is 2 / 2^5:

    >>> first = np.array([[0.4, 0.1], [0.6, 0.2]])
    >>> second = np.array([[0.9, 0.5], [0.2, 0.1], [0.3, 0.2]])
    >>> tests = set_mean_tests([first / 2, second / 3], [Contrast(0, 1)])
    >>> tests[0].two_sided * 2**5
    2.0
    """
    # The summands of means are small, and float noise is judged relative to 1.
    scale = sum(map(len, sets)) / len(sets)
    return sign_flip(np.concatenate([units * scale for units in sets]), contrasts)
