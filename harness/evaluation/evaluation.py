"""The record of a conclusion.

No text is in it, and no score of a single query: `wording` says it, scores.csv holds them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, computed_field

from harness.evaluation.abstention import Abstention
from harness.evaluation.board import Board, BoardRow, Standing, smallest_wilcoxon_p
from harness.evaluation.verdict import Comparison, Reason, TestRow, Verdict
from harness.evaluation.warnings import RunWarning
from harness.stats.looks import InterimAnalysis
from harness.stats.settings import Settings
from harness.stats.summary import ScoreSummary

STANDING_BY_VERDICT: Mapping[Verdict, Standing] = {
    Verdict.BETTER: "better",
    Verdict.WORSE: "worse",
    Verdict.EQUIVALENT: "good",
    Verdict.UNDECIDED: "open",
}


MIN_SWEEP_QUERIES = 50
"""Queries (clusters, where declared) below which a sweep claims nothing: skewed differences make false claims."""


@dataclass(frozen=True, slots=True)
class AxisEffect:
    """What one value of one axis does, over all values of the others."""

    axis: str
    value: str
    mean: float
    """Of all configurations with this value."""
    effect: float
    """The same less the mean of all configurations that have the axis."""
    low: float | None
    """Of the effect, by Student's t over the queries; None where no interval can be estimated."""
    high: float | None


@dataclass(frozen=True, slots=True)
class SweepChoice:
    """The configuration of the highest mean, and what it is worth (DEFINITIONS, Sweeps)."""

    default: str
    chosen: str
    configurations: int
    """How many were tried, without the default."""
    gain: float
    """Its mean less the default's, on the queries that chose it."""
    expected: float | None
    """The gain to expect on new queries of choosing so: cross-fitted; None where all queries fall into one part."""
    low: float | None
    """Lower bound of its true gain, simultaneous for all configurations; None where it cannot be estimated."""
    p_value: float
    """One-sided, by max-T over all configurations."""
    method: str
    beats: bool
    """Whether it is shown to beat the default: p at most alpha/2, on enough queries."""
    too_few: bool
    """Whether the queries are too few to claim anything."""
    alike: tuple[str, ...]
    """The configurations that may be as good as the chosen one (it is one of them); cheapest and fastest first.
    The default may be one of them."""
    effects: tuple[AxisEffect, ...]


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What nothing reaches: the best choice among the retrievers made for each query, chance included."""

    best_per_query: float
    """Mean of the primary measure if each query went to the retriever that answers it best."""
    cutoff: int
    union_recall: float
    """Recall of all retrievers' first `cutoff` hits together."""
    best_recall: float
    """Recall of the best single retriever there."""


@dataclass(frozen=True, slots=True)
class PlannedLook:
    """The planned look that comes next, where something is undecided."""

    queries: int
    power: float | None
    """With which it finds `Evaluation.difference` of the hardest undecided pair, if differences scatter as they do.

    None where too few queries differ to say how far they scatter.
    """


