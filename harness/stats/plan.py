"""What so many queries can find, and how many a difference worth finding would need."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.differences import Differences, Floats, Integers
from harness.stats.draws import generator
from harness.stats.intervals import deviation
from harness.stats.populations import MODELS, Population, reach
from harness.stats.power import Criterion, approximate_power, has_power

POWER = 0.80
RESAMPLES = 200
MOST = 10_000
FEWEST = 10
"""Non-zero differences below which nothing is foretold from the observed difference."""
SIMULATED = 150
"""Queries up to which a plan is simulated; beyond, the closed form is as good."""
MANY = 2_000
"""Queries beyond which the smallest difference is not simulated either: that would take minutes and gigabytes."""
STEPS = 5
"""Halvings of an interval that is narrow already: two digits."""


@dataclass(frozen=True, slots=True)
class Detectable:
    """The smallest true mean difference that would be found four times in five, under each model."""

    models: Mapping[str, float | None]
    """In points of the measure; None: whatever the model's mean, the test would miss it."""

    @property
    def low(self) -> float | None:
        """The smallest over the models; None where no model reaches the power."""
        return min(self._known, default=None)

    @property
    def high(self) -> float | None:
        """The largest over the models that reach the power."""
        return max(self._known, default=None)

    @property
    def _known(self) -> list[float]:
        return [value for value in self.models.values() if value is not None]


@dataclass(frozen=True, slots=True)
class Plan:
    """How many queries a true difference of a declared size would need to be found four times in five."""

    difference: float
    models: Mapping[str, int | None]
    """None: more than 10,000, or the model cannot have such a difference."""
    sakai: int | None
    """By Sakai's (2016) closed form for the paired t-test; None where the differences do not scatter."""

    @property
    def low(self) -> int | None:
        """The smallest over the models; None where none has an answer."""
        return min((n for n in self.models.values() if n is not None), default=None)

    @property
    def high(self) -> int | None:
        """The largest over the models; None where one of them has none."""
        known = [n for n in self.models.values() if n is not None]
        return max(known) if known and len(known) == len(self.models) else None


class Needed(NamedTuple):
    """How many queries would show the observed difference four times in five; None: more than 10,000."""

    low: int | None
    """10 % point over resamples of the queries."""
    high: int | None
    """90 % point."""
    best_guess: int | None


def minimum_detectable(pairs: Differences, *, asked: Criterion, span: float = 1.0) -> Detectable:
    """Return the minimum detectable mean difference at this many queries, under three models.

    "sign tilt": zeros and magnitudes as observed, each non-zero difference positive with probability theta.
    "exponential tilt": the observed differences reweighted by exp(lambda d). "shift": the observed differences,
    centred, moved and clipped to the measure's range. 2,000 seeded simulations for each size that is tried; beyond
    2,000 queries the closed form.

    Args:
        pairs: the observed differences; of clusters' means, where clusters are declared.
        asked: the deciding test, and alpha / rows of the family.
        span: the measure's range.
    """
    return Detectable({model: _detectable(pairs, model, asked, span) for model in MODELS})


def _detectable(pairs: Differences, model: str, asked: Criterion, span: float) -> float | None:
    limit, n = reach(pairs, model, span), len(pairs.values)
    if limit <= pairs.slack:
        return None

    def truth(difference: float) -> Population | None:
        return MODELS[model](pairs, difference, span)

    def enough_power(difference: float, *, simulate: bool) -> bool:
        there = truth(difference)
        if there is None:
            return False
        if simulate:
            return has_power(there, n, asked, POWER)
        return float(approximate_power(there, [n], asked)[0]) >= POWER

    top = limit * (1 - 1e-6)
    low, high = 0.0, top
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if enough_power(middle, simulate=False) else (middle, high)
    low, high, few = 0.75 * high, min(top, 1.3 * high), n <= MANY
    if not enough_power(high, simulate=few) and (high == top or not enough_power(high := top, simulate=few)):
        return None
    if enough_power(low, simulate=few):
        low = 0.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if enough_power(middle, simulate=few) else (middle, high)
    return high


