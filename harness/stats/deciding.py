"""The test that decides, on one pair of retrievers."""

from __future__ import annotations

from typing import NamedTuple

from harness.stats.differences import Differences
from harness.stats.paired import paired_t, sign_test
from harness.stats.settings import Test
from harness.stats.sign_flip import FlipTest
from harness.stats.signed_rank import SignedRank
from harness.stats.units import Units


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
