"""What stands beside a verdict: effect size, typical difference, overlap, interaction of slices, worth of a choice."""

from __future__ import annotations

import hashlib
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy import stats as scipy_stats
from statsmodels.stats.oneway import anova_oneway

from harness.evaluation.cautions import flattery_sentence
from harness.evaluation.evidence import MOST_UNITS, evidence
from harness.evaluation.families import interactions
from harness.stats.agreement import mean_overlap, overlap
from harness.stats.differences import differences, singles, units_of
from harness.stats.heterogeneity import permuted_welch
from harness.stats.multiplicity import adjust
from harness.stats.resampling import _effects, cross_fitted, effect_interval
from harness.stats.settings import Settings
from harness.stats.signed_rank import effect_size
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
    # By hand with p = 0.5, "a" in "ab": (1 x 0.5 + 1/2 x 0.25) + 1/2 x 0.25 = 0.75, and beyond the end 1 x 0.25.
    assert overlap("a", "ab", p=0.5).extrapolated == pytest.approx(1.0)
    assert overlap("ab", "a", p=0.5).extrapolated == overlap("a", "ab", p=0.5).extrapolated
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


def test_slices_below_ten_queries_ask_for_no_interaction_nor_do_weighted_ones():
    assert asked(np.arange(25.0) / 25, ["a"] * 16 + ["b"] * 9) == []
    assert asked(np.arange(25.0) / 25, ["a"] * 15 + ["b"] * 10, weights=(1.0,) * 25) == []


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
    for left_out in (scored(many), scored(values, weights=(1.0,) * 40)):
        assert evidence(left_out, [("a", "b")], chosen)[0].typical is None


def test_the_cross_fitted_mean_is_chosen_on_four_parts_and_measured_on_the_fifth():
    """By hand: parts by SHA-256 of (seed, id), the winner of the others, its scores here."""
    rng = np.random.default_rng(18)
    ids, scores = [f"q{i}" for i in range(40)], {f"r{j}": rng.random(40) for j in range(8)}
    parts = [int(hashlib.sha256(f"7/parts/{query}".encode()).hexdigest(), 16) % 5 for query in ids]
    values = []
    for i in range(40):
        others = [j for j in range(40) if parts[j] != parts[i]]
        winner = max(scores, key=lambda name: scores[name][others].mean())
        values.append(scores[winner][i])
    found = cross_fitted(scores, ids, singles(40), seed=7)
    assert found.expected == pytest.approx(np.mean(values), rel=1e-12)
    assert found.mean == pytest.approx(max(values.mean() for values in scores.values()))
    clear = cross_fitted({"one": scores["r0"], "far": scores["r0"] - 0.9}, ids, singles(40))
    assert clear.flattered == pytest.approx(0.0, abs=1e-12)
    assert cross_fitted(scores, ids, units_of(["all"] * 40)) is None
    assert flattery_sentence(found, 8).startswith("Choosing the best of 8 flatters it by about 0.")


def test_what_choosing_is_worth_is_neither_a_bound_nor_three_times_the_truth():
    """Eight retrievers equal in truth, and one ahead by 2.5 standard errors; benchmarks/stats.md has more."""
    rng = np.random.default_rng(2)
    for gap in (0.0, 0.06):
        true, seen = [], []
        for _ in range(100):
            noise = rng.normal(0, 0.15, (50, 8))
            scores = rng.normal(0.6, 0.2, (50, 1)) + noise + np.array([gap] + [0.0] * 7)
            best = int(scores.mean(axis=0).argmax())
            true.append(noise[:, best].mean())
            found = cross_fitted({str(j): scores[:, j] for j in range(8)}, [str(i) for i in range(50)], singles(50))
            seen.append(found.flattered)
        error = 3 * np.std(np.array(seen) - true) / np.sqrt(100)
        assert np.mean(seen) == pytest.approx(np.mean(true), abs=error + 0.25 * np.mean(true))
