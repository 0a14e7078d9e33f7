"""The statistics against SciPy, statsmodels, pandas, enumeration and known answers."""

from __future__ import annotations

import itertools
import math
import sys
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from harness.stats.corrections import adjust_p_values
from harness.stats.differences import ValueRange, paired_differences
from harness.stats.draws import SIGN_DRAWS, draw_flipped_sums, seeded_generator
from harness.stats.intervals import student_interval, wilson_interval
from harness.stats.max_t import max_t_differs_from, max_t_test
from harness.stats.over_sets import new_sets_difference
from harness.stats.paired_tests import paired_t_test
from harness.stats.settings import Settings
from harness.stats.sign_flip import Contrast, sign_flip
from harness.stats.summary import summarize_scores
from harness.stats.units import cluster_units, single_units
from tests.support.small import refusal

NAMES = {"holm": "holm", "bonferroni": "bonferroni", "bh": "fdr_bh"}
probabilities = st.lists(st.floats(1e-12, 1.0), min_size=1, max_size=12)


# Corrections


@pytest.mark.parametrize("method", NAMES)
@settings(deadline=None, max_examples=40)
@given(p=probabilities)
def test_corrections_equal_statsmodels(method, p):
    from statsmodels.stats.multitest import multipletests

    # statsmodels collects garbage at every call of Holm, half a second each.
    with patch("gc.collect"):
        theirs = multipletests(p, method=NAMES[method])[1].tolist()
    assert adjust_p_values(p, method) == pytest.approx(theirs, rel=1e-12)


def test_no_p_values_have_no_corrections():
    assert adjust_p_values([]) == ()


# Intervals and summaries


def test_the_paired_t_test_is_scipy_s():
    a, b = np.random.default_rng(4).random((2, 13))
    theirs = scipy_stats.ttest_rel(a, b)
    ours = paired_t_test(paired_differences(a, b))
    assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-10)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-10)


def test_the_paired_t_test_of_equal_differences_is_undefined():
    pairs = paired_differences(np.array([0.5, 0.6]), np.array([0.4, 0.5]))
    assert paired_t_test(pairs) == (None, 1.0)


def test_student_s_interval_is_scipy_s():
    values = np.random.default_rng(0).random(13)
    theirs = scipy_stats.ttest_1samp(values, 0).confidence_interval(0.95)
    ours = student_interval(values)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12)
    assert ours.method == "t"


def test_the_interval_of_a_difference_stays_within_its_bounds_and_turns_with_its_sign():
    values = np.array([1.0, 1.0, 1.0, 0.9, -0.2])
    bounds = ValueRange(-1.0, 1.0)
    ours = student_interval(values, bounds=bounds)
    negated = student_interval(-values, bounds=bounds)
    # The logit of (mean + 1) / 2 and its t interval by the delta method, written out.
    share = (values.mean() + 1) / 2
    standard_error = values.std(ddof=1) / math.sqrt(5)
    reach = scipy_stats.t.ppf(0.975, 4) * standard_error / 2 / (share * (1 - share))
    logit = math.log(share / (1 - share))
    assert ours.low == pytest.approx(
        2 / (1 + math.exp(-(logit - reach))) - 1, rel=1e-12
    )
    assert ours.high == pytest.approx(
        2 / (1 + math.exp(-(logit + reach))) - 1, rel=1e-12
    )
    assert ours.method == "logit"
    assert negated.low == pytest.approx(-ours.high, rel=1e-12)
    assert negated.high == pytest.approx(-ours.low, rel=1e-12)


@pytest.mark.parametrize(
    ("successes", "n"), [(0, 13), (1, 13), (7, 13), (13, 13), (0, 1)]
)
def test_wilson_is_statsmodels(successes, n):
    from statsmodels.stats.proportion import proportion_confint

    theirs = proportion_confint(successes, n, method="wilson")
    assert wilson_interval(successes, n)[:2] == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize(
    ("values", "binary", "method"),
    [
        ([0.0, 1.0, 1.0], True, "wilson"),
        ([1.0, 1.0], True, "wilson"),
        # Scores that merely happen to be 0 and 1, such as CG@2, may be larger.
        ([0.0, 1.0, 1.0], False, "t"),
        ([1.0], True, "not estimable"),
        ([1.0, 1.0], False, "not estimable"),
        ([0.1 + 0.2, 0.3], False, "not estimable"),
    ],
)
def test_0_1_measures_get_wilson_and_equal_scores_no_interval(values, binary, method):
    summary = summarize_scores(np.array(values), binary=binary)
    assert (summary.ci_method, summary.ci_low is None) == (
        method,
        method == "not estimable",
    )


