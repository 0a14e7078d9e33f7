"""Differences of two retrievers with a known truth: what stats.py draws its experiments
from.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness import pipeline
from harness.running.options import RunOptions
from harness.stats.differences import Floats

MARGIN = 0.02
Shape = Callable[[np.random.Generator, tuple[int, int]], Floats]
"""(generator, (experiments, queries)) -> differences."""
EXPERIMENTS_SHIPPED = {
    "quickstart": ("bm25", "minilm", "hybrid"),
    "japanese": ("bm25", "hashing"),
}


class AtMargin(NamedTuple):
    """A shape whose true mean is a loss of 0.02, and the same with a true mean of 0."""

    lost: Shape
    equal: Shape


@cache
def shipped() -> Mapping[str, Floats]:
    """The differences in nDCG@10 of the experiments that come with the project."""
    differences_of = {}
    for name, retrievers in EXPERIMENTS_SHIPPED.items():
        with tempfile.TemporaryDirectory() as folder:
            table = pipeline.run(
                f"experiments/{name}.toml", RunOptions(Path(folder))
            ).scores
        wide = table[table["measure"] == "nDCG@10"].pivot(
            index="query_id", columns="retriever", values="value"
        )
        for other in retrievers[1:]:
            values = (wide[other] - wide[retrievers[0]]).to_numpy(dtype=np.float64)
            differences_of[f"nDCG@10, {name}: {other} - {retrievers[0]}"] = values
    return differences_of


def redrawn(values: Floats, mean: float) -> Shape:
    """Draw from observed differences, moved to a mean and kept within [-1, 1]."""
    centred = values - values.mean()
    low, high = -2.0, 2.0
    while (
        high - low > 1e-12
    ):  # clipping moves the mean: search for the step that gives it
        step = (low + high) / 2
        low, high = (
            (step, high)
            if np.clip(centred + step, -1, 1).mean() < mean
            else (low, step)
        )
    moved = np.clip(centred + high, -1, 1)
    return lambda rng, shape: rng.choice(moved, shape)


def lossy(ordinary: Shape, share: float) -> Shape:
    """An ordinary difference, and now and then the worst possible loss."""
    return lambda rng, shape: np.where(
        rng.random(shape) < share, -1.0, ordinary(rng, shape)
    )


def at_the_margin() -> dict[str, AtMargin]:
    """Shapes at the margin; those that cannot be moved to a mean of 0 have their signs
    drawn at random instead.
    """
    turned: dict[str, Shape] = {
        "0/1, 2 % lost": lambda rng, s: -(rng.random(s) < 0.02).astype(np.float64),
        "95 % ties, 5 % lose 0.4": lambda rng, s: -0.4 * (rng.random(s) < 0.05),
        "normal (0, 0.03), 2 % lose 1": lossy(
            lambda rng, s: rng.normal(0, 0.03, s), 0.02
        ),
        "half gain 0.02, 3 % lose 1": lambda rng, s: rng.choice(
            [0.02, -1.0, 0.0], s, p=[0.5, 0.03, 0.47]
        ),
        "normal (0.01, 0.01), 3 % lose 1": lossy(
            lambda rng, s: rng.normal(0.01 / 0.97, 0.01, s), 0.03
        ),
        "80 % gain 0.025, 10 % lose 0.4": lambda rng, s: rng.choice(
            [0.025, -0.4, 0.0], s, p=[0.8, 0.1, 0.1]
        ),
    }
    moved: dict[str, Callable[[float], Shape]] = {
        "normal, deviation 0.05": lambda mean: lambda rng, s: rng.normal(mean, 0.05, s),
        "normal, deviation 0.2": lambda mean: (
            lambda rng, s: np.clip(rng.normal(mean, 0.2, s), -1, 1)
        ),
        "exponential losses": lambda mean: (
            lambda rng, s: np.maximum(mean + 0.1 - rng.exponential(0.1, s), -1)
        ),
        **{
            name: lambda mean, values=values: redrawn(values, mean)
            for name, values in shipped().items()
        },
    }
    return {
        name: AtMargin(lost, random_signs(lost)) for name, lost in turned.items()
    } | {name: AtMargin(of(-MARGIN), of(0.0)) for name, of in moved.items()}


def random_signs(draw: Shape) -> Shape:
    """The same sizes, each as often won as lost."""
    return lambda rng, shape: np.abs(draw(rng, shape)) * rng.choice([-1.0, 1.0], shape)


def equal_means() -> dict[str, Shape]:
    """Nine shapes whose true mean is 0, most of them skewed."""
    return made_up() | {
        name: redrawn(values, 0.0) for name, values in shipped().items()
    }


def made_up() -> dict[str, Shape]:
    """Those of them that are not drawn from shipped experiments."""
    return {
        "normal": lambda rng, s: rng.normal(0, 0.1, s),
        "exponential": lambda rng, s: (rng.exponential(1, s) - 1) / 10,
        "lognormal": lambda rng, s: (rng.lognormal(0, 1, s) - math.exp(0.5)) / 10,
        "eight in ten gain 0.05, one loses 0.4": lambda rng, s: rng.choice(
            [0.05, -0.4, 0.0], s, p=[0.8, 0.1, 0.1]
        ),
        "45 % gain 0.02, 1 % lose 0.9": lambda rng, s: rng.choice(
            [0.02, -0.9, 0.0], s, p=[0.45, 0.01, 0.54]
        ),
        "0/1, 10 % won and lost": lambda rng, s: rng.choice(
            [1.0, -1.0, 0.0], s, p=[0.1, 0.1, 0.8]
        ),
    }
