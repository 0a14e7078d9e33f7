"""The verdict of a gate.

A challenger passes if it is shown not to lose the margin, or if nothing changed: "not
shown" is no pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from harness.evaluation.compare import compare_pairs
from harness.evaluation.corpus_change import (
    LabelReason,
)
from harness.evaluation.verdict import Verdict
from harness.scoring.scores import Scores
from harness.stats.differences import paired_differences
from harness.stats.intervals import mean
from harness.stats.paired_tests import (
    NOT_SHOWABLE,
    EquivalenceMargin,
    min_units_for_margin,
    non_inferiority_tests,
)
from harness.stats.settings import Settings, margin_problem
from retrievers.errors import InputError, Problem

CHALLENGER_ARM = "challenger"
BASELINE_ARM = "baseline"
"""The names of the two retrievers in the scores that a gate tests."""


class GateOutcome(StrEnum):
    """The result of a gate: the first of these that holds."""

    UNCHANGED = "unchanged"
    """The rankings are the same down to the cutoff; no claim of equivalence."""
    PASSED = "passed"
    """The challenger is shown not to lose the margin."""
    WORSE = "worse"
    """The deciding test finds the challenger worse."""
    NOT_SHOWN = "not shown"
    """Neither was shown."""


def gate_scores(scores: Scores, *, margin: float, settings: Settings) -> Gate:
    """Test whether a challenger is not worse than the baseline.

    It passes if "challenger - baseline <= -margin" is rejected
    (`non_inferiority_tests`); it is worse if the deciding test finds it so.

    Args:
        scores: of "challenger" and "baseline" on the primary measure, of one query or
            more, defined for both.
        margin: loss of the mean that is still acceptable, in points of the measure.
        settings: the deciding test and the level; their margin is not used.

    Raises:
        InputError: a margin that no test can have.
    """
    problem = margin_problem(margin)
    if problem:
        raise InputError(Problem("margin", problem, "such as 0.02"))
    primary = scores.primary
    columns = scores.values[primary]
    units = scores.units
    span = scores.span_of(primary)
    (test,) = non_inferiority_tests(
        columns,
        [(CHALLENGER_ARM, BASELINE_ARM)],
        EquivalenceMargin(margin, span, units, settings.alpha),
    )
    needed = None
    if span is not None:
        differences = paired_differences(columns[CHALLENGER_ARM], columns[BASELINE_ARM])
        ahead = mean(differences.values, units.weights)
        needed = min_units_for_margin(margin, span, settings.alpha, ahead)
    measured = any(np.any(column) for column in columns.values())
    (row,) = compare_pairs(scores, [(CHALLENGER_ARM, BASELINE_ARM)], settings)
    is_worse = row.verdict is Verdict.WORSE
    may_claim = measured and settings.judged_by_people
    may_pass = may_claim and not settings.alpha_spent
    outcome = GateOutcome.NOT_SHOWN
    if scores.identical and may_claim:
        outcome = GateOutcome.UNCHANGED
    elif may_pass and test.greater <= settings.alpha:
        outcome = GateOutcome.PASSED
    elif is_worse:
        outcome = GateOutcome.WORSE
    return Gate(
        outcome=outcome,
        n=scores.n,
        clusters=len(units) if units.clustered else None,
        baseline_mean=mean(columns[BASELINE_ARM], units.weights),
        challenger_mean=mean(columns[CHALLENGER_ARM], units.weights),
        mean_difference=row.mean_difference,
        margin=margin,
        p_value=None if test is NOT_SHOWABLE else test.greater,
        p_worse=row.p_value,
        is_worse=is_worse,
        needed=needed,
        measured=measured,
        has_equal_weights=units.weights is None,
        alpha_spent=settings.alpha_spent,
        judged_by_people=settings.judged_by_people,
    )


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether a challenger was shown not to be worse than the baseline by the margin.

    `wording` says why.
    """

    outcome: GateOutcome
    n: int
    """How many queries both retrievers have a value for."""
    clusters: int | None
    """How many clusters the queries have; None if every query is one."""
    baseline_mean: float
    challenger_mean: float
    mean_difference: float
    """mean(challenger) - mean(baseline)."""
    margin: float
    """The loss of the mean that is acceptable, in points of the measure."""
    p_value: float | None
    """One-sided p of the test against the margin.

    None if none was made: too few queries, or the range is unknown or 0.
    """
    p_worse: float
    """Two-sided, uncorrected p of the deciding test of the difference."""
    is_worse: bool
    """Whether the deciding test finds the challenger worse, also within the margin."""
    needed: int | None
    """How many queries (or clusters) it takes at least to pass.

    None if the range of the measure is unknown: then it can never be shown.
    """
    measured: bool
    """False if every score is 0."""
    has_equal_weights: bool
    """False if queries are weighted: few heavy ones may then decide."""
    label_reason: LabelReason | None = None
    """Why missing labels may explain the change between two states; None if not."""
    to_label: int = 0
    """How many pairs of a query and a new document in its first hits have no label."""
    pool_command: str = ""
    """The command that draws these pairs, among others; "" for one state."""
    alpha_spent: bool = False
    """Whether the planned looks have spent alpha: then nothing more can be shown."""
    judged_by_people: bool = True
    """False if only a model judged in one of the runs: then nothing is shown."""

    @property
    def passed(self) -> bool:
        """Whether the challenger may replace the baseline: also if it is unchanged."""
        return self.outcome in (GateOutcome.PASSED, GateOutcome.UNCHANGED)

    @property
    def too_few(self) -> bool:
        """Whether there are fewer queries (or clusters) than `needed`."""
        return self.needed is not None and (self.clusters or self.n) < self.needed
