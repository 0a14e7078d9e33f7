"""Every test of one pair of retrievers: signed rank, sign flips, Student's t and the sign test; one of them decides."""

from __future__ import annotations

import math
from typing import NamedTuple

from scipy import special

from harness.stats.differences import Differences, Units
from harness.stats.intervals import mean, standard_error
from harness.stats.settings import Test
from harness.stats.sign_flip import FlipTest
from harness.stats.signed_rank import SMALLEST, SignedRank


class PairedTest(NamedTuple):
    """A two-sided paired test; `statistic` None and p 1 where it is undefined."""

    statistic: float | None
    p_value: float
    p_minimum: float | None
    """The smallest p that these data's number of non-zero differences allows; None: there is no such bound."""


def paired_t(pairs: Differences, units: Units | None = None) -> PairedTest:
    """Student's (1908) paired t; undefined, p = 1, where all differences are equal.

    Its standard error and degrees of freedom are those of `standard_error`.
    """
    known = standard_error(pairs.values, units)
    if known is None:
        return PairedTest(None, 1.0, None)
    t = mean(pairs.values, None if units is None else units.weights) / known.error
    return PairedTest(t, max(2 * float(special.stdtr(known.freedom, -abs(t))), SMALLEST), None)


def sign_test(pairs: Differences) -> PairedTest:
    """The exact sign test: wins against losses, ties left out; McNemar's exact test for 0/1 scores."""
    wins, n = pairs.wins, pairs.wins + pairs.losses
    if not n:
        return PairedTest(0.0, 1.0, 1.0)
    p = min(1.0, 2 * float(special.bdtr(min(wins, n - wins), n, 0.5)))
    return PairedTest(float(wins), max(p, SMALLEST), max(math.ldexp(1.0, 1 - n), SMALLEST))


class Observed(NamedTuple):
    """One pair, as every test wants to see it."""

    queries: Differences
    """(n,)"""
    by_unit: Differences
    """(units,): of the clusters' means; the same where no clusters are declared."""
    units: Units
    flips: FlipTest
    ranks: SignedRank


class Decided(NamedTuple):
    """What the deciding test gave."""

    p_value: float
    p_minimum: float | None
    """The smallest that it could have given; None for the t-test, which has no such bound."""
    statistic: float | None
    method: str
    """As in comparisons.csv."""


def decide(pair: Observed, test: Test) -> Decided:
    """Return what a test says of a pair, two-sided and uncorrected."""
    match test:
        case "wilcoxon":
            ranks = pair.ranks
            return Decided(ranks.p_value, ranks.p_minimum, ranks.statistic, ranks.method)
        case "randomization":
            floor = pair.flips.p_minimum(pair.by_unit.wins + pair.by_unit.losses)
            return Decided(pair.flips.two_sided, floor, None, pair.flips.method)
        case "t":
            t, p_value, _ = paired_t(pair.queries, pair.units)
            return Decided(p_value, None, t, "undefined" if t is None else "t")
        case "sign":
            wins, p_value, p_minimum = sign_test(pair.by_unit)
            return Decided(p_value, p_minimum, wins, "sign")
