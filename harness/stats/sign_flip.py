"""Randomisation by flips of signs: under the null hypothesis each difference's sign is a coin's toss.

`sign_flip` tests the mean difference of a pair; `max_t` many configurations against one default, whole rows flipped,
with bounds that hold for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.stats.differences import SLACK, Floats, Units, generator, highest

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


ROWS_ENUMERATED = 16
"""Units with a difference, up to which all their sign patterns are tried."""
TOLD, FEWEST_TOLD, STATISTICS = 10_000, 1_000, 10**8
"""Flips by which pairs are told apart, at most and at least; in between, so many statistics of pairs are drawn."""
PAIRS = 1 << 23
"""Statistics of pairs held at once; it moves no result."""


class MaxT(NamedTuple):
    """What the best of many configurations is worth against the default."""

    best: int
    """Its column: that of the highest mean."""
    p_value: float
    """One-sided, against the null hypothesis that no configuration has a higher mean than the default."""
    gain: float
    """Its mean difference on the queries that chose it."""
    low: float | None
    """Lower bound of its true gain, whichever column had been chosen; None where all its differences are equal."""
    method: str
    """"enumerated" (exact) or "draws"."""


def max_t(differences: Floats, units: Units, *, alpha: float = 0.05, seed: int = 0) -> MaxT:
    """Test the configuration of the highest mean against the default, as one of all that were tried.

    T of a column is its sum over the root of its sum of squares; the signs of whole rows are flipped, shared by all
    columns, and p is the share of flips whose largest T is at least that of the best column (Westfall & Young 1993;
    Chernozhukov, Chetverikov & Kato 2013). Up to 16 units that differ, all patterns; beyond, 100,000 seeded draws, and
    p = (count + 1) / (draws + 1).

    Args:
        differences: (n, m) configurations - default, query by query.
        units: clusters and weights of the queries.
        alpha: the bound has confidence 1 - alpha/2; a claim is made where p is at most alpha/2.
        seed: of the draws.

    >>> from harness.stats.differences import singles
    >>> rows = [(1, 3, 2), (2, 1, 3), (0, 2, -1), (3, 4, 1), (1, -1, 2), (2, 3, 0), (-1, 2, 1), (1, 0, 3)]
    >>> found = max_t(np.array(rows) / 10, singles(8))  # counted by hand over all 256 patterns: 10 of them
    >>> found.best, found.p_value * 256, found.method
    (1, 10.0, 'enumerated')
    """
    totals = units.totals.sum()
    sums = units.sums(differences)
    slack = SLACK * max(1.0, float(np.abs(differences).max()))
    gains = sums.sum(axis=0) / totals
    gains = np.where(np.abs(gains) <= slack, 0.0, gains)
    best = highest(gains)
    sums = np.where(np.abs(sums) <= slack, 0.0, sums)
    sizes = np.sqrt((sums**2).sum(axis=0))
    wide = np.where(sizes > 0, sizes, 1.0)
    observed = sums[:, best].sum() / wide[best] - 1e-9
    method = "enumerated" if _differing(sums) <= ROWS_ENUMERATED else "draws"
    more = 1 if method == "draws" else 0
    largest = np.concatenate([some.max(axis=1) for some in _flips(sums / wide, seed)])
    p_value = (np.count_nonzero(largest >= observed) + more) / (len(largest) + more)
    return MaxT(best, float(p_value), float(gains[best]), _lower(differences, units, best, (alpha, seed)), method)


def _lower(differences: Floats, units: Units, best: int, how: tuple[float, int]) -> float | None:
    """The mean of the best column less c standard errors, c from the largest studentised, centred column of all.

    Each flip is studentised by its own standard error, that of `standard_error`: by the observed one, c would be too
    small, most with few queries or unequal weights.
    """
    alpha, seed = how
    shares = (units.totals / units.totals.sum())[:, None]
    means = units.sums(differences).sum(axis=0) / units.totals.sum()
    slack = SLACK * max(1.0, float(np.abs(differences).max()))
    centred = units.sums(differences - means) / units.totals.sum()
    known = np.abs(centred).max(axis=0) * len(units) > slack
    if float(shares.max()) > 1 - SLACK or not known[best]:
        return None
    centred, seen = centred[:, known], 1 / (1 - shares) ** 2
    squares, more, largest = (seen * centred**2).sum(axis=0), (seen * shares**2).sum(), []
    alike, cross = float(np.ptp(shares)) == 0, seen * shares  # one product does for units of equal weight
    for some in _flips(centred if alike else np.hstack([centred, cross * centred]), seed):
        sums, crossed = (some, some * cross[0]) if alike else np.hsplit(some, 2)
        errors = np.maximum(squares - 2 * sums * crossed + sums**2 * more, SLACK * squares)
        largest.append((sums / np.sqrt(errors)).max(axis=1))
    c = float(np.quantile(np.concatenate(largest), 1 - alpha / 2, method="inverted_cdf"))
    return float(means[best] - c * np.sqrt(squares[known[:best].sum()]))


def told_apart(values: Floats, units: Units, best: int, *, alpha: float = 0.05, seed: int = 0) -> list[bool]:
    """Say which configurations are told from one of them, by the max-T test over all pairs of configurations.

    The chosen one is chosen by the data, so that its pairs are corrected over all pairs: two-sided, single step.

    Args:
        values: (n, m) scores of the configurations.
        units: clusters and weights of the queries.
        best: the column of the chosen one.
        alpha: level over all pairs.
        seed: of the draws.

    >>> from harness.stats.differences import singles
    >>> a = np.linspace(0.1, 0.9, 9)
    >>> told_apart(np.column_stack([a, a - 0.05, a[::-1]]), singles(9), 0)
    [False, True, False]
    """
    pairs = np.array(list(combinations(range(values.shape[1]), 2)), dtype=np.intp).reshape(-1, 2)
    if not len(pairs):
        return [False]
    sums = units.sums(values - values.mean(axis=1, keepdims=True))
    slack = SLACK * max(1.0, float(np.abs(values).max()))
    squares = sums.T @ sums
    wide = np.sqrt(np.maximum(np.diag(squares)[:, None] + np.diag(squares)[None, :] - 2 * squares, 0.0))
    known = wide[pairs[:, 0], pairs[:, 1]] > slack * np.sqrt(len(sums))
    first, second = pairs[known].T
    sizes, largest = wide[first, second], []
    draws = max(FEWEST_TOLD, min(TOLD, STATISTICS // len(pairs)))
    for some in _flips(sums, seed, draws):
        step = max(1, PAIRS // max(1, len(first)))
        for start in range(0, len(some), step):
            part = some[start : start + step]
            gaps = np.abs(part[:, first] - part[:, second]) / sizes if len(first) else np.zeros((len(part), 1))
            largest.append(gaps.max(axis=1))
    drawn = np.sort(np.concatenate(largest))
    more = 0 if _differing(sums) <= ROWS_ENUMERATED else 1
    total = sums.sum(axis=0)
    apart = []
    for other in range(values.shape[1]):
        size = wide[best, other]
        if other == best or size <= slack * np.sqrt(len(sums)):
            apart.append(False)
            continue
        beyond = len(drawn) - int(np.searchsorted(drawn, abs(total[best] - total[other]) / size - 1e-9))
        apart.append((beyond + more) / (len(drawn) + more) <= alpha)
    return apart


def _differing(sums: Floats) -> int:
    """Units with a difference: patterns of few of them are all tried."""
    return int(np.abs(sums).any(axis=1).sum())


def _flips(sums: Floats, seed: int, draws: int | None = None) -> Iterator[Floats]:
    """Yield the sums of the columns under flips of whole rows: all patterns of few rows, else seeded draws."""
    if _differing(sums) > ROWS_ENUMERATED:
        yield from flipped_sums(sums, seed, draws)
        return
    patterns = np.zeros((1, sums.shape[1]))
    for row in sums[np.abs(sums).any(axis=1)]:
        patterns = np.concatenate([patterns + row, patterns - row])
    yield patterns
