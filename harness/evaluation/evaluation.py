"""The record of an evaluation.

evaluation.json stores it. `evaluate` makes it from scores, and `evaluate_run` adds what
only a run has. It has no text and no scores of single queries: see `wording`, and
scores.csv.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, PlainSerializer, computed_field

from harness.evaluation.abstention import Abstention
from harness.evaluation.board import Board, BoardRow, Standing, smallest_wilcoxon_p
from harness.evaluation.board_intervals import BoardInterval
from harness.evaluation.choice import Choice
from harness.evaluation.verdict import Comparison, Reason, TestRow, Verdict
from harness.evaluation.warnings import StoredWarning
from harness.records import RetrieverFailure, reads_by
from harness.stats.looks import InterimAnalysis
from harness.stats.settings import Settings
from harness.stats.summary import ScoreSummary

STANDING_BY_VERDICT: Mapping[Verdict, Standing] = {
    Verdict.BETTER: "better",
    Verdict.WORSE: "worse",
    Verdict.EQUIVALENT: "good",
    Verdict.UNDECIDED: "open",
}
"""Verdict on a retriever against the declared baseline -> its standing."""


MIN_SWEEP_QUERIES = 50
"""Queries (or clusters) below which a sweep claims nothing.

Skewed differences of fewer make false claims.
"""


@dataclass(frozen=True, slots=True)
class AxisEffect:
    """The effect of one value of one axis, over all values of the others."""

    axis: str
    """A key that the sweep varies, such as "chunk.size"."""
    value: str
    """Its value, as the report shows it."""
    mean: float
    """Mean of all configurations with this value."""
    effect: float
    """`mean` minus the mean of all configurations that have the axis."""
    low: float | None
    """Lower end of the effect's interval, by Student's t over the queries.

    None if no interval can be estimated.
    """
    high: float | None


@dataclass(frozen=True, slots=True)
class GridEdge:
    """A number of the chosen configuration beyond which none was tried."""

    axis: str
    value: str
    is_largest: bool
    """Whether it is the largest of its axis; else it is the smallest."""


@dataclass(frozen=True, slots=True)
class SweepChoice:
    """The configuration with the highest mean, and its gain."""

    default: str
    """The retriever that all configurations are compared with."""
    chosen: str
    """The configuration with the highest mean of those that were tried."""
    configurations: int
    """How many were tried, without the default."""
    gain: float
    """Its mean less the default's, on the queries that chose it."""
    expected: float | None
    """The gain to expect on new queries from such a choice, cross-fitted.

    None if all queries are in one fold.
    """
    expected_error: float | None
    """Its standard error; None if it cannot be estimated."""
    low: float | None
    """Lower bound of its true gain, simultaneous for all configurations.

    None if it cannot be estimated.
    """
    p_value: float
    """One-sided p by max-T over all configurations."""
    method: str
    """How it was computed: "enumerated" (exact) or "draws"."""
    beats: bool
    """Whether the chosen one is shown to be better than the default.

    That takes enough queries, and a p of at most alpha/2.
    """
    too_few: bool
    """Whether the queries are too few to claim anything."""
    alike: tuple[str, ...]
    """The configurations that may be as good as the chosen one, itself included.

    The default may be one of them. They are in the order of dollars, bytes of vectors,
    then means.
    """
    effects: tuple[AxisEffect, ...]
    cheapest: str | None = None
    """The one of `alike` that costs the fewest dollars; None if several do, or if a
    price is unknown."""
    edges: tuple[GridEdge, ...] = ()
    """The axes on which the chosen configuration is at the edge of the grid."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What no choice among the retrievers can exceed, not even by luck."""

    best_per_query: float
    """Mean of the primary measure if each query used its best retriever."""
    cutoff: int
    """How many first hits of a query count in both recalls."""
    union_recall: float
    """Recall of all retrievers' first `cutoff` hits together."""
    best_recall: float
    """Recall of the best single retriever within the same cutoff."""


@dataclass(frozen=True, slots=True)
class PlannedLook:
    """The planned look that comes next, if something is undecided."""

    queries: int
    """How many queries it is planned for."""
    power: float | None
    """Its power to find `Evaluation.difference` in the hardest undecided pair.

    If differences scatter as they do now; None if too few queries differ to know.
    """


def _read_failures(reasons: Mapping[str, str]) -> tuple[RetrieverFailure, ...]:
    return tuple(RetrieverFailure(name, reason) for name, reason in reasons.items())


