"""The paired leaderboard."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.evaluation.verdict import Comparison
from harness.stats.corrections import adjust_floors
from harness.stats.settings import Settings

Standing = Literal[
    "leader", "good", "open", "same", "worse", "baseline", "better", "failed"
]


@dataclass(frozen=True, slots=True)
class BoardRow:
    """One retriever; what was not compared is None."""

    retriever: str
    standing: Standing
    """Of the leader's board its set; against a baseline what was shown."""
    mean: float | None
    """None where it failed."""
    difference: float | None = None
    """Behind the leader, or ahead of the baseline, in points of the measure."""
    low: float | None = None
    """The difference's interval; None where none can be estimated."""
    high: float | None = None
    wins: int | None = None
    """Queries where this one is better than the reference."""
    ties: int | None = None
    losses: int | None = None
    p: float | None = None
    """Adjusted, of the deciding test."""
    p_wilcoxon: float | None = None
    """Adjusted, of the exact signed-rank test; None where it has none, or decides and is `p`."""
    floor: float | None = None
    """The smallest adjusted p that the exact test could have given, where that is above the level."""


@dataclass(frozen=True, slots=True)
class Board:
    """The paired leaderboard on the primary measure, best mean first."""

    measure: str
    n: int
    reference: str
    """With whom every row is compared."""
    against_baseline: bool
    """Whether the reference is the declared baseline: rows are ahead of it, else behind the leader."""
    level: float
    margin: float | None
    rows: tuple[BoardRow, ...]
    """Those that failed are last."""

    @property
    def has_pairs(self) -> bool:
        """Whether two retrievers or more have a mean: else there is no difference to draw."""
        return sum(row.mean is not None for row in self.rows) > 1

    @property
    def shows_exact_p(self) -> bool:
        """Whether an exact Wilcoxon p is shown beside the deciding one."""
        return any(row.p_wilcoxon is not None for row in self.rows)

    @property
    def axis_range(self) -> tuple[float, float]:
        """The ends of what the rows and the margin reach, 0 among them."""
        held = [
            end
            for row in self.rows
            for end in (row.difference, row.low, row.high)
            if end is not None
        ]
        edges = (
            0.0,
            self.margin or 0.0,
            -(self.margin or 0.0) if self.against_baseline else 0.0,
        )
        return min(*edges, *held), max(*edges, *held)


def smallest_wilcoxon_p(
    rows: Sequence[Comparison], settings: Settings
) -> dict[tuple[str, str], float]:
    """Return (a, b), in either order -> the smallest adjusted p of the exact test, where that is above the level.

    Args:
        rows: comparisons that are corrected together.
        settings: the correction and the level.
    """
    exact = [row for row in rows if row.p_wilcoxon is not None]
    floors = adjust_floors(
        [row.p_wilcoxon or 1.0 for row in exact],
        [row.wilcoxon_floor for row in exact],
        settings.correction,
    )
    return {
        pair: floor
        for row, floor in zip(exact, floors, strict=True)
        if floor is not None and floor > settings.alpha and row.differing_queries
        for pair in ((row.a, row.b), (row.b, row.a))
    }
