"""The exact signed-rank test against enumeration, published examples and SciPy.

And how often it rejects.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from scipy import stats as scipy_stats

from harness.stats import signed_rank as exact_test
from harness.stats.differences import paired_differences
from harness.stats.rank_sum_tails import grouped_tail, saddlepoint_tail
from harness.stats.signed_rank import SMALLEST, doubled_ranks


def signed_rank(a, b):
    return exact_test.signed_rank(paired_differences(a, b))


def counted_tails(ranks: list[int]) -> list[int]:
    """Return how many of the 2^n subsets of the ranks have a sum of at most 0, 1, …

    The counts are the coefficients of a polynomial, packed into one integer.
    """
    count_bytes = len(ranks) // 8 + 1
    polynomial = 1
    for rank in ranks:
        polynomial += polynomial << (8 * rank * count_bytes)
    total = sum(ranks)
    packed_counts = polynomial.to_bytes((total + 1) * count_bytes, "little")
    counts = []
    for i in range(total // 2 + 1):
        count = packed_counts[i * count_bytes : (i + 1) * count_bytes]
        counts.append(int.from_bytes(count, "little"))
    return list(itertools.accumulate(counts))


def exact(a, b, steps):
    """Return the two-sided p, counted on whole numbers by none of our functions."""
    d = [round(x * steps) - round(y * steps) for x, y in zip(a, b, strict=True)]
    sizes = sorted(abs(x) for x in d if x)
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for i, size in enumerate(sizes, 1):
        first.setdefault(size, i)
        last[size] = i
    ranks = [(first[abs(x)] + last[abs(x)], x > 0) for x in d if x]
    plus = sum(rank for rank, positive in ranks if positive)
    low = min(plus, sum(rank for rank, _ in ranks) - plus)
    tails = counted_tails([rank for rank, _ in ranks])
    return min(Fraction(1), Fraction(2 * tails[low], 2 ** len(ranks)))


def assert_exact(rng, n, steps, shift=0.0):
    """Compare random scores, multiples of 1/steps, with the exact count."""
    a = np.round(np.clip(rng.random(n) + shift, 0, 1) * steps) / steps
    b = np.round(rng.random(n) * steps) / steps
    result = signed_rank(a, b)
    expected = exact(a, b, steps)
    assert abs(Fraction(result.p_value) - expected) <= Fraction(1, 10**12) * expected
    assert result.method == "exact"


@pytest.mark.parametrize(
    ("n", "steps", "shift"),
    [(100, 10, 0.0), (100, 10**6, 0.1), (300, 20, 0.1), (300, 10**6, 0.0)],
)
def test_it_equals_an_exact_count(n, steps, shift):
    assert_exact(np.random.default_rng(n + steps), n, steps, shift)


def test_it_equals_an_exact_count_for_few_queries_with_ties_and_zeros():
    rng = np.random.default_rng(16)
    for _ in range(300):
        n = int(rng.integers(1, 17))
        assert_exact(rng, n, steps=int(rng.choice([2, 3, 5, 10, 10**6])))


FIRST_RATINGS = """
6 4 5 5 7 6 6 6 7 6 6 5 6 6 5 5 3 6 6 5 6 5 4 6 6
6 7 4 3 4 6 6 5 6 4 6 6 5 7 6 6 5 6 7 6 6 6 5 7 7
"""
SECOND_RATINGS = """
5 3 5 3 5 3 6 2 3 6 2 5 5 6 4 6 4 5 5 3 7 5 6 6 4
3 4 3 2 4 5 4 4 6 2 6 7 4 4 5 5 5 5 7 4 5 3 2 6 7
"""
RATED = [
    np.array(ratings.split(), dtype=float)
    for ratings in (FIRST_RATINGS, SECOND_RATINGS)
]
MAIZE = [6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75]


@pytest.mark.parametrize(
    ("a", "b", "w_plus", "p"),
    [
        # Hollander & Wolfe (1973), example 3.1: depression before and after
        # tranquilizer; R 4 prints V = 40.
        (
            [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30],
            [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29],
            40.0,
            0.0390625,
        ),
        # JuliaStats/HypothesisTests.jl, test/wilcoxon.jl: five zeros.
        (range(1, 11), [1, 2, 3, 4, 5, 1, 1, 1, 1, 1], 15.0, 0.0625),
        # Cureton (1967); the exact two-sided p in the README of
        # @stdlib/stats/wilcoxon (stdlib-js).
        (MAIZE, [0] * 15, 96.0, 0.04125976562499978),
        # 0/1 scores give McNemar's exact test: nine of eleven at the mean rank 6.
        (
            [1] * 9 + [0] * 2 + [1] * 5,
            [0] * 9 + [1] * 2 + [1] * 5,
            54.0,
            scipy_stats.binomtest(2, 11).pvalue,
        ),
        # The smallest p of n differences; all zero; never 0.
        ([1], [0], 1.0, 1.0),
        ([1] * 7, [0] * 7, 28.0, 2.0**-6),
        ([0.3] * 5, [0.3] * 5, 0.0, 1.0),
        (range(1, 901), [0] * 900, 900 * 901 / 2, 2.0**-899),
        (range(1, 1501), [0] * 1500, 1500 * 1501 / 2, SMALLEST),
    ],
)
def test_published_examples_and_ends(a, b, w_plus, p):
    result = signed_rank(np.array(a, dtype=float), np.array(b, dtype=float))
    assert result.w_plus == w_plus
    assert result.p_value == pytest.approx(p, rel=1e-12, abs=0)
    n = sum(x != y for x, y in zip(a, b, strict=True))
    assert (result.zeros, result.p_minimum) == (
        len(a) - n,
        max(min(1.0, 2.0 ** (1 - n)), SMALLEST),
    )
    assert (result.effect_size is None) == (n == 0)


@pytest.mark.parametrize(
    ("other", "w_plus", "p_value"),
    [
        (range(2, 12), 0.0, 0.0020),  # all tied
        # Eight losses of 1 to 8, and gains of 10 and 9: the ranks 10 and 9.
        ([2, 4, 6, 8, 10, 12, 14, 16, -1, 1], 19.0, 0.4316),
    ],
)
def test_p_is_that_of_hypothesis_tests_jl_to_its_four_digits(other, w_plus, p_value):
    """Its test/wilcoxon.jl has them, against 1 to 10."""
    ours = signed_rank(np.arange(1.0, 11.0), np.array(other, dtype=float))
    assert (ours.w_plus, round(ours.p_value, 4)) == (w_plus, p_value)


def test_ratings_have_the_statistic_that_r_s_coin_prints():
    """As in the unit tests of a public wrapper of its `wilcoxsign_test`."""
    ours = signed_rank(*RATED)
    assert (ours.w_plus, ours.zeros) == (636.5, 13)


@pytest.mark.parametrize(
    ("tie", "patterns"),
    [((1, 2), 40), ((2, 3), 42), ((4, 5), 42), ((5, 6), 40), ((6, 7), 40)],
)
def test_the_article_s_case(tie, patterns):
    """7 non-zero differences with one tied pair give 40/128 or 42/128, by the tie."""
    sizes = np.array([sum(tie) / 2 if rank in tie else rank for rank in range(1, 8)])
    p_values = set()
    for signs in ((np.arange(128)[:, None] >> np.arange(7)) & 1) == 1:
        if sizes[~signs].sum() == 7.5:
            test = signed_rank(np.where(signs, sizes, -sizes), np.zeros(7))
            p_values.add(test.p_value)
    assert p_values == {patterns / 128}


def test_the_article_s_worked_instance_is_no_tie_at_rank_six():
    a = np.array([0, 0.8, 0.2, 0.3, 0.6, 0.4, 0.9, 0, 1, 0.4, 0, 0.9, 0.9])
    b = np.array([0, 0.7, 0.1, 0.1, 0.5, 0.4, 0.9, 0, 1, 0.1, 0.3, 0.9, 1])
    theirs = scipy_stats.wilcoxon(a, b, method="asymptotic")
    assert (theirs.statistic, round(theirs.pvalue, 3)) == (7.5, 0.271)
    ours = signed_rank(a, b)
    assert (ours.statistic, ours.p_value, ours.zeros) == (9.0, 0.46875, 6)
    tenths = signed_rank(np.round(10 * a), np.round(10 * b))
    assert (tenths.statistic, tenths.p_value) == (9.0, 0.46875)


def test_float_noise_makes_no_difference_and_splits_no_tie():
    a = np.array([0.3, 0.4, 0.1 + 0.2])
    b = np.array([0.2, 0.3, 0.3])
    assert (signed_rank(a, b).w_plus, signed_rank(a, b).zeros) == (3.0, 1)
    assert paired_differences(a, b).groups.tolist() == [1, 1, 0]


def test_the_slack_of_large_scores_is_proportional():
    """Exponential DCG reaches thousands; its last bits depend on the summation."""
    a = np.array([5000.0 + 1e-9, 2.0])
    b = np.array([5000.0, 1.0])
    assert paired_differences(a, b).groups.tolist() == [0, 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "sizes"),
    [
        (100, None),
        (100, 9),
        (250, None),
        (400, 5),
        (501, 4),
        (600, None),
        (600, 3),
        (600, 2),
        (600, 1),
    ],
)
def test_beyond_500_the_tail_is_that_of_the_exact_count(n, sizes):
    rng = np.random.default_rng([n, sizes or 0])
    values = (
        rng.permutation(n) + 1.0
        if sizes is None
        else rng.integers(1, sizes + 1, n).astype(np.float64)
    )
    ranks = doubled_ranks(paired_differences(values, np.zeros(n)).groups)
    unit = int(np.gcd.reduce(ranks))
    tails = counted_tails((ranks // unit).tolist())
    few = sizes is not None and sizes <= 4
    tail, bound = (grouped_tail, 1e-9) if few else (saddlepoint_tail, 1e-3)
    looked_at = 0
    for low in range(0, len(tails), max(1, len(tails) // (40 if few else 400))):
        exact = float(Fraction(tails[low], 2**n))
        if exact >= 1e-12:
            looked_at += 1
            assert tail(ranks, low * unit) == pytest.approx(exact, rel=bound)
    assert looked_at > 10


@pytest.mark.slow
@pytest.mark.parametrize(("n", "steps"), [(13, 5), (13, 10**6), (30, 5), (30, 10**6)])
def test_where_pairs_are_swapped_it_rejects_as_often_as_it_can(
    n, steps, monkeypatch, project
):
    monkeypatch.syspath_prepend(project / "benchmarks")
    rate, level = import_module("stats_samples").swapped(n, steps, 20_000)
    slack = 3 * math.sqrt(level * (1 - level) / 20_000)
    assert abs(rate - level) <= slack and rate <= 0.05 + slack


@pytest.mark.slow
def test_where_retrievers_are_permuted_a_corrected_family_rejects_in_at_most_5_percent(
    monkeypatch, project
):
    monkeypatch.syspath_prepend(project / "benchmarks")
    rows = list(import_module("stats_null").permuted(5_000))[2:]
    assert [
        row for row in rows if not row.endswith(("| yes |", "| no correction |"))
    ] == [] and len(rows) == 16


@pytest.mark.parametrize(
    ("n", "sizes", "method"),
    [
        (500, None, "exact"),
        (501, None, "saddlepoint"),
        (3000, 10, "saddlepoint"),
        (3000, 3, "exact"),
    ],
)
def test_the_method_names_how_the_tail_was_computed(n, sizes, method):
    rng = np.random.default_rng(4)
    d = rng.normal(size=n)
    if sizes is not None:
        d = rng.integers(1, sizes + 1, n) * rng.choice([-1.0, 1.0], n)
    ours = signed_rank(d, np.zeros(n))
    theirs = scipy_stats.wilcoxon(d, method="asymptotic", correction=True)
    assert ours.method == method
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=2e-2)
