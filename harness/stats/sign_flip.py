"""The sign-flip test of a mean difference.

`sign_flip` tests the mean difference of a pair; `max_t` many configurations against one default, whole rows flipped,
with bounds that hold for all of them.
"""

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
"""Of the sum of all sizes, up to which differences that are multiples of one step are counted."""
MAX_CONVOLVED_BATCH = 500
"""Differences whose patterns are counted before they become chances; all 2^500 of them are a number."""
MIN_TAIL_DRAWS = 25
"""Draws as far out as what was observed, below which the tail is computed instead."""


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
    """"enumerated" or "convolved" (both exact), "draws", or "saddlepoint" in the far tail of the draws."""


def sign_flip(
    scores: Floats, contrasts: Sequence[Contrast], seed: int = 0
) -> list[FlipTest]:
    """Test mean differences between columns by flipping signs.

    A difference of zero has no sign. Up to 20 non-zero ones, all their patterns are enumerated; whole multiples of one
    step are counted by convolution. Both are exact. Beyond, 100,000 seeded draws, the same for all contrasts, and
    p = (count + 1) / (draws + 1); where fewer than 25 draws reach the observed sum, the saddlepoint approximation of
    the same distribution. Sums of n differences within n x 1e-10 x max(1, largest |score|) are equal.

    Args:
        scores: (n, k), one column for each retriever and measure, queries in the order of their ids; or the sums of
            n clusters of queries, whose members keep one sign.
        contrasts: what to test.
        seed: of the draws.
    """
    sizes = np.abs(scores).max(axis=0)
    slack = [
        SCORE_TOLERANCE * max(1.0, float(sizes[c.a]), float(sizes[c.b]))
        for c in contrasts
    ]

    def counted(c: Contrast, near: float) -> FlipTest | None:
        values = scores[:, c.a] - scores[:, c.b]
        signed = values[np.abs(values) > near]
        if len(signed) <= MAX_ENUMERATED_DIFFERENCES:
            return _enumerated(signed, len(scores) * near)
        return None if (steps := _steps(signed, near)) is None else _convolved(steps)

    tests = [counted(c, near) for c, near in zip(contrasts, slack, strict=True)]
    rest = [i for i, test in enumerate(tests) if test is None]
    drawn = iter(
        _drawn(
            scores,
            [contrasts[i] for i in rest],
            np.array([slack[i] for i in rest]),
            seed,
        )
        if rest
        else ()
    )
    return [next(drawn) if test is None else test for test in tests]


def _enumerated(values: Floats, slack: float) -> FlipTest:
    """Try every sign pattern: each value doubles the sums."""
    sums = enumerate_flipped_sums(values)
    observed = sums[0]
    above, outside = sums >= observed - slack, np.abs(sums) >= abs(observed) - slack
    return FlipTest(float(outside.mean()), float(above.mean()), "enumerated")


def _steps(values: Floats, slack: float) -> Integers | None:
    """The values as whole multiples of one step, None where there is none or their sizes are too many steps."""
    sizes = np.abs(values)
    step = float(sizes.min())
    while sizes.sum() <= MAX_CONVOLVED_STEPS * step:
        rest = np.abs(sizes - step * np.round(sizes / step))
        if (far := rest > slack * np.maximum(1.0, sizes / step)).any():
            step = float(rest[far].min())  # Euclid's algorithm, on all values at once
            continue
        return np.round(values / step).astype(np.int64)
    return None


def _convolved(steps: Integers) -> FlipTest:
    """Count the sums of whole numbers under all flips: a sum is fixed by those whose sign is minus."""
    plus, minus = int(steps[steps > 0].sum()), -int(steps[steps < 0].sum())
    chances = np.zeros(max(plus, minus) + 1)
    chances[0] = 1.0
    sizes = np.sort(np.abs(steps))
    for start in range(0, len(sizes), MAX_CONVOLVED_BATCH):
        part = sizes[start : start + MAX_CONVOLVED_BATCH]
        chances = np.ldexp(with_subsets(chances, part), -len(part))
    below = min(1.0, float(chances[: minus + 1].sum()))
    outer = float(chances[: min(plus, minus) + 1].sum())
    return FlipTest(
        max(min(1.0, 2 * outer), SMALLEST), max(below, SMALLEST), "convolved"
    )


