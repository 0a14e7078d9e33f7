"""What verdicts claim although it is not so, before and after the rules that keep them; used by stats.py.

Every row is measured with the program's own tests on samples that are drawn from a shape with a known truth.
"before" is the rule that stood here until the review of November 2026.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy import stats
from stats_samples import ALPHA, BATCH, changed, claims, observed
from stats_shapes import MARGIN, at_the_margin, equal_means

from harness.evaluation.compare import compare
from harness.evaluation.gate import gate
from harness.evaluation.scores import Scores
from harness.evaluation.verdict import Gate
from harness.evaluation.wording import verdict_cell
from harness.stats.corrections import adjust
from harness.stats.differences import Floats, singles
from harness.stats.equivalence import Within, not_worse
from harness.stats.settings import Settings
from harness.stats.signed_rank import signed_rank

SIZES = (13, 30, 50, 80, 150, 500)


def margins(experiments: int) -> Iterator[str]:
    """How often a loss of the whole margin passes, and how often a true equality does."""
    yield "| differences, true loss 0.02 | queries | before | passes | at most 8 % | passes at equality |"
    yield "| --- | ---: | ---: | ---: | --- | ---: |"
    for name, shape in at_the_margin().items():
        for n in SIZES:
            rng = np.random.default_rng([n, len(name)])
            lost, equal = shape.lost(rng, (experiments, n)), shape.equal(rng, (experiments, n))
            with changed("equivalence", LOSSES=0):
                before = passed(lost)
            after, power = passed(lost), passed(equal)
            good = "yes" if after <= 0.08 + 3 * math.sqrt(0.08 * 0.92 / experiments) else "NO"
            yield f"| {name} | {n} | {before:.1%} | {after:.1%} | {good} | {power:.1%} |"
    known = [stats.nct.sf(stats.t.isf(ALPHA, n - 1), n - 1, 0.4 * math.sqrt(n)) for n in SIZES]
    yield ""
    yield (
        "For comparison, the power of Student's one-sided t-test at equality with a deviation of 0.05, from the "
        f"noncentral t: {', '.join(f'{power:.1%}' for power in known)}."
    )


def passed(table: Floats) -> float:
    """The share of samples (rows) that are shown not to lose the margin."""
    within = Within(MARGIN, 1.0, singles(table.shape[1]))
    shown = 0
    for start in range(0, len(table), BATCH):
        rows = [observed(row) for row in table[start : start + BATCH]]
        shown += sum(test.greater <= ALPHA for test in not_worse(rows, within))
    return shown / len(table)


def cases(experiments: int) -> Iterator[str]:
    """Samples that need no simulation."""
    del experiments
    yield "| case | before | now |"
    yield "| --- | --- | --- |"
    settings, zeros, same = Settings(margin=MARGIN), np.zeros(13), np.full(5, 0.5)
    with changed("equivalence", LOSSES=0):
        before = gate(zeros, zeros, margin=MARGIN).p_value
    table = Scores(ids=tuple("abcdefghijklm"), values={"m": {"A": zeros, "B": zeros}})
    (row,) = compare(table, settings=settings)
    yield f"| 13 queries, every score 0, margin 0.02 | equivalent (p = {before:.2g}) | {verdict_cell(row.finding)} |"
    with changed("equivalence", LOSSES=0):
        before = gate(same, same, margin=1e-6).p_value
    now = gate(same, same, margin=1e-6)
    yield f"| gate: five queries, equal scores, margin 0.000001 | passes (p = {before:.2g}) | {_word(now)} |"
    a, b = np.array([0.5] * 90 + [0.0] * 10), np.full(100, 0.5)
    shifted, now = signed_rank(a + MARGIN, b, alternative="greater").p_value, gate(a, b, margin=MARGIN)
    yield (
        f"| gate: 90 ties and 10 losses of 0.5; signed ranks of the shifted differences | passes (p = {shifted:.2g}) | "
        f"{_word(now)} |"
    )
    floor, others = math.ldexp(1.0, 1 - 6), [0.001, 0.04]
    yield (
        f"| smallest adjusted p under Holm of a pair whose floor is {floor}, beside {others[0]} and {others[1]} | "
        f"{3 * floor:.3g} (three times the floor) | {adjust([floor, *others], 'holm')[0]:.3g} |"
    )


def _word(decided: Gate) -> str:
    return f"{'passes' if decided.passed else 'does not pass'} (p = {decided.p_value:.2g})"


def better(experiments: int) -> Iterator[str]:
    """How often a pair with equal means is called better or worse."""
    yield "| differences, mean 0 | queries | before: signed rank and sign of the mean | now: the mean must agree |"
    yield "| --- | ---: | ---: | ---: |"
    for name, draw in equal_means().items():
        for n in (13, 50, 150):
            rng = np.random.default_rng([n, len(name), 1])
            both = [claims(draw(rng, (BATCH, n)), singles(n)) for _ in range(-(-experiments // BATCH))]
            before, after = (np.mean([part[i] for part in both]) for i in (0, 1))
            yield f"| {name} | {n} | {before:.1%} | {after:.1%} |"
