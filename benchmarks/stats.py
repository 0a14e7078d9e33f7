"""Speed and calibration of the tests; prints benchmarks/stats.md.

    python benchmarks/stats.py > benchmarks/stats.md  # about an hour
    python benchmarks/stats.py --experiments 500              # a quick look
    python benchmarks/stats.py --only looks clustered         # some of the sections

Named stats.py, not statistics.py: a script's folder comes first on the path, and that
name is the standard library's.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import stats_grown
import stats_null
import stats_other
import stats_rates
import stats_repeated
import stats_sizes
import stats_sweeps
import stats_verdicts
from stats_samples import changed

from harness.evaluation.compare import compare_retrievers
from harness.scoring.scores import Scores
from harness.stats.differences import Floats, paired_differences
from harness.stats.settings import Settings
from harness.stats.signed_rank import signed_rank

DRAWS = 2_000
"""Sign flips a test: enough for a level of 5 %, and fifty times as fast."""


class Section(NamedTuple):
    """A table with what has to be known of it."""

    title: str
    text: str
    table: Callable[[int], Iterator[str]]
    draws: int = DRAWS
    """Sign flips of the tests that draw them (max-T); 0: as the program has them."""
    name: str = ""
    """Of the table; "": the function's."""

    @property
    def called(self) -> str:
        """What `--only` takes."""
        return self.name or self.table.__name__


def speed(experiments: int) -> Iterator[str]:
    """The exact test, and all that a large experiment asks for."""
    del experiments
    rng = np.random.default_rng(0)
    yield "| what | seconds | CPU seconds | target |"
    yield "| --- | ---: | ---: | ---: |"
    for n, target in ((1000, 0.25), (2000, 2.0)):
        a, b = np.round(rng.random(n), 4), np.round(rng.random(n), 4)
        pairs = paired_differences(a, b)
        yield (
            f"| one exact test, n = {n:,}, half ranks | "
            f"{timed(lambda pairs=pairs: signed_rank(pairs))} | {target} |"
        )
    n, names = 1000, [f"r{j}" for j in range(10)]
    base = rng.random(n)

    def continuous() -> dict[str, Floats]:
        return {
            name: np.round(np.clip(base * 0.7 + rng.random(n) * 0.3, 0, 1), 4)
            for name in names
        }

    def precision(k: int) -> dict[str, Floats]:
        return {
            name: rng.binomial(k, np.clip(base * 0.6 + 0.2, 0, 1)) / k for name in names
        }

    usual = {
        "nDCG@10": continuous(),
        "AP@10": continuous(),
        "RR@10": {name: 1 / rng.integers(1, 11, n) for name in names},
        **{
            measure: precision(k)
            for measure, k in (("P@5", 5), ("R@10", 7), ("F1@10", 9), ("Success@10", 1))
        },
    }
    worst = {f"measure {j}": continuous() for j in range(7)}
    for name, scores in (("two continuous", usual), ("seven continuous", worst)):
        table = Scores(ids=tuple(f"{i:04}" for i in range(n)), values=scores)
        seconds = timed(
            lambda table=table: compare_retrievers(
                table, settings=Settings(margin=0.02)
            )
        )
        yield (
            f"| 10 retrievers x 7 measures ({name}) x 1,000 queries, all 315 pairs | "
            f"{seconds} | 30 |"
        )


def timed(work: Callable[[], object]) -> str:
    """Wall and CPU time; on a busy machine the second can be repeated."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return f"{time.perf_counter() - wall:.2f} | {time.process_time() - cpu:.2f}"


SECTIONS = (
    Section(
        "Speed",
        """\
The test of the mean, intervals, equivalence and Holm included. On a busy machine the
CPU seconds, of all threads together, are the ones that can be repeated.""",
        speed,
        draws=0,
    ),
    Section(
        '"As good as", and the gate',
        """\
A true loss of exactly the margin, 0.02: at most 5 % may pass at the level of 5 %.
Before: where fewer than ten queries lose more than the margin, one query with the
worst possible loss is added, and identical rankings always pass. Now: that query is
always added, and below the limit of information nothing passes. "Yes" allows three
standard errors above 5 %. The last column is the power: the same shape moved to a
mean of 0, or, in the first six shapes, the same sizes of differences with signs
drawn at random.""",
        stats_verdicts.margins,
    ),
    Section(
        "Without simulation",
        "Samples for which the two rules can be compared outright.",
        stats_verdicts.cases,
        0,
    ),
    Section(
        '"Better" and "worse": one pair',
        """\
