"""Prediction-powered inference and bounds: known answers, limits, and coverage in a small simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.stats.prediction import predicted, worth_in_queries
from harness.stats.unjudged_bounds import difference_bounds, log_discounts, rank_weights

PEOPLE = np.array([0.2, 0.0, -0.1, 0.3])
MODEL = np.array([0.3, 0.1, -0.1, 0.3])
ELSEWHERE = np.array([0.1, 0.0, 0.2, -0.1, 0.3, 0.1, 0.0, 0.2])


def test_the_worked_example():
    """By hand and by a separate program: lambda = 55/71."""
    found = predicted(PEOPLE, MODEL, ELSEWHERE)
    assert found.tuning == pytest.approx(55 / 71)
    assert found.combined == pytest.approx(0.0612676, abs=5e-8)
    assert found.standard_error == pytest.approx(0.0470016, abs=5e-8)
    assert found.people == pytest.approx(0.1)
    assert found.favour == pytest.approx(-0.05)
    # Student's t with 3 degrees of freedom: 3.182446 (any table).
    assert found.combined_interval.high - found.combined == pytest.approx(3.182446 * 0.0470016, rel=1e-5)


def test_the_model_alone_is_where_lambda_is_one():
    found = predicted(MODEL, MODEL, np.tile(ELSEWHERE, 50))
    assert found.tuning == pytest.approx(1.0, abs=0.02)
    assert found.favour == 0.0


def test_a_model_that_knows_nothing_is_left_out():
    found = predicted(PEOPLE, -MODEL, ELSEWHERE)
    assert found.tuning == 0.0
    assert found.combined == pytest.approx(found.people)
    assert found.combined_interval == pytest.approx(found.people_interval)
    assert found.worth == found.n


def test_without_other_queries_people_stand_alone():
    found = predicted(PEOPLE, MODEL, np.array([]))
    assert found.tuning == 0.0
    assert found.combined_interval == pytest.approx(found.people_interval)
    assert found.worth == 4


def test_a_constant_model_is_left_out():
    assert predicted(PEOPLE, np.zeros(4), np.zeros(8)).tuning == 0.0
    assert math.isnan(predicted(PEOPLE, np.zeros(4), np.zeros(8)).correlation)


def test_one_query_is_refused():
    with pytest.raises(ValueError, match="two or more"):
        predicted(PEOPLE[:1], MODEL[:1], ELSEWHERE)


@pytest.mark.parametrize(("rho", "times"), [(0.5, 1.29), (0.8, 2.39)])
def test_worth_at_thirty_and_three_hundred(rho, times):
    assert worth_in_queries(30, 300, rho) / 30 == pytest.approx(times, abs=0.005)


@given(st.floats(-1, 1), st.floats(0.01, 10))
def test_the_estimate_moves_and_stretches_with_the_values(shift, scale):
    plain = predicted(PEOPLE, MODEL, ELSEWHERE)
    moved = predicted(PEOPLE * scale + shift, MODEL * scale + shift, ELSEWHERE * scale + shift)
    assert moved.tuning == pytest.approx(plain.tuning, abs=1e-9)
    assert moved.combined == pytest.approx(plain.combined * scale + shift, abs=1e-9)


def test_the_interval_covers_as_often_as_it_says():
    """A judge that is biased and correlated at 0.5; 2,000 samples, so that one standard error is half a percent."""
    rng = np.random.default_rng(20261121)
    covered = 0
    for _ in range(2_000):
        truth = rng.normal(0.05, 0.2, 160)
        model = 0.08 + 0.5 * truth + np.sqrt(0.75) * 0.2 * rng.normal(size=160)
        found = predicted(truth[:20], model[:20], model[20:])
        covered += found.combined_interval.low <= 0.05 <= found.combined_interval.high
    assert 0.93 <= covered / 2_000 <= 0.97


def test_bounds_of_the_worked_example():
    """DCG with grades 0 and 1, unjudged documents up to 1; computed by hand."""
    weights = rank_weights(["d1", "d2", "d3", "d4"], ["d3", "d5", "d1", "d6"], log_discounts(4))
    before = difference_bounds(weights, {"d1": 1, "d3": 1}, 1)
    assert before == pytest.approx((-1.0616, 1.0616), abs=5e-5)
    assert not before.decided
    after = difference_bounds(weights, {"d1": 1, "d3": 1, "d2": 1}, 1)
    assert after == pytest.approx((-0.4307, 1.0616), abs=5e-5)
    assert after.width < before.width


def test_bounds_meet_where_all_is_judged():
    weights = rank_weights(["a", "b"], ["b", "c"], log_discounts(2))
    found = difference_bounds(weights, {"a": 1, "b": 0, "c": 0}, 3)
    assert found.low == found.high == 1.0
    assert found.decided


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3)), st.data())
def test_another_judgment_never_widens_the_bounds(judged, data):
    weights = rank_weights("abcd", "cebf", log_discounts(4))
    before = difference_bounds(weights, judged, 3)
    more = judged | {data.draw(st.sampled_from("abcdef")): data.draw(st.integers(0, 3))}
    if judged.items() <= more.items():
        after = difference_bounds(weights, more, 3)
        assert before.low - 1e-12 <= after.low <= after.high <= before.high + 1e-12