class Evaluation(BaseModel):
    """All retrievers compared on every measure, and on the primary one with the leader.

    The leader is the one with the best mean.
    """

    model_config = ConfigDict(frozen=True)

    measure: str
    """The primary one."""
    settings: Settings
    """The statistics; if looks are planned, alpha is the level of this look."""
    look: InterimAnalysis | None = None
    """Which of the planned looks this is; None if none are planned."""
    next_look: PlannedLook | None = None
    """The planned look to come; None if there is none, or nothing is undecided."""
    judgments: int = 0
    """How many labels the scored queries have: the cost of the verdict."""
    n: int
    """How many queries have a value of the primary measure from every retriever."""
    clusters: int | None
    """How many clusters these queries have.

    None if none are declared, and no text occurs twice.
    """
    effective: float | None
    """How many queries (or clusters) of equal weight have as much information.

    None without weights.
    """
    low_is_good: frozenset[str] = frozenset()
    """Measures whose lowest mean leads."""
    summary: Mapping[str, Mapping[str, ScoreSummary]]
    """Measure -> retriever -> its statistics."""
    comparisons: Mapping[str, tuple[Comparison, ...]]
    """Measure -> its family: each other retriever with the baseline, or all pairs."""
    tests: tuple[TestRow, ...] = ()
    """The tests of every other family."""
    means: Mapping[str, float]
    """Retriever -> its (weighted) mean on the primary measure, best first."""
    leader_comparisons: Mapping[str, Comparison]
    """Each other retriever -> the leader's comparison (a) with it (b)."""
    queries_needed: Mapping[str, int | None]
    """Retriever neither worse nor as good -> how many queries show `difference`.

    Clusters, if there are any. As `power.queries_needed` returns them: None if too few
    differ to know, and 1,000,001 if a million are not enough.
    """
    measured: bool
    """False if every score is 0: then there is no verdict."""
    difference: float
    """The true difference that plans are for: the margin, or a share of the range."""
    baseline: str = ""
    """The declared baseline; "" if all pairs were compared."""
    choice: Choice | None = None
    """Whether the leader is chosen; None with a sweep, or without another retriever."""
    row_intervals: Mapping[str, BoardInterval] = {}
    """Row of the board -> the interval of its difference; all hold at once."""
    undeclared: tuple[str, ...] = ()
    """Choices made after the run, such as another measure; then nothing is chosen."""
    sweep: SweepChoice | None = None
    """The choice among many configurations; None without a sweep."""
    trial_means: Mapping[str, tuple[float, ...]] = {}
    """Retriever -> its mean on the primary measure in each trial, if it has several."""
    judged_shares: Mapping[str, float] = {}
    """Retriever -> share of its first hits with a label, as in `Scores`."""
    abstention: Abstention | None = None
    """How scores separate queries without an answer; None if none is declared so."""
    ceilings: Ceilings | None = None
    """None with fewer than two retrievers, without a relevant document, if every score
    is 0, or if there is a measure of which less is better.
    """
    warnings: tuple[StoredWarning, ...] = ()
    """The most serious first."""
    failed: Annotated[
        tuple[RetrieverFailure, ...],
        reads_by(_read_failures),
        PlainSerializer(dict),
    ] = ()
    """The retrievers that failed, in the order of the experiment."""
    recomputed: bool = False
    """Whether it was computed again, since a folder's evaluation could not be read."""

    @property
    def leader(self) -> str:
        """The retriever with the best mean; of equals, the first in the experiment."""
        return next(iter(self.means))

    @property
    def others(self) -> tuple[str, ...]:
        """All but the leader, best mean first."""
        return tuple(self.means)[1:]

    @property
    def rivals(self) -> tuple[str, ...]:
        """All but the leader: the runner-up, the baseline, then the others by mean."""
        names = list(self.others)
        if self.baseline in names[1:]:
            names.remove(self.baseline)
            names.insert(1, self.baseline)
        return tuple(names)

    @property
    def as_good_as_leader(self) -> tuple[str, ...]:
        """The leader, and all that are shown to be within the margin of it."""
        rows = self.leader_comparisons
        close = [name for name in self.others if _is_within_margin(rows[name])]
        return self.leader, *close

    @property
    def shown_worse(self) -> tuple[str, ...]:
        """The retrievers that the leader is shown to be better than.

        If the leader is chosen, all that are not within the margin.
        """
        names: list[str] = []
        for name in self.others:
            row = self.leader_comparisons[name]
            is_worse = row.verdict is Verdict.BETTER or self.is_chosen
            if is_worse and not _is_within_margin(row):
                names.append(name)
        return tuple(names)

    def as_exploratory(self, choices: Sequence[str]) -> Self:
        """Return the evaluation by choices that were made after the run.

        Args:
            choices: what differs from the declared; if empty, nothing changes.
        """
        if not choices:
            return self
        return self.model_copy(update={"undeclared": tuple(choices), "choice": None})

    @property
    def is_chosen(self) -> bool:
        """Whether the leader is chosen against every other retriever."""
        return self.choice is not None and self.choice.is_made

    @property
    def better_on_typical_query(self) -> tuple[str, ...]:
        """The retrievers that are better than the leader on the typical query.

        Their mean is lower, but signed ranks show them ahead; empty if another test
        decides.
        """
        return tuple(
            name
            for name in self.queries_needed
            if self.leader_comparisons[name].verdict is Verdict.WORSE
        )

    @property
    def baseline_comparisons(self) -> tuple[Comparison, ...]:
        """Comparisons of each other (a) with the baseline (b), best mean first."""
        if not self.baseline:
            return ()
        rows = {
            row.a: row
            for row in self.comparisons[self.measure]
            if row.b == self.baseline
        }
        return tuple(rows[name] for name in self.means if name in rows)

    @property
    def reference(self) -> str:
        """The retriever that every row of the board is compared with.

        It is the declared baseline, else the leader.
        """
        return self.baseline or self.leader

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no such property
    @property
    def board(self) -> Board:
        """The leaderboard, for readers of the file; it follows from other fields."""
        comparisons = self.leader_comparisons
        if self.baseline:
            comparisons = {row.a: row for row in self.baseline_comparisons}
        # All pairs are corrected together, also those without a row here.
        family = self.comparisons[self.measure]
        floors = smallest_wilcoxon_p(family, self.settings)
        rows: list[BoardRow] = []
        for name in self.means:
            comparison = comparisons.get(name)
            if comparison is None:
                standing: Standing = "baseline" if self.baseline else "leader"
                rows.append(BoardRow(name, standing, self.means[name]))
            else:
                rows.append(_board_row(self, name, comparison, floors))
        rows += [BoardRow(name, "failed", None) for name, _ in self.failed]
        return Board(
            measure=self.measure,
            n=self.n,
            reference=self.reference,
            against_baseline=bool(self.baseline),
            level=self.settings.level,
            margin=self.settings.margin,
            rows=tuple(rows),
        )


