"""Randomisation by flips of signs: under the null hypothesis each difference's sign is a coin's toss.

`sign_flip` tests the mean difference of a pair; `max_t` many configurations against one default, whole rows flipped,
with bounds that hold for all of them.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from harness.stats.differences import (
    SLACK,
    Floats,
    Integers,
    Units,
    generator,
    highest,
    in_parallel,
)
from harness.stats.signed_rank import SMALLEST, with_subsets

ENUMERATED = 20
"""Non-zero differences up to which all their sign patterns are tried."""
DRAWS = 100_000
STEPS = 20_000
"""Of the sum of all sizes, up to which differences that are multiples of one step are counted."""
COUNTED = 500
"""Differences whose patterns are counted before they become chances; all 2^500 of them are a number."""
FEW_HITS = 25
"""Draws as far out as what was observed, below which the tail is computed instead."""
BLOCK = 1 << 17
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
    slack = [SLACK * max(1.0, float(sizes[c.a]), float(sizes[c.b])) for c in contrasts]

    def counted(c: Contrast, near: float) -> FlipTest | None:
        values = scores[:, c.a] - scores[:, c.b]
        signed = values[np.abs(values) > near]
        if len(signed) <= ENUMERATED:
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
    sums = _patterns(values)
    observed = sums[0]
    above, outside = sums >= observed - slack, np.abs(sums) >= abs(observed) - slack
    return FlipTest(float(outside.mean()), float(above.mean()), "enumerated")


def _patterns(rows: Floats) -> Floats:
    """The sums of rows under every pattern of their signs, the observed one first."""
    sums = np.zeros((1, *rows.shape[1:]))
    for row in rows:
        sums = np.concatenate([sums + row, sums - row])
    return sums


def _steps(values: Floats, slack: float) -> Integers | None:
    """The values as whole multiples of one step, None where there is none or their sizes are too many steps."""
    sizes = np.abs(values)
    step = float(sizes.min())
    while sizes.sum() <= STEPS * step:
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
    for start in range(0, len(sizes), COUNTED):
        part = sizes[start : start + COUNTED]
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
    for flipped in flipped_sums(scores, seed):
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
    two_sided, greater = (outside + 1) / (DRAWS + 1), (above + 1) / (DRAWS + 1)
    if min(outside, above) >= FEW_HITS:
        return FlipTest(two_sided, greater, "draws")
    tail = saddlepoint(values)
    if outside < FEW_HITS:
        two_sided = min(2 * tail, (FEW_HITS + 1) / (DRAWS + 1))
    if above < FEW_HITS:
        greater = min(tail, (FEW_HITS + 1) / (DRAWS + 1))
    return FlipTest(
        two_sided, greater, "saddlepoint" if outside < FEW_HITS else "draws"
    )


def saddlepoint(values: Floats) -> float:
    """Return the chance that flips of signs give at least the size of the observed sum: Lugannani & Rice (1980).

    The cumulants of the flipped sum are K(t) = sum log cosh(t d); never below the chance of a single pattern.

    >>> from harness.stats.signed_rank import lower_tail
    >>> steps = np.array([*range(-8, 0), *range(9, 41)])
    >>> round(saddlepoint(steps / 40) / lower_tail(np.abs(steps), 36), 2)
    0.92
    """
    sizes = np.sort(np.abs(values))[::-1]
    observed, most = abs(math.fsum(values)), math.fsum(sizes)
    least = max(math.ldexp(1.0, -int(np.count_nonzero(sizes > SLACK))), SMALLEST)
    if observed >= most * (1 - SLACK):
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
    w = math.sqrt(max(2 * (high * observed - cumulant), SLACK))
    spread = high * math.sqrt(
        float((sizes**2 * (1 - np.tanh(high * sizes) ** 2)).sum())
    )
    density = math.exp(-w * w / 2) / math.sqrt(2 * math.pi)
    return max(float(special.ndtr(-w)) + density * (1 / spread - 1 / w), least)


def flipped_sums(columns: Floats, seed: int) -> Iterator[Floats]:
    """Yield the sums of the columns under each draw of signs, in blocks of draws; blocks move no sum.

    The signs are random bits, a set one is a minus.

    Args:
        columns: (n, k), a sign for each row.
        seed: of the draws, which are the same for all columns.
    """
    n, k = columns.shape
    words = -(-n // 64)
    rng = generator(seed, "signs", n)
    rows = max(1, min(BLOCK // k, DRAWN // words) if k <= WIDE else DRAWN // max(n, k))
    drawn = (
        rng.integers(0, 2**64, size=(min(rows, DRAWS - start), words), dtype=np.uint64)
        .astype("<u8")
        .view(np.uint8)
        for start in range(0, DRAWS, rows)
    )
    yield from in_parallel(
        lambda bits: (
            _looked_up(bits, columns) if k <= WIDE else _signs(bits, n) @ columns
        ),
        drawn,
    )


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


def _signs(bits: Bytes, count: int | None = None) -> Floats:
    signs = np.unpackbits(bits, axis=1, count=count).astype(np.float64)
    signs *= -2
    signs += 1
    return signs


PATTERNS = _signs(np.arange(256, dtype=np.uint8)[:, None])
"""(256, 8): the signs that each byte stands for."""


ROWS_ENUMERATED = 16
"""Units with a difference, up to which all their sign patterns are tried."""
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


def max_t(
    differences: Floats, units: Units, *, alpha: float = 0.05, seed: int = 0
) -> MaxT:
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
    return MaxT(
        best,
        float(p_value),
        float(gains[best]),
        _lower(differences, units, best, (alpha, seed)),
        method,
    )


def _lower(
    differences: Floats, units: Units, best: int, how: tuple[float, int]
) -> float | None:
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
    squares, more, largest = (
        (seen * centred**2).sum(axis=0),
        (seen * shares**2).sum(),
        [],
    )
    alike, cross = (
        float(np.ptp(shares)) == 0,
        seen * shares,
    )  # one product does for units of equal weight
    for some in _flips(
        centred if alike else np.hstack([centred, cross * centred]), seed
    ):
        sums, crossed = (some, some * cross[0]) if alike else np.hsplit(some, 2)
        errors = np.maximum(
            squares - 2 * sums * crossed + sums**2 * more, SLACK * squares
        )
        largest.append((sums / np.sqrt(errors)).max(axis=1))
    c = float(
        np.quantile(np.concatenate(largest), 1 - alpha / 2, method="inverted_cdf")
    )
    return float(means[best] - c * np.sqrt(squares[known[:best].sum()]))


def max_t_pairs(
    values: Floats, units: Units, best: int, *, alpha: float = 0.05, seed: int = 0
) -> list[bool]:
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
    >>> max_t_pairs(np.column_stack([a, a - 0.05, a[::-1]]), singles(9), 0)
    [False, True, False]
    """
    pairs = np.array(
        list(combinations(range(values.shape[1]), 2)), dtype=np.intp
    ).reshape(-1, 2)
    if not len(pairs):
        return [False]
    sums = units.sums(values - values.mean(axis=1, keepdims=True))
    slack = SLACK * max(1.0, float(np.abs(values).max()))
    squares = sums.T @ sums
    wide = np.sqrt(
        np.maximum(
            np.diag(squares)[:, None] + np.diag(squares)[None, :] - 2 * squares, 0.0
        )
    )
    known = wide[pairs[:, 0], pairs[:, 1]] > slack * np.sqrt(len(sums))
    first, second = pairs[known].T
    sizes, largest = wide[first, second], []
    for some in _flips(sums, seed):
        step = max(1, PAIRS // max(1, len(first)))
        for start in range(0, len(some), step):
            part = some[start : start + step]
            gaps = (
                np.abs(part[:, first] - part[:, second]) / sizes
                if len(first)
                else np.zeros((len(part), 1))
            )
            largest.append(gaps.max(axis=1))
    drawn = np.sort(np.concatenate(largest))
    more = 0 if _differing(sums) <= ROWS_ENUMERATED else 1
    total = sums.sum(axis=0)

    def apart(other: int) -> bool:
        size = wide[best, other]
        if size <= slack * np.sqrt(len(sums)):
            return False
        beyond = len(drawn) - int(
            np.searchsorted(drawn, abs(total[best] - total[other]) / size - 1e-9)
        )
        return (beyond + more) / (len(drawn) + more) <= alpha

    return [other != best and apart(other) for other in range(values.shape[1])]


def _differing(sums: Floats) -> int:
    """Units with a difference: patterns of few of them are all tried."""
    return int(np.abs(sums).any(axis=1).sum())


def _flips(sums: Floats, seed: int) -> Iterator[Floats]:
    """Yield the sums of the columns under flips of whole rows: all patterns of few rows, else seeded draws."""
    if _differing(sums) > ROWS_ENUMERATED:
        yield from flipped_sums(sums, seed)
    else:
        yield _patterns(sums[np.abs(sums).any(axis=1)])
