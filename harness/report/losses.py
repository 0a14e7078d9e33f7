"""What the slider moves: how much each retriever loses against the leader at most, and what each costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from harness.evaluation.verdict import Comparison
from harness.report import text
from harness.report.costs import Cost, costs_of
from harness.report.view import View

STEPS = 200
"""Places of the slider, about."""


class Expense(NamedTuple):
    """One way to be the cheapest."""

    word: str
    unit: str
    price: Callable[[Cost], float | None]
    shown: Callable[[float], str]


EXPENSES = (
    Expense("Cheapest", "a million queries", lambda cost: cost.usd_per_million, text.dollars),
    Expense("Fastest", "a query (median)", lambda cost: cost.p50, text.milliseconds),
    Expense("Smallest", "of vectors", lambda cost: cost.vector_bytes, text.size),
)


def losses(view: View) -> dict[str, Any] | None:
    """The interval of each retriever's loss, its prices, and the slider's steps; None where nothing can be chosen."""
    whole, leader = view.conclusion, view.conclusion.leader
    if len(view.retrievers) < 2 or view.evaluation.failed or not whole.measured or not view.settings.by_people:
        return None
    ends = {leader: (0.0, 0.0)} | {name: _interval(row) for name, row in whole.against.items()}
    largest = max((high for _, high in ends.values() if high is not None), default=0.0)
    if largest <= 0:
        return None
    step = _nice(largest / STEPS)
    costs = costs_of(view.results)
    return {
        "measure": view.names[view.primary].short,
        "level": view.settings.level,
        "declared": view.settings.margin,
        "step": step,
        "most": math.ceil(largest / step) + 1,
        "start": round((view.settings.margin or 0.0) / step),
        "retrievers": [{"name": name, "low": ends[name][0], "high": ends[name][1]} for name in view.ranked],
        "prices": [
            {
                "word": one.word,
                "unit": one.unit,
                "of": {
                    name: [value, one.shown(value)]
                    for name in view.ranked
                    if (value := one.price(costs[name])) is not None
                },
            }
            for one in EXPENSES
        ],
    }


def _interval(row: Comparison) -> tuple[float | None, float | None]:
    # Where no score differs there is nothing to lose, and no interval.
    return (0.0, 0.0) if row.wins + row.losses == 0 else (row.ci_low, row.ci_high)


def _nice(step: float) -> float:
    """The next of 1, 2 and 5 times a power of ten.

    >>> _nice(0.0013), _nice(0.02), _nice(0.3)
    (0.002, 0.02, 0.5)
    """
    power = 10.0 ** math.floor(math.log10(step))
    return next(round(times * power, 12) for times in (1, 2, 5, 10) if times * power >= step * (1 - 1e-9))
