"""Every test of one pair of retrievers.

And DeLong's for areas under the ROC curve (DeLong et al. 1988).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.differences import PairedDifferences, ScoreTable, paired_differences
from harness.stats.intervals import mean, standard_error
from harness.stats.settings import TestName
from harness.stats.sign_flip import Contrast, FlipTest, sign_flip
from harness.stats.signed_rank import SMALLEST, SignedRank
from harness.stats.units import Units


class PairedTTest(NamedTuple):
    """A two-sided paired test; `statistic` None and p 1 where it is undefined."""

    statistic: float | None
    p_value: float


def paired_t_test(pairs: PairedDifferences, units: Units | None = None) -> PairedTTest:
    """Student's (1908) paired t; undefined, p = 1, where all differences are equal.

    Its standard error and degrees of freedom are those of `standard_error`.
    """
    known = standard_error(pairs.values, units)
    if known is None:
        return PairedTTest(None, 1.0)
    t = known.mean / known.error
    return PairedTTest(
        t, max(2 * float(special.stdtr(known.degrees_of_freedom, -abs(t))), SMALLEST)
    )


class PairObservations(NamedTuple):
    """One pair, as every test wants to see it."""

    differences: PairedDifferences
    """(n,)"""
    units: Units
    flip_test: FlipTest
    signed_rank: SignedRank


class DecisiveTest(NamedTuple):
    """What a test gave."""

    p_value: float
    p_minimum: float | None
    """The smallest that it could have given; None for the t-test, which has no such bound."""
    statistic: float | None
    method: str
    """As in comparisons.csv."""


def decide_pair(pair: PairObservations, test: TestName) -> DecisiveTest:
    """Return what a test says of a pair, two-sided and uncorrected."""
    match test:
        case "wilcoxon":
            ranks = pair.signed_rank
            return DecisiveTest(
                ranks.p_value, ranks.p_minimum, ranks.statistic, ranks.method
            )
        case "randomization":
            return DecisiveTest(
                pair.flip_test.two_sided,
                pair.signed_rank.p_minimum,
                None,
                pair.flip_test.method,
            )
        case "t":
            t, p_value = paired_t_test(pair.differences, pair.units)
            return DecisiveTest(p_value, None, t, "undefined" if t is None else "t")


NOT_SHOWABLE = FlipTest(1.0, 1.0, "enumerated")
"""The test of what these queries cannot show."""


class EquivalenceMargin(NamedTuple):
    """What it means to be within the margin."""

    margin: float
    """In points of the measure."""
    span: float | None
    """The measure's range, the worst possible loss on one query; None if unknown: nothing is shown then."""
    units: Units
    alpha: float = 0.05
    """Level of the test: it decides how many queries are the fewest."""


def min_units_for_margin(
    margin: float, span: float, alpha: float, ahead: float = 0.0
) -> int:
    """Return the queries (clusters, where declared) below which non-inferiority cannot be shown.

    A fault that takes the whole range from a share q of the queries costs a retriever that is `ahead` elsewhere the
    margin on average where q = (ahead + margin) / (ahead + span). n queries miss it with the chance (1 - q)^n, which
    has to be at most alpha. Equivalence needs it in both directions, so as many as for `ahead` = 0.

    Args:
        margin: in points of the measure, above 0.
        span: the measure's range.
        alpha: one-sided level.
        ahead: by how much the mean was seen to be higher; what is below 0 counts as 0.

    >>> [min_units_for_margin(margin, 1.0, 0.05) for margin in (0.02, 0.05, 0.1)]
    [149, 59, 29]
    """
    hit = (max(0.0, ahead) + margin) / (max(0.0, ahead) + span)
    return max(1, math.ceil(math.log(alpha) / math.log1p(-hit))) if hit < 1 else 1


def non_inferiority_tests(
    scores: ScoreTable,
    pairs: Sequence[tuple[str, str]],
    within: EquivalenceMargin,
    seed: int = 0,
) -> list[FlipTest]:
    """Return, for each pair (a, b), the test of "the mean of a - b is above -margin" (`greater` is its p).

    The sign-flip test of the mean of a - b + margin, from the retrievers' sums, with one query added whose difference
    is the worst possible, -span: what was not seen in n queries may hit one in n, and identical rankings are no
    exception. Never a signed-rank test on shifted differences: that one speaks of a median, and calls 90 ties and 10
    losses of 0.5 "not worse by 0.02" with p = 1e-10. Below `fewest_units` p = 1. By clusters, these are counted instead
    of queries, and what is added is a cluster of the mean weight.
    """
    margin, span, units, alpha = within
    if (
        not span or not pairs
    ):  # the range is unknown; or nothing can be scored, and nothing was
        return [NOT_SHOWABLE] * len(pairs)
    place = {name: i for i, name in enumerate(scores)}
    own = units.sums(np.column_stack(list(scores.values())))
    raised = own + margin * units.totals[:, None]
    worst = (margin - span) * float(units.totals.mean())
    table = np.vstack([np.hstack([own, raised]), np.repeat([0.0, worst], len(place))])
    tests = sign_flip(
        table, [Contrast(len(place) + place[a], place[b]) for a, b in pairs], seed
    )
    ahead = (
        mean(paired_differences(scores[a], scores[b]).values, units.weights)
        for a, b in pairs
    )
    enough = [
        len(units) >= min_units_for_margin(margin, span, alpha, gap) for gap in ahead
    ]
    return [
        test if known else NOT_SHOWABLE
        for test, known in zip(tests, enough, strict=True)
    ]


def equivalence_tests(
    scores: ScoreTable,
    pairs: Sequence[tuple[str, str]],
    within: EquivalenceMargin,
    seed: int = 0,
) -> list[FlipTest]:
    """Return each pair's test of "the means differ by no less than the margin", one-sided and uncorrected.

    Two tests of `not_worse`, one in each direction; the larger p counts.
    """
    tests = non_inferiority_tests(
        scores, [(x, y) for a, b in pairs for x, y in ((a, b), (b, a))], within, seed
    )
    return [
        max(two, key=lambda t: t.greater)
        for two in zip(tests[::2], tests[1::2], strict=True)
    ]