@pytest.mark.parametrize("scores", [[0.0, 1.0, 1.0], [1.0, 1.0]])
def test_the_interval_of_0_1_scores_is_wilson_s(scores):
    summary = summarize_scores(np.array(scores), binary=True)
    expected = wilson_interval(int(sum(scores)), len(scores))[:2]
    assert (summary.ci_low, summary.ci_high) == expected


def test_one_score_has_no_deviation_and_no_interval():
    single = summarize_scores(np.array([0.4]))
    assert (single.std, single.ci_low, single.ci_high, single.ci_method) == (
        None,
        None,
        None,
        "not estimable",
    )


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_summaries_are_pandas_describe(values):
    ours = summarize_scores(np.array(values))
    theirs = pd.Series(values).describe()
    for name, column in {
        "std": "std",
        "q25": "25%",
        "median": "50%",
        "q75": "75%",
        "min": "min",
        "max": "max",
    }.items():
        assert getattr(ours, name) == pytest.approx(theirs[column], rel=1e-9, abs=1e-12)
    assert (ours.count, ours.mean) == (len(values), math.fsum(values) / len(values))


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_an_interval_holds_the_mean(values):
    summary = summarize_scores(np.array(values))
    assume(summary.ci_method != "not estimable")  # all scores are equal
    assert summary.ci_low - 1e-12 <= summary.mean <= summary.ci_high + 1e-12


# The sign-flip test


def fifths(count):
    """Return differences of scores that are fifths, in fifths: whole numbers."""
    rng = np.random.default_rng(count)
    first = rng.integers(0, 6, count)
    return (first - rng.integers(0, 6, count)).astype(float)


@pytest.mark.parametrize("count", [1, 5, 12])
def test_enumerated_flips_are_all_sums_of_signs(count):
    d = fifths(count)
    ours = flips(d / 5)
    sums = np.array(
        [np.dot(signs, d) for signs in itertools.product([-1, 1], repeat=count)]
    )
    assert ours.two_sided == np.mean(np.abs(sums) >= abs(d.sum()))
    assert ours.greater == np.mean(sums >= d.sum())
    assert ours.method == "enumerated"


@pytest.mark.parametrize("count", [5, 12])  # SciPy takes no single difference
def test_enumerated_flips_are_scipy_s_permutation_test(count):
    differences = fifths(count)
    theirs = scipy_stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    # SciPy doubles the smaller tail: the same for a symmetric distribution.
    assert flips(differences / 5).two_sided == pytest.approx(theirs.pvalue, rel=1e-12)


def exact_by_counting(steps):
    """Return the share of sign patterns with so large a sum, in whole numbers."""
    largest = sum(map(abs, steps))
    sums = np.arange(-largest, largest + 1)
    counts = (sums == 0).astype(np.int64)
    for step in steps:
        counts = np.roll(counts, step) + np.roll(counts, -step)
    return counts[np.abs(sums) >= abs(sum(steps))].sum() / 2 ** len(steps)


def flips(values):
    """Return the sign-flip test of one column of differences."""
    columns = np.column_stack([values, np.zeros(len(values))])
    return sign_flip(columns, [Contrast(0, 1)])[0]


@pytest.mark.parametrize("unit", [1.0, 1 / 3, 0.1])
def test_multiples_of_one_step_are_counted(unit):
    steps = np.random.default_rng(2).integers(-2, 4, 40).tolist()
    ours = flips(np.array(steps) * unit)
    exact = exact_by_counting([step for step in steps if step])
    assert ours.method == "convolved"
    assert ours.two_sided == pytest.approx(exact, rel=1e-12)


def test_equal_differences_have_the_smallest_possible_p():
    assert flips(np.ones(60)).two_sided == 2.0**-59


def test_only_gains_without_a_common_step_are_enumerated():
    ours = flips(np.random.default_rng(2).random(60))
    # Only the empty subset has a sum of at most 0.
    assert (ours.method, ours.two_sided) == ("enumerated", 2.0**-59)


