"""One question asked more than once: paraphrases of a need, and a second look at more queries; used by stats.py."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from stats_samples import ALPHA, BATCH, claims, covers, larger_p
from stats_shapes import Shape, equal_means

from harness.stats.differences import Floats, Integers, singles, units_of
from harness.stats.intervals import deviation, mean, student
from harness.stats.looks import levels
from harness.stats.power import queries_for

FIRST, MOST = 50, 1_000
"""Queries of a first look; queries beyond which nobody follows what it recommends."""


def clustered(experiments: int) -> Iterator[str]:
    """30 needs x 5 paraphrases, and needs of unequal size, with an intraclass correlation of 0.5."""
    yield (
        "| differences, mean 0 | needs | false claims by query | by cluster | at most 6 % | coverage by query | "
        "by cluster | 94 to 97 % |"
    )
    yield "| --- | --- | ---: | ---: | --- | ---: | ---: | --- |"
    equal = {name: ("30 x 5", [5] * 30, draw) for name, draw in equal_means().items()}
    unequal = {"normal": ("30, of 1 to 9", [1 + j % 9 for j in range(30)], equal_means()["normal"])}
    for name, (needs, sizes, draw) in [*equal.items(), *unequal.items()]:
        units = units_of([str(j) for j, size in enumerate(sizes) for _ in range(size)])
        n, rounds = len(units.members), -(-experiments // BATCH)
        rng, rates = np.random.default_rng([n, len(name)]), np.zeros(4)
        for _ in range(rounds):
            table = _paraphrased(rng, draw, units.members, len(sizes))
            rates[:2] += (larger_p(table) <= ALPHA).mean(), claims(table, units)[1].mean()
            rates[2:] += [np.mean([covers(student(row, units=u)) for row in table]) for u in (singles(n), units)]
        query, cluster, covered, by_cluster = rates / rounds
        few, near = "yes" if cluster <= 0.06 else "no", "yes" if 0.94 <= by_cluster <= 0.97 else "no"
        yield f"| {name} | {needs} | {query:.1%} | {cluster:.1%} | {few} | {covered:.1%} | {by_cluster:.1%} | {near} |"


def _paraphrased(rng: np.random.Generator, draw: Shape, members: Integers, needs: int) -> Floats:
    """Queries that take their need's value with the chance sqrt(0.5): two of a need correlate by 0.5."""
    shape = (BATCH, len(members))
    return np.where(rng.random(shape) < math.sqrt(0.5), draw(rng, (BATCH, needs))[:, members], draw(rng, shape))


def looks(experiments: int) -> Iterator[str]:
    """Further tests after more queries, without any difference: how often any look claims one."""
    yield "| differences, mean 0 | looks at | each at 5 % | with alpha spent |"
    yield "| --- | --- | ---: | ---: |"
    shapes = equal_means() | {
        "normal in steps, 40 % ties": lambda rng, s: np.round(rng.normal(0, 2, s)) * (rng.random(s) > 0.4) / 10
    }
    for name, draw in shapes.items():
        for planned in ((60, 150), (50, 100, 200)):
            rng = np.random.default_rng(planned)
            p = np.concatenate([
                np.column_stack([larger_p(table[:, :n]) for n in planned])
                for table in (draw(rng, (BATCH, planned[-1])) for _ in range(-(-experiments // BATCH)))
            ])  # fmt: skip
            naive, spent = (p <= ALPHA).any(axis=1).mean(), (p <= np.array(levels(ALPHA, planned))).any(axis=1).mean()
            yield f"| {name} | {' and '.join(map(str, planned))} | {naive:.1%} | {spent:.1%} |"
        naive, spent = _recommended(experiments, draw)
        yield f"| {name} | {FIRST} and the number recommended then | {naive:.1%} | {spent:.1%} |"


def _recommended(experiments: int, draw: Shape) -> tuple[float, float]:
    """Add the queries that the observed difference of the first look would need, and test again."""
    rng = np.random.default_rng(FIRST)
    naive = spent = 0
    rounds = -(-experiments // BATCH)
    for _ in range(rounds):
        table = draw(rng, (BATCH, MOST))
        first, numbers = larger_p(table[:, :FIRST]), _numbers(table[:, :FIRST])
        for number in np.unique(numbers):
            these = numbers == number
            if number == 0:
                naive += np.sum(first[these] <= ALPHA)
                spent += np.sum(first[these] <= ALPHA)
                continue
            second = larger_p(table[these, :number])
            at_first, at_second = levels(ALPHA, (FIRST, int(number)))
            naive += np.sum(np.minimum(first[these], second) <= ALPHA)
            spent += np.sum((first[these] <= at_first) | (second <= at_second))
    return naive / (rounds * BATCH), spent / (rounds * BATCH)


def _numbers(table: Floats) -> Integers:
    """How many queries the observed difference of each sample (row) would need in all; 0 where nobody would follow."""
    numbers = []
    for row in table:
        most = queries_for(abs(mean(row)) / deviation(row), ALPHA) if mean(row) else None
        numbers.append(most if most is not None and len(row) < most <= MOST else 0)
    return np.array(numbers)
