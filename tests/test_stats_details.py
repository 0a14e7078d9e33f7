"""What stands beside a verdict: probabilities of the Bayesian bootstrap, the effect size with its interval."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from harness.stats import Settings, bayesian_bootstrap, compare, details, differences, effect_interval
from harness.stats.details import MOST_UNITS, _effects
from harness.stats.signed_rank import effect_size
from harness.stats.units import singles, units_of


def apart(values):
    return differences(np.array(values, dtype=float), np.zeros(len(values)))


def test_two_queries_have_probabilities_that_can_be_worked_out():
    # The weight u of the first query is uniform on [0, 1], and the mean difference is 1.5 u - 0.5:
    # above 0 for u > 1/3; within 0.25 for 1/6 < u < 1/2.
    (seen,) = bayesian_bootstrap(np.array([[1.0], [-0.5]]), singles(2), margin=0.25, seed=1)
    assert seen.a_better == pytest.approx(2 / 3, abs=0.02)
    assert seen.b_better == pytest.approx(1 / 3, abs=0.02)
    assert seen.within == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.parametrize(("gained", "n"), [(7, 10), (12, 40), (3, 4)])
def test_wins_and_losses_of_one_size_have_a_beta_distribution(gained, n):
    (seen,) = bayesian_bootstrap(np.where(np.arange(n) < gained, 1.0, -1.0)[:, None], singles(n))
    assert seen.a_better == pytest.approx(scipy_stats.beta.sf(0.5, gained, n - gained), abs=0.02)
    assert seen.within is None


def test_a_cluster_has_one_weight():
    values = np.array([1.0, -0.5])
    table = np.repeat(values, 30)[:, None]
    (by_cluster,) = bayesian_bootstrap(table, units_of(["x"] * 30 + ["y"] * 30))
    assert by_cluster.a_better == pytest.approx(2 / 3, abs=0.02)
    assert bayesian_bootstrap(table, singles(60))[0].a_better > 0.97


def test_no_difference_is_neither_better_nor_worse():
    assert bayesian_bootstrap(np.zeros((5, 1)), singles(5), margin=0.01) == [(0.0, 0.0, 1.0)]


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


@pytest.mark.parametrize("zeros", ["wilcox", "pratt"])
@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=12).filter(any), st.integers(0, 9))
def test_an_effect_from_counts_is_that_of_the_queries_written_out(zeros, values, seed):
    counts = np.random.default_rng(seed).multinomial(len(values), np.full(len(values), 1 / len(values)), size=3)
    seen = _effects(apart(values), counts.astype(np.uint8), zeros)
    for row, effect in zip(counts, seen.tolist(), strict=True):
        assert effect == (effect_size(apart(np.repeat(values, row)), zeros) or 0.0)


def test_an_effect_that_nothing_scatters_has_no_interval():
    assert effect_interval(apart([0.5, 0.5, 0.5]), 0.95)[:2] == (None, None)
    assert effect_interval(apart([0.1, 0.0, 0.3]), 0.95)[:2] == (None, None)
    assert effect_interval(apart([0.0, 0.0]), 0.95)[:2] == (None, None)


@pytest.mark.parametrize("zeros", ["wilcox", "pratt"])
def test_the_interval_holds_the_effect_that_the_comparison_has(zeros):
    rng = np.random.default_rng(5)
    scores = {"a": np.round(rng.random(60), 1), "b": np.round(rng.random(60), 1)}
    (row,) = compare(scores, measure="m", settings=Settings(zeros=zeros))
    seen = effect_interval(differences(scores["a"], scores["b"]), 0.95, zeros=zeros)
    assert seen.low < row.effect_size < seen.high
    assert effect_size(differences(scores["a"], scores["b"]), zeros) == row.effect_size
    assert seen.high - seen.low < 0.8


def test_the_details_of_a_pair_are_the_same_again():
    rng = np.random.default_rng(7)
    a, b = rng.random(40), rng.random(40)
    pairs = differences(a, b)
    chosen = Settings(margin=0.05, seed=4)
    (seen,) = details([pairs], [pairs], singles(40), chosen)
    other = differences(b, a)
    assert details([other, pairs], [other, pairs], singles(40), chosen)[1] == seen  # whoever else is compared
    assert seen.typical is not None
    assert seen.typical.low < seen.typical.estimate < seen.typical.high
    many = differences(rng.random(MOST_UNITS + 1), rng.random(MOST_UNITS + 1))
    assert details([many], [many], singles(MOST_UNITS + 1), chosen)[0].typical is None
