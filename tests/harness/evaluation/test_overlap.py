"""What stands beside a verdict: effect size, overlap, worth of a choice."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.evaluation.evidence import evidence
from harness.stats.agreement import mean_overlap, overlap
from harness.stats.differences import singles, units_of
from harness.stats.multiplicity import cross_fitted
from tests.support.scored import scored


@given(st.permutations("abcdef"), st.permutations("abcdef"), st.sampled_from([0.5, 0.9]))
def test_even_lists_are_extrapolated_by_the_share_that_they_have_in_common(a, b, p):
    size = 6
    common = [len(set(a[:d]) & set(b[:d])) for d in range(1, size + 1)]
    expected = common[-1] / size * p**size + (1 - p) / p * sum(x / d * p**d for d, x in enumerate(common, 1))
    assert overlap(a, b, p).extrapolated == pytest.approx(expected)


def test_the_published_example_and_the_ends():
    assert overlap("abcde", "bacfg").extrapolated == pytest.approx(0.619335, abs=5e-7)
    assert overlap("abcde", "abcde").extrapolated == pytest.approx(1.0)
    assert overlap("abc", "xyz").extrapolated == 0.0
    # By hand with p = 0.5, "a" in "ab": (1 x 0.5 + 1/2 x 0.25) + 1/2 x 0.25 = 0.75, and beyond the end 1 x 0.25.
    assert overlap("a", "ab", p=0.5).extrapolated == pytest.approx(1.0)
    assert overlap("ab", "a", p=0.5).extrapolated == overlap("a", "ab", p=0.5).extrapolated
    assert overlap("", "") == (1.0, 1.0)
    assert overlap("", "ab") == (0.0, 0.0)
    assert overlap("abcdefghijkl", "lkjihgfedcba").top == 0.8
    assert overlap("ab", "abcd").top == 0.5
    assert mean_overlap([]) is None
    both = mean_overlap([("ab", "ab"), ("ab", "cd")])
    assert both is not None
    assert both.extrapolated == pytest.approx(0.5)


def test_the_evidence_on_a_pair_is_the_same_whoever_else_is_looked_at():
    rng = np.random.default_rng(7)
    values = {name: rng.random(40) for name in "abc"}
    (seen,) = evidence(scored(values), [("a", "b")])
    assert evidence(scored(values), [("c", "b"), ("a", "b")])[1] == seen
    assert seen.rbo is None


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
    assert found == pytest.approx(np.mean(values), rel=1e-12)
    clear = cross_fitted({"one": scores["r0"], "far": scores["r0"] - 0.9}, ids, singles(40))
    assert clear == pytest.approx(scores["r0"].mean(), abs=1e-12)
    assert cross_fitted(scores, ids, units_of(["all"] * 40)) is None
