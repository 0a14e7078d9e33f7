"""The other paired tests, for those who must compare: Student's t and the sign test."""

from __future__ import annotations

import math
from typing import NamedTuple

from scipy import special

from harness.stats.differences import Differences
from harness.stats.intervals import mean, standard_error
from harness.stats.signed_rank import SMALLEST
from harness.stats.units import Units


class PairedTest(NamedTuple):
    """A two-sided paired test; `statistic` None and p 1 where it is undefined."""

    statistic: float | None
    p_value: float
    p_minimum: float | None
    """The smallest p that these data's number of non-zero differences allows; None: there is no such bound."""


def paired_t(pairs: Differences, units: Units | None = None) -> PairedTest:
    """Student's (1908) paired t; undefined, p = 1, where all differences are equal.

    By clusters: the mean over the queries with the cluster-robust standard error and clusters - 1 degrees of freedom.
    """
    error = standard_error(pairs.values, units)
    if error is None:
        return PairedTest(None, 1.0, None)
    freedom = len(pairs.values if units is None else units) - 1
    t = mean(pairs.values) / error
    return PairedTest(t, max(2 * float(special.stdtr(freedom, -abs(t))), SMALLEST), None)


def sign_test(pairs: Differences) -> PairedTest:
    """The exact sign test: wins against losses, ties left out; McNemar's exact test for 0/1 scores."""
    wins, n = pairs.wins, pairs.wins + pairs.losses
    if not n:
        return PairedTest(0.0, 1.0, 1.0)
    p = min(1.0, 2 * float(special.bdtr(min(wins, n - wins), n, 0.5)))
    return PairedTest(float(wins), max(p, SMALLEST), max(math.ldexp(1.0, 1 - n), SMALLEST))
