"""Queries that count by their traffic: means, intervals, sign flips and verdicts."""

import json
import math

import numpy as np
import pytest

import harness
from harness.evaluation.question_units import weights_of
from harness.stats.differences import differences, singles, units_of
from harness.stats.intervals import mean, standard_error, student
from harness.stats.settings import Settings
from harness.stats.sign_flip import Contrast, sign_flip
from retrievers.errors import InputError
from retrievers.types import Query
from tests import small
from tests.scored import compare, concluded, scored, sentences

WEIGHTS, VALUES = np.array([4.0, 2.0, 1.0, 1.0]), np.array([0.1, 0.2, -0.1, 0.3])


def test_the_known_answer():
    """DEFINITIONS, Weights: mean .125, SE .053927, effective n 2.909."""
    units = singles(4, WEIGHTS)
    assert mean(VALUES, WEIGHTS) == pytest.approx(0.125, abs=1e-15)
    found = standard_error(VALUES, units)
    assert found.error == pytest.approx(0.053927, abs=5e-7)
    assert units.effective == pytest.approx(2.909, abs=5e-4)
    assert found.freedom == pytest.approx(units.effective - 1)


def test_signs_of_weighted_differences_are_flipped():
    rng = np.random.default_rng(1)
    d, w = rng.normal(0.05, 0.2, 12), rng.integers(1, 50, 12).astype(float)
    table = singles(12, w).sums(np.column_stack([d, np.zeros(12)]))
    signs = 1 - 2 * ((np.arange(2**12)[:, None] >> np.arange(12)) & 1)
    observed = abs(float(w @ d))
    assert sign_flip(table, [Contrast(0, 1)])[0].two_sided == np.mean(np.abs(signs @ (w * d)) >= observed - 1e-9)


def test_equal_weights_are_none_but_for_the_factor_of_small_samples():
    rng = np.random.default_rng(2)
    values = rng.normal(size=50)
    plain, weighted = standard_error(values), standard_error(values, singles(50, np.full(50, 3.0)))
    assert weighted.error == pytest.approx(plain.error * math.sqrt(50 / 49), rel=1e-12)
    assert weighted.freedom == pytest.approx(49)


def test_a_weighted_experiment_is_decided_by_sign_flips_of_the_weighted_mean():
    """One query with most of the traffic loses; nine of ten gain: the weighted mean goes the other way."""
    rng = np.random.default_rng(3)
    a, b = 0.5 + rng.normal(0.1, 0.02, 40), np.full(40, 0.5)
    a[0] = 0.1
    weights = (400.0, *[1.0] * 39)
    chosen = Settings(weight="traffic")
    (row,) = compare({"a": a, "b": b}, settings=chosen, weights=weights)
    assert row.mean_difference == pytest.approx(mean(a - b, np.array(weights)))
    assert row.mean_difference < 0 < (a - b).mean()
    assert row.method in ("draws", "enumerated")
    assert row.p_value == row.p_randomization
    found = concluded({"a": a, "b": b}, [row], settings=chosen, weights=weights)
    assert found.leader == "b"
    assert found.effective == pytest.approx(439**2 / (400**2 + 39))
    assert "Means are weighted by traffic: 40 queries tell as much as about 1 queries of equal weight." in sentences(
        found, chosen
    )


@pytest.mark.slow
def test_weighted_intervals_hold_the_truth():
    """DEFINITIONS: coverage 94 to 96 % for weights like traffic, lognormal; plain robust intervals have 85 to 96."""
    rng, experiments, covered = np.random.default_rng(4), 2_000, 0
    for _ in range(experiments):
        weights = rng.lognormal(0, 1, 60)
        interval = student(rng.normal(size=60), units=singles(60, weights))
        covered += interval.low <= 0 <= interval.high
    error = 3 * math.sqrt(0.05 * 0.95 / experiments)
    assert 0.94 - error <= covered / experiments <= 0.96 + error


def test_weights_and_clusters_together_sum_within_the_cluster():
    units = units_of(["x", "x", "", ""], WEIGHTS)
    assert units.totals.tolist() == [6.0, 1.0, 1.0]
    assert units.sums(VALUES).tolist() == pytest.approx([0.8, -0.1, 0.3])
    assert differences(VALUES, np.zeros(4)).values.tolist() == VALUES.tolist()


def test_a_weight_is_a_number_above_0():
    queries = [Query("1", "a", {"traffic": "12.5"}), Query("2", "b", {"traffic": "0"}), Query("3", "c")]
    assert weights_of(queries[:1], "traffic") == (12.5,)
    assert weights_of(queries, None) is None
    with pytest.raises(
        InputError, match=r"2 queries of 3 without a number above 0 in the field 'traffic'.*'2' has '0'"
    ):
        weights_of(queries, "traffic")
    with pytest.raises(InputError, match="the sign test has no weights"):
        Settings(weight="traffic", test="sign")


def test_the_table_of_scores_keeps_its_weights():
    table = scored({"a": np.array([0.1, np.nan, 0.3])}, weights=(1.0, 2.0, 3.0))
    assert table.mean(table.primary, "a") == pytest.approx((0.1 + 0.9) / 4)
    assert table.only(np.array([True, False, True])).weights == (1.0, 3.0)


def test_a_weighted_run_weighs_its_summary_and_says_so(tmp_path):
    """A query with most of the traffic has most of the mean, in summary.csv, and the page says what the weights are."""
    data = small.dataset(tmp_path / "data")
    rows = [
        {"id": f"q{i}", "query": text, "relevant_documents": docs, "fields": {"traffic": str(100 if i == 0 else 1)}}
        for i, (_, text, docs) in enumerate(small.QUERIES)
    ]
    (data / "queries.json").write_text(json.dumps(rows), encoding="utf-8")
    path = small.experiment(tmp_path, more='[statistics]\nweight = "traffic"\n', report=True)
    results = harness.run(path, harness.Options(tmp_path / "out"))
    scores = results.scores[results.scores["measure"] == "nDCG@3"]
    weights = {f"q{i}": 100.0 if i == 0 else 1.0 for i in range(len(rows))}
    summary = results.summary[results.summary["measure"] == "nDCG@3"].set_index("retriever")["mean"]
    for name, group in scores.groupby("retriever"):
        of = dict(zip(group["query_id"], group["value"], strict=True))
        total = sum(weights[query] for query in of)
        assert summary[name] == pytest.approx(sum(weights[q] * v for q, v in of.items()) / total)
    assert set(results.comparisons["method"]) <= {"enumerated", "draws"}
    assert "Means are weighted by traffic" in (results.folder / "report.md").read_text(encoding="utf-8")
