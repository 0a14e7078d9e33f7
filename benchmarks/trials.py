"""Level, power and spread of the deciding test with trials of a retriever that varies.

    python -m benchmarks.trials [EXPERIMENTS]

One retriever answers the same each time; the other, a tool or an agent, is asked once
or three times. Its scores are averaged within the query; the alternative is to count
every trial as a query of its own.
"""

import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from harness.stats.differences import Floats
from harness.stats.sign_flip import flip_signs

ALPHA = 0.05
TRIALS = 3
QUERY_COUNTS = (30, 100)
GAIN = 0.1
"""The difference of the means in the columns of power."""
SLACK = 1e-10
DEFAULT_EXPERIMENTS = 4000


class Scores(NamedTuple):
    """The scores of both retrievers on the same queries."""

    fixed: Floats
    """(n,)"""
    trials: Floats
    """(TRIALS, n)"""


Draw = Callable[[np.random.Generator, int, float], Scores]
"""Draws scores of n queries; the means differ by the last argument."""


def steady(rng: np.random.Generator, n: int, gain: float) -> Scores:
    """0/1; the tool nearly always repeats its answer to a query."""
    chances = _beta(rng, 0.5 + gain / 2, 0.2, n)
    trials = rng.random((TRIALS, n)) < chances
    return Scores(_coins(rng, 0.5 - gain / 2, n), trials.astype(np.float64))


def chance(rng: np.random.Generator, n: int, gain: float) -> Scores:
    """0/1; each trial is a coin of its own."""
    trials = rng.random((TRIALS, n)) < 0.5 + gain / 2
    return Scores(_coins(rng, 0.5 - gain / 2, n), trials.astype(np.float64))


def graded(rng: np.random.Generator, n: int, gain: float) -> Scores:
    """0 to 1; trials scatter about the query's own mean."""
    means = np.clip(_beta(rng, 0.5 + gain / 2, 4, n), 1e-6, 1 - 1e-6)
    trials = rng.beta(8 * means, 8 * (1 - means), (TRIALS, n))
    return Scores(_beta(rng, 0.5 - gain / 2, 4, n), trials)


def _coins(rng: np.random.Generator, mean: float, n: int) -> Floats:
    return (rng.random(n) < mean).astype(np.float64)


def _beta(rng: np.random.Generator, mean: float, size: float, n: int) -> Floats:
    return rng.beta(size * mean, size * (1 - mean), n)


SHAPES: dict[str, Draw] = {
    "0/1, answers repeat": steady,
    "0/1, every trial a coin": chance,
    "graded, trials scatter": graded,
}


class Claims(NamedTuple):
    """Whether one experiment claims a difference, and the spread over its trials."""

    one_trial: bool
    averaged: bool
    as_rows: bool
    """Every trial counts as a query of its own."""
    spread: float
    """The highest mean of a trial less the lowest."""


def test_once(scores: Scores) -> Claims:
    """Test one experiment in three ways."""
    differences = scores.trials - scores.fixed
    means = scores.trials.mean(axis=1)
    return Claims(
        _is_claimed(differences[0]),
        _is_claimed(differences.mean(axis=0)),
        _is_claimed(differences.ravel()),
        float(means.max() - means.min()),
    )


def _is_claimed(differences: Floats) -> bool:
    return flip_signs(differences, SLACK).two_sided <= ALPHA


def simulate(experiments: int) -> Iterator[str]:
    """Yield the lines of the table."""
    yield (
        "| scores | queries | false claims: one trial | 3, averaged within the query | "
        "3, as 3n rows | power: one trial | 3, averaged | spread over trials |"
    )
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for name, draw in SHAPES.items():
        for n in QUERY_COUNTS:
            rng = np.random.default_rng([n, experiments])
            null = [test_once(draw(rng, n, 0.0)) for _ in range(experiments)]
            true = [test_once(draw(rng, n, GAIN)) for _ in range(experiments)]
            levels = np.mean(null, axis=0)
            powers = np.mean(true, axis=0)
            rates = (*levels[:3], *powers[:2])
            shown = " | ".join(f"{100 * rate:.1f} %" for rate in rates)
            yield f"| {name} | {n} | {shown} | {levels[3]:.3f} |"


def main(experiments: int) -> None:
    """Print the table."""
    for line in simulate(experiments):
        print(line)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_EXPERIMENTS)
