"""Every test of one pair of retrievers.

Nothing here is corrected for several pairs: see `evaluation.pair_tests`.
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
    """A two-sided paired test; if undefined, `statistic` is None and p is 1."""

    statistic: float | None
    p_value: float


def paired_t_test(
    differences: PairedDifferences, units: Units | None = None
) -> PairedTTest:
    """Student's (1908) paired t; undefined, p = 1, without a `standard_error`."""
    estimate = standard_error(differences.values, units)
    if estimate is None:
        return PairedTTest(None, 1.0)
    t = estimate.mean / estimate.error
    p_value = 2 * float(special.stdtr(estimate.degrees_of_freedom, -abs(t)))
    return PairedTTest(t, max(p_value, SMALLEST))


class PairObservations(NamedTuple):
    """One pair, with the input of every test."""

    differences: PairedDifferences
    """(n,)"""
    units: Units
    flip_test: FlipTest
    signed_rank: SignedRank


class DecisiveTest(NamedTuple):
    """The result of the test that decides."""

    p_value: float
    p_minimum: float | None
    """The smallest possible p; None for the t-test, which has no such bound."""
    statistic: float | None
    """None for sign flips, which have none, and for an undefined t-test."""
    method: str
    """How it was computed, as in comparisons.csv."""


def decide_pair(pair: PairObservations, test: TestName) -> DecisiveTest:
    """Return the result of a test of a pair, two-sided and uncorrected."""
    match test:
        case "wilcoxon":
            ranks = pair.signed_rank
            return DecisiveTest(
                ranks.p_value, ranks.p_minimum, ranks.statistic, ranks.method
            )
        case "randomization":
            return DecisiveTest(
                pair.flip_test.two_sided,
                _smallest_flip_p(pair),
                None,
                pair.flip_test.method,
            )
        case "t":
            t, p_value = paired_t_test(pair.differences, pair.units)
            return DecisiveTest(p_value, None, t, "undefined" if t is None else "t")


def _smallest_flip_p(pair: PairObservations) -> float:
    """Return the smallest p that flips of the units' signs can give."""
    if pair.units.weights is None:
        # Both tests flip the signs of the same differences.
        return pair.signed_rank.p_minimum
    sums = pair.units.sums(pair.differences.values)
    differing = int(np.count_nonzero(np.abs(sums) > pair.differences.slack))
    return max(min(1.0, math.ldexp(1.0, 1 - differing)), SMALLEST)


NOT_SHOWABLE = FlipTest(1.0, 1.0, "enumerated")
"""The test if these queries cannot show the claim."""


class EquivalenceMargin(NamedTuple):
    """The margin of an equivalence test, with what the test depends on."""

    margin: float
    """The margin in points of the measure."""
    span: float | None
    """The measure's range, the worst possible loss on one query.

    None if it is unknown: nothing is shown then.
    """
    units: Units
    alpha: float = 0.05
    """Level of the test: the number of queries that it needs depends on it."""


def min_units_for_margin(
    margin: float, span: float, alpha: float, ahead: float = 0.0
) -> int:
    """Return how many queries (or clusters) non-inferiority needs at least.

    A fault that takes the whole range from a share q of the queries costs a retriever
    that is `ahead` elsewhere the margin on average if
    q = (ahead + margin) / (ahead + span). n queries miss it with the chance (1 - q)^n,
    which has to be at most alpha. Equivalence needs it in both directions, so as many
    as for `ahead` = 0.

    Args:
        margin: in points of the measure, above 0.
        span: the measure's range.
        alpha: one-sided level.
        ahead: how much higher the observed mean is; below 0 it counts as 0.

    >>> [min_units_for_margin(margin, 1.0, 0.05) for margin in (0.02, 0.05, 0.1)]
    [149, 59, 29]
    """
    lead = max(0.0, ahead)
    faulty_share = (lead + margin) / (lead + span)
    if faulty_share >= 1:
        return 1
    return max(1, math.ceil(math.log(alpha) / math.log1p(-faulty_share)))


def non_inferiority_tests(
    scores: ScoreTable,
    pairs: Sequence[tuple[str, str]],
    within: EquivalenceMargin,
) -> list[FlipTest]:
    """Test, for each pair (a, b), that the mean of a - b is above -margin.

    `greater` is the p of that test. It is the sign-flip test of the mean of
    a - b + margin, from the retrievers' sums, with one query added whose difference is
    the worst possible, -span: a loss that n queries did not show may affect one in n,
    even if the rankings are identical. A signed-rank test on shifted differences would
    be wrong: it is about a median, and calls 90 ties and 10 losses of 0.5 "not worse by
    0.02" with p = 1e-10. Below `min_units_for_margin` p = 1. With clusters, these are
    counted instead of queries; the added one is as large as the largest, or has the
    largest weight: with the mean weight, losses on heavy queries passed.

    Args:
        scores: retriever -> (n,) scores, defined for all.
        pairs: names of retrievers.
        within: the margin, and the units of the queries.

    Returns:
        The test of each pair; `NOT_SHOWABLE` itself if the queries are too few, or the
        range is unknown or 0.
    """
    margin = within.margin
    units = within.units
    # The range is unknown; or it is 0, because no query has a label.
    if not within.span or not pairs:
        return [NOT_SHOWABLE] * len(pairs)
    # Columns: each retriever, then each again raised by the margin; a pair compares
    # the raised a with the plain b. The last row is the added query.
    sums = units.sums(np.column_stack(list(scores.values())))
    raised = sums + margin * units.totals[:, None]
    worst = (margin - within.span) * float(units.totals.max())
    added_row = np.repeat([0.0, worst], len(scores))
    table = np.vstack([np.hstack([sums, raised]), added_row])
    column = {retriever: index for index, retriever in enumerate(scores)}
    contrasts = [Contrast(len(column) + column[a], column[b]) for a, b in pairs]
    tests: list[FlipTest] = []
    for (a, b), test in zip(pairs, sign_flip(table, contrasts), strict=True):
        differences = paired_differences(scores[a], scores[b]).values
        ahead = mean(differences, units.weights)
        needed = min_units_for_margin(margin, within.span, within.alpha, ahead)
        tests.append(test if len(units) >= needed else NOT_SHOWABLE)
    return tests


def equivalence_tests(
    scores: ScoreTable,
    pairs: Sequence[tuple[str, str]],
    within: EquivalenceMargin,
) -> list[FlipTest]:
    """Test, for each pair, that the means differ by less than the margin.

    One-sided and uncorrected. These are two tests of `non_inferiority_tests`, one in
    each direction; the larger p counts. The arguments are the same.
    """
    both_directions: list[tuple[str, str]] = []
    for a, b in pairs:
        both_directions += [(a, b), (b, a)]
    tests = non_inferiority_tests(scores, both_directions, within)
    larger: list[FlipTest] = []
    for forward, backward in zip(tests[::2], tests[1::2], strict=True):
        larger.append(backward if backward.greater > forward.greater else forward)
    return larger
