"""Shown to differ by less than the margin: equivalence, non-inferiority and the gate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from harness.stats.adjust import adjust
from harness.stats.differences import Differences, Floats, differences
from harness.stats.facts import Facts, ScoreTable, check_finite
from harness.stats.intervals import mean
from harness.stats.settings import Settings
from harness.stats.sign_flip import Contrast, FlipTest, sign_flip
from harness.stats.units import Units
from harness.stats.words import asked, format_p, related
from retrievers.errors import InputError, Problem

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
    scores: ScoreTable, pairs: Sequence[tuple[str, str]], measure: str, settings: Settings, facts: Facts
) -> tuple[FlipTest, ...]:
    """Return each pair's test of "the means differ by no less than the margin", one-sided and uncorrected.

    Two tests of `not_worse`, one in each direction; the larger p counts.
    """
    if settings.margin is None or not pairs:
        return ()
    bounds = facts.range_of(measure, scores)
    units = facts.units(len(scores[pairs[0][0]]))
    within = Within(settings.margin, None if bounds is None else bounds.span, units)
    both = [differences(scores[x], scores[y]) for a, b in pairs for x, y in ((a, b), (b, a))]
    tests = not_worse(both, within, settings.seed)
    return tuple(max(two, key=lambda t: t.greater) for two in zip(tests[::2], tests[1::2], strict=True))


def equivalent_pairs(
    scores: ScoreTable, pairs: Sequence[tuple[str, str]], measure: str, settings: Settings, facts: Facts
) -> frozenset[tuple[str, str]]:
    """Return the pairs shown to differ by less than the margin: Holm-corrected p at most alpha."""
    adjusted = adjust([t.greater for t in equivalence_tests(scores, pairs, measure, settings, facts)], "holm")
    return frozenset(pair for pair, p in zip(pairs, adjusted, strict=False) if p <= settings.alpha)


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether a challenger was shown not to be worse than the baseline by the margin."""

    passed: bool
    reason: str
    """One line for a log."""
    n: int
    mean_difference: float
    """mean(challenger) - mean(baseline)."""
    margin: float
    p_value: float
    p_minimum: float
    """The smallest p that this many queries can give."""


def gate(
    challenger: Floats,
    baseline: Floats,
    *,
    margin: float,
    span: float | None = 1.0,
    settings: Settings = Settings(),  # noqa: B008 - frozen
    facts: Facts = Facts(),  # noqa: B008 - frozen
) -> Gate:
    """Test non-inferiority of the mean: passes where "challenger - baseline <= -margin" is rejected (`not_worse`).

    Args:
        challenger: (n,) scores.
        baseline: (n,) scores on the same queries.
        margin: loss of the mean that is still acceptable, in points of the measure.
        span: the measure's range, such as 1 for nDCG: the worst possible loss on one query; None where it is not
            known: then nothing can be shown.
        settings: level and seed; its margin is not read.
        facts: the clusters of the queries; rankings named as identical pass, being the same.

    Raises:
        InputError: a margin or a range that is not a finite number above 0; scores that are not finite; a score
            beyond the range.
    """
    for where, value, remedy in (
        ("margin", margin, "give the loss that you would accept, such as 0.02"),
        ("span", span, "give the measure's range, such as 1"),
    ):
        if value is not None and not 0 < value < math.inf:
            raise InputError(Problem(where, f"{value} is not a finite number above 0", remedy))
    check_finite({"score": {"challenger": challenger, "baseline": baseline}})
    d = differences(challenger, baseline)
    if span is not None and float(np.abs(d.values).max()) > span + d.slack:
        what = f"a difference of {float(np.abs(d.values).max()):g} is larger than {span:g}"
        raise InputError(Problem("span", what, "give the highest minus the lowest possible score"))
    units = facts.units(len(d.values))
    floor = math.ldexp(1.0, -len(units)) if span is not None else 1.0
    test = not_worse([d], Within(margin, span, units), settings.seed)[0]
    same = frozenset(("challenger", "baseline")) in facts.identical
    nothing = not challenger.any() and not baseline.any()
    passed = not nothing and (same or test.greater <= settings.alpha)
    difference = mean(challenger) - mean(baseline)
    queries = asked(len(d.values), len(units) if units.clustered else None)
    if nothing:
        reason = f"nothing was measured: every score is 0 on {queries}"
    elif same:
        reason = f"not worse by {margin:g}: the rankings are identical on {queries}"
    elif span is None:
        reason = f"not worse by {margin:g}: cannot be shown, for the measure's range is not known"
    elif floor > settings.alpha:
        reason = f"{queries} can never show it: the smallest possible p is {format_p(floor)}, above {settings.alpha:g}"
    elif len(units) < FEWEST:
        reason = f"{queries} can never show it: at least {FEWEST} are needed"
    else:
        reason = f"not worse by {margin:g}: {'shown' if passed else 'not shown'} on {queries}"
    numbers = f"difference {difference:+.4f}" + ("" if nothing or same else f", p {related(format_p(test.greater))}")
    return Gate(passed, f"{reason} ({numbers})", len(d.values), difference, margin, test.greater, floor)
