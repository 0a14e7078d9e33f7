"""Within the margin, and the gate: what may pass, and what must not. benchmarks/stats.py repeats it 20,000 times."""

import math
from importlib import import_module

import numpy as np
import pytest
from scipy import stats

from harness.evaluation.gate import BASELINE, CHALLENGER, gate, gate_scores
from harness.evaluation.wording import gate_sentence
from harness.stats.differences import Range, differences, singles
from harness.stats.equivalence import Within, not_worse
from harness.stats.settings import Settings
from retrievers.errors import InputError
from tests.scored import cell, compare, scored

MARGIN, EXPERIMENTS = 0.02, 300
AT_THE_MARGIN = {
    "0/1, 2 % lost": lambda rng, s: -(rng.random(s) < 0.02).astype(float),
    "ties and losses of 0.4": lambda rng, s: -0.4 * (rng.random(s) < 0.05),
    "half gain 0.02, 3 % lose 1": lambda rng, s: rng.choice([0.02, -1.0, 0.0], s, p=[0.5, 0.03, 0.47]),
    "normal, 3 % lose 1": lambda rng, s: np.where(rng.random(s) < 0.03, -1.0, rng.normal(0.01 / 0.97, 0.01, s)),
    "normal": lambda rng, s: rng.normal(-0.02, 0.05, s),
}


def p_values(table):
    """The p of each row of differences."""
    found = [differences(row, np.zeros(len(row))) for row in table]
    return np.array([t.greater for t in not_worse(found, Within(MARGIN, 1.0, singles(table.shape[1])))])


@pytest.mark.parametrize("shape", AT_THE_MARGIN)
@pytest.mark.parametrize("n", [13, 150])
def test_a_loss_of_the_whole_margin_passes_at_most_8_percent_of_the_time(shape, n, monkeypatch):
    monkeypatch.setattr(import_module("harness.stats.sign_flip"), "DRAWS", 1_000)
    table = AT_THE_MARGIN[shape](np.random.default_rng([n, len(shape)]), (EXPERIMENTS, n))
    passed = np.mean(p_values(table) <= 0.05)
    assert passed <= 0.08 + 3 * math.sqrt(0.08 * 0.92 / EXPERIMENTS)


def test_the_power_at_true_equality_is_that_of_the_t_test_once_losses_are_seen(monkeypatch):
    """Normal differences with a standard deviation of 0.05: nothing passes at 13 queries, few of which lose 0.02."""
    monkeypatch.setattr(import_module("harness.stats.sign_flip"), "DRAWS", 1_000)
    rng = np.random.default_rng(0)
    assert np.mean(p_values(rng.normal(0, 0.05, (EXPERIMENTS, 13))) <= 0.05) == 0.0
    for n in (50, 150):
        power = stats.nct.sf(stats.t.isf(0.05, n - 1), n - 1, 0.4 * math.sqrt(n))  # 0.874 and 0.999
        passed = np.mean(p_values(rng.normal(0, 0.05, (EXPERIMENTS, n))) <= 0.05)
        assert passed == pytest.approx(power, abs=3 * math.sqrt(0.9 * 0.1 / EXPERIMENTS))


def test_one_query_with_the_worst_loss_is_added_while_fewer_than_ten_lose_the_margin():
    """Against the enumeration of all signs of d + margin with the added query."""
    d = np.array([0.3, 0.1, 0.2, -0.05, 0.4, 0.25])
    values = np.append(d + MARGIN, MARGIN - 1)
    signs = 1 - 2 * ((np.arange(128)[:, None] >> np.arange(7)) & 1)
    expected = np.mean(signs @ values >= values.sum() - 1e-9)
    assert p_values(d[None, :])[0] == expected
    ten = np.array([-0.03] * 10)
    assert p_values(ten[None, :])[0] == 1.0
    # Ten losses say enough: nothing is added, and p is that of the values alone.
    mixed = np.array([-0.03] * 10 + [0.2] * 5)
    values = mixed + MARGIN
    signs = 1 - 2 * ((np.arange(2**15)[:, None] >> np.arange(15)) & 1)
    assert p_values(mixed[None, :])[0] == np.mean(signs @ values >= values.sum() - 1e-9)


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


def test_the_gate_says_that_four_queries_can_never_show_it():
    found = gate(np.ones(4), np.zeros(4), margin=0.02)
    assert not found.passed
    assert gate_sentence(found).startswith("4 queries can never show it: the smallest possible p is 0.0625, above 0.05")
    lenient = gate(np.ones(4), np.zeros(4), margin=0.02, settings=Settings(alpha=0.2))
    assert not lenient.passed
    assert gate_sentence(lenient).startswith("4 queries can never show it: at least 5 are needed")
    assert gate(np.ones(5), np.zeros(5), margin=0.02).passed
    assert gate_sentence(gate(np.ones(1), np.zeros(1), margin=0.02)).startswith("1 query can never show it")


def test_five_equal_queries_show_no_margin_unless_the_rankings_are_the_same():
    five = np.full(5, 0.5)
    assert not gate(five, five, margin=1e-6).passed
    same = frozenset([frozenset((CHALLENGER, BASELINE))])

    def gated(both, margin):
        return gate_scores(
            scored({CHALLENGER: both, BASELINE: both}, identical=same), margin=margin, settings=Settings()
        )

    found = gated(five, 1e-6)
    assert found.passed
    assert "the rankings are identical on 5 queries" in gate_sentence(found)
    zeros = gated(np.zeros(50), 0.02)
    assert not zeros.passed
    assert gate_sentence(zeros).startswith("nothing was measured: every score is 0")


@pytest.mark.parametrize("margin", [-0.1, 0.0, float("nan"), float("inf")])
def test_a_margin_is_a_finite_number_above_0(margin):
    with pytest.raises(InputError, match="is not a finite number above 0"):
        gate(np.ones(5), np.zeros(5), margin=margin)
    with pytest.raises(InputError, match="is not a finite number above 0"):
        Settings(margin=margin)
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
