"""How often each sentence of a verdict is false, by shape of the differences and number
of queries; used by stats.py.

p-values by Edgeworth's expansion of the flips (`flip_p`, which tests/ compare with
enumeration), of the differences for the test of the mean and of their signed ranks for
the exact Wilcoxon test; the choice of a sweep by the program's own max-T test with
2,000 flips.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
from scipy import stats
from stats_samples import ALPHA, BATCH, changed, flip_p, rank_p
from stats_shapes import Shape, made_up, shipped

from harness.evaluation.verdict import Verdict, VerdictInput, decide_verdict
from harness.stats.corrections import adjust_p_values
from harness.stats.differences import Floats, is_fragile
from harness.stats.max_t import max_t_test
from harness.stats.units import single_units

Bools = npt.NDArray[np.bool_]
SIZES = (13, 30, 60, 150, 500)
CHALLENGERS = (1, 3, 9)
FEW = (13, 30, 50)
"""Queries of the samples that the warning is for."""
CHOICES = ((50, 3), (50, 12), (50, 48), (150, 3), (150, 12), (150, 48))
"""Queries and configurations of a sweep."""


def shapes() -> Mapping[str, Shape]:
    """Shapes with a true mean of 0; the shipped ones drawn with weights exp(t d), so
    that their mean is 0.
    """
    return made_up() | {
        f"{name}, tilt {tilt_of(d):+.1f}": tilted(d, tilt_of(d))
        for name, d in shipped().items()
    }


def tilt_of(values: Floats) -> float:
    """The t for which weights exp(t d) give the mean 0."""
    low, high = -100.0, 100.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        weights = np.exp(middle * values - np.max(middle * values))
        low, high = (middle, high) if weights @ values < 0 else (low, middle)
    return high


def tilted(values: Floats, tilt: float) -> Shape:
    weights = np.exp(tilt * values - np.max(tilt * values))
    return lambda rng, shape: rng.choice(values, shape, p=weights / weights.sum())


def pairs(experiments: int) -> Iterator[str]:
    """One pair: a difference is claimed although the true means are equal."""
    heads = " | ".join(f"n = {n}" for n in SIZES)
    yield f"| differences, mean 0 | decides | {heads} |"
    yield f"| --- | --- | {' | '.join('---:' for _ in SIZES)} |"
    for name, draw in shapes().items():
        rates: dict[str, list[float]] = {"mean": [], "wilcoxon": []}
        for n in SIZES:
            rng, both = np.random.default_rng([n, len(name), 5]), []
            for _ in range(-(-experiments // BATCH)):
                table = draw(rng, (BATCH, n))
                both.append(
                    [(p <= ALPHA).mean() for p in (flip_p(table), rank_p(table))]
                )
            for of, rate in zip(rates.values(), np.mean(both, axis=0), strict=True):
                of.append(rate)
        for test, of in rates.items():
            yield f"| {name} | {test} | {' | '.join(f'{rate:.1%}' for rate in of)} |"


def families(experiments: int) -> Iterator[str]:
    """Any false claim among several equal challengers, or slices of so many queries
    each.
    """
    yield (
        "| differences, mean 0 | challengers | "
        f"{' | '.join(f'n = {n}' for n in SIZES)} |"
    )
    yield f"| --- | ---: | {' | '.join('---:' for _ in SIZES)} |"
    for name, draw in shapes().items():
        for many in CHALLENGERS:
            rates = []
            for n in SIZES:
                rng, found = np.random.default_rng([n, many, len(name)]), []
                for _ in range(-(-experiments // BATCH)):
                    p = flip_p(draw(rng, (BATCH * many, n))).reshape(BATCH, many)
                    found.append(
                        np.mean(
                            [min(adjust_p_values(row.tolist())) <= ALPHA for row in p]
                        )
                    )
                rates.append(np.mean(found))
            yield f"| {name} | {many} | {' | '.join(f'{rate:.1%}' for rate in rates)} |"


def choices(experiments: int) -> Iterator[str]:
    """A sweep claims that its best configuration beats the default, of which all are
    equal.
    """
    yield (
        f"| differences, mean 0 | {' | '.join(f'{m} at n = {n}' for n, m in CHOICES)} |"
    )
    yield f"| --- | {' | '.join('---:' for _ in CHOICES)} |"
    rounds = min(experiments, 500)
    losses = {
        f"{name} losses": lambda rng, s, draw=draw: -draw(rng, s)
        for name, draw in [*made_up().items()][1:3]
    }
    for name, draw in {**made_up(), **losses}.items():
        rates = []
        for n, m in CHOICES:
            rng, claimed = np.random.default_rng([n, m, len(name)]), 0
            with changed("draws", SIGN_DRAWS=2_000):
                for seed in range(rounds):
                    found = max_t_test(draw(rng, (n, m)), single_units(n), seed=seed)
                    claimed += found.gain > 0 and found.p_value <= ALPHA / 2
            rates.append(claimed / rounds)
        yield f"| {name} | {' | '.join(f'{rate:.1%}' for rate in rates)} |"


def warnings(experiments: int) -> Iterator[str]:
    """Of which claims it is said that three queries with the largest loss would reverse
    them.
    """
    yield f"| claims | {' | '.join(f'n = {n}' for n in FEW)} |"
    yield f"| --- | {' | '.join('---:' for _ in FEW)} |"
    false = [(f"false: {name}", draw) for name, draw in made_up().items()]
    true = [
        (f"true: {name}", tilted(values, 0.0)) for name, values in shipped().items()
    ]
    for name, draw in [*false, *true]:
        rates = []
        for n in FEW:
            table = draw(np.random.default_rng([n, len(name), 3]), (experiments, n))
            claimed = table[flip_p(table) <= ALPHA]
            rates.append(
                f"{np.mean([is_fragile(float(row.sum()), 1.0) for row in claimed]):.0%}"
                if len(claimed) > 20
                else "–"
            )
        yield f"| {name} | {' | '.join(rates)} |"


def shown(table: Floats, p: Floats, tested: Floats) -> Bools:
    """Which samples (rows) the product's own verdict calls better, by a test's p and
    the sign of what it tests.
    """
    floors = np.ldexp(1.0, 1 - np.count_nonzero(table, axis=1))
    evidence = map(
        VerdictInput,
        p.tolist(),
        floors.tolist(),
        np.sign(tested).astype(int).tolist(),
        [None] * len(table),
    )
    return np.array(
        [decide_verdict(one, ALPHA).verdict is Verdict.BETTER for one in evidence]
    )


def power(experiments: int) -> Iterator[str]:
    """Power at n = 150 where sign flips have about 80 %: of each verdict, its test
    alone, and the earlier rule.
    """
    yield (
        "| differences, n = 150 | mean decides | flips alone | Wilcoxon decides | "
        "signed ranks alone | before: both |"
    )
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for name, draw in shapes().items():
        rng = np.random.default_rng([150, len(name), 8])
        table = draw(rng, (experiments, 150))
        table += 2.8 * float(table.std()) / np.sqrt(150)
        ranks = stats.rankdata(np.abs(table), axis=1) - (table == 0).sum(
            axis=1, keepdims=True
        )
        of_mean, of_ranks = table.sum(axis=1), (np.sign(table) * ranks).sum(axis=1)
        found = []
        for p, tested in ((flip_p(table), of_mean), (rank_p(table), of_ranks)):
            found += [shown(table, p, tested), (p <= ALPHA) & (tested > 0)]
        shares = [f"{one.mean():.1%}" for one in (*found, found[0] & found[2])]
        yield f"| {name} | {' | '.join(shares)} |"
