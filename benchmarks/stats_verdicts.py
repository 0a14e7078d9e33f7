"""What verdicts claim although it is not so, before and after the rules that keep them; used by stats.py.

Every row is measured with the program's own tests on samples that are drawn from a shape with a known truth.
"before" is the rule that stood here until the review of November 2026.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from stats_samples import ALPHA, BATCH, changed, claims, observed
from stats_shapes import MARGIN, Shape, at_the_margin, equal_means

from harness.evaluation.gate import gate
from harness.evaluation.verdict import Gate
from harness.stats.differences import Differences, Floats, Integers, singles
from harness.stats.heterogeneity import permuted_welch
from harness.stats.paired_tests import Within, fewest_units, not_worse
from harness.stats.sign_flip import Contrast, FlipTest, sign_flip
from harness.stats.signed_rank import signed_rank

SIZES = (30, 50, 120, 150, 200, 500)


def margins(experiments: int) -> Iterator[str]:
    """How often a loss of the whole margin passes, and how often a true equality does."""
    yield "| differences, true loss 0.02 | queries | before | passes | at most 5 % | passes at equality |"
    yield "| --- | ---: | ---: | ---: | --- | ---: |"
    for name, shape in at_the_margin().items():
        for n in SIZES:
            rng = np.random.default_rng([n, len(name)])
            lost, equal = shape.lost(rng, (experiments, n)), shape.equal(rng, (experiments, n))
            after, power = passed(lost, not_worse), passed(equal, not_worse)
            good = "yes" if after <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / experiments) else "NO"
            yield f"| {name} | {n} | {passed(lost, before):.1%} | {after:.1%} | {good} | {power:.1%} |"


Rule = Callable[[Sequence[Differences], Within], list[FlipTest]]


def passed(table: Floats, rule: Rule) -> float:
    """The share of samples (rows) that are shown not to lose the margin."""
    within = Within(MARGIN, 1.0, singles(table.shape[1]))
    shown = 0
    for start in range(0, len(table), BATCH):
        rows = [observed(row) for row in table[start : start + BATCH]]
        shown += sum(test.greater <= ALPHA for test in rule(rows, within))
    return shown / len(table)


def before(rows: Sequence[Differences], within: Within) -> list[FlipTest]:
    """The rule of before: the worst query only where fewer than ten lose the margin; equal scores always pass."""
    columns = []
    for d in rows:
        few = np.count_nonzero(d.values < -within.margin - d.slack) < 10
        columns.append(np.append(d.values + within.margin, within.margin - 1.0 if few else 0.0))
    table = np.column_stack([*columns, np.zeros(len(columns[0]))])
    tests = sign_flip(table, [Contrast(place, len(rows)) for place in range(len(rows))])
    return [FlipTest(0.0, 0.0, "identical") if not d.values.any() else t for d, t in zip(rows, tests, strict=True)]


def cases(experiments: int) -> Iterator[str]:
    """Samples that need no simulation."""
    del experiments
    yield "| case | before | now |"
    yield "| --- | --- | --- |"
    same, within = np.full(100, 0.5), Within(MARGIN, 1.0, singles(100))
    told = before([observed(same - same)], within)[0].greater
    now = _word(gate(same, same, margin=MARGIN))
    yield f"| gate: 100 queries, identical rankings | passes (p = {told:.2g}) | {now} |"
    a, b = np.array([0.5] * 90 + [0.0] * 10), np.full(100, 0.5)
    shifted, now = signed_rank(a + MARGIN, b, alternative="greater").p_value, gate(a, b, margin=MARGIN)
    yield (
        f"| gate: 90 ties and 10 losses of 0.5; signed ranks of the shifted differences | passes (p = {shifted:.2g}) | "
        f"{_word(now)} |"
    )
    for margin in (0.02, 0.05, 0.1):
        yield f"| queries below which nothing passes, margin {margin} | 5 | {fewest_units(margin, 1.0, ALPHA)} |"


def _word(decided: Gate) -> str:
    return f"{'passes' if decided.passed else 'does not pass'} (p = {decided.p_value:.2g})"


def better(experiments: int) -> Iterator[str]:
    """How often a pair with equal means is called better or worse."""
    yield "| differences, mean 0 | queries | before: signed rank and sign of the mean | now: the mean must agree |"
    yield "| --- | ---: | ---: | ---: |"
    for name, draw in equal_means().items():
        for n in (10, 50, 150):
            rng = np.random.default_rng([n, len(name), 1])
            both = [claims(draw(rng, (BATCH, n)), singles(n)) for _ in range(-(-experiments // BATCH))]
            alone, after = (np.mean([part[i] for part in both]) for i in (0, 1))
            yield f"| {name} | {n} | {alone:.1%} | {after:.1%} |"


SLICES = {
    "equal scatter": (0.1, 0.1, 0.1),
    "the smallest slice scatters three times as much": (0.3, 0.1, 0.1),
    "the largest slice scatters three times as much": (0.1, 0.1, 0.3),
}


def interaction(experiments: int) -> Iterator[str]:
    """How often a difference that is the same in every slice is said to change with the slice."""
    yield "| differences | slices of | before: range against flipped signs | now: permuted Welch |"
    yield "| --- | --- | ---: | ---: |"
    shapes: dict[str, Shape] = {
        "normal": lambda rng, s: rng.normal(0, 1, s),
        "exponential": lambda rng, s: rng.exponential(1, s) - 1,
        "0/1, 10 % won and lost": lambda rng, s: rng.choice([1.0, -1.0, 0.0], s, p=[0.1, 0.1, 0.8]),
    }
    for sizes in ((10, 128), (40, 40), (10, 30, 98)):
        labels = np.repeat(np.arange(len(sizes)), sizes)
        for kind, scales in SLICES.items():
            spread = np.repeat([*scales[: len(sizes) - 1], scales[2]], sizes)[:, None]
            for name, draw in shapes.items():
                rng = np.random.default_rng([*sizes, len(kind), len(name)])
                values = draw(rng, (len(labels), experiments)) * spread
                with changed("heterogeneity", PERMUTATIONS=1_000):
                    parts = [
                        permuted_welch(values[:, i : i + 100], labels.tolist()) for i in range(0, experiments, 100)
                    ]
                now = np.mean([test.p_value <= ALPHA for part in parts for test in part])
                then = np.mean(_ranges(rng, values, labels) <= ALPHA)
                yield f"| {name}, {kind} | {', '.join(map(str, sizes))} | {then:.1%} | {now:.1%} |"


def _ranges(rng: np.random.Generator, values: Floats, labels: Integers) -> Floats:
    """The p of the range of the slices' means against 1,000 sign flips of the values centred within each slice."""
    slices = np.eye(labels.max() + 1)[labels] / np.bincount(labels)
    centred = values - (np.eye(labels.max() + 1)[labels] @ (slices.T @ values))
    seen, reached = np.ptp(slices.T @ values, axis=0), np.zeros(values.shape[1])
    for _ in range(1_000):
        reached += np.ptp(slices.T @ (rng.choice([-1.0, 1.0], (len(labels), 1)) * centred), axis=0) >= seen
    p: Floats = (reached + 1) / 1_001
    return p
