"""What verdicts claim although it is not so, before and after the rules that keep them;
used by stats.py.

Every row is measured with the program's own tests on samples that are drawn from a
shape with a known truth. "before" is the rule that stood here until the review of
November 2026.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from stats_samples import ALPHA, BATCH, observed
from stats_shapes import MARGIN, at_the_margin

from harness.evaluation.gate_verdict import (
    BASELINE_ARM,
    CHALLENGER_ARM,
    Gate,
    gate_scores,
)
from harness.scoring.scores import Scores
from harness.stats.differences import Floats, PairedDifferences, paired_differences
from harness.stats.paired_tests import (
    EquivalenceMargin,
    min_units_for_margin,
    non_inferiority_tests,
)
from harness.stats.settings import Settings
from harness.stats.sign_flip import Contrast, FlipTest, sign_flip
from harness.stats.signed_rank import signed_rank
from harness.stats.units import single_units

SIZES = (30, 50, 120, 150, 200, 500)


def margins(experiments: int) -> Iterator[str]:
    """How often a loss of the whole margin passes, and a true equality."""
    yield (
        "| differences, true loss 0.02 | queries | before | passes | at most 5 % | "
        "passes at equality |"
    )
    yield "| --- | ---: | ---: | ---: | --- | ---: |"
    for name, shape in at_the_margin().items():
        for n in SIZES:
            rng = np.random.default_rng([n, len(name)])
            lost, equal = (
                shape.lost(rng, (experiments, n)),
                shape.equal(rng, (experiments, n)),
            )
            after, power = passed(lost, now), passed(equal, now)
            good = (
                "yes"
                if after <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / experiments)
                else "NO"
            )
            yield (
                f"| {name} | {n} | {passed(lost, before):.1%} | {after:.1%} | {good} "
                f"| {power:.1%} |"
            )


Rule = Callable[[Sequence[PairedDifferences], EquivalenceMargin], list[FlipTest]]


def passed(table: Floats, rule: Rule) -> float:
    """The share of samples (rows) that are shown not to lose the margin."""
    within = EquivalenceMargin(MARGIN, 1.0, single_units(table.shape[1]))
    shown = 0
    for start in range(0, len(table), BATCH):
        rows = [observed(row) for row in table[start : start + BATCH]]
        shown += sum(test.greater <= ALPHA for test in rule(rows, within))
    return shown / len(table)


def now(rows: Sequence[PairedDifferences], within: EquivalenceMargin) -> list[FlipTest]:
    """The rule of today, each row against scores of 0."""
    scores = {str(place): d.values for place, d in enumerate(rows)}
    return non_inferiority_tests(
        {**scores, "": np.zeros(len(rows[0].values))},
        [(name, "") for name in scores],
        within,
    )


def before(
    rows: Sequence[PairedDifferences], within: EquivalenceMargin
) -> list[FlipTest]:
    """The rule of before: the worst query only where fewer than ten lose the margin;
    equal scores always pass.
    """
    columns = []
    for d in rows:
        few = np.count_nonzero(d.values < -within.margin - d.slack) < 10
        columns.append(
            np.append(d.values + within.margin, within.margin - 1.0 if few else 0.0)
        )
    table = np.column_stack([*columns, np.zeros(len(columns[0]))])
    tests = sign_flip(table, [Contrast(place, len(rows)) for place in range(len(rows))])
    return [
        FlipTest(0.0, 0.0, "identical") if not d.values.any() else t
        for d, t in zip(rows, tests, strict=True)
    ]


def cases(experiments: int) -> Iterator[str]:
    """Samples that need no simulation."""
    del experiments
    yield "| case | before | now |"
    yield "| --- | --- | --- |"
    same, within = np.full(100, 0.5), EquivalenceMargin(MARGIN, 1.0, single_units(100))
    told = before([observed(same - same)], within)[0].greater
    now = _word(_gate(same, same))
    yield f"| gate: 100 queries, identical rankings | passes (p = {told:.2g}) | {now} |"
    a, b = np.array([0.5] * 90 + [0.0] * 10), np.full(100, 0.5)
    shifted, now = (
        signed_rank(paired_differences(a + MARGIN, b)).p_value / 2,
        _gate(a, b),
    )
    yield (
        "| gate: 90 ties and 10 losses of 0.5; signed ranks of the shifted "
        f"differences | passes (p = {shifted:.2g}) | "
        f"{_word(now)} |"
    )
    for margin in (0.02, 0.05, 0.1):
        yield (
            f"| queries below which nothing passes, margin {margin} | 5 | "
            f"{min_units_for_margin(margin, 1.0, ALPHA)} |"
        )


def _gate(challenger: Floats, baseline: Floats) -> Gate:
    ids = tuple(map(str, range(len(baseline))))
    scores = Scores(
        ids=ids, values={"score": {CHALLENGER_ARM: challenger, BASELINE_ARM: baseline}}
    )
    return gate_scores(scores, margin=MARGIN, settings=Settings())


def _word(decided: Gate) -> str:
    return (
        f"{'passes' if decided.passed else 'does not pass'} (p = {decided.p_value:.2g})"
    )
