"""Shown to differ by less than the margin: the test behind equivalence, non-inferiority and the gate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harness.stats.differences import Differences, ScoreTable, Units, differences
from harness.stats.intervals import mean
from harness.stats.sign_flip import Contrast, FlipTest, sign_flip

NEVER = FlipTest(1.0, 1.0, "enumerated")
"""The test of what these queries cannot show."""


class Within(NamedTuple):
    """What it means to be within the margin."""

    margin: float
    """In points of the measure."""
    span: float | None
    """The measure's range, the worst possible loss on one query; None where nobody knows it: nothing is shown then."""
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


def not_worse(pairs: Sequence[Differences], within: Within, seed: int = 0) -> list[FlipTest]:
    """Return, for each row of differences, the test of "the mean is above -margin" (`greater` is its p).

    The sign-flip test of the mean of d + margin, with one query added whose difference is the worst possible, -span:
    what was not seen in n queries may hit one in n, and identical rankings are no exception. Never a signed-rank test
    on shifted differences: that one speaks of a median, and calls 90 ties and 10 losses of 0.5 "not worse by 0.02"
    with p = 1e-10. Below `fewest_units` p = 1. By clusters, these are counted instead of queries, and what is added is
    a cluster of the mean weight.
    """
    margin, span, units, alpha = within
    if span is None or not pairs:
        return [NEVER] * len(pairs)
    worst = (margin - span) * float(units.totals.mean())
    columns = [np.append(units.sums(d.values + margin), worst) for d in pairs]
    table = np.column_stack([*columns, np.zeros(len(units) + 1)])
    tests = sign_flip(table, [Contrast(place, len(pairs)) for place in range(len(pairs))], seed)
    enough = [len(units) >= fewest_units(margin, span, alpha, mean(d.values, units.weights)) for d in pairs]
    return [test if known else NEVER for test, known in zip(tests, enough, strict=True)]


def equivalence_tests(
    scores: ScoreTable, pairs: Sequence[tuple[str, str]], within: Within, seed: int = 0
) -> list[FlipTest]:
    """Return each pair's test of "the means differ by no less than the margin", one-sided and uncorrected.

    Two tests of `not_worse`, one in each direction; the larger p counts.
    """
    both = [differences(scores[x], scores[y]) for a, b in pairs for x, y in ((a, b), (b, a))]
    tests = not_worse(both, within, seed)
    return [max(two, key=lambda t: t.greater) for two in zip(tests[::2], tests[1::2], strict=True)]
