"""Within the margin, and the gate: what may pass, and what must not.

benchmarks/stats.py repeats it 20,000 times.
"""

import math
from importlib import import_module

import numpy as np
import pytest

from harness.evaluation.gate import BASELINE_ARM, CHALLENGER_ARM, gate_scores
from harness.evaluation.verdict import Verdict
from harness.stats.differences import ValueRange
from harness.stats.paired_tests import EquivalenceMargin, non_inferiority_tests
from harness.stats.settings import Settings
from harness.stats.units import single_units
from harness.wording.verdicts import gate_sentence
from retrievers.errors import InputError
from tests.support.scored import cell, compare, gate, scored

MARGIN, EXPERIMENTS = 0.02, 300


def p_values(table):
    """The p of each row of differences."""
    scores = dict(enumerate([*table, np.zeros(table.shape[1])]))
    pairs = [(column, len(table)) for column in range(len(table))]
    within = EquivalenceMargin(MARGIN, 1.0, single_units(table.shape[1]))
    return np.array(
        [test.greater for test in non_inferiority_tests(scores, pairs, within)]
    )


@pytest.mark.slow
def test_the_power_at_true_equality(monkeypatch):
    """Normal differences with standard deviation 0.05 (DEFINITIONS): 0, 0.60, 0.94."""
    for module in ("harness.stats.draws", "harness.stats.sign_flip"):
        monkeypatch.setattr(import_module(module), "SIGN_DRAWS", 1_000)
    rng = np.random.default_rng(0)
    for n, power in ((50, 0.0), (150, 0.60), (200, 0.94)):
        passed = np.mean(p_values(rng.normal(0, 0.05, (EXPERIMENTS, n))) <= 0.05)
        assert passed == pytest.approx(
            power, abs=0.05 + 3 * math.sqrt(power * (1 - power) / EXPERIMENTS)
        )


def test_one_query_with_the_worst_loss_is_always_added():
    """Against the enumeration of all signs of d + margin with the added query."""
    few = np.array(
        [
            0.3,
            0.1,
            0.2,
            -0.05,
            0.4,
            0.25,
            0.3,
            0.2,
            0.3,
            0.25,
            0.35,
            0.3,
            0.2,
            0.3,
            0.25,
        ]
    )
    many = np.array([-0.03] * 10 + [0.9] * 7)
    for d in (few, many):
        values = np.append(d + MARGIN, MARGIN - 1)
        signs = 1 - 2 * (
            (np.arange(2 ** len(values))[:, None] >> np.arange(len(values))) & 1
        )
        assert p_values(d[None, :])[0] == np.mean(signs @ values >= values.sum() - 1e-9)


@pytest.mark.parametrize(("margin", "fewest"), [(0.02, 149), (0.05, 59), (0.1, 29)])
def test_nothing_passes_below_the_limit_of_information(margin, fewest):
    """The numbers of DEFINITIONS: ceil(ln 0.05 / ln(1 - margin)) equal queries."""
    same = frozenset([frozenset((CHALLENGER_ARM, BASELINE_ARM))])
    for n in (fewest - 1, fewest):
        half = np.full(n, 0.5)
        for identical in (frozenset(), same):
            table = scored(
                {CHALLENGER_ARM: half, BASELINE_ARM: half}, identical=identical
            )
            assert gate_scores(table, margin=margin, settings=Settings()).passed == (
                n == fewest
            )
        (row,) = compare(
            {"a": half, "b": half}, measure="m", settings=Settings(margin=margin)
        )
        assert (row.verdict is Verdict.EQUIVALENT) == (n == fewest)


RNG = np.random.default_rng(9)
B = RNG.random(200)
CLOSE = np.clip(B + RNG.normal(0, 0.01, 200), 0, 1)
AHEAD = np.full(15, 0.7) + np.tile([0.01, -0.01, 0.0], 5)
"""Ahead by 0.2, a fault that costs 0.02 on average hits 0.22 / 1.2 of the queries.

15 queries miss it once in twenty.
"""
HIGH = np.full(200, 3.0)
LOWER = np.full(200, 2.95)


