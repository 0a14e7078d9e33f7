"""How often the interval of the combined estimate holds the truth: people's labels on n queries, a model's on all.

    python benchmarks/prediction.py > benchmarks/prediction.md

Values of a measure, or differences of two retrievers, are drawn with a known mean; the model's correlate with them and
are biased. Each row compares the estimate of `harness.stats.prediction` with the one that it replaced. Seeded; ten
minutes on one core.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.differences import Floats, singles, units_of
from harness.stats.prediction import ENOUGH, ENOUGH_DIFFERENT, predicted, prediction_powered

EXPERIMENTS = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
FEWEST = 200
"""Estimates of which a coverage is told: its standard error is 1.5 points then."""
OTHERS = 300
"""Queries that the model judged alone."""
TRUTH, BIAS, SPREAD = 0.02, 0.06, 0.2
Draw = Callable[[np.random.Generator, int], tuple[Floats, Floats]]
"""(generator, queries) -> values by people and by the model."""


class Shape(NamedTuple):
    """What is drawn."""

    name: str
    truth: float
    draw: Draw
    sizes: Sequence[int] = (1,)
    """Queries of a cluster, in turns."""


def normal(rho: float, alike: float) -> Draw:
    """Normal differences, correlated with the model's; a share of the queries is answered alike, and both see it."""

    def draw(rng: np.random.Generator, number: int) -> tuple[Floats, Floats]:
        people, noise = rng.standard_normal((2, number))
        model = rho * people + math.sqrt(1 - rho**2) * noise
        kept = rng.random(number) >= alike
        return TRUTH + SPREAD * people * kept, TRUTH + BIAS + SPREAD * model * kept

    return draw


def near_perfect(errs: float) -> Draw:
    """Differences of nDCG in steps of a tenth; the model has them all but for a share, where it favours the first."""

    def draw(rng: np.random.Generator, number: int) -> tuple[Floats, Floats]:
        people = rng.integers(-3, 4, number) / 10 + TRUTH
        return people, np.where(rng.random(number) < errs, people + rng.choice([0.2, 0.5], number), people)

    return draw


def skewed(errs: float) -> Draw:
    """Most queries differ by nothing, one in 20 by much; the model sees the small ones and misses some of the large."""

    def draw(rng: np.random.Generator, number: int) -> tuple[Floats, Floats]:
        large = rng.random(number) < 0.05
        people = np.where(large, 0.8, rng.normal(0, 0.02, number))
        return people, np.where(large & (rng.random(number) < errs), 0.0, people + rng.normal(0, 0.01, number))

    return draw


def success(share: float, errs: float) -> Draw:
    """The mean of a measure that is 1 but for a few queries; the model overlooks some of these."""

    def draw(rng: np.random.Generator, number: int) -> tuple[Floats, Floats]:
        people = rng.random(number) < share
        model = np.where(rng.random(number) < errs, True, people)
        return people.astype(np.float64), model.astype(np.float64)

    return draw


def clustered(rho: float, sizes: Sequence[int]) -> Draw:
    """Paraphrases of one need: half of each difference, and of the model's error, is the need's."""

    def draw(rng: np.random.Generator, number: int) -> tuple[Floats, Floats]:
        needs = clusters_for(sizes, number)
        shared = rng.standard_normal((2, needs.max() + 1))[:, needs]
        people, noise = math.sqrt(0.5) * (shared + rng.standard_normal((2, number)))
        return TRUTH + SPREAD * people, TRUTH + BIAS + SPREAD * (rho * people + math.sqrt(1 - rho**2) * noise)

    return draw


def clusters_for(sizes: Sequence[int], number: int) -> np.ndarray:
    """The cluster of each of so many queries, clusters having these sizes in turns."""
    repeated = np.resize(sizes, number)
    return np.repeat(np.arange(number), repeated)[:number]


SHAPES = (
    *(Shape(f"normal, correlation {rho}", TRUTH, normal(rho, 0.0)) for rho in (0.3, 0.5, 0.8)),
    *(Shape(f"a third are 0, correlation {rho}", TRUTH, normal(rho, 1 / 3)) for rho in (0.5, 0.8)),
    *(Shape(f"near-perfect judge, errs in {errs:.0%}", TRUTH, near_perfect(errs)) for errs in (0.02, 0.05, 0.1)),
    *(Shape(f"skewed, misses {errs:.0%} of what is large", 0.04, skewed(errs)) for errs in (0.1, 0.5)),
    *(Shape(f"Success {share}, overlooks {errs:.0%} of failures", share, success(share, errs))
      for share, errs in ((0.97, 0.1), (0.97, 0.5), (0.9, 0.5))),
    Shape("clusters of 5, correlation 0.5", TRUTH, clustered(0.5, (5,)), (5,)),
    Shape("clusters of 5, correlation 0.8", TRUTH, clustered(0.8, (5,)), (5,)),
    Shape("clusters of 1, 2 and 9, correlation 0.8", TRUTH, clustered(0.8, (1, 2, 9)), (1, 2, 9)),
)  # fmt: skip


