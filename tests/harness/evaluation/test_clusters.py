"""Queries that ask for the same thing are one observation; weights of queries."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.evaluation.families import slice_family
from harness.evaluation.property_slices import (
    Condition,
    PropertySlice,
    SliceName,
)
from harness.scoring.query_units import query_clusters, query_weights
from harness.stats.cross_fitting import cross_fitted_scores
from harness.stats.differences import paired_differences
from harness.stats.intervals import mean, standard_error, student_interval
from harness.stats.paired_tests import paired_t_test
from harness.stats.settings import Settings
from harness.stats.sign_flip import Contrast, sign_flip
from harness.stats.summary import summarize_scores
from harness.stats.units import cluster_units, single_units
from harness.wording.conclusion import conclusion_sentences
from harness.wording.looks import look_sentences
from retrievers.errors import InputError
from retrievers.types import Query
from tests.support import small
from tests.support.scored import cell, compare, concluded, scored


def sample(seed, needs=30, query_scores=5, correlation=0.5):
    """Differences whose members of one need are correlated, and their needs."""
    rng = np.random.default_rng(seed)
    shared = np.repeat(rng.normal(0, math.sqrt(correlation), needs), query_scores)
    values = (
        shared + rng.normal(0, math.sqrt(1 - correlation), needs * query_scores)
    ) / 10
    return values, [f"need {j}" for j in range(needs) for _ in range(query_scores)]


def present(row, columns):
    """The defined columns of a comparison: equal differences have no interval."""
    numbers = {column: getattr(row, column) for column in columns}
    return {column: number for column, number in numbers.items() if number is not None}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 10), min_size=4, max_size=12), st.integers(1, 3))
def test_copies_of_every_query_in_one_cluster_change_no_test(values, copies):
    a = np.array(values) / 10
    b = np.full(len(values), 0.45)
    once = compare({"a": a, "b": b}, measure="m")[0]
    labels = [str(j) for j in range(len(values)) for _ in range(copies)]
    copied = {"a": np.repeat(a, copies), "b": np.repeat(b, copies)}
    row = compare(copied, clusters=tuple(labels))[0]
    assert (row.n, row.clusters, once.clusters) == (
        copies * len(values),
        len(values),
        None,
    )
    assert (row.wins, row.ties, row.losses) == (
        copies * once.wins,
        copies * once.ties,
        copies * once.losses,
    )
    same = ("zeros", "w_plus", "w_minus", "p_value", "p_minimum", "method", "finding")
    assert present(row, same) == present(once, same)
    rounded = ("p_randomization", "ci_low", "ci_high", "mean_difference")
    assert present(row, rounded) == pytest.approx(
        present(once, rounded), rel=1e-9, abs=1e-12
    )


def test_the_robust_error_is_that_of_the_jackknife_over_clusters():
    """Without each cluster in turn: SE^2 = (G - 1) / G x the sum of squared changes."""
    rng = np.random.default_rng(0)
    labels = np.append(rng.integers(0, 12, 60), [3] * 40)
    values = rng.normal(0.1, 0.2, 100) + labels / 60
    count = len(set(labels))
    changes = [
        values[labels != single].mean() - values.mean() for single in set(labels)
    ]
    units = cluster_units([str(x) for x in labels])
    result = standard_error(values, units)
    assert result.error == pytest.approx(
        math.sqrt((count - 1) / count * sum(x * x for x in changes)), rel=1e-12
    )
    assert result.degrees_of_freedom == pytest.approx(
        100**2 / sum(np.sum(labels == single) ** 2 for single in set(labels)) - 1
    )
    assert paired_t_test(
        paired_differences(values, np.zeros(100)), units
    ).statistic == pytest.approx(values.mean() / result.error)
    alone = standard_error(values)
    assert alone.error == pytest.approx(values.std(ddof=1) / 10, rel=1e-12)
    assert alone.degrees_of_freedom == 99


@pytest.mark.slow
def test_one_dominant_cluster_and_weights_like_traffic_leave_intervals_their_coverage():
    """94 to 96 %; without leverages 72 to 85 %, as `standard_error` says.

    One need has half of the queries, 30 have one each.
    """
    rng = np.random.default_rng(5)
    n = 1_000
    error = 3 * math.sqrt(0.05 * 0.95 / n)
    units = cluster_units(["all"] * 30 + [f"need {j}" for j in range(30)])
    covered = np.zeros(2)
    for _ in range(n):
        shared = np.append(
            np.repeat(rng.normal(), 30), rng.normal(size=30)
        ) * math.sqrt(0.5)
        dominant = student_interval(
            shared + rng.normal(size=60) * math.sqrt(0.5), units=units
        )
        weighted = student_interval(
            rng.normal(size=60), units=single_units(60, rng.lognormal(0, 1, 60))
        )
        covered += [
            interval.low <= 0 <= interval.high for interval in (dominant, weighted)
        ]
    assert covered[0] / n >= 0.95 - error
    assert 0.94 - error <= covered[1] / n <= 0.96 + error


def test_queries_of_equal_text_are_one_question():
    """Three questions under ten ids each, on all of which one is better."""
    texts = ["How do I reset it?", "Who pays?", "Where is the VPN?"]
    queries = []
    for i in range(30):
        text = texts[i % 3]
        queries.append(Query(f"q{i:02}", f"{text} ".upper() if i % 2 else text))
    values = {"a": 0.5 + np.tile([0.3, 0.2, 0.1], 10), "b": np.full(30, 0.5)}
    (row,) = compare(values, clusters=query_clusters(queries, None))
    (by_query,) = compare(values)
    assert (row.n, row.clusters) == (30, 3)
    # Of all signs, the two that are all alike.
    assert row.p_value == 2 / 2**3
    assert by_query.p_value == pytest.approx(2 / 2**30, rel=1e-12)


def test_different_texts_have_no_clusters():
    assert query_clusters([Query("1", "x"), Query("2", "y")], None) is None


def test_turns_whose_texts_join_to_the_same_are_not_the_same_query():
    queries = [Query("1", "b c", history=("a",)), Query("2", "c", history=("a b",))]
    named = [replace(query, fields={"conversation": query.id}) for query in queries]
    assert query_clusters(named, None) == ("", "")


@pytest.mark.parametrize(
    ("field", "clusters"),
    [("need", ("0", "0", "0", "0", "")), (None, ("0", "0", "0", "", ""))],
)
def test_queries_of_equal_text_join_declared_clusters(field, clusters):
    queries = [
        Query("0", "same", {"need": "n"}),
        Query("1", "Same", {}),
        Query("2", "same ", {"need": "m"}),
        Query("3", "other", {"need": "m"}),
        Query("4", "alone", {}),
    ]
    assert query_clusters(queries, field) == clusters


def test_queries_of_a_folder_of_which_none_has_the_declared_field_are_scored(tmp_path):
    path = small.dataset(tmp_path / "data") / "queries.json"
    queries = json.loads(path.read_text(encoding="utf-8"))
    for query in queries[:2]:
        query["need"] = "x"
    path.write_text(json.dumps(queries), encoding="utf-8")
    folder = small.ran(tmp_path, more='[statistics]\ncluster = "need"\n').folder
    listed = tmp_path / "ids.txt"
    listed.write_text("\n".join(query["id"] for query in queries[2:]))
    assert small.ended("score", folder, "--queries", listed) == 0


def flipped(sums):
    """Return the sums under every pattern of signs."""
    patterns = np.arange(2 ** len(sums))[:, None]
    signs = 1 - 2 * ((patterns >> np.arange(len(sums))) & 1)
    return signs @ sums


def test_signs_are_flipped_by_cluster():
    values = np.array([0.2, 0.1, -0.1, 0.3, 0.2, 0.05])
    units = cluster_units(["x", "x", "y", "y", "z", "z"])
    table = units.sums(np.column_stack([values, np.zeros(6)]))
    (result,) = sign_flip(table, [Contrast(0, 1)])
    exact = np.mean(flipped(np.array([0.3, 0.2, 0.25])) >= 0.75 - 1e-9)
    assert result.greater == exact == 1 / 8


def test_the_signs_of_weighted_differences_are_flipped():
    rng = np.random.default_rng(1)
    d = rng.normal(0.05, 0.2, 12)
    w = rng.integers(1, 50, 12).astype(float)
    table = single_units(12, w).sums(np.column_stack([d, np.zeros(12)]))
    (result,) = sign_flip(table, [Contrast(0, 1)])
    exact = np.mean(np.abs(flipped(w * d)) >= abs(w @ d) - 1e-9)
    assert result.two_sided == exact


SAMPLED, NEEDS = sample(2)
BY_NEED = {
    "a": np.clip(0.5 + SAMPLED, 0, 1),
    "b": np.full(150, 0.5),
    "c": np.clip(0.5 - SAMPLED, 0, 1),
}
"""Scores on five queries for each of 30 needs."""


def test_an_evaluation_tells_its_clusters():
    clusters = tuple(NEEDS)
    compared = compare(BY_NEED, clusters=clusters)
    evaluation = concluded(BY_NEED, compared, clusters=clusters)
    assert "150 queries (30 clusters)" in " ".join(look_sentences(evaluation))
    assert {row.clusters for row in compared} == {evaluation.clusters} == {30}


def test_the_interval_of_a_mean_is_wider_by_cluster():
    """Five queries of correlation 0.5: by the root of 1 + 4 x 0.5, nearly."""
    by_need = summarize_scores(BY_NEED["a"], units=cluster_units(NEEDS))
    by_query = summarize_scores(BY_NEED["a"])
    assert by_need.count == 150
    width = by_query.ci_high - by_query.ci_low
    assert by_need.ci_high - by_need.ci_low == pytest.approx(1.73 * width, rel=0.15)


def test_a_cluster_is_whole_in_one_part_of_cross_fitting():
    ids = [f"q{i:03}" for i in range(150)]
    by_need = cross_fitted_scores(BY_NEED, ids, cluster_units(NEEDS))
    by_query = cross_fitted_scores(BY_NEED, ids, single_units(150))
    assert by_need.mean() != by_query.mean()


def test_two_clusters_are_too_few_to_decide():
    few = compare(
        {"a": np.array([0.9, 0.8, 0.7, 0.9]), "b": np.zeros(4)},
        clusters=("x", "x", "y", "y"),
    )[0]
    assert cell(few) == "undecided: too few queries"


def test_slices_of_clusters_are_tested_by_flips_of_whole_clusters():
    values, needs = sample(4)
    scores = {"a": 0.5 + values, "b": np.full(150, 0.5)}
    halves = np.arange(150) < 75
    name = SliceName("field half", Condition.IS, "x")
    half = PropertySlice(name, halves, name.opposite)
    pair = ("a", "b")
    [row] = slice_family(
        scored(scores, clusters=tuple(needs)), pair, [half], Settings()
    )
    [by_query] = slice_family(scored(scores), pair, [half], Settings())
    assert (row.method, by_query.method) == ("flips", "permutations")
    assert (row.n, row.note, row.finding) == (75, "x", None)
    assert row.mean_difference == pytest.approx(values[:75].mean())
    assert row.p_value == row.p_adjusted != by_query.p_adjusted


WEIGHTS = np.array([4.0, 2.0, 1.0, 1.0])
VALUES = np.array([0.1, 0.2, -0.1, 0.3])


def test_a_weighted_experiment_is_decided_by_sign_flips_of_the_weighted_mean():
    """Nine of ten queries gain; one with most of the traffic loses, and decides."""
    rng = np.random.default_rng(3)
    a = 0.5 + rng.normal(0.1, 0.02, 40)
    b = np.full(40, 0.5)
    a[0] = 0.1
    weights = (400.0, *[1.0] * 39)
    chosen = Settings(weight="traffic")
    (row,) = compare({"a": a, "b": b}, settings=chosen, weights=weights)
    assert row.mean_difference == pytest.approx(mean(a - b, np.array(weights)))
    assert row.mean_difference < 0 < (a - b).mean()
    # The loss, 400 x 0.4, is larger than all gains together: half of the 2^40 subsets
    # leave it out, and those are within the smaller side, the sum of the gains.
    assert row.method == "grid"
    assert row.p_value == row.p_randomization == 1.0
    result = concluded({"a": a, "b": b}, [row], settings=chosen, weights=weights)
    assert result.leader == "b"
    assert result.effective == pytest.approx(439**2 / (400**2 + 39))
    assert (
        "Means are weighted by traffic, which leaves about 1 query of equal weight."
        in conclusion_sentences(result)
    )


def test_equal_weights_are_like_none_but_for_the_number_of_units():
    values = np.random.default_rng(2).normal(size=50)
    plain = standard_error(values)
    weighted = standard_error(values, single_units(50, np.full(50, 3.0)))
    assert weighted.error == pytest.approx(plain.error * math.sqrt(50 / 49), rel=1e-12)
    assert weighted.degrees_of_freedom == pytest.approx(49)


def test_weights_and_clusters_together_sum_within_the_cluster():
    units = cluster_units(["x", "x", "", ""], WEIGHTS)
    assert units.totals.tolist() == [6.0, 1.0, 1.0]
    assert units.sums(VALUES).tolist() == pytest.approx([0.8, -0.1, 0.3])


def test_clusters_of_equal_weighted_means_have_no_standard_error():
    """Both are 0.5. It was 0, and the t-test divided by it."""
    weights = np.array([1.0, 1.0, 1.0, 1.0, 2.0])
    alike = cluster_units(["x", "x", "y", "y", "y"], weights)
    assert standard_error(np.array([0.0, 1.0, 0.0, 0.0, 1.0]), alike) is None


def test_weights_are_scaled_by_a_power_of_2_to_the_size_of_1():
    """Beside 1e-10, flips of differences by such weights were all 0."""
    shares = [
        Query(str(i), "a", {"traffic": repr((i + 1) * 2.0**-40)}) for i in range(4)
    ]
    assert query_weights(shares, "traffic") == (0.5, 1.0, 1.5, 2.0)
    single = [Query("1", "a", {"traffic": "12.5"})]
    assert query_weights(single, "traffic") == (12.5 / 8,)


def test_without_a_field_of_weights_there_are_none():
    assert query_weights([Query("1", "a", {"traffic": "12.5"})], None) is None


def test_a_weight_is_a_number_above_0():
    queries = [
        Query("1", "a", {"traffic": "12.5"}),
        Query("2", "b", {"traffic": "0"}),
        Query("3", "c"),
    ]
    message = r"2 queries of 3 without a number above 0 in .*'traffic'.*'2' has '0'"
    with pytest.raises(InputError, match=message):
        query_weights(queries, "traffic")


def test_the_mean_of_a_table_is_weighted_over_the_queries_that_have_a_score():
    table = scored({"a": np.array([0.1, np.nan, 0.3])}, weights=(1.0, 2.0, 3.0))
    assert table.mean(table.primary, "a") == pytest.approx((0.1 + 0.9) / 4)
    assert table.select_queries(np.array([True, False, True])).weights == (1.0, 3.0)


def test_a_weighted_run_weighs_its_summary_and_says_so(tmp_path):
    """A query with most of the traffic has most of the mean in summary.csv.

    The page says what the weights are.
    """
    data = small.dataset(tmp_path / "data")
    rows = [
        {
            "id": f"q{i}",
            "query": text,
            "relevant_documents": docs,
            "fields": {"traffic": str(100 if i == 0 else 1)},
        }
        for i, (_, text, docs) in enumerate(small.QUERIES)
    ]
    (data / "queries.json").write_text(json.dumps(rows), encoding="utf-8")
    results = small.ran(
        tmp_path, more='[statistics]\nweight = "traffic"\n', report=True
    )
    scores = results.scores[results.scores["measure"] == "nDCG@3"]
    weights = {f"q{i}": 100.0 if i == 0 else 1.0 for i in range(len(rows))}
    summary = results.summary[results.summary["measure"] == "nDCG@3"].set_index(
        "retriever"
    )["mean"]
    expected = {
        name: np.average(group["value"], weights=group["query_id"].map(weights))
        for name, group in scores.groupby("retriever")
    }
    assert summary.to_dict() == pytest.approx(expected)
    assert set(results.comparisons["method"]) == {"enumerated"}
    assert "Means are weighted by traffic" in (results.folder / "report.md").read_text(
        encoding="utf-8"
    )
