"""Shown to differ by less than the margin: equivalence, non-inferiority and the gate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.stats.adjust import adjust
from harness.stats.differences import Floats
from harness.stats.intervals import mean
from harness.stats.settings import Settings
from harness.stats.sign_flip import Contrast, FlipTest, sign_flip
from retrievers.errors import InputError, Problem

FEWEST = 5
"""Queries below which equivalence cannot be shown."""


def equivalence_tests(
    scores: Mapping[str, Floats], pairs: Sequence[tuple[str, str]], settings: Settings
) -> tuple[FlipTest, ...]:
    """Return each pair's test of "the means differ by no less than the margin", one-sided and uncorrected.

    Two one-sided sign-flip tests of the mean, on d + margin and on margin - d; the larger p counts. Never a
    signed-rank test on shifted differences: that one speaks of a median, and calls 90 ties and 10 losses of
    0.5 "not worse by 0.02" with p = 1e-10. Below 5 queries p = 1.
    """
    if settings.margin is None or not pairs:
        return ()
    names = list(scores)
    table = np.column_stack([scores[name] for name in names])
    if len(table) < FEWEST:
        return (FlipTest(1.0, 1.0, "enumerated"),) * len(pairs)
    places = [(names.index(a), names.index(b)) for a, b in pairs]
    contrasts = [Contrast(a, b, settings.margin) for a, b in places] + [
        Contrast(b, a, settings.margin) for a, b in places
    ]
    tests = sign_flip(table, contrasts, settings.seed)
    both = zip(tests[: len(pairs)], tests[len(pairs) :], strict=True)
    return tuple(max(two, key=lambda test: test.greater) for two in both)


def equivalent_pairs(
    scores: Mapping[str, Floats], pairs: Sequence[tuple[str, str]], settings: Settings
) -> frozenset[tuple[str, str]]:
    """Return the pairs shown to differ by less than the margin: Holm-corrected p at most alpha."""
    adjusted = adjust([test.greater for test in equivalence_tests(scores, pairs, settings)], "holm")
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


def gate(challenger: Floats, baseline: Floats, *, margin: float, alpha: float = 0.05, seed: int = 0) -> Gate:
    """Test non-inferiority of the mean: passes where "challenger - baseline <= -margin" is rejected.

    One-sided sign-flip test on d + margin, at level alpha.

    Args:
        challenger: (n,) scores.
        baseline: (n,) scores on the same queries.
        margin: loss of the mean that is still acceptable, in points of the measure.
        alpha: level.
        seed: of the draws.

    Raises:
        InputError: a margin that is not a finite number above 0; a score that is not finite.
    """
    if not 0 < margin < math.inf:
        what = f"{margin} is not a finite number above 0"
        raise InputError(Problem("margin", what, "give the loss that you would accept, such as 0.02"))
    if not np.isfinite(np.concatenate([challenger, baseline])).all():
        what, remedy = "are not all finite numbers: nothing can be shown from them", "score the rankings again"
        raise InputError(Problem("scores", what, remedy))
    n = len(challenger)
    difference = mean(challenger) - mean(baseline)
    test = sign_flip(np.column_stack([challenger, baseline]), [Contrast(0, 1, margin)], seed)[0]
    floor = test.p_minimum(n + 1)
    passed = test.greater <= alpha
    queries = "1 query" if n == 1 else f"{n:,} queries"
    if floor > alpha:
        reason = f"{queries} can never show it: the smallest possible p is {floor:.4g}, above {alpha:g}"
    else:
        shown = "shown" if passed else "not shown"
        reason = f"not worse by {margin:g}: {shown} on {queries}"
    return Gate(
        passed,
        f"{reason} (difference {difference:+.4f}, p = {test.greater:.4g})",
        n,
        difference,
        margin,
        test.greater,
        floor,
    )
