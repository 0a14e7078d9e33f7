"""The parts of the statistics against SciPy, statsmodels, pandas, plain enumeration and known answers."""

from __future__ import annotations

import itertools
import math
import sys
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from harness.evaluation.query_slices import length_slices
from harness.stats.corrections import adjust_p_values
from harness.stats.differences import ValueRange, paired_differences
from harness.stats.draws import SIGN_DRAWS, draw_flipped_sums, seeded_generator
from harness.stats.intervals import student_interval, wilson_interval
from harness.stats.max_t import max_t_pairs, max_t_test
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
    with patch(
        "gc.collect"
    ):  # statsmodels collects garbage at every call of Holm, half a second each
        theirs = multipletests(p, method=NAMES[method])[1].tolist()
    assert adjust_p_values(p, method) == pytest.approx(theirs, rel=1e-12)


def test_no_p_values_have_no_corrections():
    assert adjust_p_values([]) == ()


# Intervals and summaries


def test_student_s_interval_and_paired_t_are_scipy_s():
    a, b = np.random.default_rng(4).random((2, 13))
    theirs, ours = scipy_stats.ttest_rel(a, b), paired_t_test(paired_differences(a, b))
    assert (ours.statistic, ours.p_value) == pytest.approx(
        (theirs.statistic, theirs.pvalue), rel=1e-10
    )
    assert paired_t_test(
        paired_differences(np.array([0.5, 0.6]), np.array([0.4, 0.5]))
    ) == (
        None,
        1.0,
    )
    values = np.random.default_rng(0).random(13)
    theirs = scipy_stats.ttest_1samp(values, 0).confidence_interval(0.95)
    ours = student_interval(values)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12)
    assert ours.method == "t"


def test_the_interval_of_a_difference_stays_within_its_bounds_and_turns_with_its_sign():
    values, bounds = np.array([1.0, 1.0, 1.0, 0.9, -0.2]), ValueRange(-1.0, 1.0)
    ours, turned = (
        student_interval(values, bounds=bounds),
        student_interval(-values, bounds=bounds),
    )
    # The logit of (mean + 1) / 2 and its t interval by the delta method, written out.
    share = (values.mean() + 1) / 2
    reach = (
        scipy_stats.t.ppf(0.975, 4)
        * values.std(ddof=1)
        / math.sqrt(5)
        / 2
        / (share * (1 - share))
    )
    expected = [
        2 / (1 + math.exp(-(math.log(share / (1 - share)) + side * reach))) - 1
        for side in (-1, 1)
    ]
    assert (ours.low, ours.high) == pytest.approx(
        expected, rel=1e-12
    ) and ours.method == "logit"
    assert (turned.low, turned.high) == pytest.approx(
        (-ours.high, -ours.low), rel=1e-12
    )


