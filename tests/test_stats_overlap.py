"""Rank-biased overlap against its definition, and the tests of interaction against SciPy and statsmodels."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.oneway import anova_oneway

from harness.evaluation.families import interactions
from harness.stats.agreement import mean_overlap, overlap
from harness.stats.heterogeneity import permuted_welch
from harness.stats.multiplicity import adjust
from harness.stats.settings import Settings
from tests.scored import scored

DEEP = 250
"""Ranks of a list that has no end: at p = 0.9 what lies below weighs less than 1e-11."""


def summed(a: list[str], b: list[str], p: float) -> float:
    """(1 - p) times the sum of p^(d - 1) x the share of the first d in common, over two endless lists."""
    common = [len(set(a[:depth]) & set(b[:depth])) for depth in range(1, DEEP + 1)]
    return (1 - p) * math.fsum(p ** (d - 1) * x / d for d, x in enumerate(common, 1))


def endless(ids: list[str], more: list[str], name: str) -> list[str]:
    return [*ids, *more, *(f"{name}{place}" for place in range(DEEP))][:DEEP]


lists = st.lists(st.sampled_from("abcdefghijkl"), min_size=1, max_size=9, unique=True)


@given(lists, lists, st.sampled_from([0.5, 0.9]))
def test_the_bounds_are_those_of_lists_that_go_on_apart_or_together(a, b, p):
    seen = overlap(a, b, p)
    apart = summed(endless(a, [], "x"), endless(b, [], "y"), p)
    together = summed(
        endless(a, [one for one in b if one not in a], "same"),
        endless(b, [one for one in a if one not in b], "same"),
        p,
    )
    assert seen.minimum == pytest.approx(apart, abs=1e-9)
    assert seen.minimum + seen.residual == pytest.approx(together, abs=1e-9)
    assert seen.minimum - 1e-9 <= seen.extrapolated <= seen.minimum + seen.residual + 1e-9
    assert overlap(b, a, p) == pytest.approx(seen)


@given(st.permutations("abcdef"), st.permutations("abcdef"), st.sampled_from([0.5, 0.9]))
def test_even_lists_are_extrapolated_by_the_share_that_they_have_in_common(a, b, p):
    size = 6
    common = [len(set(a[:d]) & set(b[:d])) for d in range(1, size + 1)]
    expected = common[-1] / size * p**size + (1 - p) / p * sum(x / d * p**d for d, x in enumerate(common, 1))
    assert overlap(a, b, p).extrapolated == pytest.approx(expected)


def test_the_published_example_and_the_ends():
    assert overlap("abcde", "bacfg")[:3] == pytest.approx((0.619335, 0.422528, 0.423161), abs=5e-7)
    assert overlap("abcde", "abcde").extrapolated == pytest.approx(1.0)
    assert overlap("abc", "xyz").extrapolated == 0.0
    assert overlap("", "") == (1.0, 1.0, 0.0, 1.0)
    assert overlap("", "ab") == (0.0, 0.0, 1.0, 0.0)
    assert overlap("abcdefghijkl", "lkjihgfedcba").top == 0.8
    assert overlap("ab", "abcd").top == 0.5
    assert mean_overlap([]) is None
    both = mean_overlap([("ab", "ab"), ("ab", "cd")])
    assert both is not None
    assert both.extrapolated == pytest.approx(0.5)


def asked(values, labels, **known):
    """The interaction of one pair with one field."""
    scores = {"x": values, "y": np.zeros(len(values))}
    return interactions(scored(scores, **known), [("x", "y")], {"field kind": labels}, Settings())


@pytest.mark.parametrize("gap", [0.0, 0.1, 0.3])
def test_an_interaction_has_welch_s_f_and_the_share_of_permutations_that_reach_it(gap):
    """Against SciPy's Welch t of two slices, whose square is F, and against permutations of our own."""
    rng = np.random.default_rng(4)
    values = np.concatenate([rng.normal(0.1, 0.05, 10), rng.normal(0.1 + gap, 0.25, 14)])
    labels = np.array(["short"] * 10 + ["long"] * 14)
    (row,) = asked(values, labels.tolist())
    welch = stats.ttest_ind(values[:10], values[10:], equal_var=False).statistic ** 2
    assert row.statistic == pytest.approx(welch, rel=1e-9)
    assert (row.family, row.n, row.method) == ("interaction field kind", 24, "draws")
    orders = np.stack([rng.permutation(24) for _ in range(4_000)])
    drawn = stats.ttest_ind(values[orders[:, :10]], values[orders[:, 10:]], axis=1, equal_var=False).statistic ** 2
    share = np.mean(drawn >= welch - 1e-12)
    assert row.p_value == pytest.approx(share, abs=4 * math.sqrt(max(share, 1e-3) * (1 - share) / 4_000) + 2e-4)


def test_three_slices_have_welch_s_f_as_statsmodels_has_it():
    rng = np.random.default_rng(5)
    groups = [rng.normal(0, scale, n) for scale, n in ((0.1, 12), (0.3, 20), (0.05, 15))]
    labels = [name for name, group in zip("abc", groups, strict=True) for _ in group]
    (row,) = asked(np.concatenate(groups), labels)
    assert row.statistic == pytest.approx(anova_oneway(groups, use_var="unequal").statistic, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "scales"), [((10, 128), (0.3, 0.1)), ((10, 128), (0.1, 0.3)), ((40, 40), (0.1, 0.3))]
)
def test_an_interaction_is_claimed_5_percent_of_the_time_where_there_is_none(sizes, scales):
    """Slices of 10 and 128: the range against flipped signs called 10.6 to 33.8 %; benchmarks/stats.md has more."""
    rng, experiments = np.random.default_rng(8), 400
    labels = [name for name, size in zip("ab", sizes, strict=True) for _ in range(size)]
    spread = np.repeat(scales, sizes)[:, None]
    tests = permuted_welch(rng.normal(0, 1, (sum(sizes), experiments)) * spread, [ord(x) - ord("a") for x in labels])
    claimed = np.mean([test.p_value <= 0.05 for test in tests])
    assert claimed <= 0.074 + 3 * math.sqrt(0.074 * 0.926 / experiments)


def test_an_interaction_is_seen_where_it_is():
    rng, labels = np.random.default_rng(8), ["a"] * 20 + ["b"] * 20 + ["c"] * 20
    there = np.concatenate([rng.normal(mean, 0.1, 20) for mean in (0.0, 0.0, 0.2)])
    assert asked(there, labels)[0].p_value < 0.001
    # Two clusters a slice are too few: there is no test. Ten are enough.
    few, enough = ([f"{kind}{place % number}" for place, kind in enumerate(labels)] for number in (2, 10))
    assert asked(there, labels, clusters=tuple(few)) == []
    assert asked(there, labels, clusters=tuple(enough))[0].p_value < 0.01


def test_interactions_are_corrected_over_all_fields_and_pairs():
    rng = np.random.default_rng(9)
    scores = {"x": rng.random(40), "y": rng.random(40), "z": rng.random(40)}
    kinds = {"field a": ["1", "2"] * 20, "field b": ["1"] * 20 + ["2"] * 20}
    rows = interactions(scored(scores), [("x", "y"), ("x", "z")], kinds, Settings())
    assert [row.family for row in rows] == ["interaction field a"] * 2 + ["interaction field b"] * 2
    assert [row.p_adjusted for row in rows] == pytest.approx(adjust([row.p_value for row in rows]))


def test_slices_below_ten_queries_ask_for_no_interaction():
    assert asked(np.arange(25.0) / 25, ["a"] * 16 + ["b"] * 9) == []
