"""Sizes that a report states against their truth; used by stats.py."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from stats_samples import ALPHA, BATCH, covers, flip_p, observed
from stats_shapes import Shape, equal_means

from harness.stats.differences import ValueRange
from harness.stats.intervals import student_interval
from harness.stats.power import queries_needed

WORTH = 0.05
"""The declared difference, in points of the measure."""
QUERIES, PLANS = 50, 40
"""Of a sample; samples whose plans are made."""


def intervals(experiments: int) -> Iterator[str]:
    """The interval of a mean near the end of its measure's range, n = 13."""
    yield (
        "| scores in [0, 1], n = 13 | mean | t left the range | coverage of t | "
        "coverage now | by the logit |"
    )
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    shapes: dict[str, tuple[float, Shape]] = {
        "Beta(8, 1)": (8 / 9, lambda rng, s: rng.beta(8, 1, s)),
        "Beta(4, 0.4)": (4 / 4.4, lambda rng, s: rng.beta(4, 0.4, s)),
        "Beta(1, 9)": (0.1, lambda rng, s: rng.beta(1, 9, s)),
        "two in three are 1, else uniform": (
            2 / 3 + 1 / 6,
            lambda rng, s: np.where(rng.random(s) < 2 / 3, 1.0, rng.random(s)),
        ),
        "Beta(3, 3)": (0.5, lambda rng, s: rng.beta(3, 3, s)),
    }
    for name, (truth, draw) in shapes.items():
        table = draw(np.random.default_rng(len(name)), (experiments, 13))
        plain = [student_interval(row) for row in table]
        now = [student_interval(row, bounds=ValueRange(0.0, 1.0)) for row in table]
        left = np.mean(
            [
                x.low is not None and x.high is not None and (x.low < 0 or x.high > 1)
                for x in plain
            ]
        )
        logit = np.mean([x.method == "logit" for x in now])
        covered = [np.mean([covers(x, truth) for x in rows]) for rows in (plain, now)]
        yield (
            f"| {name} | {truth:.3f} | {left:.1%} | {covered[0]:.1%} | "
            f"{covered[1]:.1%} | {logit:.1%} |"
        )


def power(experiments: int) -> Iterator[str]:
    """What the plan of 50 queries says, and what as many fresh queries find."""
    yield "| differences | truly needed for 0.05 | median plan | power of as many |"
    yield "| --- | ---: | ---: | ---: |"
    for name, draw in equal_means().items():
        table = draw(
            np.random.default_rng([7, len(name)]), (min(experiments, PLANS), QUERIES)
        )
        plans = [
            one
            for row in table
            if (one := queries_needed(observed(row), WORTH, ALPHA)) is not None
        ]
        plan = float(np.median(plans))
        fresh = draw(np.random.default_rng(3), (BATCH, int(plan))) + WORTH
        found = np.mean((flip_p(fresh) <= ALPHA) & (fresh.mean(axis=1) > 0))
        yield f"| {name} | {truly_needed(draw, WORTH):,} | {plan:,.0f} | {found:.0%} |"


def truly_needed(draw: Shape, truth: float) -> int:
    """The queries at which the test of the mean shows the truth in four of five fresh
    samples, to 5 %.
    """
    low, high = 5, 10_000
    while high > 1.05 * low + 1:
        middle = round(math.sqrt(low * high))
        table = draw(np.random.default_rng(middle), (BATCH, middle)) + truth
        shown = (flip_p(table) <= ALPHA) & (table.mean(axis=1) > 0)
        low, high = (low, middle) if shown.mean() >= 0.8 else (middle, high)
    return high
