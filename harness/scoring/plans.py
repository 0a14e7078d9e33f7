"""How many queries a true difference would need, planned from a results folder: `harness plan RESULTS --difference`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from harness.records import Results
from harness.scoring.outcome import outcome_of
from harness.stats import Plan, asked_of, plan_sentence, power_of
from harness.stats.whole import EXAMPLE
from retrievers.errors import InputError, Problem


@dataclass(frozen=True, slots=True)
class PlannedPair:
    """What one pair would need."""

    a: str
    """The retriever with the highest mean."""
    b: str
    plan: Plan | None
    """None: fewer than ten queries differ, which foretells nothing."""
    clusters: bool
    """Whether the numbers are of clusters of queries."""

    def sentence(self) -> str:
        """The plan in words."""
        if self.plan is None:
            return f"{self.a} and {self.b}: too few of the queries differ to say how many would be needed."
        return plan_sentence(self.plan, f"{self.a} and {self.b}", clusters=self.clusters)

    def as_json(self) -> dict[str, Any]:
        """The same as data."""
        queries = {} if self.plan is None else {**asdict(self.plan), "low": self.plan.low, "high": self.plan.high}
        return {"a": self.a, "b": self.b, "unit": "cluster" if self.clusters else "query", **queries}


def planned_pairs(results: Results, difference: float | None) -> Iterator[PlannedPair]:
    """Plan for the leader against each other retriever.

    Args:
        results: whose differences have the shape.
        difference: the true difference that must not be missed; None: the declared margin, else 0.05 of the range.

    Raises:
        InputError: the difference is not a finite number above 0; there are no scores, or nothing to compare.
    """
    if difference is not None and not 0 < difference < math.inf:
        what = f"{difference} is not a finite number above 0"
        raise InputError(Problem("--difference", what, "give the smallest difference worth finding, such as 0.05"))
    if not results.scored or len(results.retrievers) < 2:
        raise InputError(Problem(str(results.folder), "holds no two retrievers with scores", "run two or more"))
    outcome = outcome_of(results)
    whole, scores = outcome.whole, outcome.scores[outcome.primary]
    bounds = outcome.facts.range_of(outcome.primary, scores)
    span = 1.0 if bounds is None else bounds.span
    wanted = difference or outcome.settings.margin or EXAMPLE * span
    asked = asked_of(outcome.settings, max(1, len(outcome.comparisons[outcome.primary])))
    for other in list(whole.means)[1:]:
        power = power_of(scores, (whole.leader, other), asked, (outcome.facts, span, wanted))
        yield PlannedPair(whole.leader, other, power.plan, whole.clusters is not None)
