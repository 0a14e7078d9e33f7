"""The randomisation test of a mean difference: under the null hypothesis each difference's sign is a coin's toss."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from harness.stats.differences import SLACK, Floats
from harness.stats.draws import generator

ENUMERATED = 20
"""Queries up to which all 2^n sign patterns are tried."""
DRAWS = 100_000
BLOCK = 1 << 22
"""Numbers held at once; it bounds the memory and moves no result."""


class Contrast(NamedTuple):
    """The mean of column `a` - column `b` + `shift`, to be tested against zero."""

    a: int
    b: int
    shift: float = 0.0


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
    """Test mean differences between columns by flipping signs, all contrasts on the same patterns.

    A pattern's sum of differences is the difference of its column sums, so one matrix product serves all
    measures and pairs. All 2^n patterns up to 20 queries; beyond, 100,000 seeded draws and
    p = (count + 1) / (draws + 1). Sums of n differences within n x 1e-10 x max(1, largest |score|) are equal.

    Args:
        scores: (n, k), one column for each retriever and measure, queries in the order of their ids.
        contrasts: what to test.
        seed: of the draws.
    """
    n = len(scores)
    columns = np.column_stack([scores, np.ones(n)])
    plus = np.array([c.a for c in contrasts], dtype=np.intp)
    less = np.array([c.b for c in contrasts], dtype=np.intp)
    shift = np.array([c.shift for c in contrasts])
    largest = np.abs(scores).max(axis=0)
    slack = n * SLACK * np.maximum(1.0, np.maximum(largest[plus], largest[less]))
    sums = columns.sum(axis=0)
    observed = sums[plus] - sums[less] + shift * n
    above, outside = np.zeros(len(contrasts), dtype=np.int64), np.zeros(len(contrasts), dtype=np.int64)
    tried = 0
    for signs in sign_patterns(n, seed, rows=max(1, BLOCK // max(n, len(contrasts), 1))):
        flipped = signs @ columns
        values = flipped[:, plus] - flipped[:, less] + flipped[:, -1:] * shift
        above += np.count_nonzero(values >= observed - slack, axis=0)
        outside += np.count_nonzero(np.abs(values) >= np.abs(observed) - slack, axis=0)
        tried += len(signs)
    method, extra = ("enumerated", 0) if n <= ENUMERATED else ("draws", 1)
    return [
        FlipTest((int(both) + extra) / (tried + extra), (int(one) + extra) / (tried + extra), method)
        for both, one in zip(outside, above, strict=True)
    ]


def sign_patterns(n: int, seed: int, rows: int) -> Iterator[Floats]:
    """Yield blocks of at most `rows` sign patterns, (rows, n) of -1 and 1; the blocks' size moves no sign."""
    total = 1 << n if n <= ENUMERATED else DRAWS
    rng = generator(seed, "signs", n)
    words = -(-n // 64)
    for start in range(0, total, rows):
        count = min(rows, total - start)
        if n <= ENUMERATED:
            bits = ((np.arange(start, start + count)[:, None] >> np.arange(n)) & 1).astype(np.uint8)
        else:
            drawn = rng.integers(0, 2**64, size=(count, words), dtype=np.uint64).astype("<u8")
            bits = np.unpackbits(drawn.view(np.uint8), axis=1)[:, :n]
        yield 1 - 2 * bits.astype(np.float64)
