"""What the program makes of samples of differences; used by stats.py."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib import import_module

import numpy as np
from scipy import stats

from harness.stats import Contrast, Interval, differences, sign_flip
from harness.stats.differences import Differences, Floats, Units
from harness.stats.power import flip_p
from harness.stats.signed_rank import signed_rank_of

ALPHA = 0.05
BATCH = 1_000
"""Experiments at a time, for the sake of memory."""


@contextlib.contextmanager
def changed(module: str, **values: object) -> Iterator[None]:
    """Set names of a module of the statistics for a while."""
    part = import_module(f"harness.stats.{module}")
    before = {name: getattr(part, name) for name in values}
    for name, value in values.items():
        setattr(part, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(part, name, value)


def observed(row: Floats) -> Differences:
    """Differences as the statistics want them."""
    return differences(row, np.zeros(len(row)))


def claims(table: Floats, units: Units, level: float = ALPHA) -> tuple[Floats, Floats]:
    """Which samples (rows) are called different: by the signed-rank test and the sign of the mean; by both tests."""
    rows = np.array([units.means(row) for row in table])
    ranks = [signed_rank_of(observed(row)) for row in rows]
    columns = np.column_stack([*(units.sums(row) for row in table), np.zeros(len(units))])
    flips = sign_flip(columns, [Contrast(place, len(table)) for place in range(len(table))])
    agree = np.array([(r.w_plus - r.w_minus) * row.mean() > 0 for r, row in zip(ranks, table, strict=True)])
    before = agree & (np.array([r.p_value for r in ranks]) <= level)
    return before, before & (np.array([flip.two_sided for flip in flips]) <= level)


def larger_p(table: Floats) -> Floats:
    """The larger p of the signed-rank test and of the test of the mean, for each row: by Edgeworth's expansion."""
    sizes = np.round(np.abs(table), 9)
    zeros = (sizes == 0).sum(axis=1, keepdims=True)
    ranks = np.where(sizes > 0, 2 * (stats.rankdata(sizes, axis=1) - zeros), 0.0)
    p: Floats = np.maximum(flip_p(np.sign(table) * ranks, 2.0), flip_p(table))
    return p


def covers(interval: Interval, truth: float = 0.0) -> bool:
    """Whether an interval holds the truth; one that cannot be estimated does not."""
    low, high, _ = interval
    return low is not None and high is not None and low <= truth <= high
