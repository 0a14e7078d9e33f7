"""Speed and calibration of the tests; prints benchmarks/stats.md.

    python benchmarks/stats.py > benchmarks/stats.md          # about forty minutes
    python benchmarks/stats.py --experiments 500              # a quick look

Named stats.py, not statistics.py: a script's folder comes first on the path, and that name is the standard library's.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
import stats_claims

from harness.stats import Contrast, Settings, adjust, compare_all, sign_flip, signed_rank, tukey_hsd
from harness.stats.differences import Floats, differences
from harness.stats.intervals import bca, resample_counts
from harness.stats.paired import paired_t, sign_test
from harness.stats.signed_rank import doubled_ranks, subset_sums

ALPHA = 0.05
SIZES = (13, 30, 100)


# Speed


def speed() -> Iterator[str]:
    rng = np.random.default_rng(0)
    yield "| what | seconds | CPU seconds | target |"
    yield "| --- | ---: | ---: | ---: |"
    for n, target in ((1000, 0.25), (2000, 2.0)):
        a, b = np.round(rng.random(n), 4), np.round(rng.random(n), 4)
        yield f"| one exact test, n = {n:,}, half ranks | {timed(lambda a=a, b=b: signed_rank(a, b))} | {target} |"
    n, names = 1000, [f"r{j}" for j in range(10)]
    base = rng.random(n)

    def continuous() -> dict[str, Floats]:
        return {name: np.round(np.clip(base * 0.7 + rng.random(n) * 0.3, 0, 1), 4) for name in names}

    def precision(k: int) -> dict[str, Floats]:
        return {name: rng.binomial(k, np.clip(base * 0.6 + 0.2, 0, 1)) / k for name in names}

    usual = {
        "nDCG@10": continuous(),
        "AP@10": continuous(),
        "RR@10": {name: 1 / rng.integers(1, 11, n) for name in names},
        **{measure: precision(k) for measure, k in (("P@5", 5), ("R@10", 7), ("F1@10", 9), ("Success@10", 1))},
    }
    worst = {f"measure {j}": continuous() for j in range(7)}
    for name, scores in (("two continuous", usual), ("seven continuous", worst)):
        seconds = timed(
            lambda scores=scores: compare_all(scores, primary=next(iter(scores)), settings=Settings(margin=0.02))
        )
        yield f"| 10 retrievers x 7 measures ({name}) x 1,000 queries, all 315 pairs | {seconds} | 30 |"


def timed(work: Callable[[], object]) -> str:
    """Wall and CPU time; on a busy machine the second is the one that can be repeated."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return f"{time.perf_counter() - wall:.2f} | {time.process_time() - cpu:.2f}"


# Calibration: the null hypothesis is made true by swapping


def swapped(experiments: int) -> Iterator[str]:
    yield "| queries | scores | zeros | rejected | attainable | 3 standard errors | within |"
    yield "| ---: | --- | --- | ---: | ---: | ---: | --- |"
    for n in SIZES:
        for steps, kind in ((5, "P@5"), (10**6, "continuous")):
            for zeros in ("wilcox", "pratt"):
                rng = np.random.default_rng([n, steps])
                rejected, levels = 0, 0.0
                for _ in range(experiments):
                    better = np.round(np.clip(rng.random(n) + 0.2, 0, 1) * steps) / steps
                    worse = np.round(rng.random(n) * steps) / steps
                    swap = rng.random(n) < 0.5
                    a, b = np.where(swap, worse, better), np.where(swap, better, worse)
                    rejected += signed_rank(a, b, zeros=zeros).p_value <= ALPHA
                    levels += attainable(a, b, zeros)
                yield calibrated(f"| {n} | {kind} | {zeros}", rejected / experiments, levels / experiments, experiments)


