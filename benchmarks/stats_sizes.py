"""Sizes that a report states, against the truth that they are about; used by stats.py."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from harness.stats.plan import MODELS, minimum_detectable, queries_needed
from stats_samples import ALPHA, BATCH, changed, covers, larger_p, observed
from stats_shapes import Shape, equal_means, made_up, shipped

from harness.stats import Criterion, Range, optimism, plan
from harness.stats.intervals import resample_counts, student
from harness.stats.power import simulated_power

WORTH = 0.05
"""The declared difference, in points of the measure."""
QUERIES, PLANS = 50, 40
"""Of a sample; samples whose plans are made."""
RESAMPLES = 500
"""Of a bootstrap: enough for its mean over many experiments."""


def intervals(experiments: int) -> Iterator[str]:
    """The interval of a mean near the end of its measure's range, n = 13."""
    yield "| scores in [0, 1], n = 13 | mean | t left the range | coverage of t | coverage now | by the logit |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    shapes: dict[str, tuple[float, Shape]] = {
        "Beta(8, 1)": (8 / 9, lambda rng, s: rng.beta(8, 1, s)),
        "Beta(4, 0.4)": (4 / 4.4, lambda rng, s: rng.beta(4, 0.4, s)),
        "Beta(1, 9)": (0.1, lambda rng, s: rng.beta(1, 9, s)),
        "two in three are 1, else uniform": (
            2 / 3 + 1 / 6, lambda rng, s: np.where(rng.random(s) < 2 / 3, 1.0, rng.random(s)),
        ),
        "Beta(3, 3)": (0.5, lambda rng, s: rng.beta(3, 3, s)),
    }  # fmt: skip
    for name, (truth, draw) in shapes.items():
        table = draw(np.random.default_rng(len(name)), (experiments, 13))
        plain = [student(row) for row in table]
        now = [student(row, bounds=Range(0.0, 1.0)) for row in table]
        left = np.mean([x.low is not None and x.high is not None and (x.low < 0 or x.high > 1) for x in plain])
        logit = np.mean([x.method == "logit" for x in now])
        covered = [np.mean([covers(x, truth) for x in rows]) for rows in (plain, now)]
        yield f"| {name} | {truth:.3f} | {left:.1%} | {covered[0]:.1%} | {covered[1]:.1%} | {logit:.1%} |"


def forecasts(experiments: int) -> Iterator[str]:
    """Queries needed, where 50 queries showed nothing: for the observed difference, and for a declared one."""
    yield (
        "| differences | true difference | truly needed | not shown | finite guess | its median (before) | "
        "plan for 0.05, low | high |"
    )
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    asked = Criterion("wilcoxon", ALPHA)
    for name, draw in equal_means().items():
        for truth in (0.0, WORTH):
            rng = np.random.default_rng([7, len(name)])
            table = draw(rng, (experiments, QUERIES)) + truth
            open_ = table[larger_p(table) > ALPHA]
            with changed("plan", RESAMPLES=1):
                guesses = [queries_needed(observed(row), asked=asked) for row in open_]
            numbers = [math.inf if guess is None or guess.best_guess is None else guess.best_guess for guess in guesses]
            plans = [plan(observed(row), WORTH, asked=asked) for row in open_[: PLANS if truth else 0]]
            ends = [[getattr(one, end) or math.inf for one in plans] for end in ("low", "high")]
            low, high = (_many(end) if end else "–" for end in ends)
            yield (
                f"| {name} | {truth:g} | {truly_needed(draw, truth)} | {len(open_) / experiments:.0%} | "
                f"{np.mean(np.isfinite(numbers)):.0%} | {_many(numbers)} | {low} | {high} |"
            )


def _many(numbers: list[float]) -> str:
    """The median of some numbers of queries."""
    middle = float(np.median(numbers))
    return f"{middle:,.0f}" if math.isfinite(middle) else "none"


def truly_needed(draw: Shape, truth: float) -> str:
    """The queries at which both tests show the truth in four of five fresh samples, to one part in twenty."""
    if not truth:
        return "none"
    low, high = 5, 10_000
    while high > 1.05 * low + 1:
        middle = round(math.sqrt(low * high))
        table = draw(np.random.default_rng(middle), (BATCH, middle)) + truth
        shown = (larger_p(table) <= ALPHA) & (table.mean(axis=1) > 0)
        low, high = (low, middle) if shown.mean() >= 0.8 else (middle, high)
    return f"{high:,}"


def detectable(experiments: int) -> Iterator[str]:
    """The smallest difference found by each model, and the power at the first one's figure under the others."""
    del experiments
    yield "| differences | queries | sign tilt (before, alone) | exponential tilt | shift | power at the first figure |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    rng = np.random.default_rng(11)
    shapes = {**shipped(), **{name: draw(rng, (1, 138))[0] for name, draw in made_up().items()}}
    for name, values in shapes.items():
        d = observed(values)
        asked = Criterion("wilcoxon", ALPHA)
        smallest = minimum_detectable(d, asked=asked).models
        first = smallest["sign tilt"]
        powers = []
        for model in ("exponential tilt", "shift"):
            truth = None if first is None else MODELS[model](d, first, 1.0)
            powers.append("–" if truth is None else f"{simulated_power(truth, len(values), asked):.2f}")
        shown = " | ".join("none" if value is None else f"{value:.2g}" for value in smallest.values())
        yield f"| {name} | {len(values)} | {shown} | {' and '.join(powers)} |"


def flattery(experiments: int) -> Iterator[str]:
    """The optimism that the bootstrap sees, as a share of the truth."""
    yield "| retrievers, equal in truth | queries | true optimism | seen, mean | share |"
    yield "| ---: | ---: | ---: | ---: | ---: |"
    for k, n in ((3, 50), (8, 50), (8, 150)):
        rng = np.random.default_rng([k, n])
        true = seen = 0.0
        with changed("leaderboard", resample_counts=lambda n, seed: resample_counts(n, seed, RESAMPLES)):
            for _ in range(experiments):
                noise = rng.normal(0, 0.15, (n, k))
                scores = rng.normal(0.6, 0.2, (n, 1)) + noise
                true += noise.mean(axis=0).max() / experiments  # the queries' own luck is shared by all
                seen += optimism({str(j): scores[:, j] for j in range(k)}).optimism / experiments
        yield f"| {k} | {n} | {true:.4f} | {seen:.4f} | {seen / true:.2f} |"
