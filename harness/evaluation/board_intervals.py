"""The intervals of the leaderboard's rows.

They hold for all rows at once, unlike those of `compare`, each of its pair alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.scoring.scores import Scores
from harness.stats.binary_interval import PairCounts, binary_interval
from harness.stats.differences import paired_differences
from harness.stats.intervals import Interval
from harness.stats.settings import Settings
from harness.stats.sign_flip import Contrast
from harness.stats.simultaneous import (
    simultaneous_intervals,
    simultaneous_quantile,
    single_level,
)


@dataclass(frozen=True, slots=True)
class BoardInterval:
    """The interval of one row; all rows' intervals hold at once."""

    low: float | None
    """Both ends are None if it cannot be estimated."""
    high: float | None
    method: str
    """How it was computed, as in `Interval`."""


def board_intervals(
    scores: Scores, pairs: Mapping[str, tuple[str, str]], settings: Settings
) -> dict[str, BoardInterval]:
    """Return the interval of the mean difference of each row, on the primary measure.

    They hold at once for all pairs, since the data choose the leader; with a baseline,
    for its rows.

    Args:
        scores: of the queries with a value from every retriever.
        pairs: row -> the retrievers (a, b) of its difference a - b.
        settings: the level, and the seed of the draws.
    """
    columns = scores.values[scores.primary]
    names = list(columns)
    row_pairs = [Contrast(names.index(a), names.index(b)) for a, b in pairs.values()]
    family = _family(names, pairs)
    table = np.column_stack([*columns.values()])
    units = scores.units
    is_binary = scores.is_binary(scores.primary)
    if is_binary and units.weights is None and not units.clustered:
        intervals = _binary_intervals(scores, row_pairs, family, settings)
    else:
        intervals = simultaneous_intervals(
            table,
            units,
            row_pairs,
            family,
            level=settings.level,
            seed=settings.seed,
            bounds=scores.difference_range(scores.primary),
        )
    return {
        row: BoardInterval(interval.low, interval.high, interval.method)
        for row, interval in zip(pairs, intervals, strict=True)
    }


def _family(
    names: Sequence[str], pairs: Mapping[str, tuple[str, str]]
) -> list[Contrast]:
    """Return the pairs for which the intervals hold at once.

    With a baseline b, its pairs. A leader is a, and the data chose it: all pairs.
    """
    references = {b for _, b in pairs.values()}
    if len(references) == 1 and len(pairs) > 1:
        return [Contrast(names.index(a), names.index(b)) for a, b in pairs.values()]
    return [Contrast(a, b) for a in range(len(names)) for b in range(a)]


def _binary_intervals(
    scores: Scores,
    row_pairs: Sequence[Contrast],
    family: Sequence[Contrast],
    settings: Settings,
) -> list[Interval]:
    """Return intervals of a 0/1 measure.

    Their level is that at which one t interval is as wide as the simultaneous ones.
    """
    table = np.column_stack([*scores.values[scores.primary].values()])
    quantile = simultaneous_quantile(
        table, scores.units, family, level=settings.level, seed=settings.seed
    )
    alpha = settings.alpha
    if quantile is not None:
        alpha = min(alpha, single_level(quantile, scores.units))
    intervals: list[Interval] = []
    for a, b in row_pairs:
        differences = paired_differences(table[:, a], table[:, b])
        tied = len(differences.values) - differences.wins - differences.losses
        counts = PairCounts(differences.wins, differences.losses, tied)
        intervals.append(binary_interval(counts, alpha))
    return intervals