@pytest.mark.parametrize(
    ("shift", "method", "error"),
    [
        (0, "grid", 0.01),
        (2_000, "grid", 0.01),
        (5_000, "convolved", 1e-12),  # losses of 25,878 steps, at most 50,000
        (8_000, "enumerated", 1e-12),  # losses of 2,070 steps: few subsets reach them
    ],
)
def test_flips_of_many_small_steps_come_near_the_exact_answer_and_far_tails_too(
    shift, method, error
):
    rng = np.random.default_rng(shift)
    steps = (rng.integers(-10_000, 10_001, 40) + shift).tolist()
    ours = flips(np.array(steps) / 10_000)
    assert ours.method == method
    assert ours.two_sided == pytest.approx(exact_by_counting(steps), rel=error)


def test_few_differences_among_many_queries_are_enumerated():
    # Ten gains among 100 queries: all or none of ten signs, 2 of 1024 patterns.
    a = np.array([1.0] * 10 + [0.5] * 90)
    columns = np.column_stack([a, np.full(100, 0.5), np.full(100, 0.48)])
    few, many = sign_flip(columns, [Contrast(0, 1), Contrast(0, 2)])
    assert few == (2 / 1024, 1 / 1024, "enumerated")
    # A hundred gains: all or none of a hundred signs.
    assert many == (2.0**-99, 2.0**-100, "enumerated")
    assert flips(np.zeros(100)) == (1.0, 1.0, "enumerated")


