"""The same comparison on several data sets: what holds on these sets, and what on sets like these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.differences import Floats
from harness.stats.intervals import NONE, Interval, deviation, mean, student
from harness.stats.sign_flip import Contrast, FlipTest, sign_flip
from harness.stats.signed_rank import signed_rank

FEWEST, FEWEST_RANKED = 5, 6
"""Sets from which anything is said of sets like these: by Student's t, by signed ranks."""


class LikeThese(NamedTuple):
    """What a difference is on sets like these, of which these are taken for a sample."""

    t: float
    p_value: float
    """Two-sided, of Student's t with one degree of freedom less than there are sets."""
    interval: Interval
    """Of the mean over all such sets."""
    new_set: Interval
    """Of the difference on one more set (Higgins, Thompson & Spiegelhalter 2009)."""
    p_signed_rank: float | None
    """Of the exact signed-rank test over the sets (Demsar 2006); None below 6 sets."""

    @property
    def turned(self) -> LikeThese:
        """The same of the opposite difference."""
        return self._replace(t=-self.t, interval=self.interval.turned, new_set=self.new_set.turned)


def like_these(means: Sequence[float], level: float = 0.95) -> LikeThese | None:
    """Return what the mean differences of several sets say of others; None below five sets, or where all are equal.

    Args:
        means: the mean difference of each set.
        level: confidence of the intervals.

    >>> found = like_these([0.02, 0.05, -0.01, 0.04, 0.03, 0.06])
    >>> round(found.t, 4), round(found.p_value, 5), found.p_signed_rank
    (3.1236, 0.02615, 0.0625)
    >>> [round(end, 3) for end in found.interval[:2]], [round(end, 3) for end in found.new_set[:2]]
    ([0.006, 0.058], [-0.037, 0.101])
    """
    values = np.array(means, dtype=np.float64)
    interval = student(values, level) if len(values) >= FEWEST else NONE
    if interval.low is None:
        return None
    count, centre, spread = len(values), mean(values), deviation(values)
    t = centre / spread * math.sqrt(count)
    reach = float(special.stdtrit(count - 1, (1 + level) / 2)) * spread * math.sqrt(1 + 1 / count)
    ranks = signed_rank(values, np.zeros(count)).p_value if count >= FEWEST_RANKED else None
    new_set = Interval(centre - reach, centre + reach, "t")
    return LikeThese(t, 2 * float(special.stdtr(count - 1, -abs(t))), interval, new_set, ranks)


def on_these(sets: Sequence[Floats], contrasts: Sequence[Contrast], seed: int = 0) -> list[FlipTest]:
    """Test the mean of the sets' mean differences by flips within the sets: each set counts alike.

    Args:
        sets: (units, k) of each set: what each query, or cluster, adds to the mean of each of k retrievers there.
        contrasts: which retrievers to compare.
        seed: of the draws.

    >>> one, other = np.array([[0.4, 0.1], [0.6, 0.2]]), np.array([[0.9, 0.5], [0.2, 0.1], [0.3, 0.2]])
    >>> on_these([one / 2, other / 3], [Contrast(0, 1)])[0].two_sided * 2**5  # all five differ the same way
    2.0
    """
    return sign_flip(np.concatenate([units / len(sets) for units in sets]), contrasts, seed)
