"""Within the margin, and the gate: what may pass, and what must not.

benchmarks/stats.py repeats it 20,000 times.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from harness.evaluation.gate_verdict import (
    BASELINE_ARM,
    CHALLENGER_ARM,
    GateOutcome,
    gate_scores,
)
from harness.evaluation.verdict import Verdict
from harness.scoring.score_table import scores_from_columns
from harness.scoring.scores import ScoreColumn
from harness.stats.differences import ValueRange
from harness.stats.paired_tests import EquivalenceMargin, non_inferiority_tests
from harness.stats.settings import Settings
from harness.stats.units import cluster_units, single_units
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
@pytest.mark.parametrize("n", [50, 120, 150, 200, 300])
def test_the_power_at_true_equality_is_nearly_the_normal_one(n):
    """Normal differences, standard deviation 0.05; one query with the worst loss.

    The sum of random signs has a variance of the sum of squares: it passes from 1.645
    of its deviations on.
    """
    loss = 1 - MARGIN
    spread = math.sqrt(n * (0.05**2 + MARGIN**2) + loss**2)
    lacking = stats.norm.isf(0.05) * spread - (n * MARGIN - loss)
    power = stats.norm.sf(lacking / (0.05 * math.sqrt(n)))
    differences = np.random.default_rng(n).normal(0, 0.05, (EXPERIMENTS, n))
    passed = np.mean(p_values(differences) <= 0.05)
    assert passed == pytest.approx(
        power, abs=0.06 + 3 * math.sqrt(power * (1 - power) / EXPERIMENTS)
    )


@pytest.mark.parametrize(
    "differences",
    [
        [0.3, 0.1, 0.2, -0.05, 0.4, 0.25, 0.3, 0.2, 0.3, 0.25, 0.35, 0.3, 0.2],
        [-0.03] * 10 + [0.9] * 7,
    ],
    ids=["mostly gains", "small losses and large gains"],
)
def test_one_query_with_the_worst_loss_is_always_added(differences):
    """Against the enumeration of all signs of d + margin with the added query."""
    d = np.array(differences)
    expected = enumerated(np.append(d + MARGIN, MARGIN - 1))
    assert p_values(d[None, :])[0] == expected


def enumerated(values):
    """The share of sign patterns whose sum is at least the observed one."""
    patterns = np.arange(2 ** len(values))[:, None] >> np.arange(len(values))
    signs = 1 - 2 * (patterns & 1)
    return np.mean(signs @ values >= values.sum() - 1e-9)


GAINS = np.linspace(0.05, 0.4, 14)


def added_unit_p(units):
    within = EquivalenceMargin(MARGIN, 1.0, units, alpha=0.5)
    scores = {"a": GAINS + 0.5, "b": np.full(14, 0.5)}
    (test,) = non_inferiority_tests(scores, [("a", "b")], within)
    return test.greater


def test_the_added_query_has_the_largest_weight():
    weights = np.array([4.0, 2.0, *[1.0] * 12])
    shifted = np.append(weights * (GAINS + MARGIN), 4.0 * (MARGIN - 1))
    expected = enumerated(shifted)
    assert added_unit_p(single_units(14, weights)) == pytest.approx(expected)


def test_the_added_cluster_is_as_large_as_the_largest():
    clusters = ["one"] * 3 + ["two"] * 2 + [""] * 9
    shifted = GAINS + MARGIN
    sums = [shifted[:3].sum(), shifted[3:5].sum(), *shifted[5:], 3 * (MARGIN - 1)]
    expected = enumerated(np.array(sums))
    assert added_unit_p(cluster_units(clusters)) == pytest.approx(expected)


FEWEST = [(0.02, 149), (0.05, 59), (0.1, 29)]
"""The smallest n with (1 - margin)^n <= 0.05: docs/how-to/gate-in-ci.md, How many."""
SAME = frozenset([frozenset((CHALLENGER_ARM, BASELINE_ARM))])
"""Both arms have the same rankings."""


def gate_of_equal_scores(queries, margin, identical=frozenset()):
    half = np.full(queries, 0.5)
    table = scored({CHALLENGER_ARM: half, BASELINE_ARM: half}, identical=identical)
    return gate_scores(table, margin=margin, settings=Settings())


@pytest.mark.parametrize(("margin", "fewest"), FEWEST)
def test_a_gate_of_equal_scores_passes_from_the_limit_of_information_on(margin, fewest):
    below = gate_of_equal_scores(fewest - 1, margin)
    reached = gate_of_equal_scores(fewest, margin)
    assert [below.outcome, reached.outcome] == [
        GateOutcome.NOT_SHOWN,
        GateOutcome.PASSED,
    ]


@pytest.mark.parametrize("missing", [0, 1])
@pytest.mark.parametrize(("margin", "fewest"), FEWEST)
def test_the_same_rankings_are_unchanged_below_the_limit_too(margin, fewest, missing):
    """That claims no equivalence."""
    same = gate_of_equal_scores(fewest - missing, margin, SAME)
    assert same.outcome is GateOutcome.UNCHANGED


@pytest.mark.parametrize(("margin", "fewest"), FEWEST)
def test_equal_scores_are_equivalent_from_the_limit_of_information_on(margin, fewest):
    verdicts = []
    for queries in (fewest - 1, fewest):
        half = np.full(queries, 0.5)
        (row,) = compare({"a": half, "b": half}, settings=Settings(margin=margin))
        verdicts.append(row.verdict)
    assert verdicts == [Verdict.UNDECIDED, Verdict.EQUIVALENT]


B = np.random.default_rng(9).random(200)
CLOSE = np.clip(B + np.random.default_rng(11).normal(0, 0.01, 200), 0, 1)
"""The mean differs from that of B by less than 0.001."""
AHEAD = np.full(15, 0.7) + np.tile([0.01, -0.01, 0.0], 5)
"""Ahead by 0.2, a fault that costs 0.02 on average hits 0.22 / 1.2 of the queries.

