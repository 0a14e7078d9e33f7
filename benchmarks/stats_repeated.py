"""One question asked more than once: paraphrases of a need, and a second look at more
queries; used by stats.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy import special
from stats_samples import ALPHA, BATCH, claims, covers, flip_p
from stats_shapes import Shape, equal_means

from harness.stats.differences import Floats, Integers
from harness.stats.intervals import Interval, mean, standard_deviation, student_interval
from harness.stats.looks import look_levels, settings_at_look
from harness.stats.power import queries_for_effect
from harness.stats.settings import Looks, Settings
from harness.stats.units import Units, cluster_units, single_units

FIRST, MOST = 50, 1_000
"""Queries of a first look; queries beyond which nobody follows what it recommends."""


def clustered(experiments: int) -> Iterator[str]:
    """30 needs x 5 paraphrases, and needs of unequal size, with an intraclass
    correlation of 0.5.
    """
    yield (
        "| differences, mean 0 | needs | false claims by query | by cluster | at most "
        "6 % | coverage by query | "
        "by cluster, before | with leverage | 94 % or more |"
    )
    yield "| --- | --- | ---: | ---: | --- | ---: | ---: | ---: | --- |"
    shapes = equal_means()
    equal = [(name, "30 x 5", [5] * 30, draw) for name, draw in shapes.items()]
    some = [
        (name, shapes[name])
        for name in ("normal", "exponential", "0/1, 10 % won and lost")
    ]
    unequal = [
        (name, "30, of 1 to 9", [1 + j % 9 for j in range(30)], draw)
        for name, draw in some
    ]
    unequal += [
        (name, "one of 30, and 30 of 1", [30] + [1] * 30, draw) for name, draw in some
    ]
    unequal += [
        (name, "one of 100, and 50 of 1", [100] + [1] * 50, draw) for name, draw in some
    ]
    for name, needs, sizes, draw in [*equal, *unequal]:
        units = cluster_units(
            [str(j) for j, size in enumerate(sizes) for _ in range(size)]
        )
        n, rounds = len(units.members), -(-experiments // BATCH)
        rng, rates = np.random.default_rng([n, len(name)]), np.zeros(5)
        for _ in range(rounds):
            table = _paraphrased(rng, draw, units.members, len(sizes))
            rates[:2] += (flip_p(table) <= ALPHA).mean(), claims(table, units).mean()
            rates[2:] += [
                np.mean([covers(interval(row, units=units_)) for row in table])
                for interval, units_ in (
                    (student_interval, None),
                    (_robust, units),
                    (student_interval, units),
                )
            ]
        query, cluster, covered, plain, levered = rates / rounds
        few, near = (
            "yes" if cluster <= 0.06 else "no",
            "yes" if levered >= 0.94 else "no",
        )
        yield (
            f"| {name} | {needs} | {query:.1%} | {cluster:.1%} | {few} | "
            f"{covered:.1%} | {plain:.1%} | {levered:.1%} | "
            f"{near} |"
        )


def _robust(values: Floats, units: Units) -> Interval:
    """The interval of before: the plain cluster-robust variance with clusters - 1
    degrees of freedom.
    """
    sums, count = units.sums(values - values.mean()), len(units)
    error = math.sqrt(count / (count - 1) * float(sums @ sums)) / len(values)
    reach = float(special.stdtrit(count - 1, 0.975)) * error
    return Interval(values.mean() - reach, values.mean() + reach, "t")


def weighted(experiments: int) -> Iterator[str]:
    """Queries with weights like traffic, lognormal: intervals and sign flips of the
    weighted mean, mean 0.
    """
    yield (
        "| differences, mean 0 | queries | coverage, plain robust | with leverage | "
        "false claims of sign flips |"
    )
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, draw in equal_means().items():
        for n in (30, 150):
            rng = np.random.default_rng([n, len(name), 9])
            table, weights = (
                draw(rng, (experiments, n)),
                rng.lognormal(0, 1, (experiments, n)),
            )
            plain = levered = 0.0
            for row, w in zip(table, weights, strict=True):
                h = w / w.sum()
                centre = float(h @ row)
                reach = float(special.stdtrit(n - 1, 0.975)) * math.sqrt(
                    float((h * (row - centre)) @ (h * (row - centre)))
                )
                plain += abs(centre) <= reach
                levered += covers(student_interval(row, units=single_units(n, w)))
            claimed = np.mean(flip_p(table * weights) <= ALPHA)
            yield (
                f"| {name} | {n} | {plain / experiments:.1%} | "
                f"{levered / experiments:.1%} | {claimed:.1%} |"
            )


def _paraphrased(
    rng: np.random.Generator, draw: Shape, members: Integers, needs: int
) -> Floats:
    """Queries that take their need's value with the chance sqrt(0.5): two of a need
    correlate by 0.5.
    """
    shape = (BATCH, len(members))
    return np.where(
        rng.random(shape) < math.sqrt(0.5),
        draw(rng, (BATCH, needs))[:, members],
        draw(rng, shape),
    )


PLANNED = (
    ("60 and 150, both planned", (60, 150), (60, 150)),
    ("60, 100 and 150; 100 is not planned", (60, 150), (60, 100, 150)),
    ("60, 150 and 400; 400 is beyond the plan", (60, 150), (60, 150, 400)),
)


def looks(experiments: int) -> Iterator[str]:
    """Further tests after more queries, without any difference: how often any look
    claims one.
    """
    yield (
        "| differences, mean 0 | looks at | each at 5 % | before: as the next planned "
        "| now: at what is reached |"
    )
    yield "| --- | --- | ---: | ---: | ---: |"
    shapes = equal_means() | {
        "normal in steps, 40 % ties": lambda rng, s: (
            np.round(rng.normal(0, 2, s)) * (rng.random(s) > 0.4) / 10
        )
    }
    for name, draw in shapes.items():
        for what, planned, taken in PLANNED:
            rng = np.random.default_rng(taken)
            p = np.concatenate(
                [
                    np.column_stack([flip_p(table[:, :n]) for n in taken])
                    for table in (
                        draw(rng, (BATCH, taken[-1]))
                        for _ in range(-(-experiments // BATCH))
                    )
                ]
            )
            planned_levels = look_levels(ALPHA, planned)
            next_ones = [
                planned_levels[min(sum(n > one for one in planned), len(planned) - 1)]
                for n in taken
            ]
            reached = [
                0.0 if at.alpha_spent else at.alpha
                for place, n in enumerate(taken)
                for at in [
                    settings_at_look(
                        Settings(looks=Looks(planned), earlier=taken[:place]), n
                    )
                ]
            ]
            rates = [
                (p <= np.array(level)).any(axis=1).mean()
                for level in (ALPHA, next_ones, reached)
            ]
            yield (
                f"| {name} | {what} | "
                + " | ".join(f"{rate:.1%}" for rate in rates)
                + " |"
            )
        naive, spent = _recommended(experiments, draw)
        yield (
            f"| {name} | {FIRST} and the number recommended then | {naive:.1%} | – | "
            f"{spent:.1%} |"
        )


def _recommended(experiments: int, draw: Shape) -> tuple[float, float]:
    """Add the queries that the observed difference of the first look would need, and
    test again.
    """
    rng = np.random.default_rng(FIRST)
    naive = spent = 0
    rounds = -(-experiments // BATCH)
    for _ in range(rounds):
        table = draw(rng, (BATCH, MOST))
        first, numbers = flip_p(table[:, :FIRST]), _numbers(table[:, :FIRST])
        for number in np.unique(numbers):
            these = numbers == number
            if number == 0:
                naive += np.sum(first[these] <= ALPHA)
                spent += np.sum(first[these] <= ALPHA)
                continue
            second = flip_p(table[these, :number])
            at_first, at_second = look_levels(ALPHA, (FIRST, int(number)))
            naive += np.sum(np.minimum(first[these], second) <= ALPHA)
            spent += np.sum((first[these] <= at_first) | (second <= at_second))
    return naive / (rounds * BATCH), spent / (rounds * BATCH)


def _numbers(table: Floats) -> Integers:
    """How many queries the observed difference of each sample (row) would need in all;
    0 where nobody would follow.
    """
    numbers = []
    for row in table:
        most = (
            queries_for_effect(abs(mean(row)) / standard_deviation(row), ALPHA)
            if mean(row)
            else None
        )
        numbers.append(most if most is not None and len(row) < most <= MOST else 0)
    return np.array(numbers)
