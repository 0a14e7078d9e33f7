"""Under the null hypothesis no test rejects more often than it may; benchmarks/stats.py repeats it 20,000 times."""

import math

import numpy as np
import pytest

from harness.stats.differences import differences
from harness.stats.multiplicity import adjust
from harness.stats.settings import Settings
from harness.stats.signed_rank import doubled_ranks, signed_rank, subset_sums
from tests.scored import compare

pytestmark = pytest.mark.slow

EXPERIMENTS = 2_000
ALPHA = 0.05


def attainable(a, b):
    """The level that the two-sided exact test can reach with these magnitudes: at most 5 %."""
    ranks = np.sort(doubled_ranks(differences(a, b).groups))
    tail = 2 * np.cumsum(subset_sums(ranks, int(ranks.sum()) // 2)) / 2.0 ** len(ranks)
    return max(tail[tail <= ALPHA * (1 + 1e-12)], default=0.0)


@pytest.mark.parametrize(("n", "steps"), [(13, 5), (13, 10**6), (30, 10)])
def test_pairs_swapped_at_random_are_rejected_at_the_attainable_level(n, steps):
    rng = np.random.default_rng([n, steps])
    rejected, levels = 0, 0.0
    for _ in range(EXPERIMENTS):
        better = np.round(np.clip(rng.random(n) + 0.2, 0, 1) * steps) / steps
        worse = np.round(rng.random(n) * steps) / steps
        swap = rng.random(n) < 0.5
        a, b = np.where(swap, worse, better), np.where(swap, better, worse)
        rejected += signed_rank(a, b).p_value <= ALPHA
        levels += attainable(a, b)
    level = levels / EXPERIMENTS
    error = 3 * math.sqrt(level * (1 - level) / EXPERIMENTS)
    assert abs(rejected / EXPERIMENTS - level) <= error
    assert rejected / EXPERIMENTS <= ALPHA + error


@pytest.mark.parametrize("correction", ["holm", "bonferroni"])
def test_families_of_retrievers_permuted_within_queries_keep_5_percent(correction):
    rng = np.random.default_rng(1)
    n, k = 20, 4
    false_claims = 0
    for _ in range(EXPERIMENTS // 2):
        table = (
            np.round(np.clip(rng.random((n, 1)) + np.arange(k) / 10, 0, 1) * 10) / 10 + rng.integers(0, 3, (n, k)) / 10
        )
        table = rng.permuted(table, axis=1)
        p = [signed_rank(table[:, i], table[:, j]).p_value for i in range(k) for j in range(i + 1, k)]
        false_claims += min(adjust(p, correction)) <= ALPHA
    assert false_claims / (EXPERIMENTS // 2) <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / (EXPERIMENTS // 2))


def test_the_sign_flip_test_keeps_5_percent():
    rng = np.random.default_rng(2)
    n, experiments, flips = 12, 400, 0
    for _ in range(experiments):
        a, b = rng.permuted(rng.integers(0, 6, (n, 2)) / 5 + np.array([0, 0.2]), axis=1).T
        flips += compare({"a": a, "b": b}, settings=Settings(test="randomization"))[0].p_value <= ALPHA
    assert flips / experiments <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / experiments)
