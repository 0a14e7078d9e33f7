"""Every test of one pair of retrievers, one of which decides: signed rank, sign flips, Student's t, a margin's.

And DeLong's for areas under the ROC curve (DeLong et al. 1988).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.differences import (
    Differences,
    Floats,
    ScoreTable,
    Units,
    differences,
)
from harness.stats.intervals import mean, standard_error
from harness.stats.settings import Test
from harness.stats.sign_flip import Contrast, FlipTest, sign_flip
from harness.stats.signed_rank import SMALLEST, SignedRank


class PairedTest(NamedTuple):
    """A two-sided paired test; `statistic` None and p 1 where it is undefined."""

    statistic: float | None
    p_value: float


def paired_t(pairs: Differences, units: Units | None = None) -> PairedTest:
    """Student's (1908) paired t; undefined, p = 1, where all differences are equal.

    Its standard error and degrees of freedom are those of `standard_error`.
    """
    known = standard_error(pairs.values, units)
    if known is None:
        return PairedTest(None, 1.0)
    t = known.centre / known.error
    return PairedTest(
        t, max(2 * float(special.stdtr(known.freedom, -abs(t))), SMALLEST)
    )


class Observed(NamedTuple):
    """One pair, as every test wants to see it."""

    queries: Differences
    """(n,)"""
    units: Units
    flips: FlipTest
    ranks: SignedRank


class Decided(NamedTuple):
    """What a test gave."""

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
            return Decided(
                ranks.p_value, ranks.p_minimum, ranks.statistic, ranks.method
            )
        case "randomization":
            return Decided(
                pair.flips.two_sided, pair.ranks.p_minimum, None, pair.flips.method
            )
        case "t":
            t, p_value = paired_t(pair.queries, pair.units)
            return Decided(p_value, None, t, "undefined" if t is None else "t")


NEVER = FlipTest(1.0, 1.0, "enumerated")
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


def fewest_units(margin: float, span: float, alpha: float, ahead: float = 0.0) -> int:
    """Return the queries (clusters, where declared) below which non-inferiority cannot be shown.

    A fault that takes the whole range from a share q of the queries costs a retriever that is `ahead` elsewhere the
    margin on average where q = (ahead + margin) / (ahead + span). n queries miss it with the chance (1 - q)^n, which
    has to be at most alpha. Equivalence needs it in both directions, so as many as for `ahead` = 0.

    Args:
        margin: in points of the measure, above 0.
        span: the measure's range.
        alpha: one-sided level.
        ahead: by how much the mean was seen to be higher; what is below 0 counts as 0.

    >>> [fewest_units(margin, 1.0, 0.05) for margin in (0.02, 0.05, 0.1)]
    [149, 59, 29]
    """
    hit = (max(0.0, ahead) + margin) / (max(0.0, ahead) + span)
    return max(1, math.ceil(math.log(alpha) / math.log1p(-hit))) if hit < 1 else 1


def not_worse(
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
        return [NEVER] * len(pairs)
    place = {name: i for i, name in enumerate(scores)}
    own = units.sums(np.column_stack(list(scores.values())))
    raised = own + margin * units.totals[:, None]
    worst = (margin - span) * float(units.totals.mean())
    table = np.vstack([np.hstack([own, raised]), np.repeat([0.0, worst], len(place))])
    tests = sign_flip(
        table, [Contrast(len(place) + place[a], place[b]) for a, b in pairs], seed
    )
    ahead = (
        mean(differences(scores[a], scores[b]).values, units.weights) for a, b in pairs
    )
    enough = [len(units) >= fewest_units(margin, span, alpha, gap) for gap in ahead]
    return [test if known else NEVER for test, known in zip(tests, enough, strict=True)]


def equivalence_tests(
    scores: ScoreTable,
    pairs: Sequence[tuple[str, str]],
    within: EquivalenceMargin,
    seed: int = 0,
) -> list[FlipTest]:
    """Return each pair's test of "the means differ by no less than the margin", one-sided and uncorrected.

    Two tests of `not_worse`, one in each direction; the larger p counts.
    """
    tests = not_worse(
        scores, [(x, y) for a, b in pairs for x, y in ((a, b), (b, a))], within, seed
    )
    return [
        max(two, key=lambda t: t.greater)
        for two in zip(tests[::2], tests[1::2], strict=True)
    ]


class Area(NamedTuple):
    """An area under the ROC curve with its interval."""

    value: float
    low: float
    high: float


class AreaTest(NamedTuple):
    """The difference of two areas over the same queries."""

    difference: float
    p_value: float
    """Two-sided; 1 where both areas agree on every pair of queries."""


def area(positives: Floats, negatives: Floats, level: float = 0.95) -> Area:
    """Return the chance that a positive scores higher than a negative, a tie counting half, with DeLong's interval.

    Args:
        positives: (m,) best scores; -inf where nothing was returned.
        negatives: (n,) the same.
        level: confidence; the interval is cut at 0 and 1.

    >>> area(np.array([0.9, 0.8, 0.7, 0.4]), np.array([0.6, 0.3, 0.2])).value == 11 / 12
    True
    """
    placed = [_placements(positives, negatives)]
    value, ((variance,),) = float(placed[0][0].mean()), _covariance(placed)
    half = float(special.ndtri((1 + level) / 2)) * float(np.sqrt(variance))
    return Area(value, max(0.0, value - half), min(1.0, value + half))


def compare_areas(
    first: tuple[Floats, Floats], second: tuple[Floats, Floats]
) -> AreaTest:
    """Test whether two retrievers tell the same positives from the same negatives equally well.

    Args:
        first: (m,) and (n,) best scores of one retriever.
        second: those of the other, query by query.
    """
    placed = [_placements(*first), _placements(*second)]
    (a, b), covariance = (
        (float(above.mean()) for above, _ in placed),
        _covariance(placed),
    )
    variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    if variance <= 0:
        return AreaTest(a - b, 1.0 if a == b else 0.0)
    return AreaTest(a - b, float(2 * special.ndtr(-abs(a - b) / np.sqrt(variance))))


def _placements(positives: Floats, negatives: Floats) -> tuple[Floats, Floats]:
    """For each positive the share of negatives below it, for each negative that of positives above; ties half."""
    return _share_below(positives, negatives), 1 - _share_below(negatives, positives)


def _share_below(scores: Floats, others: Floats) -> Floats:
    ordered = np.sort(others)
    below = np.searchsorted(ordered, scores, "left") + np.searchsorted(
        ordered, scores, "right"
    )
    return np.asarray(below / (2 * len(others)))


def _covariance(placed: list[tuple[Floats, Floats]]) -> Floats:
    """The covariance of the areas: 0 of a side with a single query, which says nothing of its scatter."""
    parts = [np.array(side) for side in zip(*placed, strict=True)]
    return sum(
        (
            np.atleast_2d(np.cov(side)) / side.shape[1]
            for side in parts
            if side.shape[1] > 1
        ),
        start=np.zeros((len(placed), len(placed))),
    )