@pytest.mark.parametrize(
    ("successes", "n"), [(0, 13), (1, 13), (7, 13), (13, 13), (0, 1)]
)
def test_wilson_is_statsmodels(successes, n):
    theirs = proportion_confint(successes, n, method="wilson")
    assert wilson_interval(successes, n)[:2] == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize(
    ("values", "binary", "method"),
    [
        ([0.0, 1.0, 1.0], True, "wilson"),
        ([1.0, 1.0], True, "wilson"),
        (
            [0.0, 1.0, 1.0],
            False,
            "t",
        ),  # what merely happens to be 0 and 1, such as CG@2, may be more the next time
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
    assert (
        method != "wilson"
        or (summary.ci_low, summary.ci_high)
        == wilson_interval(int(sum(values)), len(values))[:2]
    )


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_summaries_are_pandas_describe(values):
    single = summarize_scores(np.array(values[:1]))
    assert (single.std, single.ci_low, single.ci_high, single.ci_method) == (
        None,
        None,
        None,
        "not estimable",
    )
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
    if ours.ci_method != "not estimable":
        assert ours.ci_low - 1e-12 <= ours.mean <= ours.ci_high + 1e-12


# The sign-flip test


@pytest.mark.parametrize("n", [1, 5, 12])
def test_enumerated_flips_are_scipy_s_permutation_test(n):
    rng = np.random.default_rng(n)
    a, b = rng.integers(0, 6, n) / 5, rng.integers(0, 6, n) / 5
    ours = flips(a - b)
    d = np.round(5 * (a - b))
    sums = np.array(
        [np.dot(signs, d) for signs in itertools.product([-1, 1], repeat=n)]
    )
    assert ours.two_sided == np.mean(np.abs(sums) >= abs(d.sum()))
    assert ours.greater == np.mean(sums >= d.sum())
    assert ours.method == "enumerated"
    if n > 1:
        theirs = scipy_stats.permutation_test(
            (d,), np.mean, permutation_type="samples", n_resamples=np.inf
        )
        # SciPy doubles the smaller tail: the same where the distribution is symmetric, as here.
        assert ours.two_sided == pytest.approx(theirs.pvalue, rel=1e-12)


def exact_by_counting(steps):
    """The share of sign patterns with so large a sum: how many have each sum, in whole numbers."""
    far = sum(map(abs, steps))
    counts = (np.arange(-far, far + 1) == 0).astype(np.int64)
    for x in steps:
        counts = np.roll(counts, x) + np.roll(counts, -x)
    return counts[np.abs(np.arange(-far, far + 1)) >= abs(sum(steps))].sum() / 2 ** len(
        steps
    )


def flips(values):
    """The sign-flip test of one column of differences."""
    return sign_flip(
        np.column_stack([values, np.zeros(len(values))]), [Contrast(0, 1)]
    )[0]


def test_multiples_of_one_step_are_counted():
    rng = np.random.default_rng(2)
    steps = rng.integers(-2, 4, 40).tolist()
    for unit in (1.0, 1 / 3, 0.1):
        ours = flips(np.array(steps) * unit)
        assert ours.method == "convolved"
        assert ours.two_sided == pytest.approx(
            exact_by_counting([s for s in steps if s]), rel=1e-12
        )
    assert flips(np.ones(60)).two_sided == 2.0**-59
    assert flips(rng.random(60)).method == "saddlepoint"


@pytest.mark.parametrize("shift", [0, 2_000, 5_000, 8_000])
def test_drawn_flips_come_near_the_exact_answer_and_far_tails_too(shift):
    rng = np.random.default_rng(shift)
    steps = (rng.integers(-10_000, 10_001, 40) + shift).tolist()
    exact = exact_by_counting(steps)
    ours = flips(values := np.array(steps) / 10_000)
    drawn = np.abs(np.concatenate([*draw_flipped_sums(values[:, None], 0)]))
    count = np.count_nonzero(drawn >= abs(values.sum()) - 1e-9)
    assert ours.method != "draws" or ours.two_sided == (count + 1) / (SIGN_DRAWS + 1)
    assert ours.method == ("draws" if exact > 3e-4 else "saddlepoint")
    assert ours.two_sided == pytest.approx(
        exact, abs=4 * math.sqrt(exact / SIGN_DRAWS), rel=0.1
    )


def test_few_differences_among_many_queries_are_enumerated():
    # Ten gains among 100 queries: all or none of ten signs, 2 of 1024 patterns, whatever the ties.
    a = np.array([1.0] * 10 + [0.5] * 90)
    columns = np.column_stack([a, np.full(100, 0.5), np.full(100, 0.48)])
    few, many = sign_flip(columns, [Contrast(0, 1), Contrast(0, 2)])
    assert (few.two_sided, few.greater, few.method) == (
        2 / 1024,
        1 / 1024,
        "enumerated",
    )
    assert many.method == "convolved"
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
"""The known answer of the doctest: 10 of 256 flips for the best column among three, 6 for that column alone."""


def test_max_t_of_one_column_counts_what_plain_enumeration_counts() -> None:
    assert max_t_test(ROWS[:, 1:2], single_units(8)).p_value == 6 / 256


@pytest.mark.parametrize("weights", [None, [1, 8, 1, 2, 1, 1, 5, 1]])
def test_the_lower_bound_is_the_quantile_of_the_largest_centred_column_each_flip_by_its_own_scatter(
    weights,
) -> None:
    n, h = (
        len(ROWS),
        np.array(weights or [1] * len(ROWS)) / (sum(weights) if weights else len(ROWS)),
    )

    def error(
        flipped_rows,
    ):  # DEFINITIONS: e_g = h (d - mean) / (1 - h_g); a factor of all of them changes no bound
        return np.sqrt(
            (((flipped_rows - h @ flipped_rows) * (h / (1 - h))[:, None]) ** 2).sum(
                axis=0
            )
        )

    flipped = [
        np.array(signs)[:, None] * (ROWS - h @ ROWS)
        for signs in itertools.product((1, -1), repeat=n)
    ]
    largest = sorted(max(h @ rows / error(rows)) for rows in flipped)
    c = largest[int(np.ceil(0.975 * 2**n)) - 1]
    result = max_t_test(
        ROWS, single_units(n, weights and np.array(weights, dtype=float))
    )
    best = int(np.argmax(h @ ROWS))
    assert (result.best, result.low) == (
        best,
        pytest.approx((h @ ROWS - c * error(ROWS))[best], rel=1e-12),
    )


@pytest.mark.parametrize("n", [12, 60])
def test_clusters_of_one_query_are_queries_and_flips_that_are_drawn_agree_with_all(
    n: int,
) -> None:
    rng = np.random.default_rng(n)
    table = rng.normal(0.05, 0.2, (n, 5))
    alone, clustered = (
        max_t_test(table, single_units(n)),
        max_t_test(table, cluster_units([str(i) for i in range(n)])),
    )
    assert (alone.p_value, alone.method) == (
        clustered.p_value,
        "enumerated" if n == 12 else "draws",
    )
    assert alone.low == pytest.approx(clustered.low, rel=1e-12)
    repeated = max_t_test(
        np.repeat(table, 3, axis=0), cluster_units([str(i // 3) for i in range(3 * n)])
    )
    assert repeated[:3] == pytest.approx(
        alone[:3]
    )  # a question asked three times is one question


def test_a_default_in_the_grid_and_a_constant_gain_are_no_trouble() -> None:
    result = max_t_test(
        np.column_stack([np.zeros(8), np.full(8, 0.1)]), single_units(8)
    )
    assert (result.best, result.p_value, result.low) == (1, 1 / 256, None)
    assert max_t_test(np.zeros((8, 2)), single_units(8)).p_value == 1.0
    assert (
        str(max_t_test(np.array([[0.3, -0.1, -0.2]] * 2).T, single_units(3)).gain)
        == "0.0"
    )  # not -1e-17 by float noise
    alone = single_units(
        8, np.array([1e17, *[1.0] * 7])
    )  # as one query: nothing tells how far differences scatter
    assert (
        max_t_test(ROWS, alone).low,
        student_interval(ROWS[:, 0], units=alone).method,
    ) == (
        None,
        "not estimable",
    )
    assert max_t_pairs(np.ones((8, 1)), single_units(8), 0) == [False]
    assert max_t_pairs(np.ones((8, 2)), single_units(8), 0) == [False, False]


def test_pairs_of_the_chosen_are_corrected_over_all_pairs() -> None:
    """Two-sided, over all three pairs, counted here pattern by pattern."""
    values = np.column_stack(
        [np.linspace(0.3, 0.9, 7), np.linspace(0.2, 0.9, 7), np.linspace(0.9, 0.1, 7)]
    )
    pairs = [(0, 1), (0, 2), (1, 2)]
    gaps = np.column_stack([values[:, a] - values[:, b] for a, b in pairs])
    sizes = np.sqrt((gaps**2).sum(axis=0))
    largest = [
        np.abs(np.array(signs) @ gaps / sizes).max()
        for signs in itertools.product((1, -1), repeat=7)
    ]
    p = [
        np.mean([statistic >= abs(gap) - 1e-9 for statistic in largest])
        for gap in (gaps.sum(axis=0) / sizes)[:2]
    ]
    for alpha in (0.01, 0.04, 0.2, 0.9):
        assert max_t_pairs(values, single_units(7), 0, alpha=alpha) == [
            False,
            *(statistic <= alpha for statistic in p),
        ]


def test_slices_by_length_are_thirds() -> None:
    thirds = dict.fromkeys(length_slices(["x" * n for n in range(1, 13)]))
    assert list(thirds) == ["short (up to 4)", "medium (5 to 8)", "long (9 or more)"]


def test_sets_like_these_need_five() -> None:
    means = [0.02, 0.05, -0.01, 0.04, 0.03, 0.06]
    assert new_sets_difference(means[:4]) is None is new_sets_difference([0.02] * 6)
    assert new_sets_difference(means[:5]) is not None


def test_settings_are_refused_all_at_once():
    caught = refusal(Settings, test="wilcoxen", alpha=1.5, margin=-0.1)
    assert [p.where for p in caught.problems] == [
        f"[statistics] {name}" for name in ("test", "alpha", "margin")
    ]
    assert "did you mean 'wilcoxon'?" in str(caught)
