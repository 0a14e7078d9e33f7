"""One choice among many configurations, and several data sets: the statistics, against answers known from elsewhere."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from harness.stats.differences import singles, units_of
from harness.stats.heterogeneity import like_these
from harness.stats.sign_flip import max_t, told_apart

ROWS = np.array([(1, 3, 2), (2, 1, 3), (0, 2, -1), (3, 4, 1), (1, -1, 2), (2, 3, 0), (-1, 2, 1), (1, 0, 3)]) / 10
"""The known answer of the definitions: 10 of 256 flips for the best column among three, 6 for that column alone."""


def test_max_t_counts_what_plain_enumeration_counts() -> None:
    assert max_t(ROWS, singles(8))[:2] == (1, 10 / 256)
    assert max_t(ROWS[:, 1:2], singles(8)).p_value == 6 / 256


def test_the_lower_bound_is_the_quantile_of_the_largest_centred_column() -> None:
    n, centred = len(ROWS), ROWS - ROWS.mean(axis=0)
    s = ROWS.std(axis=0, ddof=1)
    largest = sorted(max((np.array(signs) @ centred) / (s * n**0.5)) for signs in product((1, -1), repeat=n))
    c = largest[int(np.ceil(0.975 * 2**n)) - 1]
    low = max_t(ROWS, singles(n)).low
    assert low == pytest.approx(ROWS[:, 1].mean() - c * s[1] / n**0.5, rel=1e-12)


@pytest.mark.parametrize("n", [12, 60])
def test_clusters_of_one_query_are_queries_and_flips_that_are_drawn_agree_with_all(n: int) -> None:
    rng = np.random.default_rng(n)
    table = rng.normal(0.05, 0.2, (n, 5))
    alone, clustered = max_t(table, singles(n)), max_t(table, units_of([str(i) for i in range(n)]))
    assert (alone.p_value, alone.method) == (clustered.p_value, "enumerated" if n == 12 else "draws")
    assert alone.low == pytest.approx(clustered.low, rel=1e-12)
    repeated = max_t(np.repeat(table, 3, axis=0), units_of([str(i // 3) for i in range(3 * n)]))
    assert repeated[:3] == pytest.approx(alone[:3])  # a question asked three times is one question


def test_a_default_in_the_grid_and_a_constant_gain_are_no_trouble() -> None:
    found = max_t(np.column_stack([np.zeros(8), np.full(8, 0.1)]), singles(8))
    assert (found.best, found.p_value, found.low) == (1, 1 / 256, None)
    assert max_t(np.zeros((8, 2)), singles(8)).p_value == 1.0
    assert told_apart(np.ones((8, 1)), singles(8), 0) == [False]
    assert told_apart(np.ones((8, 2)), singles(8), 0) == [False, False]


def test_pairs_of_the_chosen_are_corrected_over_all_pairs() -> None:
    """Two-sided, over all three pairs, counted here pattern by pattern."""
    values = np.column_stack([np.linspace(0.3, 0.9, 7), np.linspace(0.2, 0.9, 7), np.linspace(0.9, 0.1, 7)])
    pairs = [(0, 1), (0, 2), (1, 2)]
    gaps = np.column_stack([values[:, a] - values[:, b] for a, b in pairs])
    sizes = np.sqrt((gaps**2).sum(axis=0))
    largest = [np.abs(np.array(signs) @ gaps / sizes).max() for signs in product((1, -1), repeat=7)]
    p = [np.mean([one >= abs(gap) - 1e-9 for one in largest]) for gap in (gaps.sum(axis=0) / sizes)[:2]]
    for alpha in (0.01, 0.04, 0.2, 0.9):
        assert told_apart(values, singles(7), 0, alpha=alpha) == [False, *(one <= alpha for one in p)]


def test_sets_like_these_need_five_and_their_signed_ranks_six() -> None:
    means = [0.02, 0.05, -0.01, 0.04, 0.03, 0.06]
    five = like_these(means[:5])
    assert like_these(means[:4]) is None
    assert like_these([0.02] * 6) is None
    assert five is not None
    assert five.p_signed_rank is None