15 queries miss it once in twenty.
"""
HIGH = np.full(200, 3.0)
LOWER = np.full(200, 2.95)


PASSED = GateOutcome.PASSED
WORSE = GateOutcome.WORSE
NOT_SHOWN = GateOutcome.NOT_SHOWN
UNCHANGED = GateOutcome.UNCHANGED
SLIGHTLY = {"margin": 0.05}


@pytest.mark.parametrize(
    ("a", "b", "options", "outcome", "sentence"),
    [
        (CLOSE, B, {}, PASSED, "passed: not worse by 0.02 on 200 queries ("),
        (
            np.maximum(B - 0.02, 0),
            B,
            {},
            WORSE,
            "worse on 200 queries (difference −0.0198, p < 10⁻¹²)",
        ),
        (
            B[::-1],
            B,
            {},
            NOT_SHOWN,
            "not shown: with 200 queries a loss of 0.02 cannot be ruled out (diff",
        ),
        (
            np.maximum(B - 0.01, 0),
            B,
            SLIGHTLY,
            PASSED,
            "passed: not worse by 0.05 on 200 queries (difference −0.0100",
        ),
        (
            AHEAD,
            np.full(15, 0.5),
            {},
            PASSED,
            "passed: not worse by 0.02 on 15 queries",
        ),
        (
            AHEAD[:14],
            np.full(14, 0.5),
            {},
            NOT_SHOWN,
            "not shown: with 14 queries a loss of 0.02 cannot be ruled out (15 needed)",
        ),
        (
            B[:38] + np.tile([0.01, -0.01], 19),
            B[:38],
            SLIGHTLY,
            NOT_SHOWN,
            "not shown: with 38 queries a loss of 0.05 cannot be ruled out (59 needed)",
        ),
        (
            B[:40],
            B[:40] + 0.01,
            {},
            WORSE,
            # All 40 lose: 2 of 2^40 signs.
            "worse on 40 queries (difference −0.0100, p = 1.82×10⁻¹²)",
        ),
        (
            np.ones(1),
            np.zeros(1),
            {},
            NOT_SHOWN,
            "not shown: with 1 query a loss of 0.02 cannot be ruled out (",
        ),
        (
            HIGH,
            LOWER,
            {"margin": 0.2, "span": 4.0},
            PASSED,
            "passed: not worse by 0.2 on 200 queries",
        ),
        (
            HIGH,
            LOWER,
            {"margin": 0.2, "span": 400.0},
            NOT_SHOWN,
            "not shown: with 200 queries a loss of 0.2 cannot be ruled out (",
        ),
        (
            HIGH,
            LOWER,
            {"margin": 0.2, "span": None},
            NOT_SHOWN,
            "not shown: the measure's range is unknown",
        ),
    ],
)
def test_the_gate_says_in_one_line_what_it_found_and_what_to_do(
    a, b, options, outcome, sentence
):
    found = gate(a, b, **{"margin": 0.02, **options})
    assert found.outcome is outcome
    assert found.passed == (outcome is PASSED)
    assert gate_sentence(found).startswith(sentence)
    assert "\n" not in gate_sentence(found)


def test_a_gate_that_passes_says_if_it_is_worse_within_the_margin():
    found = gate(np.maximum(B - 0.01, 0), B, margin=0.05)
    assert gate_sentence(found).endswith("; worse, but within the margin")
    assert not gate_sentence(gate(CLOSE, B, margin=0.05)).endswith("the margin")


def test_missed_defects_are_of_clusters_where_these_are_the_units():
    unchanged = replace(gate(B, B, margin=0.05), clusters=30)
    sentence = gate_sentence(replace(unchanged, outcome=UNCHANGED))
    assert sentence.endswith(
        "; 30 clusters miss a defect that affects fewer than 1 cluster in 10"
    )


def test_weighted_queries_are_said_to_decide():
    weights = (40.0, *[1.0] * 199)
    table = scored({CHALLENGER_ARM: CLOSE, BASELINE_ARM: B}, weights=weights)
    found = gate_scores(table, margin=0.02, settings=Settings(weight="traffic"))
    assert gate_sentence(found).endswith(
        "; few heavy queries decide: "
        "draw queries in proportion to traffic instead of weighting them"
    )


@pytest.mark.parametrize(
    ("value", "n", "outcome", "sentence"),
    [
        (0.5, 3, UNCHANGED, "unchanged: the rankings are the same on 3 queries"),
        (0.5, 4, UNCHANGED, "unchanged: the rankings are the same on 4 queries"),
        (
            0.5,
            150,
            UNCHANGED,
            # The rule of three: 3 / 150.
            "unchanged: the rankings are the same on 150 queries; "
            "150 queries miss a defect that affects fewer than 1 query in 50",
        ),
        (
            0.0,
            50,
            NOT_SHOWN,
            "not shown: nothing was measured, every score is 0 on 50 queries",
        ),
    ],
)
def test_identical_rankings_are_called_so_and_prove_little(value, n, outcome, sentence):
    both = np.full(n, value)
    table = scored({CHALLENGER_ARM: both, BASELINE_ARM: both}, identical=SAME)
    found = gate_scores(table, margin=0.02, settings=Settings())
    assert (found.outcome, gate_sentence(found)) == (outcome, sentence)
    assert found.passed == (outcome is UNCHANGED)


@pytest.mark.parametrize(
    "margin", [-0.1, 0.0, float("nan"), float("inf"), 1e308, 1e-310]
)
def test_a_margin_is_a_finite_number_above_0(margin):
    with pytest.raises(InputError, match=r"above 0|too close to 0"):
        Settings(margin=margin)


def test_a_margin_is_in_points_of_the_measure():
    """A DCG may well differ by more than 1."""
    assert Settings(margin=1.5).margin == 1.5


DISTANT = {"a": HIGH, "b": LOWER - 0.05 * np.arange(200) / 200}
"""From 2.90025 to 3."""


def own_scores(name, third):
    values = [[0.0, 1.0, third], [1.0, 0.0, third]]
    columns = [
        ScoreColumn(name, r, "xyz", v) for r, v in zip("ab", values, strict=True)
    ]
    return scores_from_columns(
        columns, {}, {}, compared={}, source_order="xyz", primary=name
    )


@pytest.mark.parametrize(
    ("name", "third", "binary"),
    [("own.m", 1.0, True), ("own.m", 0.5, False), ("own.m(high=2)", 1.0, False)],
)
def test_an_own_measure_is_binary_on_some_queries_if_it_is_on_all(name, third, binary):
    table = own_scores(name, third)
    (measure,) = table.values
    some = table.select_queries(np.array([True, True, False]))
    last = table.select_queries(np.array([False, False, True]))
    tables = (table, some, last)
    assert [scores.is_binary(measure) for scores in tables] == [binary] * 3


@pytest.mark.parametrize(
    ("reach", "verdict"),
    [(None, "better"), (ValueRange(0.0, 4.0), "better but negligible")],
)
def test_the_range_of_the_measure_is_the_worst_loss(reach, verdict):
    (row,) = compare(DISTANT, settings=Settings(margin=0.2), ranges={"m": reach})
    assert cell(row) == verdict


def test_a_foreign_measure_has_the_range_of_all_queries_on_some():
    table = scored({"a": np.array([0.0, 1.0, 9.0]), "b": np.array([1.0, 0.0, 0.5])})
    some = table.select_queries(np.array([True, True, False]))
    assert table.range_of("m") is None is some.range_of("m")
    assert not table.is_binary("m") and not some.is_binary("m")
    low = scored({"a": np.array([0.0, 1.0, 1.0]), "b": np.array([0.0, 0.0, 0.0])})
    some = low.select_queries(np.array([True, False, False]))
    assert some.is_binary("m") and some.range_of("m") == ValueRange(0, 1)


def test_scores_outside_the_range_of_the_measure_are_refused():
    message = r"scores reach from 2.90025 to 3, outside 0 to 1"
    with pytest.raises(InputError, match=message):
        compare(DISTANT, ranges={"m": ValueRange(0.0, 1.0)})
