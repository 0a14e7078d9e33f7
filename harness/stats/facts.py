"""What a comparison has to know beside the scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from harness.stats.differences import SLACK, Floats
from harness.stats.units import Units, singles, units_of
from retrievers.errors import InputError, Problem

ScoreTable = Mapping[str, Floats]
"""Retriever -> (n,) scores of one measure, queries in the order of their ids."""


class Range(NamedTuple):
    """The lowest and the highest value that a measure can have."""

    low: float
    high: float

    @property
    def span(self) -> float:
        """The worst possible loss on one query."""
        return self.high - self.low


UNIT = Range(0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Ranges of the measures, clusters of the queries, rankings that are the same."""

    ranges: Mapping[str, Range | None] = field(default_factory=dict)
    """Measure -> its range; None where nobody knows it. A measure that is not named lies in [0, 1] if its scores do."""
    clusters: Sequence[str] | None = None
    """Each query's cluster, in the order of the scores; "" belongs to none. None: every query stands for itself."""
    identical: frozenset[frozenset[str]] = frozenset()
    """Pairs whose rankings are the same, down to the primary measure's cutoff, on every query."""

    def units(self, n: int) -> Units:
        """Return what counts as one observation among n queries."""
        return singles(n) if self.clusters is None else units_of(self.clusters)

    def range_of(self, measure: str, scores: ScoreTable) -> Range | None:
        """Return a measure's range, None where it is not known.

        Raises:
            InputError: a score lies outside the range that was declared.
        """
        lows, highs = [float(v.min()) for v in scores.values()], [float(v.max()) for v in scores.values()]
        low, high = min(lows, default=0.0), max(highs, default=0.0)
        if measure not in self.ranges:
            return UNIT if low >= -SLACK and high <= 1 + SLACK else None
        declared = self.ranges[measure]
        if declared is not None:
            slack = SLACK * max(1.0, abs(low), abs(high))
            if low < declared.low - slack or high > declared.high + slack:
                what = f"scores reach from {low:g} to {high:g}, outside {declared.low:g} to {declared.high:g}"
                raise InputError(Problem(f"range of {measure}", what, "give the lowest and the highest possible score"))
        return declared


def check_finite(scores: Mapping[str, ScoreTable]) -> None:
    """Refuse scores that are not finite numbers, and retrievers that have not the same number of them.

    Raises:
        InputError: every row of scores that has one, by measure and retriever; the measure whose rows differ in length,
            or are empty.
    """
    problems = [
        Problem(f"{measure} of {name}", f"{int(np.count_nonzero(~np.isfinite(values)))} scores are not finite numbers")
        for measure, group in scores.items()
        for name, values in group.items()
        if not np.isfinite(values).all()
    ]
    compared = {measure: group.values() for measure, group in scores.items() if len(group) > 1}
    lengths = {measure: {len(values) for values in rows} for measure, rows in compared.items()}
    problems += [
        Problem(
            measure, f"has scores of {' and '.join(map(str, sorted(some)))} queries", "give each as many, 1 or more"
        )
        for measure, some in lengths.items()
        if len(some) > 1 or some == {0}
    ]
    if problems:
        raise InputError(problems)
