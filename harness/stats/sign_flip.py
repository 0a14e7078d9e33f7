"""The randomisation test of a mean difference: under the null hypothesis each difference's sign is a coin's toss."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.stats.differences import SLACK, Floats, generator

ENUMERATED = 20
"""Non-zero differences up to which all their sign patterns are tried."""
DRAWS = 100_000
BLOCK = 1 << 16
"""Sums made at once, few enough to stay in a processor's cache; it moves no result."""
DRAWN = 1 << 22
"""Words of 64 signs, or signs, held at once, which bounds the memory; it moves no result either."""
WIDE = 128
"""Columns beyond which a product is faster than looking sums up."""
Bytes = npt.NDArray[np.uint8]


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
    """Draw patterns: a sum of differences is one of the columns' sums, so that the same sums serve all contrasts."""
    n = len(scores)
    plus = np.array([c.a for c in contrasts], dtype=np.intp)
    less = np.array([c.b for c in contrasts], dtype=np.intp)
    sums = scores.sum(axis=0)
    observed = sums[plus] - sums[less]
    above, outside = np.zeros(len(contrasts), dtype=np.int64), np.zeros(len(contrasts), dtype=np.int64)
    for flipped in flipped_sums(scores, seed):
        values = flipped[:, plus] - flipped[:, less]
        above += np.count_nonzero(values >= observed - n * slack, axis=0)
        outside += np.count_nonzero(np.abs(values) >= np.abs(observed) - n * slack, axis=0)
    return [
        FlipTest((int(both) + 1) / (DRAWS + 1), (int(one) + 1) / (DRAWS + 1), "draws")
        for both, one in zip(outside, above, strict=True)
    ]


def flipped_sums(columns: Floats, seed: int, draws: int | None = None) -> Iterator[Floats]:
    """Yield the sums of the columns under each draw of signs, in blocks of draws; blocks move no sum.

    The signs are random bits, a set one is a minus.

    Args:
        columns: (n, k), a sign for each row.
        seed: of the draws, which are the same for all columns.
        draws: how many; left out, as many as every test takes.
    """
    n, k = columns.shape
    draws = DRAWS if draws is None else draws
    words = -(-n // 64)
    rng = generator(seed, "signs", n)
    rows = max(1, min(BLOCK // k, DRAWN // words) if k <= WIDE else DRAWN // max(n, k))
    for start in range(0, draws, rows):
        drawn = rng.integers(0, 2**64, size=(min(rows, draws - start), words), dtype=np.uint64).astype("<u8")
        bits = drawn.view(np.uint8)
        yield _looked_up(bits, columns) if k <= WIDE else _signs(bits)[:, :n] @ columns


def _looked_up(bits: Bytes, columns: Floats) -> Floats:
    """Eight rows have 256 patterns: their sums are looked up by the byte that was drawn.

    With up to 20 columns that takes a fifth to a tenth of the time of a product with the signs.
    """
    eights = np.zeros((-(-len(columns) // 8), 8, columns.shape[1]))
    eights.reshape(-1, columns.shape[1])[: len(columns)] = columns
    sums = np.zeros((len(bits), columns.shape[1]))
    part = np.empty_like(sums)
    for eight, pattern in zip(eights, np.ascontiguousarray(bits.T), strict=False):
        # "clip" lets numpy write into `part` as it goes; no byte is beyond 255.
        sums += np.take(PATTERNS @ eight, pattern, axis=0, out=part, mode="clip")
    return sums


def _signs(bits: Bytes) -> Floats:
    signs: Floats = 1 - 2 * np.unpackbits(bits, axis=1).astype(np.float64)
    return signs


PATTERNS = _signs(np.arange(256, dtype=np.uint8)[:, None])
"""(256, 8): the signs that each byte stands for."""
