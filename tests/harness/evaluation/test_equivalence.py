"""Within the margin, and the gate: what may pass, and what must not. benchmarks/stats.py repeats it 20,000 times."""

import math
from importlib import import_module

import numpy as np
import pytest

from harness.evaluation.gate import BASELINE, CHALLENGER, gate, gate_scores
from harness.evaluation.verdict import Verdict
from harness.evaluation.wording import gate_sentence
from harness.stats.differences import Range, differences, singles
from harness.stats.paired_tests import Within, not_worse
from harness.stats.settings import Settings
from retrievers.errors import InputError
from tests.support.scored import cell, compare, scored

MARGIN, EXPERIMENTS = 0.02, 300
AT_THE_MARGIN = {
    "0/1, 2 % lost": lambda rng, s: -(rng.random(s) < 0.02).astype(float),
    "ties and losses of 0.4": lambda rng, s: -0.4 * (rng.random(s) < 0.05),
    "half gain 0.02, 3 % lose 1": lambda rng, s: rng.choice([0.02, -1.0, 0.0], s, p=[0.5, 0.03, 0.47]),
    "normal, 3 % lose 1": lambda rng, s: np.where(rng.random(s) < 0.03, -1.0, rng.normal(0.01 / 0.97, 0.01, s)),
    "noise, 2 % lose 1": lambda rng, s: np.where(rng.random(s) < 0.02, -1.0, rng.normal(0, 0.03, s)),
    "normal": lambda rng, s: rng.normal(-0.02, 0.05, s),
}


def p_values(table):
    """The p of each row of differences."""
    found = [differences(row, np.zeros(len(row))) for row in table]
    return np.array([t.greater for t in not_worse(found, Within(MARGIN, 1.0, singles(table.shape[1])))])


@pytest.mark.slow
@pytest.mark.parametrize("shape", AT_THE_MARGIN)
@pytest.mark.parametrize("n", [50, 120, 150, 300])
def test_a_loss_of_the_whole_margin_passes_at_most_5_percent_of_the_time(shape, n, monkeypatch):
    """Five of the shapes of benchmarks/stats.md, rare disasters among noise first of all."""
    monkeypatch.setattr(import_module("harness.stats.sign_flip"), "DRAWS", 1_000)
    table = AT_THE_MARGIN[shape](np.random.default_rng([n, len(shape)]), (EXPERIMENTS, n))
    passed = np.mean(p_values(table) <= 0.05)
    assert passed <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / EXPERIMENTS)


@pytest.mark.slow
def test_the_power_at_true_equality(monkeypatch):
    """Normal differences with a standard deviation of 0.05, as in DEFINITIONS: 0, 0.60 and 0.94."""
    monkeypatch.setattr(import_module("harness.stats.sign_flip"), "DRAWS", 1_000)
    rng = np.random.default_rng(0)
    for n, power in ((50, 0.0), (150, 0.60), (200, 0.94)):
        passed = np.mean(p_values(rng.normal(0, 0.05, (EXPERIMENTS, n))) <= 0.05)
        assert passed == pytest.approx(power, abs=0.05 + 3 * math.sqrt(power * (1 - power) / EXPERIMENTS))


def test_one_query_with_the_worst_loss_is_always_added():
    """Against the enumeration of all signs of d + margin with the added query, few losses or many."""
    few = np.array([0.3, 0.1, 0.2, -0.05, 0.4, 0.25, 0.3, 0.2, 0.3, 0.25, 0.35, 0.3, 0.2, 0.3, 0.25])
    many = np.array([-0.03] * 10 + [0.9] * 7)
    for d in (few, many):
        values = np.append(d + MARGIN, MARGIN - 1)
        signs = 1 - 2 * ((np.arange(2 ** len(values))[:, None] >> np.arange(len(values))) & 1)
        assert p_values(d[None, :])[0] == np.mean(signs @ values >= values.sum() - 1e-9)


@pytest.mark.parametrize(("margin", "fewest"), [(0.02, 149), (0.05, 59), (0.1, 29)])
def test_nothing_passes_below_the_limit_of_information(margin, fewest):
    """The numbers of DEFINITIONS: ceil(ln 0.05 / ln(1 - margin)) equal queries, identical rankings or not."""
    same = frozenset([frozenset((CHALLENGER, BASELINE))])
    for n in (fewest - 1, fewest):
        half = np.full(n, 0.5)
        for identical in (frozenset(), same):
            table = scored({CHALLENGER: half, BASELINE: half}, identical=identical)
            assert gate_scores(table, margin=margin, settings=Settings()).passed == (n == fewest)
        (row,) = compare({"a": half, "b": half}, measure="m", settings=Settings(margin=margin))
        assert (row.verdict is Verdict.EQUIVALENT) == (n == fewest)