Equal true means: how often a difference is claimed at 5 %, by the test of the mean
(the default) and by the exact Wilcoxon test where it decides. In "45 % gain 0.02, 1
% lose 0.9" a sample that holds no loss deceives any test. The shipped differences
are drawn with weights exp(t d), t the tilt that gives the mean 0.""",
        stats_rates.pairs,
    ),
    Section(
        '"Better" and "worse": any of several',
        """\
Equal true means, the default test, Holm's correction: how often any difference is
claimed among so many independent challengers. Slices of so many queries each are the
same.""",
        stats_rates.families,
    ),
    Section(
        "The best of a sweep",
        """\
Equal true means: how often the best configuration is said to beat the default. At
most 500 experiments a row.""",
        stats_rates.choices,
        name="choices",
    ),
    Section(
        "Fragile claims",
        """\
A claimed difference is marked where three queries with the largest possible loss
would reverse it. How often that is said.""",
        stats_rates.warnings,
    ),
    Section(
        "Power",
        """\
n = 150, the true mean 2.8 standard errors above 0: how often the verdict is
"better", and how often the test that decides rejects in that direction by itself.
Before: both had to reject.""",
        stats_rates.power,
        name="tests",
    ),
    Section(
        "One choice among many configurations",
        """\
A claim that the best configuration beats the default, one-sided at 2.5 %; 1,000
experiments a row, 2,000 flips each. Naive: Student's t of the best mean. Half and
half: chosen on one half, tested on the other. Bonferroni: the naive p times the
configurations. Max-T: what is done. The last two rows of each are power: every third
configuration gains 2.8 standard errors, what a single test finds with 80 % power; or
one alone gains a quarter of a standard deviation. "Signs of rows drawn": each
query's row of differences has a sign that is drawn, so that no configuration is
better, and differences are symmetric, which is what the flips assume; else
differences are centred. On 50 queries of SciFact few differ, and where they are
centred the rare large losses are often not among them: no test can know of those.
The grids are computed first (`python benchmarks/stats_sweeps.py FOLDER`), from the
data sets cranfield and scifact of a folder.

The plan gave power for 12 / 48 configurations and 150 queries without its design
(Bonferroni 56 / 46 %, half and half 51 / 52, max-T 59 / 50): one gain of 0.25
standard deviations among normals with correlation 0.5 gives the first of each within
two standard errors, and six to nine points less than the second, which takes a gain
of 0.263. Nothing nearer was found among 1 to 6, a tenth to all, falling and random
gains of 1.6 to 4.2 standard errors with correlations of 0 to 0.9, nor among BM25
grids on Cranfield with the gains that they have (12: within two points from several
grids, 48: six at best). Its figures for 47 configurations on 300 queries of SciFact
(gain on the queries that chose 0.0201, cross-fitted 0.0140, true 0.0146) come within
0.0006 from eight or more of 1,357 grids and defaults that have nothing in common,
and from none whose default is 0.9 and 0.4 (at best 0.0187, 0.0148, 0.0141), so that
they tell no design.""",
        stats_sweeps.sweeps,
    ),
    Section(
        "The lower bound of a sweep's gain",
        """\
Six configurations that are equal in truth, one-sided at 2.5 %; 1,000 experiments a
row, 2,000 flips each. Weights: all alike, or lognormal with a standard deviation of
1 of the logarithm.""",
        stats_sweeps.bounds,
    ),
    Section(
        "Clusters",
        """\
