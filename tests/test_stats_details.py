"""What stands beside a verdict: the effect size with its interval, the typical difference."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from harness.evaluation.evidence import MOST_UNITS, evidence
from harness.stats.differences import differences
from harness.stats.resampling import _effects, effect_interval
from harness.stats.settings import Settings
from harness.stats.signed_rank import effect_size
from tests.scored import scored


def apart(values):
    return differences(np.array(values, dtype=float), np.zeros(len(values)))


@pytest.mark.parametrize("values", [[0.1, 0.2, -0.3, 0.5], [0.1, 0.1, -0.2, 0.0], [0.4, 0.0, 0.0, -0.1]])
def test_the_interval_of_the_effect_is_that_of_all_resamples(values):
    def effect(drawn):
        kept = np.array([value for value in drawn if value])
        ranks = scipy_stats.rankdata(np.abs(kept))
        return float((np.sign(kept) * ranks).sum() / ranks.sum()) if len(kept) else 0.0

    every = sorted(effect(drawn) for drawn in itertools.product(values, repeat=4))
    seen = effect_interval(apart(values), 0.8, seed=3)
    # Among 2,000 draws of 256 equally likely ones a quantile lies within 0.03 of its place.
    assert every[int(0.07 * 256)] <= seen.low <= every[int(0.13 * 256)]
    assert every[int(0.87 * 256)] <= seen.high <= every[int(0.93 * 256)]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=12).filter(any), st.integers(0, 9))
def test_an_effect_from_counts_is_that_of_the_queries_written_out(values, seed):
    counts = np.random.default_rng(seed).multinomial(len(values), np.full(len(values), 1 / len(values)), size=3)
    seen = _effects(apart(values), counts.astype(np.uint8))
    for row, effect in zip(counts, seen.tolist(), strict=True):
        assert effect == (effect_size(apart(np.repeat(values, row))) or 0.0)


def test_an_effect_that_nothing_scatters_has_no_interval():
    assert effect_interval(apart([0.5, 0.5, 0.5]), 0.95)[:2] == (None, None)
    assert effect_interval(apart([0.1, 0.0, 0.3]), 0.95)[:2] == (None, None)
    assert effect_interval(apart([0.0, 0.0]), 0.95)[:2] == (None, None)


def test_the_evidence_on_a_pair_is_the_same_whoever_else_is_looked_at():
    rng = np.random.default_rng(7)
    values, chosen = {name: rng.random(40) for name in "abc"}, Settings(seed=4)
    (seen,) = evidence(scored(values), [("a", "b")], chosen)
    assert evidence(scored(values), [("c", "b"), ("a", "b")], chosen)[1] == seen
    assert seen.typical.low < seen.typical.estimate < seen.typical.high
    assert seen.overlap is None
    many = {name: rng.random(MOST_UNITS + 1) for name in "ab"}
    assert evidence(scored(many), [("a", "b")], chosen)[0].typical is None