def plan(pairs: Differences, difference: float, *, asked: Criterion, span: float = 1.0) -> Plan:
    """Return the queries needed to find a declared difference four times in five, under three models and by Sakai.

    Args:
        pairs: the observed differences, of which only the shape is used, never their mean.
        difference: the true difference of the means that must not be missed; > 0, in points of the measure.
        asked: the deciding test, and alpha / rows of the family.
        span: the measure's range.
    """
    truths = {model: make(pairs, difference, span) for model, make in MODELS.items()}
    models = {model: None if truth is None else _enough(truth, asked) for model, truth in truths.items()}
    scatter = 0.0 if len(pairs.values) < 2 else deviation(pairs.values)
    known = scatter > pairs.slack
    return Plan(difference, models, sakai_queries(difference / scatter, alpha=asked.level) if known else None)


def _enough(truth: Population, asked: Criterion) -> int | None:
    """Return the smallest number of queries with the power, None where it is above 10,000."""

    def enough_power(n: int) -> bool:
        if n <= SIMULATED:
            return has_power(truth, n, asked, POWER)
        return float(approximate_power(truth, [n], asked)[0]) >= POWER

    low, high = 1, MOST
    if not enough_power(high):
        return None
    while high - low > 1:
        middle = round(math.sqrt(low * high)) if high > 2 * low else (low + high) // 2
        low, high = (low, middle) if enough_power(middle) else (middle, high)
    return high


def queries_needed(pairs: Differences, *, asked: Criterion) -> Needed | None:
    """Return how many queries like these would show the *observed* difference; None below 10 non-zero ones.

    For the details only: where nothing was shown this is biased (a best guess of 647 for a true 170; a finite
    guess in 64 to 88 % of cases without any difference). `plan` answers for a difference that was declared.
    The smallest N of the grid 1.25^i, at most 10,000, at which the power is at least 0.80 by the closed form. The
    interval is what 200 seeded resamples of the queries themselves say.

    Args:
        pairs: the observed differences.
        asked: the deciding test, and alpha / rows of the family.
    """
    if pairs.wins + pairs.losses < FEWEST:
        return None
    n = len(pairs.values)
    rng = generator(asked.seed, "queries needed", n)
    resampled = [_smallest(pairs.values[rng.integers(n, size=n)], asked) for _ in range(RESAMPLES)]
    low, high = np.quantile(resampled, [0.1, 0.9], method="inverted_cdf").tolist()
    best_guess = _smallest(pairs.values, asked)
    return Needed(*(None if math.isinf(x) else int(x) for x in (low, high, best_guess)))


def grid() -> Integers:
    """Return the numbers of queries that are tried: 1.25^i rounded up, at most 10,000."""
    steps = np.arange(math.floor(math.log(MOST, 1.25)) + 1)
    return np.unique(np.ceil(np.round(1.25**steps, 9))).astype(np.int64)


def _smallest(values: Floats, asked: Criterion) -> float:
    """Return the smallest N of the grid with enough power, infinity where none has."""
    sizes, ahead = grid(), values if values.mean() >= 0 else -values
    truth = Population(np.sort(ahead), np.full(len(values), 1 / len(values)))
    enough = np.flatnonzero(approximate_power(truth, sizes, asked) >= POWER)
    return float(sizes[enough[0]]) if len(enough) else math.inf


def sakai_queries(effect: float, *, alpha: float = 0.05, power: float = POWER) -> int:
    """Return the queries that a paired t-test needs, in Sakai's (2016) closed form; for planning before any run.

    Args:
        effect: smallest mean difference worth finding, divided by the differences' standard deviation; > 0.
        alpha: two-sided level.
        power: chance of finding it.

    >>> sakai_queries(0.5), sakai_queries(0.2)
    (34, 199)
    """
    if not effect > 0:
        raise ValueError(f"the effect {effect} is not above 0")
    z, reach = float(special.ndtri(1 - alpha / 2)), float(special.ndtri(power))
    return math.ceil(((z + reach) / effect) ** 2 + z * z / 2)
