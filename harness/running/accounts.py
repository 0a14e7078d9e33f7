"""What one run spends."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness.records.judge_readings import JudgedClaims
from harness.running.options import RunOptions
from retrievers.errors import OverBudget
from retrievers.meter import Budget, Meter


@dataclass(frozen=True, slots=True)
class RunAccounts:
    """What one run spends: dollars and time."""

    options: RunOptions
    budget: Budget
    """Dollars that the run may spend, and those that it has spent."""
    meter: Meter
    """Observes the stages that serve all retrievers together, such as scoring."""
    started: datetime
    clock: float
    """`time.perf_counter()` at the start."""

    @classmethod
    def start(cls, options: RunOptions, budget: Budget | None = None) -> RunAccounts:
        """Open the accounts of a run that starts now.

        Args:
            options: of the run.
            budget: what it may spend; None: `max_cost`.

        Raises:
            InputError: `max_cost` is not a finite number of 0 or more.
        """
        if budget is None:
            budget = Budget(options.max_cost)
        meter = Meter(budget, lambda meter: options.on_progress("", meter))
        return cls(options, budget, meter, datetime.now(UTC), time.perf_counter())

    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.clock

    def check_budget(self, claims: JudgedClaims, folder: Path) -> None:
        """Raise if more was billed than allowed, or a judge was refused for its price.

        Raises:
            OverBudget: the results are written all the same.
        """
        remedy = f"the results are kept: harness report {folder} shows them"
        if claims.warning and self.budget.refused:
            raise OverBudget(f"{claims.warning}; {remedy}")
        self.budget.check(remedy)
