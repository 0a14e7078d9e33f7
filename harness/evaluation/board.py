"""The leaderboard as data, and what is said above it, for the page, the terminal, CI and notebooks alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from harness.english import few_names
from harness.evaluation import statements
from harness.evaluation.evaluation import Evaluation
from harness.evaluation.scores import Scores
from harness.evaluation.statements import Topic
from harness.evaluation.verdict import Comparison, Reason, Verdict
from harness.evaluation.wording import opposite_warning
from harness.stats.differences import fragile
from harness.stats.multiplicity import adjusted_floors
from harness.stats.settings import Settings

BoardStanding = Literal["leader", "good", "open", "same", "worse", "baseline", "better", "failed"]
BY_VERDICT: Mapping[Verdict, BoardStanding] = {
    Verdict.BETTER: "better", Verdict.WORSE: "worse", Verdict.EQUIVALENT: "good", Verdict.UNDECIDED: "open",
}  # fmt: skip


class BoardRow(NamedTuple):
    """One retriever; what was not compared is None."""

    retriever: str
    standing: BoardStanding
    """Of the leader's board its set; against a baseline what was shown."""
    mean: float | None
    """None where it failed or has not answered yet."""
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
    """Whom every row is held against."""
    against_baseline: bool
    """Whether the reference is the declared baseline: rows are ahead of it, else behind the leader."""
    level: float
    margin: float | None
    rows: tuple[BoardRow, ...]
    """Those that failed or wait stand last."""

    @property
    def paired(self) -> bool:
        """Whether two retrievers or more have a mean: else there is no difference to draw."""
        return sum(row.mean is not None for row in self.rows) > 1

    @property
    def exact(self) -> bool:
        """Whether an exact Wilcoxon p is shown beside the deciding one."""
        return any(row.p_wilcoxon is not None for row in self.rows)

    @property
    def span(self) -> tuple[float, float]:
        """The ends of what the rows and the margin reach, 0 among them."""
        held = [end for row in self.rows for end in (row.difference, row.low, row.high) if end is not None]
        edges = (0.0, self.margin or 0.0, -(self.margin or 0.0) if self.against_baseline else 0.0)
        return min(*edges, *held), max(*edges, *held)


RECOMPUTED = "An earlier version wrote this folder: its comparisons are computed again from its scores."
NEXT = (Topic.NOTHING_MEASURED, Topic.WEIGHTS, Topic.WITHIN_MARGIN, Topic.PLAN)
"""What neither the headline nor the lead says, and what to do follows from."""


class Headline(NamedTuple):
    """What stands above the leaderboard."""

    headline: str
    lead: str
    """How far the best mean is ahead; "" where nothing follows from it."""
    following: tuple[str, ...]
    """Why an interval does not settle it, what is equal, and what more queries would tell."""


def headline_of(evaluation: Evaluation, *, complete: bool = True) -> Headline:
    """Return the verdict in a few lines; nothing is recommended while retrievers are missing."""
    result, settings = evaluation.conclusion, evaluation.settings
    headline = evaluation.incomplete or statements.headline(result, settings, evaluation.comparisons[result.measure])
    based = any(row.verdict.separates for row in result.against_baseline)
    lead = "" if based or evaluation.failed or not complete else statements.lead_sentence(result, settings)
    following = [one.text for one in evaluation.statements(complete=complete) if one.topic in NEXT]
    if not result.measured:
        return Headline(headline, lead, tuple(following[:1]))
    pairs = tuple(result.against_baseline if result.baseline else result.against.values())
    warning = opposite_warning(pairs, settings) if result.sweep is None else ""
    shown = [(row.a, row.b) for row in pairs if row.verdict.separates]
    if result.sweep is not None:
        shown = [(result.sweep.chosen, result.sweep.default)] if result.sweep.beats else []
    warning = warning or fragile_warning(evaluation.scores, shown)
    older = RECOMPUTED if evaluation.recomputed else ""
    return Headline(headline, lead, tuple(filter(None, [warning, *following, older])))