class Before(NamedTuple):
    """What was replaced: lambda chosen with the query itself, and no clusters."""

    estimate: float
    half: float
    worth: float
    """Queries judged by people that n judged queries were said to be worth, over n."""


def before(people: Floats, model: Floats, elsewhere: Floats) -> Before:
    """Estimate as it was done."""
    n, others = len(people), len(elsewhere)
    spread = np.concatenate([model, elsewhere]).var(ddof=1)
    shared = np.mean((people - people.mean()) * (model - model.mean()))
    tuning = float(np.clip(shared / ((1 + n / others) * spread), 0, 1)) if spread else 0.0
    rest = people - tuning * model
    error = math.sqrt(rest.var(ddof=1) / n + tuning**2 * elsewhere.var(ddof=1) / others)
    varied = np.ptp(people) > 0 and np.ptp(model) > 0
    rho = max(0.0, float(np.corrcoef(people, model)[0, 1])) if varied else 0.0
    half = float(special.stdtrit(n - 1, 0.975)) * error
    return Before(rest.mean() + tuning * elsewhere.mean(), half, 1 / (1 - min(rho, 1.0) ** 2 * others / (n + others)))


class Counted(NamedTuple):
    """One experiment: whether each interval holds the truth, the estimates, and what is said of their certainty."""

    before: bool
    formula: bool
    given: bool
    held: bool
    people: bool
    mean: float
    estimate: float
    worth: float
    narrow: float


def experiment(rng: np.random.Generator, shape: Shape, n: int) -> Counted:
    """Draw once, and estimate in all ways."""
    people, model = shape.draw(rng, n + OTHERS)
    one = (people[:n], model[:n], model[n:])
    units = singles(n + OTHERS)
    if shape.sizes != (1,):
        units = units_of([str(number) for number in clusters_for(shape.sizes, n + OTHERS)])
    old = before(*one)
    powered, found = prediction_powered(*one, units), predicted(*one, units=units)
    freedom = n**2 / (np.bincount(units.members[:n]) ** 2).sum() - 1
    slack = 1e-12
    given, alone = found.powered is not None, found.people_interval
    reach = float(special.stdtrit(freedom, 0.975)) * powered.standard_error
    return Counted(
        before=abs(old.estimate - shape.truth) <= old.half + slack,
        formula=abs(powered.estimate - shape.truth) <= reach + slack,
        given=given,
        held=given and found.interval.low is not None and found.interval.low <= shape.truth <= found.interval.high,
        people=alone.low is not None and alone.low <= shape.truth <= alone.high,
        mean=found.people,
        estimate=powered.estimate,
        worth=old.worth,
        narrow=found.as_narrow_as / n,
    )


def row(shape: Shape, n: int) -> str:
    """One line of the table."""
    rng = np.random.default_rng([20261123, n, *shape.name.encode()])
    counted = np.array([experiment(rng, shape, n) for _ in range(EXPERIMENTS)], dtype=np.float64).T
    before, formula, given, held, people, means, estimates, worth, narrow = counted
    enough = given.sum() >= FEWEST
    holds = f"{100 * held.sum() / given.sum():.1f}" if enough else "–"
    said, now = np.median(worth), f"{np.nanmedian(narrow):.1f}" if enough else "–"
    return (
        f"| {shape.name} | {n} | {100 * before.mean():.1f} | {100 * formula.mean():.1f} | {100 * given.mean():.1f} "
        f"| {holds} | {100 * people.mean():.1f} | {said:.1f} | {now} | {means.var() / estimates.var():.1f} |"
    )


PAGE = f"""# Coverage of the combined estimate

Printed by `python benchmarks/prediction.py`: {EXPERIMENTS:,} seeded experiments a row. People judge n
queries, the model the same and {OTHERS} more. Intervals are nominally 95 %; the first five columns of figures are
percentages.

- *Before*: lambda chosen with the query itself, clusters ignored. *Formula*: lambda chosen without the query (the
  cluster) that it weighs, however few there are.
- *Given*: how often there is an estimate, which takes {ENOUGH} judged queries (clusters) and
  {ENOUGH_DIFFERENT} on which people and the model differ; *holds*: how often the intervals that are given hold the
  truth (where {FEWEST} are).
- *People*: how often the interval without the model does; where all values are equal there is none, and it holds
  nothing.
- How many times n queries the estimate is as certain as: what was *said* before, what is said *now*, and what is
  *true*, the variance of people's mean over that of the estimate.
"""


def main() -> None:
    """Print the page."""
    print(PAGE)
    print("| differences | n | before | formula | given | holds | people | said | now | true |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for shape in SHAPES:
        for n in (20, 30, 60, 100) if shape.sizes == (1,) else (100, 180, 300):
            print(row(shape, n), flush=True)


if __name__ == "__main__":
    main()
