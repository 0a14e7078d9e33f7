"""Shown to differ by less than the margin: the test behind equivalence, non-inferiority and the gate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harness.stats.differences import Differences, ScoreTable, Units, differences
from harness.stats.sign_flip import Contrast, FlipTest, sign_flip

FEWEST = 5
"""Queries (clusters, where declared) below which equivalence cannot be shown."""
LOSSES = 10
"""Queries that lose more than the margin, below which one with the worst possible loss is added."""
NEVER = FlipTest(1.0, 1.0, "enumerated")
"""The test of what these queries cannot show."""


class Within(NamedTuple):
    """What it means to be within the margin."""

    margin: float
    """In points of the measure."""
    span: float | None
    """The measure's range, the worst possible loss on one query; None where nobody knows it: nothing is shown then."""
    units: Units


def not_worse(pairs: Sequence[Differences], within: Within, seed: int = 0) -> list[FlipTest]:
    """Return, for each row of differences, the test of "the mean is above -margin" (`greater` is its p).

    The sign-flip test of the mean of d + margin. A sample with few losses says little about rare ones: where fewer
    than ten queries lose more than the margin, one query whose difference is -span is added to it. Never a
    signed-rank test on shifted differences: that one speaks of a median, and calls 90 ties and 10 losses of
    0.5 "not worse by 0.02" with p = 1e-10. Below 5 queries p = 1. By clusters, these are counted instead of queries,
    and what is added is a cluster of the mean size.
    """
    margin, span, units = within
    if len(units) < FEWEST or span is None or not pairs:
        return [NEVER] * len(pairs)
    columns = []
    for d in pairs:
        lost = int(np.count_nonzero(units.means(d.values) < -margin - d.slack))
        added = (margin - span) * float(units.sizes.mean()) if lost < LOSSES else 0.0
        columns.append(np.append(units.sums(d.values + margin), added))
    table = np.column_stack([*columns, np.zeros(len(units) + 1)])
    return sign_flip(table, [Contrast(place, len(pairs)) for place in range(len(pairs))], seed)


def equivalence_tests(
    scores: ScoreTable, pairs: Sequence[tuple[str, str]], within: Within, seed: int = 0
) -> list[FlipTest]:
    """Return each pair's test of "the means differ by no less than the margin", one-sided and uncorrected.

    Two tests of `not_worse`, one in each direction; the larger p counts.
    """
    both = [differences(scores[x], scores[y]) for a, b in pairs for x, y in ((a, b), (b, a))]
    tests = not_worse(both, within, seed)
    return [max(two, key=lambda t: t.greater) for two in zip(tests[::2], tests[1::2], strict=True)]
