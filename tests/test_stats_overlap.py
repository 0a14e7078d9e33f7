"""Rank-biased overlap against its definition, and the tests of interaction against all sign patterns."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.evaluation.families import interaction_family
from harness.stats.rank_overlap import mean_overlap, overlap
from harness.stats.settings import Settings
from tests.scored import scored

DEEP = 600
"""Ranks of a list that has no end: at p = 0.9 what lies below weighs less than 1e-27."""


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


def exact(groups: list[np.ndarray]) -> float:
    """The share of all sign patterns whose slices' means lie as far apart as those that were observed."""
    observed = np.ptp([group.mean() for group in groups])
    spreads = []
    for group in groups:
        bits = (np.arange(2 ** len(group))[:, None] >> np.arange(len(group))) & 1
        spreads.append(((1 - 2 * bits) @ (group - group.mean())) / len(group))
    first, second = spreads
    return float(np.mean(np.abs(first[:, None] - second[None, :]) >= observed - 1e-12))


@pytest.mark.parametrize("gap", [0.0, 0.1, 0.3])
def test_an_interaction_of_two_slices_has_the_p_of_all_sign_patterns(gap):
    rng = np.random.default_rng(4)
    groups = [rng.normal(0.1, 0.15, 10), rng.normal(0.1 + gap, 0.15, 10)]
    scores = {"x": np.concatenate(groups), "y": np.zeros(20)}
    labels = ["short"] * 10 + ["long"] * 10
    (row,) = interaction_family(scored(scores), [("x", "y")], labels, "interaction", Settings())
    expected = exact(groups)
    assert row.p_value == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / 100_000) + 2e-5)
    assert row.statistic == pytest.approx(abs(groups[0].mean() - groups[1].mean()))
    assert row.n == 20


def test_an_interaction_is_seen_where_it_is_and_claimed_5_percent_of_the_time_where_not():
    rng = np.random.default_rng(8)
    labels, claimed, experiments = ["a"] * 20 + ["b"] * 20 + ["c"] * 20, 0, 40
    pairs = [(f"r{i}", "zero") for i in range(experiments)]
    scores = {f"r{i}": rng.normal(0.2, 0.1, 60) for i in range(experiments)} | {"zero": np.zeros(60)}
    rows = interaction_family(scored(scores), pairs, labels, "interaction", Settings())
    claimed = sum(row.p_value <= 0.05 for row in rows)
    assert claimed / experiments <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / experiments)
    there = {"x": np.concatenate([rng.normal(mean, 0.1, 20) for mean in (0.0, 0.0, 0.2)]), "y": np.zeros(60)}
    (row,) = interaction_family(scored(there), [("x", "y")], labels, "interaction", Settings())
    assert row.p_value < 0.001
    # Six clusters leave nothing to flip: there is no test. Thirty do.
    few, enough = ([f"{kind}{place % number}" for place, kind in enumerate(labels)] for number in (2, 10))
    asked = ([("x", "y")], labels, "interaction", Settings())
    assert interaction_family(scored(there, clusters=tuple(few)), *asked) == []
    assert interaction_family(scored(there, clusters=tuple(enough)), *asked)[0].p_value < 0.01


def test_slices_below_ten_queries_ask_for_no_interaction():
    scores = {"x": np.arange(25.0) / 25, "y": np.zeros(25)}
    labels = ["a"] * 16 + ["b"] * 9
    assert interaction_family(scored(scores), [("x", "y")], labels, "interaction", Settings()) == []
