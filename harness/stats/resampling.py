"""Resampling: how firm the order of the means is (bootstrap), what choosing the best is worth (cross-fitting)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.stats.differences import Differences, Floats, ScoreTable, Units, generator, highest
from harness.stats.intervals import NONE, Interval, mean

RESAMPLES = 2_000
PARTS = 5
"""Of the queries, for cross-fitting."""
BLOCK = 1 << 22
"""Counts turned into floats at once; it bounds the memory and moves no result."""
KEPT = 1 << 26
"""Bytes of resamples that are kept from one measure to the next; more are drawn again, in blocks."""
DRAWN = 2**16
"""Queries drawn at once: the same as one resample after the other, in a sixth of the time."""
NARROW = 30_000
"""Units whose squares have room in 32 bits."""
ResampleCounts = npt.NDArray[np.uint8]


@lru_cache(maxsize=1)
def resample_counts(n: int, seed: int) -> ResampleCounts:
    """Return how often each of n queries stands in each bootstrap resample: (RESAMPLES, n), rows sum to n."""
    counts = _drawn(generator(seed, "bootstrap", n), n, RESAMPLES)
    counts.setflags(write=False)
    return counts


def resample_blocks(n: int, seed: int) -> Iterator[ResampleCounts]:
    """Yield the rows of `resample_counts` in blocks: of many queries all of them would take gigabytes."""
    if n * RESAMPLES <= KEPT:
        yield resample_counts(n, seed)
        return
    rng, rows = generator(seed, "bootstrap", n), max(1, KEPT // 16 // n)
    for start in range(0, RESAMPLES, rows):
        yield _drawn(rng, n, min(rows, RESAMPLES - start))


def _drawn(rng: np.random.Generator, n: int, resamples: int) -> ResampleCounts:
    # One byte a count: twenty of one query among n are as good as impossible, 256 are.
    counts, rows = np.empty((resamples, n), dtype=np.uint8), max(1, DRAWN // n)
    for start in range(0, resamples, rows):
        part = counts[start : start + rows]
        queries = rng.integers(n, size=part.shape) + n * np.arange(len(part))[:, None]
        part[:] = np.bincount(queries.ravel(), minlength=part.size).reshape(part.shape)
    return counts


class CrossFitted(NamedTuple):
    """What to expect on new queries of having picked the best of several on these."""

    winner: str
    mean: float
    """Of the winner on the queries that chose it."""
    expected: float
    """The estimate: chosen on four fifths of the queries, measured on the fifth that was left out."""

    @property
    def flattered(self) -> float:
        """By how much choosing flatters the winner, in points of the measure."""
        return self.mean - self.expected


def cross_fitted(scores: ScoreTable, ids: Sequence[str], units: Units, *, seed: int = 0) -> CrossFitted | None:
    """Estimate the mean, on new queries, of what has the highest mean on these: cross-fitted, never tested.

    The queries fall into five parts by SHA-256 of (seed, id); clusters stay whole, by the id of their first query. The
    retriever with the highest mean over four parts is measured on the fifth; the estimate is the mean over all queries.
    None where all queries fall into one part.

    Args:
        scores: retriever -> (n,) scores of one measure.
        ids: (n,) the queries.
        units: clusters and weights of the queries.
        seed: of the parts.
    """
    first: dict[int, str] = {}
    for unit, query in zip(units.members.tolist(), ids, strict=True):
        first[unit] = min(query, first.get(unit, query))
    part = np.array([_part(seed, first[unit]) for unit in units.members.tolist()])
    table = np.column_stack(list(scores.values()))
    weights = np.ones(len(ids)) if units.weights is None else units.weights
    parts = set(part.tolist())
    if len(parts) < 2:
        return None
    left_out = np.zeros(len(ids))
    for one in sorted(parts):
        held = part == one
        chosen = highest(weights[~held] @ table[~held] / weights[~held].sum())
        left_out[held] = table[held, chosen]
    means = [mean(values, units.weights) for values in scores.values()]
    best = highest(np.array(means))
    return CrossFitted(list(scores)[best], means[best], mean(left_out, units.weights))


def _part(seed: int, query: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}/parts/{query}".encode()).digest(), "big") % PARTS


def effect_interval(by_unit: Differences, level: float, *, seed: int = 0) -> Interval:
    """Return the percentile bootstrap interval of (W+ - W-) / (W+ + W-); none where only one of both wins.

    Args:
        by_unit: the differences of the units.
        level: confidence.
        seed: of the resamples.
    """
    if by_unit.constant or not by_unit.wins or not by_unit.losses:  # every resample would give the same sign
        return NONE
    rows = max(1, BLOCK // len(by_unit.groups))
    parts = [
        _effects(by_unit, counts[i : i + rows])
        for counts in resample_blocks(len(by_unit.groups), seed)
        for i in range(0, len(counts), rows)
    ]
    low, high = np.quantile(np.concatenate(parts), [(1 - level) / 2, (1 + level) / 2]).tolist()
    return Interval(low, high, "percentile")


def _effects(by_unit: Differences, counts: ResampleCounts) -> Floats:
    """Return the effect size of each resample; 0 where no difference was drawn."""
    sizes = np.abs(by_unit.groups)
    there = np.flatnonzero(sizes)
    order = there[np.argsort(sizes[there], kind="stable")]
    first = np.flatnonzero(np.diff(sizes[order], prepend=0))  # of each group of ties
    # Of up to 30,000 units every product below has room in 32 bits, which take half of the time.
    drawn = counts[:, order].astype(np.int32 if len(sizes) <= NARROW else np.int64)
    lead = drawn * np.sign(by_unit.groups[order]).astype(drawn.dtype)
    if len(first) < len(order):
        drawn, lead = (np.add.reduceat(one, first, axis=1, dtype=one.dtype) for one in (drawn, lead))
    ranks = 2 * np.cumsum(drawn, axis=1, dtype=drawn.dtype) - drawn + 1
    signed, number = (lead * ranks).sum(axis=1, dtype=np.int64), drawn.sum(axis=1, dtype=np.int64)
    total = number * (number + 1)  # of all doubled ranks, however they are tied
    effects: Floats = np.divide(signed, total, out=np.zeros(len(counts)), where=total > 0)
    return effects