def _drawn(
    scores: Floats, contrasts: Sequence[Contrast], slack: Floats, seed: int
) -> list[FlipTest]:
    """Draw patterns: a sum of differences is one of the columns' sums, so that the same sums serve all contrasts."""
    columns, places = np.unique(np.array(contrasts), return_inverse=True)
    scores, pairs = (
        np.ascontiguousarray(scores[:, columns]),
        places.reshape(-1, 2).tolist(),
    )
    sums, near = scores.sum(axis=0).tolist(), (len(scores) * slack).tolist()
    edges = [
        (sums[a] - sums[b] - one, abs(sums[a] - sums[b]) - one)
        for (a, b), one in zip(pairs, near, strict=True)
    ]
    above, outside = [0] * len(pairs), [0] * len(pairs)
    for flipped in draw_flipped_sums(scores, seed):
        rows = np.ascontiguousarray(flipped.T)
        for i, ((a, b), (one, both)) in enumerate(zip(pairs, edges, strict=True)):
            values = rows[a] - rows[b]
            above[i] += int(np.count_nonzero(values >= one))
            outside[i] += int(np.count_nonzero(np.abs(values, out=values) >= both))
    tails = zip(pairs, outside, above, strict=True)
    return [
        _tailed(scores[:, a] - scores[:, b], both, one) for (a, b), both, one in tails
    ]


def _tailed(values: Floats, outside: int, above: int) -> FlipTest:
    """The test of so many draws; too few of them say little of a far tail."""
    two_sided, greater = (
        (outside + 1) / (SIGN_DRAWS + 1),
        (above + 1) / (SIGN_DRAWS + 1),
    )
    if min(outside, above) >= MIN_TAIL_DRAWS:
        return FlipTest(two_sided, greater, "draws")
    tail = sign_flip_tail(values)
    if outside < MIN_TAIL_DRAWS:
        two_sided = min(2 * tail, (MIN_TAIL_DRAWS + 1) / (SIGN_DRAWS + 1))
    if above < MIN_TAIL_DRAWS:
        greater = min(tail, (MIN_TAIL_DRAWS + 1) / (SIGN_DRAWS + 1))
    return FlipTest(
        two_sided, greater, "saddlepoint" if outside < MIN_TAIL_DRAWS else "draws"
    )


def sign_flip_tail(values: Floats) -> float:
    """Return the chance that flips of signs give at least the size of the observed sum: Lugannani & Rice (1980).

    The cumulants of the flipped sum are K(t) = sum log cosh(t d); never below the chance of a single pattern.

    >>> from harness.stats.signed_rank import lower_tail
    >>> steps = np.array([*range(-8, 0), *range(9, 41)])
    >>> round(sign_flip_tail(steps / 40) / lower_tail(np.abs(steps), 36), 2)
    0.92
    """
    sizes = np.sort(np.abs(values))[::-1]
    observed, most = abs(math.fsum(values)), math.fsum(sizes)
    least = max(
        math.ldexp(1.0, -int(np.count_nonzero(sizes > SCORE_TOLERANCE))), SMALLEST
    )
    if observed >= most * (1 - SCORE_TOLERANCE):
        return least

    low, high = 0.0, 1.0 / float(sizes[0])
    while float(sizes @ np.tanh(high * sizes)) < observed:
        low, high = high, 2 * high
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if float(sizes @ np.tanh(middle * sizes)) < observed
            else (low, middle)
        )
    cumulant = float(
        (high * sizes + np.log1p(np.exp(-2 * high * sizes)) - math.log(2)).sum()
    )
    w = math.sqrt(max(2 * (high * observed - cumulant), SCORE_TOLERANCE))
    spread = high * math.sqrt(
        float((sizes**2 * (1 - np.tanh(high * sizes) ** 2)).sum())
    )
    density = math.exp(-w * w / 2) / math.sqrt(2 * math.pi)
    return max(float(special.ndtr(-w)) + density * (1 / spread - 1 / w), least)
