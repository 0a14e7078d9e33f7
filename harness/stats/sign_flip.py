"""The sign-flip test of a mean difference."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harness.stats.differences import SCORE_TOLERANCE, Floats
from harness.stats.signed_rank import SMALLEST
from harness.stats.subset_tail import subset_tail

LARGE_FAMILY = 1_000
"""Contrasts above which the saddlepoint is used from 60 differences on."""


class Contrast(NamedTuple):
    """The sum of column `a` - column `b`, to be tested against zero.

    Both are indices of columns.
    """

    a: int
    b: int


class FlipTest(NamedTuple):
    """p-values of one contrast."""

    two_sided: float
    """p against the null hypothesis that the mean is zero."""
    greater: float
    """One-sided p against the null hypothesis that the mean is not above zero."""
    method: str
    """How the p-values were computed.

    "enumerated" or "convolved" (both exact), "grid" or "saddlepoint".
    """


def sign_flip(scores: Floats, contrasts: Sequence[Contrast]) -> list[FlipTest]:
    """Test mean differences between columns by flipping signs.

    A difference of zero has no sign. With the smaller of the two sums s of positive and
    of negative sizes, and N subsets of all sizes whose sum is at most s, the two-sided
    p is min(1, 2 N / 2^m), with m sizes. Sums of n differences within n x 1e-10 x
    max(1, largest |score|) are equal. No draws: see `subset_tail`.

    Args:
        scores: (n, k), one column for each retriever and measure; or the sums of n
            clusters of queries, whose members keep one sign.
        contrasts: the columns to compare.
    """
    largest = np.abs(scores).max(axis=0)
    is_large_family = len(contrasts) > LARGE_FAMILY
    tests: list[FlipTest] = []
    for a, b in contrasts:
        slack = SCORE_TOLERANCE * max(1.0, float(largest[a]), float(largest[b]))
        differences = scores[:, a] - scores[:, b]
        tests.append(flip_signs(differences, slack, fast=is_large_family))
    return tests


def flip_signs(differences: Floats, slack: float, *, fast: bool = False) -> FlipTest:
    """Test whether the mean of differences is zero, by flipping their signs.

    Args:
        differences: (n,), those of at most `slack` count as zero.
        slack: the float noise of a difference.
        fast: whether the saddlepoint serves from 60 differences on.

    >>> flip_signs(np.array([0.2, 0.1, 0.3, 0.4]), 1e-10)
    FlipTest(two_sided=0.125, greater=0.0625, method='enumerated')
    """
    nonzero = differences[np.abs(differences) > slack]
    positive = math.fsum(nonzero[nonzero > 0])
    negative = -math.fsum(nonzero[nonzero < 0])
    sizes = np.sort(np.abs(nonzero))
    sum_slack = len(differences) * slack
    tail = subset_tail(sizes, min(positive, negative), sum_slack, fast=fast)
    two_sided = min(1.0, max(2 * tail.at_most, SMALLEST))
    # The observed sum is reached by the subsets of negative sizes that sum to no more
    # than `negative`: a lower tail. If the positive sum is the smaller one, all subsets
    # count but those whose positive sizes sum to less.
    if negative <= positive + sum_slack:
        return FlipTest(two_sided, max(tail.at_most, SMALLEST), tail.method)
    return FlipTest(two_sided, 1.0 - tail.below, tail.method)