class Evaluation(BaseModel):
    """All retrievers compared on every measure, and on the primary one with the one of the best mean."""

    model_config = ConfigDict(frozen=True)

    measure: str
    """The primary one."""
    settings: Settings
    """With the level of this look, where looks are planned."""
    look: InterimAnalysis | None = None
    """Which of the planned looks this is; None where none are planned."""
    next_look: PlannedLook | None = None
    judgments: int = 0
    """Labels of the scored queries: what the verdict cost."""
    n: int
    """Queries for which everyone has a value of the primary measure."""
    clusters: int | None
    """Clusters of queries; None where none are declared."""
    effective: float | None
    """How many queries (clusters) of equal weight tell as much; None without weights."""
    low_is_good: frozenset[str] = frozenset()
    """Measures whose lowest mean leads."""
    summary: Mapping[str, Mapping[str, ScoreSummary]]
    """Measure -> retriever -> its statistics."""
    comparisons: Mapping[str, tuple[Comparison, ...]]
    """Measure -> its family."""
    tests: tuple[TestRow, ...] = ()
    """Every other family."""
    means: Mapping[str, float]
    """On the primary measure, best first; weighted where weights are declared."""
    leader_comparisons: Mapping[str, Comparison]
    """Of the leader (a) with each other (b)."""
    queries_needed: Mapping[str, int | None]
    """Undecided against the leader -> the queries (clusters, where declared) that the declared difference takes; None
    where too few differ to say."""
    measured: bool
    """False where every score is 0: then there is no verdict."""
    difference: float
    """The true difference that the plans are for."""
    baseline: str = ""
    """The declared one; "" where all pairs were compared."""
    sweep: SweepChoice | None = None
    """The choice among many configurations, where the experiment has a sweep."""
    judged_shares: Mapping[str, float] = {}
    """Retriever -> share of its hits within the primary measure's cutoff that have a label, a mean over the queries
    that have a hit; empty where claims decide, or scores are all there is."""
    abstention: Abstention | None = None
    """Where queries say that nothing answers them."""
    ceilings: Ceilings | None = None
    """Of two retrievers or more with labels."""
    warnings: tuple[RunWarning, ...] = ()
    """The gravest first."""
    failed: Mapping[str, str] = {}
    """Retriever -> why it failed."""
    recomputed: bool = False
    """Whether a folder had no evaluation that could be read, so that this one is computed again from its scores."""

    @property
    def leader(self) -> str:
        """The retriever with the best mean; among equals the first in the experiment's order."""
        return next(iter(self.means))

    @property
    def others(self) -> tuple[str, ...]:
        """All but the leader, best mean first."""
        return tuple(self.means)[1:]

    @property
    def as_good_as_leader(self) -> tuple[str, ...]:
        """The leader, and all that are shown within the margin of it: only these are as good as the best."""
        return (
            self.leader,
            *(name for name in self.others if _close(self.leader_comparisons[name])),
        )

    @property
    def shown_worse(self) -> tuple[str, ...]:
        """Those that the leader is shown to be better than."""
        rows = self.leader_comparisons
        return tuple(
            o
            for o in self.others
            if rows[o].verdict is Verdict.BETTER and not _close(rows[o])
        )

    @property
    def better_on_typical_query(self) -> tuple[str, ...]:
        """Those that signed ranks, where they decide, show to be better than the leader on the typical query."""
        return tuple(
            name
            for name in self.queries_needed
            if self.leader_comparisons[name].verdict is Verdict.WORSE
        )

    @property
    def baseline_comparisons(self) -> tuple[Comparison, ...]:
        """Of each other (a) with the baseline (b), best mean first."""
        rows = {
            row.a: row
            for row in self.comparisons[self.measure]
            if self.baseline and row.b == self.baseline
        }
        return tuple(rows[name] for name in self.means if name in rows)

    @property
    def reference(self) -> str:
        """With whom every row of the board is compared: the declared baseline, else the leader."""
        return self.baseline or self.leader

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no property that is decorated
    @property
    def board(self) -> Board:
        """The leaderboard, for anyone who reads the file: it follows from the rest."""
        settings, based = self.settings, bool(self.baseline)
        pairs = (
            {row.a: row for row in self.baseline_comparisons}
            if based
            else self.leader_comparisons
        )
        floors = smallest_wilcoxon_p([*pairs.values()], settings)
        rows = [_board_row(self, name, pairs.get(name), floors) for name in self.means]
        rows += [BoardRow(name, "failed", None) for name in self.failed]
        return Board(
            self.measure,
            self.n,
            self.reference,
            based,
            settings.level,
            settings.margin,
            tuple(rows),
        )


def _close(row: Comparison) -> bool:
    return row.verdict is Verdict.EQUIVALENT or row.finding.negligible


def _board_row(
    evaluation: Evaluation,
    name: str,
    row: Comparison | None,
    floors: Mapping[tuple[str, str], float],
) -> BoardRow:
    based, mean = bool(evaluation.baseline), evaluation.means[name]
    if row is None:
        return BoardRow(name, "baseline" if based else "leader", mean)
    shown: Standing = (
        "worse"
        if name in evaluation.shown_worse
        else "open"
        if name in evaluation.queries_needed
        else "good"
    )
    standing = STANDING_BY_VERDICT[row.verdict] if based else shown
    if standing == "open" and row.reason in (Reason.IDENTICAL, Reason.NO_QUERY_DIFFERS):
        standing = "same"
    row = row.swapped if evaluation.measure in evaluation.low_is_good else row
    ends = (row.mean_difference, row.ci_low, row.ci_high)
    record = (
        (row.wins, row.ties, row.losses) if based else (row.losses, row.ties, row.wins)
    )
    beside = None if evaluation.settings.test == "wilcoxon" else row.p_wilcoxon_adjusted
    return BoardRow(
        name,
        standing,
        mean,
        *ends,
        *record,
        row.p_adjusted,
        beside,
        floors.get((row.a, row.b)),
    )
