"""The randomisation test of a mean difference: under the null hypothesis each difference's sign is a coin's toss."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from harness.stats.differences import SLACK, Floats
from harness.stats.draws import generator

ENUMERATED = 20
"""Non-zero differences up to which all their sign patterns are tried."""
DRAWS = 100_000
BLOCK = 1 << 22
"""Numbers held at once; it bounds the memory and moves no result."""


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
    """"enumerated" (exact) or "draws"."""

    def p_minimum(self, non_zero: int) -> float:
        """The smallest two-sided p that this many non-zero differences could have given."""
        floor = math.ldexp(1.0, 1 - non_zero) if non_zero else 1.0
        return floor if self.method == "enumerated" else max(floor, 1 / (DRAWS + 1))


def sign_flip(scores: Floats, contrasts: Sequence[Contrast], seed: int = 0) -> list[FlipTest]:
    """Test mean differences between columns by flipping signs.

    A difference of zero has no sign: up to 20 non-zero ones, all their patterns are enumerated, which is exact.
    Beyond, 100,000 seeded draws, the same for all contrasts, and p = (count + 1) / (draws + 1). Sums of n differences
    within n x 1e-10 x max(1, largest |score|) are equal.

    Args:
        scores: (n, k), one column for each retriever and measure, queries in the order of their ids; or the sums of
            n clusters of queries, whose members keep one sign.
        contrasts: what to test.
        seed: of the draws.
    """
    slack = [SLACK * max(1.0, float(np.abs(scores[:, [c.a, c.b]]).max())) for c in contrasts]
    tests: dict[int, FlipTest] = {}
    for i, c in enumerate(contrasts):
        values = scores[:, c.a] - scores[:, c.b]
        signed = values[np.abs(values) > slack[i]]
        if len(signed) <= ENUMERATED:
            tests[i] = _enumerated(signed, len(scores) * slack[i])
    rest = [i for i in range(len(contrasts)) if i not in tests]
    if rest:
        drawn = _drawn(scores, [contrasts[i] for i in rest], np.array([slack[i] for i in rest]), seed)
        tests |= dict(zip(rest, drawn, strict=True))
    return [tests[i] for i in range(len(contrasts))]


def _enumerated(values: Floats, slack: float) -> FlipTest:
    """Try every sign pattern: each value doubles the sums."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    observed = sums[0]
    above, outside = sums >= observed - slack, np.abs(sums) >= abs(observed) - slack
    return FlipTest(float(outside.mean()), float(above.mean()), "enumerated")


def _drawn(scores: Floats, contrasts: Sequence[Contrast], slack: Floats, seed: int) -> list[FlipTest]:
    """Draw patterns: one of differences is one of the columns, so that one matrix product serves all contrasts."""
    n = len(scores)
    plus = np.array([c.a for c in contrasts], dtype=np.intp)
    less = np.array([c.b for c in contrasts], dtype=np.intp)
    sums = scores.sum(axis=0)
    observed = sums[plus] - sums[less]
    above, outside = np.zeros(len(contrasts), dtype=np.int64), np.zeros(len(contrasts), dtype=np.int64)
    for signs in sign_patterns(n, seed, rows=max(1, BLOCK // max(n, len(contrasts)))):
        flipped = signs @ scores
        values = flipped[:, plus] - flipped[:, less]
        above += np.count_nonzero(values >= observed - n * slack, axis=0)
        outside += np.count_nonzero(np.abs(values) >= np.abs(observed) - n * slack, axis=0)
    return [
        FlipTest((int(both) + 1) / (DRAWS + 1), (int(one) + 1) / (DRAWS + 1), "draws")
        for both, one in zip(outside, above, strict=True)
    ]


def sign_patterns(n: int, seed: int, rows: int) -> Iterator[Floats]:
    """Yield the draws in blocks of at most `rows` sign patterns, (rows, n) of -1 and 1; blocks move no sign."""
    rng = generator(seed, "signs", n)
    words = -(-n // 64)
    for start in range(0, DRAWS, rows):
        count = min(rows, DRAWS - start)
        drawn = rng.integers(0, 2**64, size=(count, words), dtype=np.uint64).astype("<u8")
        yield 1 - 2 * np.unpackbits(drawn.view(np.uint8), axis=1)[:, :n].astype(np.float64)