def fragile_warning(scores: Scores, pairs: Sequence[tuple[str, str]]) -> str:
    """Return for which pairs few queries with a large loss would undo what was shown; "" for none.

    Args:
        scores: of the primary measure among others, which has a value for everyone on every query.
        pairs: those for which a difference of the means is shown.
    """
    group, units, span = scores.values[scores.primary], scores.units, scores.span_of(scores.primary)
    names = [f"{a} and {b}" for a, b in pairs if fragile(units.means(group[a] - group[b]), span)]
    if not names:
        return ""
    return f"Few queries with a large loss would undo what is shown of {few_names(names)}: label more queries."


def next_of(evaluation: Evaluation) -> str:
    """Return what comes before anything can be recommended; "" where nothing does.

    Args:
        evaluation: of a run.
    """
    if evaluation.failed:
        return "Nothing is recommended: a retriever that failed might be better. Run the experiment again."
    if not evaluation.settings.by_people:
        return "Nothing is recommended: let people judge a random part of these queries."
    if len(evaluation.conclusion.means) == 1:
        return "Next: add a second [[retrievers]] to the experiment, of another kind or model, and run it again."
    return ""


def reference_of(evaluation: Evaluation) -> str:
    """Whom every row of the board is held against: the declared baseline, else the leader."""
    return evaluation.conclusion.baseline or evaluation.conclusion.leader


def board_of(evaluation: Evaluation) -> Board:
    """Put the retrievers of an evaluation against the leader, or against its declared baseline."""
    result = evaluation.conclusion
    based = bool(result.baseline)
    rows = [_row(evaluation, name, based=based) for name in result.means]
    rows += [BoardRow(name, "failed", None) for name in evaluation.failed]
    settings, reference = evaluation.settings, reference_of(evaluation)
    return Board(result.measure, result.n, reference, based, settings.level, settings.margin, tuple(rows))


def _row(evaluation: Evaluation, name: str, *, based: bool) -> BoardRow:
    result = evaluation.conclusion
    mean = result.means[name]
    standing: BoardStanding = "worse" if name in result.shown_worse else "open" if name in result.unresolved else "good"
    pairs = {row.a: row for row in result.against_baseline} if based else result.against
    row = pairs.get(name)
    if row is None:
        return BoardRow(name, "baseline" if based else "leader", mean)
    if based:
        standing = BY_VERDICT[row.verdict]
    if standing == "open" and row.reason in (Reason.IDENTICAL, Reason.NO_QUERY_DIFFERS):
        standing = "same"
    row = row.swapped if result.low_is_good else row
    ends = (row.mean_difference, row.ci_low, row.ci_high)
    record = (row.wins, row.ties, row.losses) if based else (row.losses, row.ties, row.wins)
    beside = None if evaluation.settings.test == "wilcoxon" else row.p_wilcoxon_adjusted
    floor = wilcoxon_floors([*pairs.values()], evaluation.settings).get((row.a, row.b))
    return BoardRow(name, standing, mean, *ends, *record, row.p_adjusted, beside, floor)


def wilcoxon_floors(rows: Sequence[Comparison], settings: Settings) -> dict[tuple[str, str], float]:
    """Return (a, b), in either order -> the smallest adjusted p of the exact test, where that is above the level.

    Args:
        rows: comparisons that are corrected together.
        settings: the correction and the level.
    """
    exact = [row for row in rows if row.p_wilcoxon is not None]
    floors = adjusted_floors(
        [row.p_wilcoxon or 1.0 for row in exact], [row.wilcoxon_floor for row in exact], settings.correction
    )
    return {
        pair: floor
        for row, floor in zip(exact, floors, strict=True)
        if floor is not None and floor > settings.alpha and row.differing
        for pair in ((row.a, row.b), (row.b, row.a))
    }