@settings(deadline=None, max_examples=6)
@given(
    st.integers(1, 150),
    st.integers(1, 4),
    st.integers(1, 1 << 20),
    st.sampled_from([2, 128]),
)
def test_sums_that_are_looked_up_are_those_of_the_signs_whatever_the_blocks(
    n, k, block, wide
):
    columns = np.random.default_rng(n).normal(size=(n, k))
    drawn = (
        seeded_generator(3, "signs", n)
        .integers(0, 2**64, size=(SIGN_DRAWS, -(-n // 64)), dtype=np.uint64)
        .astype("<u8")
    )
    signs = 1 - 2 * np.unpackbits(drawn.view(np.uint8), axis=1)[:, :n].astype(
        np.float64
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            sys.modules["harness.stats.draws"], "MAX_BLOCK_SUMS", max(block, 997 * k)
        )
        patched.setattr(sys.modules["harness.stats.draws"], "MAX_LOOKUP_COLUMNS", wide)
        parts = list(draw_flipped_sums(columns, 3))
    assert np.abs(np.concatenate(parts) - signs @ columns).max() <= 1e-13 * n
    assert abs(signs.mean()) < 0.02


# One choice among many configurations, several data sets


ROWS = (
    np.array(
        [
            (1, 3, 2),
            (2, 1, 3),
            (0, 2, -1),
            (3, 4, 1),
            (1, -1, 2),
            (2, 3, 0),
            (-1, 2, 1),
            (1, 0, 3),
        ]
    )
    / 10
)
"""The known answer of the doctest: 10 of 256 flips for the best column of three.

6 for that column alone.
"""


def test_max_t_of_one_column_counts_what_plain_enumeration_counts() -> None:
    assert max_t_test(ROWS[:, 1:2], single_units(8)).p_value == 6 / 256


@pytest.mark.parametrize("weights", [None, [1, 8, 1, 2, 1, 1, 5, 1]])
def test_the_lower_bound_is_the_quantile_of_the_largest_studentised_column(
    weights: list[int] | None,
) -> None:
    """Of the centred columns, each flip by its own scatter."""
    n = len(ROWS)
    shares = np.full(n, 1 / n)
    query_weights = None
    if weights is not None:
        shares = np.array(weights) / sum(weights)
        query_weights = np.array(weights, dtype=float)

    def error(rows):
        # As in `standard_error`, without (G - 1) / G: a common factor cancels.
        deviations = (rows - shares @ rows) * (shares / (1 - shares))[:, None]
        return np.sqrt((deviations**2).sum(axis=0))

    centred = ROWS - shares @ ROWS
    largest = []
    for signs in itertools.product((1, -1), repeat=n):
        flipped_rows = np.array(signs)[:, None] * centred
        largest.append(max(shares @ flipped_rows / error(flipped_rows)))
    c = sorted(largest)[int(np.ceil(0.975 * 2**n)) - 1]
    bounds = shares @ ROWS - c * error(ROWS)
    result = max_t_test(ROWS, single_units(n, query_weights))
    assert result.best == int(np.argmax(shares @ ROWS))
    assert result.low == pytest.approx(bounds[result.best], rel=1e-12)


NOISE = {n: np.random.default_rng(n).normal(0.05, 0.2, (n, 5)) for n in (12, 60)}


@pytest.mark.parametrize(("n", "method"), [(12, "enumerated"), (60, "draws")])
def test_clusters_of_one_query_are_queries(n: int, method: str) -> None:
    clusters = cluster_units([str(i) for i in range(n)])
    single = max_t_test(NOISE[n], single_units(n))
    clustered = max_t_test(NOISE[n], clusters)
    assert single.method == method
    assert single.p_value == clustered.p_value
    assert single.low == pytest.approx(clustered.low, rel=1e-12)


@pytest.mark.parametrize("n", [12, 60])
def test_a_question_asked_three_times_is_one_question(n: int) -> None:
    repeated = max_t_test(
        np.repeat(NOISE[n], 3, axis=0),
        cluster_units([str(i // 3) for i in range(3 * n)]),
    )
    assert repeated[:3] == pytest.approx(max_t_test(NOISE[n], single_units(n))[:3])


def test_a_constant_gain_over_the_default_has_no_lower_bound() -> None:
    differences = np.column_stack([np.zeros(8), np.full(8, 0.1)])
    result = max_t_test(differences, single_units(8))
    assert (result.best, result.p_value, result.low) == (1, 1 / 256, None)


def test_no_gain_at_all_has_p_1() -> None:
    assert max_t_test(np.zeros((8, 2)), single_units(8)).p_value == 1.0


def test_float_noise_is_no_gain() -> None:
    differences = np.array([[0.3, -0.1, -0.2], [0.3, -0.1, -0.2]]).T
    assert str(max_t_test(differences, single_units(3)).gain) == "0.0"  # not -1e-17


def test_a_query_with_all_of_the_weight_allows_no_interval() -> None:
    units = single_units(8, np.array([1e17, *[1.0] * 7]))
    assert max_t_test(ROWS, units).low is None
    assert student_interval(ROWS[:, 0], units=units).method == "not estimable"


@pytest.mark.parametrize("columns", [1, 2])
def test_equal_configurations_do_not_differ(columns: int) -> None:
    scores = np.ones((8, columns))
    assert max_t_differs_from(scores, single_units(8), 0) == [False] * columns


@pytest.mark.parametrize("alpha", [0.01, 0.04, 0.2, 0.9])
def test_pairs_of_the_chosen_are_corrected_over_all_pairs(alpha: float) -> None:
    """Two-sided, over all three pairs, counted here pattern by pattern."""
    scores = np.column_stack(
        [np.linspace(0.3, 0.9, 7), np.linspace(0.2, 0.9, 7), np.linspace(0.9, 0.1, 7)]
    )
    pairs = [(0, 1), (0, 2), (1, 2)]
    gaps = np.column_stack([scores[:, a] - scores[:, b] for a, b in pairs])
    sizes = np.sqrt((gaps**2).sum(axis=0))
    largest = np.array(
        [
            np.abs(np.array(signs) @ gaps / sizes).max()
            for signs in itertools.product((1, -1), repeat=7)
        ]
    )
    statistics = np.abs(gaps.sum(axis=0) / sizes)[:2]
    p_values = [np.mean(largest >= statistic - 1e-9) for statistic in statistics]
    differs = max_t_differs_from(scores, single_units(7), 0, alpha=alpha)
    assert differs == [False, p_values[0] <= alpha, p_values[1] <= alpha]


def test_sets_like_these_need_five() -> None:
    means = [0.02, 0.05, -0.01, 0.04, 0.03, 0.06]
    assert new_sets_difference(means[:4]) is None
    assert new_sets_difference([0.02] * 6) is None
    assert new_sets_difference(means[:5]) is not None


def test_settings_are_refused_all_at_once():
    caught = refusal(Settings, test="wilcoxen", alpha=1.5, margin=-0.1)
    assert [p.where for p in caught.problems] == [
        f"[statistics] {name}" for name in ("test", "alpha", "margin")
    ]
    assert "did you mean 'wilcoxon'?" in str(caught)
