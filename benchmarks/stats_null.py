"""Each test by itself where nothing differs: swapped pairs, permuted families, equal
means; used by stats.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
import stats_samples
from stats_samples import ALPHA

from harness.stats.corrections import adjust_p_values
from harness.stats.differences import Floats, paired_differences
from harness.stats.paired_tests import paired_t_test
from harness.stats.sign_flip import Contrast, sign_flip
from harness.stats.signed_rank import signed_rank

SIZES = (13, 30, 100)


def swapped(experiments: int) -> Iterator[str]:
    yield "| queries | scores | rejected | attainable | 3 standard errors | within |"
    yield "| ---: | --- | ---: | ---: | ---: | --- |"
    for n in SIZES:
        for steps, kind in ((5, "P@5"), (10**6, "continuous")):
            rate, level = stats_samples.swapped(n, steps, experiments)
            yield calibrated(f"| {n} | {kind}", rate, level, experiments)


def calibrated(head: str, rate: float, level: float, experiments: int) -> str:
    error = 3 * math.sqrt(level * (1 - level) / experiments)
    within = "yes" if abs(rate - level) <= error and rate <= ALPHA + error else "NO"
    return f"{head} | {rate:.4f} | {level:.4f} | {error:.4f} | {within} |"


def permuted(experiments: int) -> Iterator[str]:
    yield (
        "| retrievers | queries | correction | any false claim | 5 % and 3 standard "
        "errors | within |"
    )
    yield "| ---: | ---: | --- | ---: | ---: | --- |"
    for k in (3, 5):
        for n in (13, 30):
            rng = np.random.default_rng([k, n])
            claimed = dict.fromkeys(("none", "holm", "bonferroni", "bh"), 0)
            for _ in range(experiments):
                table = (
                    rng.binomial(
                        10, np.clip(rng.random((n, 1)) * 0.6 + np.arange(k) / 20, 0, 1)
                    )
                    / 10
                )
                table = rng.permuted(table, axis=1)
                p = [
                    signed_rank(paired_differences(table[:, i], table[:, j])).p_value
                    for i, j in combinations(range(k), 2)
                ]
                claimed["none"] += min(p) <= ALPHA
                for correction in ("holm", "bonferroni", "bh"):
                    claimed[correction] += min(adjust_p_values(p, correction)) <= ALPHA
            for correction, count in claimed.items():
                bound = ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / experiments)
                within = (
                    "no correction"
                    if correction == "none"
                    else "yes"
                    if count / experiments <= bound
                    else "NO"
                )
                yield (
                    f"| {k} | {n} | {correction} | {count / experiments:.4f} | "
                    f"{bound:.4f} | {within} |"
                )


POPULATIONS: dict[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = {
    "normal": lambda rng, shape: rng.normal(0, 0.1, shape),
    "exponential": lambda rng, shape: (rng.exponential(1, shape) - 1) / 10,
    "lognormal": lambda rng, shape: (rng.lognormal(0, 1, shape) - math.exp(0.5)) / 10,
    "rare losses": lambda rng, shape: rng.choice(
        [0.05, -0.4, 0.0], shape, p=[0.8, 0.1, 0.1]
    ),
    "rarer losses": lambda rng, shape: rng.choice(
        [0.02, -0.9, 0.0], shape, p=[0.45, 0.01, 0.54]
    ),
}


def skewed(experiments: int) -> Iterator[str]:
    yield "| differences, mean 0 | queries | Wilcoxon | randomization | t |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, draw in POPULATIONS.items():
        for n in SIZES:
            rng = np.random.default_rng([n, len(name)])
            table = draw(rng, (n, experiments))
            zero = np.zeros(n)
            rows = [paired_differences(column, zero) for column in table.T]
            columns = np.column_stack([table, zero])
            flips = sign_flip(
                columns, [Contrast(j, experiments) for j in range(experiments)]
            )
            rates = [
                np.mean(
                    [
                        signed_rank(paired_differences(c, zero)).p_value <= ALPHA
                        for c in table.T
                    ]
                ),
                np.mean([flip.two_sided <= ALPHA for flip in flips]),
                np.mean([paired_t_test(d).p_value <= ALPHA for d in rows]),
            ]
            yield (
                f"| {name} | {n} | "
                + " | ".join(f"{rate:.1%}" for rate in rates)
                + " |"
            )