def attainable(a: Floats, b: Floats, zeros: str) -> float:
    """The largest level of at most 5 % that the exact test can have with these magnitudes."""
    ranks = np.sort(doubled_ranks(differences(a, b).groups, zeros))
    tail = np.ldexp(np.cumsum(subset_sums(ranks, int(ranks.sum()) // 2)), 1 - len(ranks))
    return float(max(tail[tail <= ALPHA * (1 + 1e-12)], default=0.0))


def calibrated(head: str, rate: float, level: float, experiments: int) -> str:
    error = 3 * math.sqrt(level * (1 - level) / experiments)
    within = "yes" if abs(rate - level) <= error and rate <= ALPHA + error else "NO"
    return f"{head} | {rate:.4f} | {level:.4f} | {error:.4f} | {within} |"


def permuted(experiments: int) -> Iterator[str]:
    yield "| retrievers | queries | correction | any false claim | 5 % and 3 standard errors | within |"
    yield "| ---: | ---: | --- | ---: | ---: | --- |"
    for k in (3, 5):
        for n in (13, 30):
            rng = np.random.default_rng([k, n])
            found = dict.fromkeys(("none", "holm", "hommel", "bonferroni", "bh", "tukey"), 0)
            few = max(1, experiments // 20)
            for number in range(experiments):
                table = rng.binomial(10, np.clip(rng.random((n, 1)) * 0.6 + np.arange(k) / 20, 0, 1)) / 10
                table = rng.permuted(table, axis=1)
                p = [signed_rank(table[:, i], table[:, j]).p_value for i, j in combinations(range(k), 2)]
                found["none"] += min(p) <= ALPHA
                for correction in ("holm", "hommel", "bonferroni", "bh"):
                    found[correction] += min(adjust(p, correction)) <= ALPHA
                if number < few:
                    scores = {str(j): table[:, j] for j in range(k)}
                    found["tukey"] += min(tukey_hsd(scores, number).values()) <= ALPHA
            for correction, count in found.items():
                tried = few if correction == "tukey" else experiments
                bound = ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / tried)
                within = "no correction" if correction == "none" else "yes" if count / tried <= bound else "NO"
                yield f"| {k} | {n} | {correction} | {count / tried:.4f} | {bound:.4f} | {within} |"


# Equal means, skewed differences: what the tests say that are not about means


POPULATIONS: dict[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = {
    "normal": lambda rng, shape: rng.normal(0, 0.1, shape),
    "exponential": lambda rng, shape: (rng.exponential(1, shape) - 1) / 10,
    "lognormal": lambda rng, shape: (rng.lognormal(0, 1, shape) - math.exp(0.5)) / 10,
    "rare losses": lambda rng, shape: rng.choice([0.05, -0.4, 0.0], shape, p=[0.8, 0.1, 0.1]),
    "rarer losses": lambda rng, shape: rng.choice([0.02, -0.9, 0.0], shape, p=[0.45, 0.01, 0.54]),
}


def skewed(experiments: int) -> Iterator[str]:
    few = max(1, experiments // 10)
    yield "| differences, mean 0 | queries | Wilcoxon | Pratt | sign | randomization | t | BCa interval |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for name, draw in POPULATIONS.items():
        for n in SIZES:
            rng = np.random.default_rng([n, len(name)])
            table = draw(rng, (n, experiments))
            zero = np.zeros(n)
            rows = [differences(column, zero) for column in table.T]
            columns = np.column_stack([table, zero])
            flips = sign_flip(columns, [Contrast(j, experiments) for j in range(experiments)])
            counts = resample_counts(n, 0)
            rates = [
                *(
                    np.mean([signed_rank(c, zero, zeros=z).p_value <= ALPHA for c in table.T])
                    for z in ("wilcox", "pratt")
                ),
                np.mean([sign_test(d).p_value <= ALPHA for d in rows]),
                np.mean([flip.two_sided <= ALPHA for flip in flips]),
                np.mean([paired_t(d).p_value <= ALPHA for d in rows]),
                np.mean([_excludes_zero(d.values, counts) for d in rows[:few]]),
            ]
            yield f"| {name} | {n} | " + " | ".join(f"{rate:.1%}" for rate in rates) + " |"


def _excludes_zero(values: Floats, counts: Floats) -> bool:
    low, high, method = bca(values, counts)
    return method == "bca" and not low <= 0 <= high


TEXT = """# Speed and calibration of the tests

Printed by `python benchmarks/stats.py` on 2 cores, no GPU; {experiments:,} seeded experiments a row.

## Speed

Randomization (100,000 shared draws), intervals, equivalence and Holm included. On a busy
machine the CPU seconds, of all threads together, are the ones that can be repeated.

{speed}

## "As good as", and the gate

A true loss of exactly the margin, 0.02: at most 5 % may pass at the level of 5 %, and 8 % is the bound that is tested.
Before: the sign-flip test of the mean of d + 0.02. Now: where fewer than ten queries lose more than the margin, one
query with the worst possible loss is added. "Yes" allows three standard errors above 8 % (exponential losses at 50
queries lie just there). The last column is the power: the same sizes of differences with signs drawn at random, so
that the means are truly equal. Sign flips with 2,000 draws.

{margins}

## "Better" and "worse"

Equal true means: how often a pair is called better or worse. Before: the signed-rank test, and a rank sum and a mean
that point the same way. Now the sign-flip test of the mean has to reject too (2,000 draws). In the fifth shape one
query in a hundred loses 0.9: where the sample holds none of those, no test can know of them.

{better}

## Clusters

Queries of one need resemble each other: intraclass correlation 0.5, equal true means. Verdicts and intervals by query
(before) and by cluster. With unequal needs the interval by clusters is slightly short, as is known of this variance.

{clustered}

## A second look

The same question tested again after more queries were added, equal true means: how often any look claims a
difference. P-values by Edgeworth's expansion.

{looks}

## Intervals near the end of a range

Thirteen scores between 0 and 1. Before: Student's t, wherever it ends. Now: where it leaves the range, the t interval
of the logit by the delta method. Coverage of nominal 95 %.

{intervals}

## The smallest difference that is found

By sign tilt alone (the one figure that stood there before), and by the other two models; then the power that the first
figure has if the truth is of the other models. Nominal: 0.80. One comparison at 5 %.

{detectable}

## Queries needed

Fifty queries, normal differences with a standard deviation of 0.25, {few:,} experiments: of those where nothing was
shown, how often the observed difference gives a finite number of queries, and the median of it; and the plan for a
declared difference of 0.05 (model "shift"), which does not depend on what was observed.

{forecasts}

## Optimism

Retrievers that are equal in truth: by how much the best one's mean lies above its true mean, and what the bootstrap of
the maximum finds of it. The report says "at least". {flattered:,} experiments.

{flattery}

## The null hypothesis made true

The scores of each pair swapped with probability 1/2 per query: the exact signed-rank test must reject as often as its
attainable level says (the largest level of at most 5 % that the ties and zeros of the sample allow).

{swapped}

All retrievers permuted within each query: how often a family makes any claim at all, which is false then. (Tukey on a
twentieth of the experiments.)

{permuted}

## Equal means, skewed differences, test by test

Published, not gated: how often each test alone calls a difference at 5 % although the two means are equal in truth.
The signed-rank and the sign test ask about symmetry and the median, and are right to reject; read as statements about
means they are wrong this often. Independent differences; randomization enumerated at 13 queries, else with 10,000
draws; BCa with 10,000 resamples on a tenth of the experiments. In the last rows, one query in a hundred loses 0.9:
where the sample holds none of those, no test can know of them.

{skewed}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiments", type=int, default=20_000)
    experiments = parser.parse_args().experiments
    tables = {"speed": "\n".join(speed())}
    data = stats_claims.shipped()
    with stats_claims.changed("sign_flip", DRAWS=stats_claims.DRAWS):
        for part in (stats_claims.margins, stats_claims.better):
            tables[part.__name__] = "\n".join(part(experiments, data))
        tables["clustered"] = "\n".join(stats_claims.clustered(experiments))
        tables["forecasts"] = "\n".join(stats_claims.forecasts(experiments))
    for whole in (stats_claims.looks, stats_claims.intervals, stats_claims.flattery):
        tables[whole.__name__] = "\n".join(whole(experiments))
    tables["detectable"] = "\n".join(stats_claims.detectable(data))
    with stats_claims.changed("sign_flip", DRAWS=10_000):
        tables |= {old.__name__: "\n".join(old(experiments)) for old in (swapped, permuted, skewed)}
    counts = {"few": stats_claims.forecast_count(experiments), "flattered": stats_claims.flattery_count(experiments)}
    print(TEXT.format(experiments=experiments, **counts, **tables), end="")


if __name__ == "__main__":
    main()
