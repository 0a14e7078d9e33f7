"""Scores of a few retrievers as the one table of scores, for tests of what is made of it."""

import numpy as np

from harness.evaluation import compare as comparing
from harness.evaluation.conclusion import conclude
from harness.evaluation.scores import Scores
from harness.evaluation.statements import conclusion_statements
from harness.evaluation.wording import verdict_cell, verdict_word
from harness.stats.differences import differences
from harness.stats.settings import Settings
from harness.stats.signed_rank import doubled_ranks, signed_rank, subset_sums

ALPHA = 0.05


def scored(values, measure="m", **known):
    """A table of one measure; `known` are its clusters, ranges and identical rankings."""
    n = len(next(iter(values.values())))
    return Scores(ids=tuple(f"{i:05}" for i in range(n)), values={measure: values}, **known)


def compare(values, *, measure="m", baseline=None, settings=None, **known):
    """The comparisons of one measure."""
    return comparing.compare(scored(values, measure, **known), baseline=baseline, settings=settings or Settings())


def concluded(values, rows, *, measure="m", settings=None, **known):
    """The three sets."""
    return conclude(scored(values, measure, **known), rows, settings or Settings())


def cell(row):
    """The verdict as comparisons.csv has it."""
    return verdict_cell(row.finding)


def word(row):
    """The verdict without its reason."""
    return verdict_word(row.finding)


def sentences(result, settings=None, **how):
    """What was shown, in words."""
    return [statement.text for statement in conclusion_statements(result, settings or Settings(), **how)]


def attainable(a, b):
    """The largest level of at most 5 % that the exact test can have with these magnitudes."""
    ranks = np.sort(doubled_ranks(differences(a, b).groups))
    tail = np.ldexp(np.cumsum(subset_sums(ranks, int(ranks.sum()) // 2)), 1 - len(ranks))
    return float(max(tail[tail <= ALPHA * (1 + 1e-12)], default=0.0))


def swapped(n, steps, experiments):
    """How often the exact test rejects where the scores of a pair are swapped at random, and the mean attainable level.

    Scores are multiples of 1/steps. benchmarks/stats_null.py uses it, too.
    """
    rng = np.random.default_rng([n, steps])
    rejected, levels = 0, 0.0
    for _ in range(experiments):
        better = np.round(np.clip(rng.random(n) + 0.2, 0, 1) * steps) / steps
        worse = np.round(rng.random(n) * steps) / steps
        swap = rng.random(n) < 0.5
        a, b = np.where(swap, worse, better), np.where(swap, better, worse)
        rejected += signed_rank(a, b).p_value <= ALPHA
        levels += attainable(a, b)
    return rejected / experiments, levels / experiments
