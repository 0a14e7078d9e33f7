"""The paired leaderboard.

Only its records, and what follows from them: `Evaluation.board` makes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.evaluation.verdict import Comparison
from harness.stats.corrections import adjust_floors
from harness.stats.settings import Settings

MAX_BOARD_ROWS = 16
"""Rows up to which every row is shown at first."""

Standing = Literal[
    "leader", "good", "open", "same", "worse", "baseline", "better", "failed"
]
"""What is shown of a retriever against the reference: the leader, or the baseline.

"good": it is within the margin. "open": undecided. "same": undecided, since no query
differs. "better" and "baseline" occur only with a baseline, "leader" only without.
"""


@dataclass(frozen=True, slots=True)
class BoardRow:
    """One retriever; None for values without a comparison."""

    retriever: str
    standing: Standing
    mean: float | None
    """Its mean; None if the retriever failed."""
    difference: float | None = None
    """Points of the measure that it is behind the leader, or ahead of the baseline."""
    low: float | None = None
    """The difference's interval, which holds for all rows at once.

    None if none can be estimated.
    """
    high: float | None = None
    wins: int | None = None
    """How many queries this one is better on than the reference."""
    ties: int | None = None
    losses: int | None = None
    p: float | None = None
    """Adjusted p of the deciding test."""
    p_single: float | None = None
    """The uncorrected p, if the row is worse by it and not by the adjusted one.

    So only where the leader is chosen against each of the others.
    """
    p_wilcoxon: float | None = None
    """Adjusted p of the signed-rank test.

    None if it has none, or if it decides and is `p`.
    """
    floor: float | None = None
    """The smallest possible adjusted p of the signed-rank test, if above alpha."""


@dataclass(frozen=True, slots=True)
class Board:
    """The paired leaderboard on the primary measure, best mean first."""

    measure: str
    n: int
    reference: str
    """The retriever that every row is compared with."""
    against_baseline: bool
    """Whether the reference is the declared baseline.

    If so, differences count how far a row is ahead of it, else behind the leader.
    """
    level: float
    """Confidence of the intervals, for all rows at once."""
    margin: float | None
    """The declared margin of equivalence; None if none is."""
    rows: tuple[BoardRow, ...]
    """The retrievers in the order of their means; those that failed are last."""

    @property
    def has_pairs(self) -> bool:
        """Whether two retrievers or more have a mean, so that there are differences."""
        return sum(row.mean is not None for row in self.rows) > 1

    @property
    def folded(self) -> frozenset[str]:
        """The retrievers whose rows a table of many rows does not show at first.

        All of them are shown to be worse.
        """
        return frozenset() if len(self.rows) <= MAX_BOARD_ROWS else self.worse

    @property
    def worse(self) -> frozenset[str]:
        """The retrievers that are shown to be worse than the reference."""
        return frozenset(row.retriever for row in self.rows if row.standing == "worse")

    @property
    def shows_exact_p(self) -> bool:
        """Whether an exact Wilcoxon p is shown in addition to the deciding one."""
        return any(row.p_wilcoxon is not None for row in self.rows)

    @property
    def largest_single_p(self) -> float | None:
        """The largest uncorrected p that alone shows a row worse; None if none does."""
        single = [row.p_single for row in self.rows if row.p_single is not None]
        return max(single, default=None)

    @property
    def axis_range(self) -> tuple[float, float]:
        """The ends of the rows' differences and the margin, with 0 among them."""
        margin = self.margin or 0.0
        ends = [0.0, margin]
        if self.against_baseline:
            ends.append(-margin)
        for row in self.rows:
            row_ends = (row.difference, row.low, row.high)
            ends.extend(end for end in row_ends if end is not None)
        return min(ends), max(ends)


def smallest_wilcoxon_p(
    rows: Sequence[Comparison], settings: Settings
) -> dict[tuple[str, str], float]:
    """Return the smallest possible adjusted p of signed-rank tests, if above alpha.

    Each pair has two keys, (a, b) and (b, a); without a differing query it has none.

    Args:
        rows: comparisons that are corrected together.
        settings: the correction and alpha.
    """
    exact_rows = [row for row in rows if row.p_wilcoxon is not None]
    floors = adjust_floors(
        [row.p_wilcoxon or 1.0 for row in exact_rows],
        [row.wilcoxon_floor for row in exact_rows],
        settings.correction,
    )
    floor_by_pair: dict[tuple[str, str], float] = {}
    for row, floor in zip(exact_rows, floors, strict=True):
        if floor is not None and floor > settings.alpha and row.differing_queries:
            floor_by_pair[row.a, row.b] = floor
            floor_by_pair[row.b, row.a] = floor
    return floor_by_pair