def _is_within_margin(row: Comparison) -> bool:
    return row.verdict is Verdict.EQUIVALENT or row.finding.negligible


def _board_row(
    evaluation: Evaluation,
    name: str,
    comparison: Comparison,
    floors: Mapping[tuple[str, str], float],
) -> BoardRow:
    """Return the row of a retriever that is compared with the reference.

    Args:
        evaluation: of all retrievers.
        name: the retriever of the row.
        comparison: of the row (a) with the baseline (b), or of the leader (a) with the
            row (b).
        floors: (a, b) -> the row's `floor`.
    """
    standing = _standing(evaluation, name, comparison)
    # In the choice of one a row can be worse by its uncorrected p.
    single_p_decides = (
        evaluation.is_chosen
        and not evaluation.baseline
        and standing == "worse"
        and comparison.verdict is not Verdict.BETTER
    )
    interval = evaluation.row_intervals.get(name)
    low = comparison.ci_low
    high = comparison.ci_high
    if interval is not None:
        low = interval.low
        high = interval.high
    if evaluation.measure in evaluation.low_is_good:
        comparison = comparison.swapped
        if low is not None and high is not None:
            low, high = -high, -low
    if evaluation.baseline:
        wins = comparison.wins
        losses = comparison.losses
    else:
        # The difference is the leader's lead, but wins are those of the row.
        wins = comparison.losses
        losses = comparison.wins
    p_wilcoxon = comparison.p_wilcoxon_adjusted
    if evaluation.settings.test == "wilcoxon":
        p_wilcoxon = None  # it is `p`
    return BoardRow(
        retriever=name,
        standing=standing,
        mean=evaluation.means[name],
        difference=comparison.mean_difference,
        low=low,
        high=high,
        wins=wins,
        ties=comparison.ties,
        losses=losses,
        p=comparison.p_adjusted,
        p_single=comparison.p_value if single_p_decides else None,
        p_wilcoxon=p_wilcoxon,
        floor=floors.get((comparison.a, comparison.b)),
    )


def _standing(evaluation: Evaluation, name: str, comparison: Comparison) -> Standing:
    """Return the standing of a retriever that is compared with the reference."""
    if evaluation.baseline:
        standing = STANDING_BY_VERDICT[comparison.verdict]
    elif name in evaluation.shown_worse:
        standing = "worse"
    elif name in evaluation.queries_needed:
        standing = "open"
    else:
        standing = "good"
    has_no_difference = comparison.reason in (Reason.IDENTICAL, Reason.NO_QUERY_DIFFERS)
    return "same" if standing == "open" and has_no_difference else standing
