"""What so many queries can find, what a difference would take, and what repeated looks cost."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy import stats as scipy_stats

from harness.stats import (
    Criterion,
    Looks,
    Settings,
    at_look,
    differences,
    earlier_looks,
    levels,
    look_at,
    minimum_detectable,
    plan,
    queries_needed,
    sakai_queries,
    signed_rank,
    spent,
)
from harness.stats.populations import MODELS, Population
from harness.stats.power import approximate_power, doubled_ranks_by_row, flip_p, has_power, simulated_power
from retrievers.errors import InputError


def skewed(seed, n=60):
    """Differences with ties, many small gains and few large losses."""
    rng = np.random.default_rng(seed)
    return differences(rng.choice([0.1, 0.05, -0.3, 0.0], n, p=[0.3, 0.3, 0.1, 0.3]), np.zeros(n))


# Models


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("difference", [0.01, 0.04])
def test_a_population_has_the_mean_that_was_asked_for(model, difference):
    truth = MODELS[model](skewed(0), difference, 1.0)
    assert truth.mean == pytest.approx(difference, abs=1e-9)
    assert truth.weights.sum() == pytest.approx(1.0)
    assert (np.diff(truth.values) >= 0).all()


def test_a_population_that_cannot_have_a_mean_is_none_and_a_shift_is_clipped():
    d = differences(np.array([0.9, -0.9, 0.1, 0.0]), np.zeros(4))
    assert MODELS["sign tilt"](d, 0.6, 1.0) is None
    assert MODELS["exponential tilt"](d, 0.95, 1.0) is None
    moved = MODELS["shift"](d, 0.5, 1.0)
    assert moved.values.max() == 1.0
    assert moved.mean == pytest.approx(0.5)


# Power


@pytest.mark.parametrize("n", [5, 9, 11, 25, 80])
def test_the_simulated_test_is_the_exact_one(n):
    rng = np.random.default_rng(n)
    table = np.round(rng.normal(0.1, 0.2, (40, n)), 1)
    groups = np.array([differences(row, np.zeros(n)).groups for row in table])
    ranks = np.sign(groups) * doubled_ranks_by_row(np.abs(groups), "wilcox")
    exact = np.array([signed_rank(row, np.zeros(n)).p_value for row in table])
    near = flip_p(ranks.astype(float), 2.0)
    assert near[exact < 0.2] == pytest.approx(exact[exact < 0.2], abs=0.01)


def test_the_closed_form_is_near_the_simulation():
    truth = MODELS["shift"](skewed(1), 0.05, 1.0)
    for test in ("wilcoxon", "randomization", "t", "sign"):
        for n in (60, 150):
            asked = Criterion(test, 0.05)
            assert approximate_power(truth, [n], asked)[0] == pytest.approx(simulated_power(truth, n, asked), abs=0.08)


@pytest.mark.parametrize("test", ["wilcoxon", "randomization", "t", "sign"])
def test_the_minimum_detectable_difference_has_the_power_that_it_claims(test):
    d, asked = skewed(2, 50), Criterion(test, 0.05)
    found = minimum_detectable(d, asked=asked)
    assert set(found.models) == {"sign tilt", "exponential tilt", "shift"}
    for model, size in found.models.items():
        if size is not None:
            power = simulated_power(MODELS[model](d, size, 1.0), 50, asked)
            assert power >= 0.8
            assert simulated_power(MODELS[model](d, 0.85 * size, 1.0), 50, asked) < 0.85
    assert found.low == min(x for x in found.models.values() if x is not None)


def test_beyond_2000_queries_the_closed_form_takes_the_place_of_the_simulation(monkeypatch):
    d, asked = skewed(2, 400), Criterion("wilcoxon", 0.05)
    simulated = minimum_detectable(d, asked=asked).models
    monkeypatch.setattr(sys.modules["harness.stats.plan"], "MANY", 399)  # the function has the module's name
    monkeypatch.setattr(sys.modules["harness.stats.plan"], "has_power", None)
    closed = minimum_detectable(d, asked=asked).models
    assert closed == {model: pytest.approx(size, rel=0.05) for model, size in simulated.items()}


def test_a_simulation_in_blocks_is_the_same_simulation(monkeypatch):
    truth, asked = MODELS["shift"](skewed(1), 0.05, 1.0), Criterion("wilcoxon", 0.05)
    whole = simulated_power(truth, 60, asked)
    monkeypatch.setattr("harness.stats.power.BLOCK", 7 * 60 + 1)
    assert simulated_power(truth, 60, asked) == whole


@settings(deadline=None, max_examples=40)
@given(st.floats(0, 0.25), st.integers(1, 90), st.sampled_from(["wilcoxon", "t", "sign"]), st.floats(0.01, 1))
def test_a_simulation_that_stops_early_gives_the_answer_of_all_samples(difference, n, test, power):
    truth, asked = MODELS["shift"](skewed(1), difference, 1.0), Criterion(test, 0.05)
    assert truth is not None
    assert has_power(truth, n, asked, power) == (simulated_power(truth, n, asked) >= power)
    exact = simulated_power(truth, n, asked)
    assert has_power(truth, n, asked, exact)
    assert not has_power(truth, n, asked, np.nextafter(exact, 2))


def test_what_no_size_and_no_number_of_queries_reaches():
    asked = Criterion("wilcoxon", 0.05)
    few = differences(np.array([0.1, 0.2, 0.3, 0.4, 0.5]), np.zeros(5))
    assert minimum_detectable(few, asked=asked).low is None
    assert queries_needed(few, asked=asked) is None
    nothing = differences(np.ones(9), np.ones(9))
    assert minimum_detectable(nothing, asked=asked).models == dict.fromkeys(MODELS, None) | {
        "shift": minimum_detectable(nothing, asked=asked).models["shift"]
    }
    balanced = differences(np.array([0.1, -0.1] * 20), np.zeros(40))
    assert queries_needed(balanced, asked=asked).best_guess is None
    assert queries_needed(balanced, asked=asked).high is None


# Plans


def test_sakai_s_closed_form():
    # Sakai (2016), "Topic set size design", eq. for the paired t: n = ((z_a/2 + z_b) / effect)^2 + z_a/2^2 / 2.
    assert [sakai_queries(x) for x in (0.2, 0.5, 1.0)] == [199, 34, 10]
    with pytest.raises(ValueError, match="above 0"):
        sakai_queries(0.0)


def test_a_plan_depends_on_the_shape_and_never_on_the_observed_mean():
    noise = np.random.default_rng(3).normal(0, 0.25, 80)
    noise = (noise - noise.mean()) / noise.std(ddof=1) * 0.25
    centred, moved = (plan(differences(noise + m, np.zeros(80)), 0.05, asked=Criterion("t", 0.05)) for m in (0.0, 0.04))
    assert centred.models["shift"] == moved.models["shift"]
    # 0.2 standard deviations: Sakai's 199; the normal approximation of the other models is near.
    assert centred.sakai == 199
    assert centred.low is not None
    assert centred.high is not None
    assert 170 <= centred.low <= centred.high <= 230
    stricter = plan(differences(noise, np.zeros(80)), 0.05, asked=Criterion("t", 0.05 / 3))
    assert stricter.low > centred.low


def test_a_plan_of_few_queries_is_simulated():
    """A sure gain of 0.3: six non-zero differences are the fewest that the signed-rank test can call significant."""
    d = differences(np.random.default_rng(4).normal(0, 0.01, 30), np.zeros(30))
    assert plan(d, 0.3, asked=Criterion("wilcoxon", 0.05)).models["shift"] == 6


def test_queries_for_the_observed_difference_come_with_their_interval():
    d = differences(np.random.default_rng(12).normal(0.03, 0.1, 50), np.zeros(50))
    asked = Criterion("wilcoxon", 0.05)
    low, high, guess = queries_needed(d, asked=asked)
    assert low <= guess
    assert high is None or guess <= high
    assert queries_needed(d, asked=Criterion("wilcoxon", 0.01)).best_guess > guess
    turned = differences(-d.values, np.zeros(50))
    assert queries_needed(turned, asked=asked).best_guess == guess


def test_a_population_knows_its_moments():
    truth = Population(np.array([-1.0, 1.0]), np.array([0.25, 0.75]))
    assert (truth.mean, truth.deviation) == pytest.approx((0.5, math.sqrt(0.75)))


# Looks


def test_alpha_is_spent_as_o_brien_and_fleming_by_lan_and_demets():
    # At half of the queries 0.003051 of 0.05 is spent (0.025 in each tail), at the end all of it.
    assert spent(0.05, 0.5) == pytest.approx(0.003051, abs=5e-7)
    assert spent(0.05, 1.0) == pytest.approx(0.05)
    z = scipy_stats.norm.ppf(1 - 0.05 / 4)
    assert spent(0.05, 0.3) == pytest.approx(4 * scipy_stats.norm.sf(z / math.sqrt(0.3)), rel=1e-12)


def test_the_levels_of_two_looks_spend_alpha_exactly():
    first, second = levels(0.05, (75, 150))
    assert first == pytest.approx(0.003051, abs=5e-7)
    bounds = [scipy_stats.norm.isf(level / 2) for level in (first, second)]

    def missed(x):
        # The second statistic given the first: correlation sqrt(1/2).
        given = (scipy_stats.norm.cdf((s * bounds[1] - math.sqrt(0.5) * x) / math.sqrt(0.5)) for s in (1, -1))
        upper, lower = given
        return scipy_stats.norm.pdf(x) * (upper - lower)

    never = integrate.quad(missed, -bounds[0], bounds[0])[0]
    assert 1 - never == pytest.approx(0.05, abs=1e-5)
    assert levels(0.05, (150,)) == pytest.approx((0.05,))
    assert sum(levels(0.05, (50, 100, 150))) > 0.05


def test_which_look_so_many_queries_are():
    chosen = Settings(looks=Looks((60, 150)))
    assert [look_at(chosen, n).number for n in (10, 60, 61, 150, 900)] == [1, 1, 2, 2, 2]
    assert at_look(chosen, 60).alpha == levels(0.05, (60, 150))[0]
    assert at_look(chosen, 60).level == pytest.approx(1 - levels(0.05, (60, 150))[0])
    assert at_look(Settings(), 60) == Settings()
    assert look_at(Settings(), 60) is None
    assert Settings.of({"looks": {"queries": [60, 150]}}).looks == Looks((60, 150))
    for bad in ((), (60, 60), (0, 5)):
        with pytest.raises(InputError, match="rising numbers"):
            Settings(looks=Looks(bad))


def test_earlier_runs_with_some_of_the_queries_are_earlier_looks():
    first, second = frozenset("abc"), frozenset("abcde")
    assert earlier_looks([], first) == ()
    assert earlier_looks([second, first, first], frozenset("abcdef")) == (3, 5)
    assert earlier_looks([second], second) == ()
    assert earlier_looks([frozenset("xyz"), frozenset()], second) == ()