Queries of one need resemble each other: intraclass correlation 0.5, equal true
means. Verdicts and intervals by query (p-values by Edgeworth's expansion) and by
cluster; intervals by the plain cluster-robust variance (before) and with each
cluster's leverage (now). Thirty needs are few for the shapes whose losses are rare:
what is left there is the error of the tests themselves, as in the table above.""",
        stats_repeated.clustered,
    ),
    Section(
        "Weights",
        """\
Queries that count by weights like traffic, lognormal with a standard deviation of 1
of the logarithm. "Plain robust": SE^2 = sum of (h (d - m))^2 with n - 1 degrees of
freedom. Sign flips of w d: p-values by Edgeworth's expansion.""",
        stats_repeated.weighted,
    ),
    Section(
        "A second look",
        """\
The same question tested again after more queries were added, equal true means: how
often any look claims a difference. "The number recommended": as many as the
difference observed at 50 queries would need (the figure that stood on the first
screen), where that is at most 1,000. P-values by Edgeworth's expansion.""",
        stats_repeated.looks,
    ),
    Section(
        "Intervals near the end of a range",
        """\
Thirteen scores between 0 and 1. Before: Student's t, wherever it ends. Now: where it
leaves the range, the t interval of the logit by the delta method. Coverage of
nominal 95 %.""",
        stats_sizes.intervals,
    ),
    Section(
        "Power and plans",
        """\
Fifty queries of each shape: the queries that a true difference of 0.05 needs by the
plan (a t-test with the observed standard deviation), and how often as many fresh
queries show the difference.""",
        stats_sizes.power,
    ),
    Section(
        "Agreement of two judges",
        """\
The bootstrap interval of Cohen's kappa over queries of 20 documents, nominal 95 %.
Below ten queries none is given any more. At most 2,000 experiments a row.""",
        lambda experiments: stats_other.kappa(min(experiments, 2_000)),
        name="kappa",
    ),
    Section(
        "The cheapest",
        """\
Two retrievers that are equal in truth, and a third that is better by 0.03 and
scatters (deviation 0.3): how often one of the two was called "as good as the best"
while the third was not resolved. Now the sentence says "within 0.02 of" the leader,
and that the third may still be better. At most 2,000 experiments a row.""",
        lambda experiments: stats_other.cheapest(min(experiments, 2_000)),
        name="cheapest",
    ),
    Section(
        "The null hypothesis made true: pairs",
        """\
The scores of each pair swapped with probability 1/2 per query: the exact signed-rank
test must reject as often as its attainable level says (the largest level of at most
5 % that the ties and zeros of the sample allow).""",
        stats_null.swapped,
    ),
    Section(
        "The null hypothesis made true: families",
        """\
All retrievers permuted within each query: how often a family makes any claim at all,
which is false then.""",
        stats_null.permuted,
    ),
    Section(
        "Equal means, skewed differences, test by test",
        """\
Published, not gated: how often each test alone calls a difference at 5 % although
the two means are equal in truth. The signed-rank test asks about symmetry, and is
right to reject; read as a statement about means it is wrong this often. Independent
differences; randomization enumerated at 13 queries, else with 10,000 draws: measured
before it was computed without draws. In the last rows, one query in a hundred loses
0.9: where the sample holds none of those, no test can know of them.""",
        stats_null.skewed,
        draws=10_000,
    ),
    Section(
        "Templates that were added",
        """\
The shipped survey templates: a share of the 182 is held out at random with its
labels, then added; BM25, nDCG@10, 138 queries drawn with replacement, 200 corpora a
row. The true change is that of all queries by the labels of each state; rates of
"worse" are of the corpora where it is at most one standard error of the sample from
0. Before: queries that gained a relevant template were left out. Now: every query
counts, by its own state's labels. In the last column a new template among the first
ten hits is unlabelled unless it is relevant, as in these files: a fall is then
undecided.""",
        stats_grown.grown,
        draws=0,
    ),
)


def main() -> None:
    names = [section.called for section in SECTIONS]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--experiments", type=int, default=20_000)
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    given = parser.parse_args()
    print("# Speed and calibration of the tests\n")
    print(
        "Printed by `python benchmarks/stats.py` on 2 cores, no GPU; "
        f"{given.experiments:,} seeded experiments a row."
    )
    for section in SECTIONS:
        if section.called not in given.only:
            continue
        print(f"\n## {section.title}\n\n{section.text}\n", flush=True)
        with changed(
            "draws", **({"SIGN_DRAWS": section.draws} if section.draws else {})
        ):
            for line in section.table(given.experiments):
                print(line, flush=True)


if __name__ == "__main__":
    main()
