"""The sign-flip test of a mean difference."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.differences import SCORE_TOLERANCE, Floats, Integers
from harness.stats.draws import SIGN_DRAWS, draw_flipped_sums, enumerate_flipped_sums
from harness.stats.signed_rank import SMALLEST, with_subsets

MAX_ENUMERATED_DIFFERENCES = 20
"""Non-zero differences up to which all their sign patterns are tried."""
MAX_CONVOLVED_STEPS = 20_000
"""Steps in the sum of all sizes, up to which multiples of one step are counted."""
MAX_CONVOLVED_BATCH = 500
"""Differences whose patterns are counted before they become probabilities.

The number of all 2^500 patterns is still a float.
"""
MIN_TAIL_DRAWS = 25
"""Draws as extreme as the observed sum, below which the tail is computed instead."""
TILT_TOLERANCE = 1e-13
"""Relative tolerance of the saddlepoint."""


class Contrast(NamedTuple):
    """The sum of column `a` - column `b`, to be tested against zero."""

    a: int
    b: int


class FlipTest(NamedTuple):
    """p-values of one contrast."""

    two_sided: float
    greater: float
    """One-sided, against the null hypothesis that the mean is not above zero."""
    method: str
    """How the p-values were computed.

    "enumerated" or "convolved" (both exact), "draws", or "saddlepoint" in the far tail
    of the draws.
    """


def sign_flip(
    scores: Floats, contrasts: Sequence[Contrast], seed: int = 0
) -> list[FlipTest]:
    """Test mean differences between columns by flipping signs.

    A difference of zero has no sign. Up to 20 non-zero ones, all their patterns are
    enumerated; whole multiples of one step are counted by convolution. Both are exact.
    Beyond, 100,000 seeded draws, the same for all contrasts, and
    p = (count + 1) / (draws + 1); if fewer than 25 draws reach the observed sum, the
    saddlepoint approximation of the same distribution. Sums of n differences within
    n x 1e-10 x max(1, largest |score|) are equal.

    Args:
        scores: (n, k), one column for each retriever and measure, queries in the order
            of their ids; or the sums of n clusters of queries, whose members keep one
            sign.
        contrasts: the columns to compare.
        seed: of the draws.
    """
    sizes = np.abs(scores).max(axis=0)
    tests: list[FlipTest | None] = []
    slacks: list[float] = []
    for a, b in contrasts:
        slack = SCORE_TOLERANCE * max(1.0, float(sizes[a]), float(sizes[b]))
        slacks.append(slack)
        tests.append(_test_exactly(scores[:, a] - scores[:, b], slack))
    remaining = [index for index, test in enumerate(tests) if test is None]
    if not remaining:
        return [test for test in tests if test is not None]
    drawn_tests = iter(
        _test_by_draws(
            scores,
            [contrasts[index] for index in remaining],
            np.array([slacks[index] for index in remaining]),
            seed,
        )
    )
    return [next(drawn_tests) if test is None else test for test in tests]


def _test_exactly(differences: Floats, slack: float) -> FlipTest | None:
    """Return the exact test; None if there are too many patterns to count."""
    nonzero = differences[np.abs(differences) > slack]
    if len(nonzero) <= MAX_ENUMERATED_DIFFERENCES:
        return _test_by_enumeration(nonzero, len(differences) * slack)
    steps = _whole_steps(nonzero, slack)
    if steps is None:
        return None
    return _test_by_convolution(steps)


def _test_by_enumeration(differences: Floats, slack: float) -> FlipTest:
    """Try every sign pattern: each difference doubles the number of sums."""
    sums = enumerate_flipped_sums(differences)
    observed = sums[0]
    is_above = sums >= observed - slack
    is_outside = np.abs(sums) >= abs(observed) - slack
    return FlipTest(float(is_outside.mean()), float(is_above.mean()), "enumerated")


def _whole_steps(differences: Floats, slack: float) -> Integers | None:
    """Return the differences as whole multiples of one step.

    None if there is no such step, or their sizes are too many steps.
    """
    sizes = np.abs(differences)
    step = float(sizes.min())
    # Euclid's algorithm, on all differences at once.
    while sizes.sum() <= MAX_CONVOLVED_STEPS * step:
        remainders = np.abs(sizes - step * np.round(sizes / step))
        is_remainder = remainders > slack * np.maximum(1.0, sizes / step)
        if not is_remainder.any():
            return np.round(differences / step).astype(np.int64)
        step = float(remainders[is_remainder].min())
    return None


def _test_by_convolution(steps: Integers) -> FlipTest:
    """Count the sums of whole numbers under all flips.

    A sum is determined by the numbers whose sign is minus.
    """
    plus = int(steps[steps > 0].sum())
    minus = -int(steps[steps < 0].sum())
    chances = np.zeros(max(plus, minus) + 1)
    chances[0] = 1.0
    sizes = np.sort(np.abs(steps))
    for start in range(0, len(sizes), MAX_CONVOLVED_BATCH):
        batch = sizes[start : start + MAX_CONVOLVED_BATCH]
        chances = np.ldexp(with_subsets(chances, batch), -len(batch))
    greater = min(1.0, float(chances[: minus + 1].sum()))
    tail = float(chances[: min(plus, minus) + 1].sum())
    two_sided = min(1.0, 2 * tail)
    return FlipTest(max(two_sided, SMALLEST), max(greater, SMALLEST), "convolved")


class DrawnContrast(NamedTuple):
    """A contrast of columns, with the sums that count as extreme."""

    a: int
    b: int
    above: float
    """Sums from here on count for the one-sided test."""
    outside: float
    """Sums whose size is at least this count for the two-sided test."""


def _test_by_draws(
    scores: Floats, contrasts: Sequence[Contrast], slacks: Floats, seed: int
) -> list[FlipTest]:
    """Draw sign patterns, the same for all contrasts.

    The sum of differences is the difference of the columns' sums, so that the sums of
    the columns serve all contrasts.
    """
    columns, positions = np.unique(np.array(contrasts), return_inverse=True)
    scores = np.ascontiguousarray(scores[:, columns])
    sums = scores.sum(axis=0).tolist()
    sum_slacks = (len(scores) * slacks).tolist()
    drawn_contrasts: list[DrawnContrast] = []
    for (a, b), slack in zip(
        positions.reshape(-1, 2).tolist(), sum_slacks, strict=True
    ):
        observed = sums[a] - sums[b]
        drawn_contrasts.append(
            DrawnContrast(a, b, above=observed - slack, outside=abs(observed) - slack)
        )
    above = [0] * len(drawn_contrasts)
    outside = [0] * len(drawn_contrasts)
    for flipped_sums in draw_flipped_sums(scores, seed):
        rows = np.ascontiguousarray(flipped_sums.T)
        for i, contrast in enumerate(drawn_contrasts):
            flipped = rows[contrast.a] - rows[contrast.b]
            above[i] += int(np.count_nonzero(flipped >= contrast.above))
            sizes = np.abs(flipped, out=flipped)
            outside[i] += int(np.count_nonzero(sizes >= contrast.outside))
    tests: list[FlipTest] = []
    for i, contrast in enumerate(drawn_contrasts):
        differences = scores[:, contrast.a] - scores[:, contrast.b]
        tests.append(_test_of_counts(differences, outside[i], above[i]))
    return tests


def _test_of_counts(differences: Floats, outside: int, above: int) -> FlipTest:
    """Return the test of so many extreme draws; too few of them are replaced."""
    two_sided = (outside + 1) / (SIGN_DRAWS + 1)
    greater = (above + 1) / (SIGN_DRAWS + 1)
    if min(outside, above) >= MIN_TAIL_DRAWS:
        return FlipTest(two_sided, greater, "draws")
    tail = sign_flip_tail(differences)
    largest_tail = (MIN_TAIL_DRAWS + 1) / (SIGN_DRAWS + 1)
    if above < MIN_TAIL_DRAWS:
        greater = min(tail, largest_tail)
    if outside < MIN_TAIL_DRAWS:
        return FlipTest(min(2 * tail, largest_tail), greater, "saddlepoint")
    return FlipTest(two_sided, greater, "draws")


def sign_flip_tail(differences: Floats) -> float:
    """Return the chance that flips of signs give at least the size of the observed sum.

    Lugannani & Rice (1980). The cumulants of the flipped sum are
    K(t) = sum log cosh(t d); never below the chance of a single pattern.

    >>> from harness.stats.signed_rank import lower_tail
    >>> steps = np.array([*range(-8, 0), *range(9, 41)])
    >>> round(sign_flip_tail(steps / 40) / lower_tail(np.abs(steps), 36), 2)
    0.92
    """
    d = np.sort(np.abs(differences))[::-1]
    observed = abs(math.fsum(differences))
    nonzero = int(np.count_nonzero(d > SCORE_TOLERANCE))
    smallest_chance = max(math.ldexp(1.0, -nonzero), SMALLEST)
    if observed >= math.fsum(d) * (1 - SCORE_TOLERANCE):
        return smallest_chance
    t = _saddlepoint(d, observed)
    cumulant = float((t * d + np.log1p(np.exp(-2 * t * d)) - math.log(2)).sum())
    w = math.sqrt(max(2 * (t * observed - cumulant), SCORE_TOLERANCE))
    spread = t * math.sqrt(float((d**2 * (1 - np.tanh(t * d) ** 2)).sum()))
    density = math.exp(-w * w / 2) / math.sqrt(2 * math.pi)
    chance = float(special.ndtr(-w)) + density * (1 / spread - 1 / w)
    return max(chance, smallest_chance)


def _saddlepoint(d: Floats, observed: float) -> float:
    """Return the t at which K'(t) = sum d tanh(t d) is the observed sum.

    Args:
        d: sizes of the differences, largest first.
        observed: below the sum of the sizes.
    """
    low = 0.0
    high = 1.0 / float(d[0])
    while float(d @ np.tanh(high * d)) < observed:
        low = high
        high = 2 * high
    while high - low > TILT_TOLERANCE * high:
        middle = (low + high) / 2
        if float(d @ np.tanh(middle * d)) < observed:
            low = middle
        else:
            high = middle
    return high