@pytest.mark.parametrize(
    ("a", "b", "options", "passed", "sentence"),
    [
        (CLOSE, B, {}, True, "not worse by 0.02: shown on 200 queries ("),
        (
            np.maximum(B - 0.02, 0),
            B,
            {},
            False,
            "not worse by 0.02: not shown on 200 queries",
        ),
        (AHEAD, np.full(15, 0.5), {}, True, "not worse by 0.02: shown on 15 queries"),
        (
            AHEAD[:14],
            np.full(14, 0.5),
            {},
            False,
            "not worse by 0.02: 14 queries, at least",
        ),
        (
            B[:40],
            B[:40] + 0.01,
            {},
            False,
            "not worse by 0.02: 40 queries, at least 149",
        ),
        (np.ones(1), np.zeros(1), {}, False, "not worse by 0.02: 1 query, at least"),
        (
            HIGH,
            LOWER,
            {"margin": 0.2, "span": 4.0},
            True,
            "not worse by 0.2: shown on 200 queries",
        ),
        (
            HIGH,
            LOWER,
            {"margin": 0.2, "span": 400.0},
            False,
            "not worse by 0.2: 200 queries, at least",
        ),
        (
            HIGH,
            LOWER,
            {"margin": 0.2, "span": None},
            False,
            "not worse by 0.2: not shown, the measure's range",
        ),
    ],
)
def test_the_gate_says_in_one_line_why_it_passes_or_not(
    a, b, options, passed, sentence
):
    outcome = gate(a, b, **{"margin": 0.02, **options})
    assert outcome.passed == passed
    assert gate_sentence(outcome).startswith(sentence)
    assert "\n" not in gate_sentence(outcome)


@pytest.mark.parametrize(
    ("value", "n", "passed", "sentence"),
    [
        (
            0.5,
            3,
            False,
            "no change was seen; a defect that affects fewer than 100 % "
            "of the queries would be missed",
        ),
        (
            0.5,
            150,
            True,
            "a defect that affects fewer than 2.0 % of the queries would be missed",
        ),
        (0.0, 50, False, "every score is 0 on 50 queries (difference +0.0000)"),
    ],
)
def test_identical_rankings_are_called_so_and_prove_little(value, n, passed, sentence):
    both = np.full(n, value)
    same = frozenset([frozenset((CHALLENGER_ARM, BASELINE_ARM))])
    table = scored({CHALLENGER_ARM: both, BASELINE_ARM: both}, identical=same)
    gate = gate_scores(table, margin=0.02, settings=Settings())
    assert (gate.passed, gate_sentence(gate).endswith(sentence)) == (passed, True)


@pytest.mark.parametrize("margin", [-0.1, 0.0, float("nan"), float("inf")])
def test_a_margin_is_a_finite_number_above_0(margin):
    for wrong in (margin, 1e308):
        with pytest.raises(InputError, match="is not a number above 0 and below 1e"):
            Settings(margin=wrong)
    # Points of the measure: a DCG may well differ by more than 1.
    assert Settings(margin=1.5).margin == 1.5


def test_the_range_of_the_measure_is_the_worst_loss():
    scores = {"a": HIGH, "b": LOWER - 0.05 * np.arange(200) / 200}
    unknown, expected = (
        compare(scores, settings=Settings(margin=0.2), ranges={"m": reach})[0]
        for reach in (None, ValueRange(0.0, 4.0))
    )
    assert not unknown.finding.negligible
    assert cell(expected) == "better but negligible"
    with pytest.raises(
        InputError, match=r"scores reach from 2.90025 to 3, outside 0 to 1"
    ):
        compare(scores, ranges={"m": ValueRange(0.0, 1.0)})