def test_a_retriever_that_is_ahead_needs_fewer_queries():
    """Ahead by 0.2, a fault that costs 0.02 on average hits 0.22 / 1.2 of the queries: 15 miss it once in twenty."""
    ahead = np.full(15, 0.7) + np.tile([0.01, -0.01, 0.0], 5)
    assert (1 - 0.22 / 1.2) ** 15 < 0.05 < (1 - 0.22 / 1.2) ** 14
    assert gate(ahead, np.full(15, 0.5), margin=0.02).passed
    assert not gate(ahead[:14], np.full(14, 0.5), margin=0.02).passed


def test_the_gate_passes_and_says_why_in_one_line():
    rng = np.random.default_rng(9)
    b = rng.random(200)
    passed = gate(np.clip(b + rng.normal(0, 0.01, 200), 0, 1), b, margin=0.02)
    assert passed.passed
    assert gate_sentence(passed).startswith("not worse by 0.02: shown on 200 queries (difference ")
    assert "\n" not in gate_sentence(passed)
    failed = gate(np.maximum(b - 0.02, 0), b, margin=0.02)
    assert not failed.passed
    assert gate_sentence(failed).startswith("not worse by 0.02: not shown")


def test_the_gate_says_how_many_queries_are_needed():
    rng = np.random.default_rng(3)
    a, b = rng.normal(0.5, 0.01, 40), np.full(40, 0.51)
    found = gate(a, b, margin=0.02)
    assert not found.passed
    assert gate_sentence(found).startswith("not worse by 0.02: 40 queries cannot show it, which takes at least 149 ")
    assert gate_sentence(gate(np.ones(1), np.zeros(1), margin=0.02)).startswith("not worse by 0.02: 1 query cannot")


def test_identical_rankings_are_called_so_and_prove_little():
    same = frozenset([frozenset((CHALLENGER, BASELINE))])

    def gated(both):
        return gate_scores(scored({CHALLENGER: both, BASELINE: both}, identical=same), margin=0.02, settings=Settings())

    three = gated(np.full(3, 0.5))
    assert not three.passed
    assert gate_sentence(three).endswith(
        "no change was seen; a fault that hits fewer than 100 % of the queries would be missed"
    )
    enough = gated(np.full(150, 0.5))
    assert enough.passed
    assert gate_sentence(enough).endswith("a fault that hits fewer than 2.0 % of the queries would be missed")
    zeros = gated(np.zeros(50))
    assert not zeros.passed
    assert gate_sentence(zeros).startswith("nothing was measured: every score is 0")


@pytest.mark.parametrize("margin", [-0.1, 0.0, float("nan"), float("inf")])
def test_a_margin_is_a_finite_number_above_0(margin):
    with pytest.raises(InputError, match="is not a finite number above 0"):
        gate(np.ones(5), np.zeros(5), margin=margin)
    with pytest.raises(InputError, match="is not a finite number above 0"):
        Settings(margin=margin)
    with pytest.raises(InputError, match="is larger than the range of any measure"):
        Settings(margin=1e308)
    # Points of the measure: a DCG may well differ by more than 1.
    assert Settings(margin=1.5).margin == 1.5


def test_the_range_of_the_measure_is_the_worst_loss():
    a, b = np.full(200, 3.0), np.full(200, 2.95)
    assert gate(a, b, margin=0.2, span=4.0).passed
    assert not gate(a, b, margin=0.2, span=400.0).passed
    assert "range is not known" in gate_sentence(gate(a, b, margin=0.2, span=None))
    with pytest.raises(InputError, match=r"a difference of 2 is larger than 1"):
        gate(np.full(9, 2.0), np.zeros(9), margin=0.1)
    chosen, scores = Settings(margin=0.2), {"a": a, "b": b - 0.05 * np.arange(200) / 200}
    unknown, known = (
        compare(scores, measure="DCG@10", settings=chosen, ranges={"DCG@10": reach})[0]
        for reach in (None, Range(0.0, 4.0))
    )
    assert not unknown.finding.negligible
    assert cell(known) == "better but negligible"
    with pytest.raises(InputError, match=r"scores reach from 2.90025 to 3, outside 0 to 1"):
        compare(scores, measure="m", ranges={"m": Range(0.0, 1.0)})
