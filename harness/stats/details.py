"""What is asked of a pair beside its verdict, and never instead of it: how large, and how probable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harness.stats.differences import SLACK, Differences, Floats
from harness.stats.draws import generator
from harness.stats.hodges_lehmann import HodgesLehmann, hodges_lehmann
from harness.stats.intervals import BLOCK, Interval, ResampleCounts, resample_blocks
from harness.stats.settings import Settings
from harness.stats.signed_rank import Zeros, effect_size
from harness.stats.units import Units

DRAWS = 10_000
"""Of the Bayesian bootstrap."""
RESAMPLES = 2_000
"""Of the interval of the effect size."""
MOST_UNITS = 4_000
"""Whose Walsh averages, eight million, fit into memory."""


class Probabilities(NamedTuple):
    """Of the Bayesian bootstrap (Rubin 1981): every query has a random weight, flat over all weightings."""

    a_better: float
    """P(mean difference > 0)."""
    b_better: float
    """P(mean difference < 0); what is missing to 1 is that they are equal."""
    within: float | None
    """P(|mean difference| < margin); None without a margin."""


class Details(NamedTuple):
    """Beside the verdict on one pair."""

    typical: HodgesLehmann | None
    """The median of the Walsh averages of the differences (of the clusters' means); None above 4,000 of them."""
    effect_size: float | None
    """The rank-biserial correlation; None where no query differs."""
    effect: Interval
    """Percentile interval of it over 2,000 resamples of the queries."""
    probabilities: Probabilities


def details(
    pairs: Sequence[Differences], by_unit: Sequence[Differences], units: Units, settings: Settings
) -> list[Details]:
    """Return what stands beside the verdict on each pair.

    Args:
        pairs: the differences of each pair, (n,) each.
        by_unit: the same of the units: the clusters' means; the same as `pairs` where no clusters are declared.
        units: what is drawn again.
        settings: confidence, margin, zeros, seed.
    """
    if not pairs:
        return []
    table = np.column_stack([one.values for one in pairs])
    chances = bayesian_bootstrap(table, units, margin=settings.margin, seed=settings.seed)
    return [
        Details(
            typical=hodges_lehmann(one, settings.level) if len(units) <= MOST_UNITS else None,
            effect_size=effect_size(one, settings.zeros),
            effect=effect_interval(one, settings.level, zeros=settings.zeros, seed=settings.seed),
            probabilities=chance,
        )
        for one, chance in zip(by_unit, chances, strict=True)
    ]


def bayesian_bootstrap(
    table: Floats, units: Units, *, margin: float | None = None, seed: int = 0
) -> list[Probabilities]:
    """Return the posterior probabilities of each mean difference's sign and size, from 10,000 seeded draws.

    All pairs share the draws: another pair moves no number.

    Args:
        table: (n, pairs) differences.
        units: clusters have one weight each.
        margin: of negligible differences, in points of the measure.
        seed: of the draws.
    """
    n, sums = len(units), units.sums(table)
    rng = generator(seed, "bayesian bootstrap", n)
    rows = max(1, BLOCK // n)
    slack = SLACK * np.maximum(1.0, np.abs(table).max(axis=0))
    counts = np.zeros((3, table.shape[1]), dtype=np.int64)
    for start in range(0, DRAWS, rows):
        # The sum of a draw's weights does not matter.
        weights = rng.standard_exponential((min(rows, DRAWS - start), n))
        means = (weights @ sums) / (weights @ units.sizes)[:, None]
        counts += [
            (means > slack).sum(axis=0),
            (means < -slack).sum(axis=0),
            (np.abs(means) < (0.0 if margin is None else margin)).sum(axis=0),
        ]
    return [
        Probabilities(better / DRAWS, worse / DRAWS, None if margin is None else within / DRAWS)
        for better, worse, within in counts.T.tolist()
    ]


def effect_interval(by_unit: Differences, level: float, *, zeros: Zeros = "wilcox", seed: int = 0) -> Interval:
    """Return the percentile bootstrap interval of (W+ - W-) / (W+ + W-); none where only one of both wins.

    Args:
        by_unit: the differences of the units.
        level: confidence.
        zeros: as in `signed_rank`.
        seed: of the resamples.
    """
    if by_unit.constant or not by_unit.wins or not by_unit.losses:  # every resample would give the same sign
        return Interval(None, None, "not estimable")
    rows = max(1, BLOCK // len(by_unit.groups))
    parts = [
        _effects(by_unit, counts[i : i + rows], zeros)
        for counts in resample_blocks(len(by_unit.groups), seed, RESAMPLES)
        for i in range(0, len(counts), rows)
    ]
    low, high = np.quantile(np.concatenate(parts), [(1 - level) / 2, (1 + level) / 2]).tolist()
    return Interval(low, high, "percentile")


def _effects(by_unit: Differences, counts: ResampleCounts, zeros: Zeros) -> Floats:
    """Return the effect size of each resample; 0 where no difference was drawn."""
    sizes = np.abs(by_unit.groups)
    there = np.flatnonzero(sizes)
    order = there[np.argsort(sizes[there], kind="stable")]
    first = np.flatnonzero(np.diff(sizes[order], prepend=0))  # of each group of ties
    drawn = counts[:, order].astype(np.int64)
    members = np.add.reduceat(drawn, first, axis=1)
    lead = np.add.reduceat(drawn * np.sign(by_unit.groups[order]), first, axis=1)
    below = np.cumsum(members, axis=1) - members
    if zeros == "pratt":
        below += len(sizes) - members.sum(axis=1, keepdims=True)  # every resample has as many units
    ranks = 2 * below + members + 1
    signed, total = (lead * ranks).sum(axis=1), (members * ranks).sum(axis=1)
    effects: Floats = np.divide(signed, total, out=np.zeros(len(counts)), where=total > 0)
    return effects
