"""Figures that accompany a verdict.

Overlap, the gain of a choice, queries without an answer, a corpus that changed.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import optimize, stats

from harness import measure, records
from harness.build.build import build
from harness.console.corpus_change_text import corpus_change_lines
from harness.dataset import load_dataset
from harness.evaluation.abstention import evaluate_abstention
from harness.evaluation.corpus_change import compare_corpus_states
from harness.evaluation.evaluation_file import read_evaluation, read_or_evaluate
from harness.evaluation.join_folders import score_folders
from harness.experiment import load
from harness.measures import parse_measure, parse_measure_list
from harness.pipeline import run
from harness.report.paper import latex_tables
from harness.report.sections.about_data import compare_grade_rules
from harness.report.sections.rerankers import reranker_rows
from harness.report.view import build_view
from harness.running.options import RunOptions
from harness.scoring import query_hits
from harness.scoring.trec_runs import score_trec_runs
from harness.stats.cross_fitting import cross_fitted_scores
from harness.stats.rank_overlap import mean_rank_overlap, rank_overlap
from harness.stats.roc_area import RocScores, RocUnits, compare_roc_areas, roc_area
from harness.stats.units import cluster_units, single_units
from retrievers.ranking import ranked
from retrievers.types import Query
from tests.support import layouts, tiny
from tests.support.small import refusal


@given(
    st.permutations("abcdef"), st.permutations("abcdef"), st.sampled_from([0.5, 0.9])
)
def test_even_lists_are_extrapolated_by_the_share_that_they_have_in_common(a, b, p):
    size = 6
    common = [len(set(a[:d]) & set(b[:d])) for d in range(1, size + 1)]
    expected = common[-1] / size * p**size + (1 - p) / p * sum(
        x / d * p**d for d, x in enumerate(common, 1)
    )
    assert rank_overlap(a, b, p).extrapolated == pytest.approx(expected)


def test_the_published_example_of_rank_overlap():
    overlap = rank_overlap("abcde", "bacfg").extrapolated
    assert round(overlap, 6) == 0.619335


@pytest.mark.parametrize(
    ("first", "second", "overlap"), [("abcde", "abcde", 1.0), ("abc", "xyz", 0.0)]
)
def test_equal_rankings_overlap_wholly_and_disjoint_ones_not(first, second, overlap):
    assert rank_overlap(first, second).extrapolated == pytest.approx(overlap, abs=1e-12)


@pytest.mark.parametrize(("first", "second"), [("a", "ab"), ("ab", "a")])
def test_a_ranking_that_ends_agrees_as_before_its_end(first, second):
    """By hand with p = 0.5: (1 x 0.5 + 1/2 x 0.25) + 1/2 x 0.25 = 0.75.

    And beyond the end 1 x 0.25.
    """
    overlap = rank_overlap(first, second, p=0.5).extrapolated
    assert overlap == pytest.approx(1.0)


@pytest.mark.parametrize(("other", "overlap"), [("", 1.0), ("ab", 0.0)])
def test_an_empty_ranking_overlaps_with_an_empty_one_alone(other, overlap):
    assert rank_overlap("", other) == (overlap, overlap)


@pytest.mark.parametrize(
    ("first", "second", "share"),
    [
        ("abcdefghijkl", "lkjihgfedcba", 0.8),  # c to j, of the first ten
        ("ab", "abcd", 0.5),  # two of the four that the longer one has
    ],
)
def test_the_share_of_the_first_ten_that_both_have(first, second, share):
    assert rank_overlap(first, second).top == share


def test_the_mean_overlap_of_queries():
    overlap = mean_rank_overlap([("ab", "ab"), ("ab", "cd")])
    assert overlap is not None
    assert overlap.extrapolated == pytest.approx(0.5)


def test_no_queries_have_no_mean_overlap():
    assert mean_rank_overlap([]) is None


def test_the_cross_fitted_scores_are_chosen_on_four_parts_and_measured_on_the_fifth():
    """By hand: parts by SHA-256 of (seed, id), scores of the winner of the others."""
    rng = np.random.default_rng(18)
    ids = [f"q{i}" for i in range(40)]
    scores = {f"r{j}": rng.random(40) for j in range(8)}
    parts = [
        int(hashlib.sha256(f"7/parts/{query}".encode()).hexdigest(), 16) % 5
        for query in ids
    ]
    values = []
    for i in range(40):
        others = [j for j in range(40) if parts[j] != parts[i]]
        winner = max(scores, key=lambda name: scores[name][others].mean())
        values.append(scores[winner][i])
    estimate = cross_fitted_scores(scores, ids, single_units(40), seed=7)
    assert estimate.tolist() == values


def test_a_clear_winner_has_its_own_scores_when_cross_fitted():
    ids = [f"q{number}" for number in range(40)]
    best = np.random.default_rng(18).random(40)
    scores = {"one": best, "far": best - 0.9}
    estimate = cross_fitted_scores(scores, ids, single_units(40))
    assert estimate.tolist() == best.tolist()


def test_one_cluster_has_no_parts_to_choose_on():
    ids = [f"q{number}" for number in range(40)]
    scores = {"a": np.linspace(0, 1, 40), "b": np.linspace(1, 0, 40)}
    assert cross_fitted_scores(scores, ids, cluster_units(["all"] * 40)) is None


SCORES = st.lists(
    st.sampled_from([-np.inf, 0.0, 0.25, 0.5, 0.75, 1.0]), min_size=5, max_size=9
).map(np.array)


def wins(positive, negative):
    return float(positive > negative) + float(positive == negative) / 2


def wins_table(positives, negatives):
    """Return the wins of each positive (row) against each negative (column)."""
    table = np.zeros((len(positives), len(negatives)))
    for row, positive in enumerate(positives):
        for column, negative in enumerate(negatives):
            table[row, column] = wins(positive, negative)
    return table


def by_hand(positives, negatives):
    """Return the area and DeLong's variance, pair by pair."""
    table = wins_table(positives, negatives)
    variance = np.var(table.mean(1), ddof=1) / len(positives) + np.var(
        table.mean(0), ddof=1
    ) / len(negatives)
    return table.mean(), variance


def newcombe_end(value, m, n, far):
    """Return the end of Newcombe's method 5 on the side of `far`, by SciPy."""
    z = stats.norm.ppf(0.975)

    def excess(area):
        spread = 1 + ((m + n) / 2 - 1) * (
            (1 - area) / (2 - area) + area / (1 + area)
        )  # Newcombe (2006), equation 5, after Hanley & McNeil
        variance = area * (1 - area) * spread / (m * n)
        return abs(value - area) - z * variance**0.5

    if value == far:
        return far
    # At `value` nothing is off, at `far` the variance is 0.
    near = value + (far - value) * 1e-9
    return optimize.brentq(excess, near, far) if excess(near) < 0 else value


@given(SCORES, SCORES)
def test_the_area_is_the_share_of_pairs_in_order_with_the_wider_interval(
    positives, negatives
):
    area = roc_area(RocScores(positives, negatives))
    value, variance = by_hand(positives, negatives)
    assert area.value == pytest.approx(value)
    u = stats.mannwhitneyu(positives, negatives).statistic
    assert area.value == pytest.approx(u / (len(positives) * len(negatives)))
    sizes = (len(positives), len(negatives))
    low = newcombe_end(value, *sizes, far=0.0)
    high = newcombe_end(value, *sizes, far=1.0)
    if 0 < value < 1 and variance > 1e-12:
        half = stats.norm.ppf(0.975) * variance**0.5 / (value * (1 - value))
        logit = math.log(value / (1 - value))
        low = min(low, 1 / (1 + math.exp(half - logit)))
        high = max(high, 1 / (1 + math.exp(-half - logit)))
    assert (area.low, area.high) == pytest.approx((low, high), abs=1e-6)


@pytest.mark.parametrize(("answered", "lost"), [(4, 30), (30, 4), (1, 1)])
def test_below_five_queries_on_a_side_an_area_has_neither_interval_nor_p(
    answered, lost
):
    scores = RocScores(np.arange(answered) + 0.5, np.arange(lost) / lost)
    area = roc_area(scores)
    assert (area.low, area.high) == (None, None)
    assert compare_roc_areas(scores, scores).p_value is None


def test_an_area_of_1_has_newcombes_interval():
    """All 25 answered queries score above the 8 others: Newcombe's (2006) interval."""
    area = roc_area(RocScores(np.arange(8.0, 33.0), np.arange(8.0)))
    assert (area.value, round(area.low, 2), area.high) == (1.0, 0.84, 1.0)


def test_the_units_of_an_area_are_its_clusters():
    """Five copies of every query say no more than one."""
    rng = np.random.default_rng(4)
    once = RocScores(rng.normal(1, 1, 12), rng.normal(0, 1, 9))
    other = RocScores(rng.normal(0.6, 1, 12), rng.normal(0, 1, 9))
    copies = RocScores(*(np.repeat(side, 5) for side in once))
    other_copies = RocScores(*(np.repeat(side, 5) for side in other))
    units = RocUnits(
        *(cluster_units([f"c{n // 5}" for n in range(5 * size)]) for size in (12, 9))
    )
    assert roc_area(copies, units) == pytest.approx(roc_area(once))
    by_cluster = compare_roc_areas(copies, other_copies, units)
    assert by_cluster == pytest.approx(compare_roc_areas(once, other))


def test_two_areas_at_the_ends_differ_with_a_p_above_0():
    apart = RocScores(np.arange(5.0, 10.0), np.arange(5.0))
    reverse = RocScores(np.arange(5.0), np.arange(5.0, 10.0))
    # The smallest p of a sign test of 5.
    assert compare_roc_areas(apart, reverse) == (1.0, 2 / 2**5)


@st.composite
def scores_of_two(draw):
    """Scores that two retrievers give to the same queries, on both sides."""
    positives = draw(st.integers(5, 8))
    size = positives + draw(st.integers(5, 8))
    row = st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=size, max_size=size)
    both = [np.array(draw(row)) for _ in range(2)]
    return [RocScores(scores[:positives], scores[positives:]) for scores in both]


@given(scores_of_two())
def test_two_areas_over_the_same_queries_are_compared_by_their_covariance(scores):
    first, second = scores
    gap = wins_table(*first) - wins_table(*second)
    m, n = gap.shape
    variance = (
        np.var(gap.mean(1), ddof=1) / m + np.var(gap.mean(0), ddof=1) / n
    )  # that of the difference itself
    assume(variance > 1e-12)
    test = compare_roc_areas(first, second)
    assert test.difference == pytest.approx(gap.mean(), abs=1e-12)
    assert test.p_value == pytest.approx(
        2 * stats.norm.sf(abs(gap.mean()) / variance**0.5)
    )


@given(scores_of_two())
def test_two_areas_in_the_other_order_differ_as_much_with_the_same_p(scores):
    first, second = scores
    forward = compare_roc_areas(first, second)
    backward = compare_roc_areas(second, first)
    assert backward.difference == pytest.approx(-forward.difference, abs=1e-12)
    assert backward.p_value == pytest.approx(forward.p_value)


ANSWERED = [f"a{n}" for n in range(10)]
LOST = [f"u{n}" for n in range(5)]
MEASURES_OF_LABELS = ("AP@5", "ERR@5", "Bpref", "Rprec", "SetF", "Judged@5")


def experiment(folder, *, floor=None, measures=("Success@5", "Abstain")):
    """A run whose first hit of a<n> is right with score 0.5 + n/20.

    That of u<n> is wrong with score 0.4 + n/20.
    """
    data = folder / "data"
    layouts.jsonl(
        data / "documents.jsonl", [{"id": f"d{n}", "text": f"d{n}"} for n in range(10)]
    )
    rows = [
        {"id": id_, "query": f"what {id_}", "relevant": [f"d{n}"]}
        for n, id_ in enumerate(ANSWERED)
    ]
    rows += [
        {"id": id_, "query": f"what {id_}", "relevant": [], "answerable": False}
        for id_ in LOST
    ]
    layouts.jsonl(data / "queries.jsonl", rows)
    hits = [(id_, f"d{n}", 0.5 + n / 20) for n, id_ in enumerate(ANSWERED)]
    hits += [(id_, "d0", 0.4 + n / 20) for n, id_ in enumerate(LOST)]
    (folder / "served.trec").write_text(
        "".join(f"{id_} Q0 {doc} 1 {score} x\n" for id_, doc, score in hits)
    )
    table = {
        "name": "served",
        "kind": "run",
        "path": str(folder / "served.trec"),
        "comparable_scores": True,
    }
    more = {} if floor is None else {"floor": floor}
    retrievers = [{**table, **more}, {"name": "words", "kind": "bm25"}]
    return {
        "name": "abstain",
        "dataset": str(data),
        "primary": measures[0],
        "measures": list(measures),
        "report": False,
        "retrievers": retrievers,
    }


def test_scores_tell_what_nothing_answers(tmp_path):
    table = experiment(tmp_path)
    worse = [(id_, n / 20) for n, id_ in enumerate(ANSWERED)] + [
        (id_, 0.3) for id_ in LOST
    ]
    (tmp_path / "worse.trec").write_text(
        "".join(f"{id_} Q0 d0 1 {score} x\n" for id_, score in worse)
    )
    table["retrievers"].append(
        {
            **table["retrievers"][0],
            "name": "worse",
            "path": str(tmp_path / "worse.trec"),
        }
    )
    results = run(table, RunOptions(tmp_path / "out"))
    evaluation = read_or_evaluate(results)
    floor, other = evaluation.abstention.floors
    (pair,) = evaluation.abstention.pairs
    assert (pair.a, pair.b, pair.difference) == (
        "served",
        "worse",
        pytest.approx(floor.area - other.area),
    )
    assert (
        other.area == pytest.approx(np.mean([wins(n / 20, 0.3) for n in range(10)]))
        and 0 < pair.p_value < 1
    )
    pairs = list(
        product([0.5 + n / 20 for n in range(10)], [0.4 + n / 20 for n in range(5)])
    )
    assert floor.area == pytest.approx(np.mean([wins(a, u) for a, u in pairs]))
    # All ten succeed: the lowest of ten keeps 10/11 of new ones.
    assert (floor.floor, floor.kept, floor.above) == (None, None, None)
    assert pair.p_adjusted == pair.p_value  # Holm of one pair
    assert (evaluation.abstention.answerable, evaluation.abstention.unanswerable) == (
        10,
        5,
    )
    stored = read_evaluation(results.folder, results.manifest)
    assert stored.abstention == evaluation.abstention


def abstain(answered, lost):
    """What the scores say of so many answered queries; y is right, with 0.5 + n/100."""
    rankings = {
        f"a{n:02}": ranked(["x", "y"], [0.9, 0.5 + n / 100]) for n in range(answered)
    }
    rankings |= {f"u{n:02}": ranked(["x"], [0.2 + n / 10]) for n in range(lost)}
    queries = {id_: Query(id_, id_) for id_ in rankings if id_.startswith("a")}
    grades = {id_: {"x": 0, "y": 1} for id_ in queries}
    queries |= {
        id_: Query(id_, id_, {"answerable": "false"})
        for id_ in rankings
        if id_.startswith("u")
    }
    abstention = evaluate_abstention(
        queries, grades, {"r": rankings}, cutoff=10, level=0.95
    )
    assert abstention is not None
    return abstention.floors[0]


def test_only_one_kind_of_queries_may_have_the_field_of_clusters():
    answered = [Query(f"a{n}", f"a{n}", {"need": str(n // 2)}) for n in range(12)]
    lost = [Query(f"u{n}", f"u{n}", {"answerable": "false"}) for n in range(6)]
    queries = {query.id: query for query in (*answered, *lost)}
    grades = {query.id: {"d": 1} for query in answered}
    rankings = {
        id_: ranked(["d"], [n / 10 if id_[0] == "a" else n / 20])
        for n, id_ in enumerate(queries)
    }
    abstention = evaluate_abstention(
        queries, grades, {"r": rankings}, cutoff=10, level=0.95, cluster="need"
    )
    scores = RocScores(np.arange(12) / 10, np.arange(12, 18) / 20)
    clusters = cluster_units([str(n // 2) for n in range(12)])
    area = roc_area(scores, RocUnits(clusters, single_units(6)))
    floor = abstention.floors[0]
    assert (floor.area, floor.low, floor.high) == pytest.approx(area)


def test_a_hit_that_is_judged_0_is_no_success():
    assert abstain(20, 1).floor == 0.5


@pytest.mark.parametrize(
    ("answered", "floor"), [(18, None), (19, 0.5), (38, 0.5), (39, 0.51)]
)
def test_the_floor_is_an_order_statistic(answered, floor):
    """The rank j with j / (n + 1) of at most 5 %: none below 19, the second from 39."""
    assert abstain(answered, 1).floor == floor


def test_shares_above_the_floor_have_wilsons_interval():
    from statsmodels.stats.proportion import proportion_confint

    threshold = abstain(40, 5)
    # Each fold's floor is its 32 others' lowest: 0.5, or 0.51 for that of 0.5 itself.
    kept = proportion_confint(39, 40, method="wilson")
    assert (threshold.kept.value, threshold.kept.low, threshold.kept.high) == (
        pytest.approx((39 / 40, *kept))
    )
    above = proportion_confint(2, 5, method="wilson")  # scores .2, .3, .4, .5, .6
    assert (threshold.above.value, threshold.above.low, threshold.above.high) == (
        pytest.approx((2 / 5, *above))
    )


def test_pairs_of_areas_are_corrected_by_holm():
    from statsmodels.stats.multitest import multipletests

    rng = np.random.default_rng(2)
    queries = {f"a{n}": Query(f"a{n}", f"a{n}") for n in range(30)}
    grades = {id_: {"d": 1} for id_ in queries}
    queries |= {
        f"u{n}": Query(f"u{n}", f"u{n}", {"answerable": "false"}) for n in range(12)
    }
    rankings = {
        name: {
            id_: ranked(["d"], [rng.normal(shift if id_[0] == "a" else 0.0)])
            for id_ in queries
        }
        for name, shift in {"x": 0.0, "y": 1.0, "z": 2.0}.items()
    }
    found = evaluate_abstention(queries, grades, rankings, cutoff=10, level=0.95)
    p_values = [pair.p_value for pair in found.pairs]
    assert [pair.p_adjusted for pair in found.pairs] == pytest.approx(
        multipletests(p_values, method="holm")[1].tolist()
    )


@pytest.mark.parametrize(
    ("floor", "success", "abstained"),
    [(None, 1.0, 0.0), (0.5, 1.0, 2 / 5), (0.75, 0.5, 1.0)],
)
def test_a_floor_drops_hits_and_success_and_abstain_follow(
    tmp_path, floor, success, abstained
):
    results = run(experiment(tmp_path, floor=floor), RunOptions(tmp_path / "out"))
    summary = results.summary[results.summary["retriever"] == "served"].set_index(
        "measure"
    )
    assert (summary.loc["Success@5", "mean"], summary.loc["Success@5", "count"]) == (
        success,
        10,
    )
    assert (summary.loc["Abstain", "mean"], summary.loc["Abstain", "count"]) == (
        pytest.approx(abstained),
        5,
    )
    leaderboard = latex_tables(build_view(results))[0].content
    assert "(Abstain: 5)" in leaderboard
    assert f"{abstained:.3f}" in leaderboard
    assert " & --" not in leaderboard


@pytest.mark.parametrize("name", MEASURES_OF_LABELS)
def test_a_measure_of_labels_is_undefined_for_what_nothing_answers(tmp_path, name):
    measures = ("Success@5", "Abstain", name)
    results = run(experiment(tmp_path, measures=measures), RunOptions(tmp_path / "out"))
    scores = results.scores[results.scores["measure"] == str(parse_measure(name))]
    assert set(scores["query_id"]) == {*ANSWERED, *LOST}
    assert set(scores.dropna()["query_id"]) == {*ANSWERED}


def test_an_own_measure_is_not_called_for_what_nothing_answers(tmp_path):
    calls = []

    def share(grades, ranking):
        calls.append(grades)
        return len(grades.keys() & ranking) / len(grades)

    measures = ("Success@5", "Abstain", measure("share", share))
    results = run(experiment(tmp_path, measures=measures), RunOptions(tmp_path / "out"))
    summary = results.summary.set_index(["measure", "retriever"])
    own_summary = summary.loc["own.share", "served"]
    assert (own_summary["mean"], own_summary["count"]) == (1, len(ANSWERED))
    assert {} not in calls


def unlabelled_experiment(folder, name):
    """An experiment with one measure on one query without labels."""
    table = experiment(folder, measures=(name,))
    queries = folder / "data" / "queries.jsonl"
    queries.write_text(json.dumps({"id": "q", "query": "d0"}), encoding="utf-8")
    return load(table)


@pytest.mark.parametrize("name", ["nDCG@10", "Abstain"])
def test_measures_of_documents_wait_for_labels(tmp_path, name):
    assert build(unlabelled_experiment(tmp_path, name)).labels.grades == {}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("R(groups='autorag')@5", "there are no AND/OR groups in these labels"),
        ("IoU@5", "measure 'IoU@5': needs labelled spans, and no query has any"),
    ],
)
def test_measures_of_other_labels_are_refused_before_there_are_any(
    tmp_path, name, message
):
    unlabelled = unlabelled_experiment(tmp_path, name)
    assert message in str(refusal(build, unlabelled))


def test_queries_that_only_another_measure_scores_are_left_out(tmp_path):
    results = run(experiment(tmp_path), RunOptions(tmp_path / "out"))
    copy = tmp_path / "copy"
    shutil.copytree(results.folder, copy)
    joined = score_folders([results.folder, copy], ["Success@5"])
    assert (joined.ids, joined.notes[0]) == (
        tuple(ANSWERED),
        "Compared on all 10 queries, the same in every folder.",
    )
    queries = compare_corpus_states(results, results).queries
    assert (queries.ids, queries.without_value) == (tuple(ANSWERED), len(LOST))


def test_no_reranker_changes_where_nothing_is_returned(tmp_path):
    """Neither do other grades; an evaluation that is made again says the same."""
    table = experiment(tmp_path, measures=("Abstain", "AP@5"))
    model = tiny.cross_encoder(tmp_path / "model").as_posix()
    rerank = {"kind": "cross-encoder", "model": model}
    table["retrievers"].append({"name": "better", "of": "words", "rerank": rerank})
    results = run(table, RunOptions(tmp_path / "out"))
    stored = read_or_evaluate(results).tests
    (results.folder / "evaluation.json").unlink()
    results = records.read_results(results.folder)
    assert read_or_evaluate(results).tests == stored
    (uplift,) = (row for row in stored if row.family == "rerank uplift")
    assert uplift.note == "no ceiling: grades alone do not decide the measure"
    view = build_view(results)
    assert reranker_rows(view)[0].ceiling is None
    assert compare_grade_rules(view) is None


def test_abstain_does_not_decide_where_every_query_has_an_answer(tmp_path):
    table = experiment(tmp_path, measures=("Abstain",))
    rows = [{"id": "q", "query": "d0", "relevant": ["d0"]}]
    layouts.jsonl(tmp_path / "data" / "queries.jsonl", rows)
    message = "Abstain needs queries without an answer, and there are none"
    assert message in str(refusal(build, load(table)))


def test_a_router_and_a_union_are_ceilings(tmp_path):
    results = run(
        experiment(tmp_path, measures=("RR@5",)), RunOptions(tmp_path / "out")
    )
    ceilings, scores = read_or_evaluate(results).ceilings, results.scores
    table = scores[scores["measure"] == "RR@5"].pivot(
        index="query_id", columns="retriever", values="value"
    )
    assert ceilings.best_per_query == pytest.approx(table.max(axis=1).mean())
    assert (ceilings.union_recall, ceilings.best_recall, ceilings.cutoff) == (
        1.0,
        1.0,
        5,
    )


def test_an_answerable_contradiction_is_one_clear_error(tmp_path):
    experiment(tmp_path)
    with (tmp_path / "data" / "queries.jsonl").open("a") as file:
        file.write(
            json.dumps(
                {"id": "x", "query": "why", "relevant": ["d1"], "answerable": False}
            )
            + "\n"
        )
    assert "query 'x' is said to have no answer, and has relevant documents" in str(
        refusal(load_dataset, tmp_path / "data")
    )


TEXTS = {f"d{n}": f"topic{n} is described here in general words" for n in range(12)}
QUERIES = [
    {"id": f"q{n}", "query": f"topic{n} described", "relevant": [f"d{n}"]}
    for n in range(12)
]


def ran(folder: Path, name: str, texts: dict[str, str]):
    data = folder / name
    layouts.jsonl(
        data / "documents.jsonl",
        [{"id": id_, "text": text} for id_, text in texts.items()],
    )
    layouts.jsonl(data / "queries.jsonl", QUERIES)
    experiment = {
        "name": name,
        "dataset": str(data),
        "primary": "RR@2",
        "report": False,
        "relevance": {"dangling": "drop"},
        "statistics": {"test": "t"},
        "retrievers": [{"name": "words", "kind": "bm25", "stemming": ""}],
    }
    return run(experiment, RunOptions(folder / "out"))


@pytest.fixture
def runs(tmp_path):
    """d0 goes; d1 is rewritten; new documents push d2 and d3 below the cutoff."""
    after = {id_: text for id_, text in TEXTS.items() if id_ != "d0"} | {
        "d1": "something else entirely"
    }
    after |= {
        f"n{n}{k}": f"topic{n} topic{n} described described"
        for n in (2, 3)
        for k in range(2)
    }
    return ran(tmp_path, "old", TEXTS), ran(tmp_path, "new", after)


def test_each_retriever_is_compared_with_itself_on_unchanged_queries(
    runs,
):
    old, new = runs
    change = compare_corpus_states(old, new)
    assert change.documents == (
        ("n20", "n21", "n30", "n31"),
        ("d0",),
        ("d1",),
    )
    assert change.queries.without_label_after == ("q0",)
    assert len(change.queries.ids) == 11
    (words,) = change.retrievers
    values = [
        results.scores.set_index("query_id")["value"]
        .loc[list(change.queries.ids)]
        .to_numpy()
        for results in runs
    ]
    assert (words.before, words.after) == pytest.approx(
        (values[0].mean(), values[1].mean())
    )
    assert words.comparison.p_value == pytest.approx(stats.ttest_rel(*values).pvalue)
    assert words.comparison.mean_difference == pytest.approx(
        np.mean(values[1] - values[0])
    )
    assert words.displaced == 3  # those of q2 and q3, and the rewritten one of q1
    message = "3 of 11 queries lost a relevant document to documents that are new"
    assert message in "\n".join(corpus_change_lines(change))


def test_compare_and_gate_take_a_changed_corpus(runs, call):
    old, new = runs
    message = call("compare", old.folder, new.folder, "--corpus-changed", code=0)
    assert message.out.splitlines()[0] == "documents: 4 added, 1 removed, 1 changed"
    options = (
        "--challenger",
        "words",
        "--baseline",
        "words",
        "--margin",
        "0.9",
        "--from",
        old.folder,
    )
    refused = " ".join(call("gate", new.folder, *options, code=2).err.split())
    assert "other documents" in refused
    assert refused.count("run its experiment again") == 1
    assert refused.endswith("on purpose, add --corpus-changed)")
    assert call("gate", new.folder, *options, "--corpus-changed", code=0).code == 0


def test_a_run_without_digests_of_its_documents_is_one_clear_error(runs):
    old, new = runs
    (old.folder / "corpus.csv").unlink()
    assert "has no corpus.csv" in str(
        refusal(compare_corpus_states, records.read_results(old.folder), new)
    )


TIED_RUN = """
q1 Q0 b 1 0.5 r
q1 Q0 c 2 0.5 r
q1 Q0 a 3 0.7 r
q2 Q0 a 1 0.9 r
q2 Q0 b 2 0.8 r
"""


def _run_with_ties(folder: Path) -> tuple[Path, Path]:
    qrels = folder / "qrels"
    qrels.write_text("q1 0 a 1\nq2 0 b 1\n", encoding="utf-8")
    run_file = folder / "ours.run"
    run_file.write_text(TIED_RUN, encoding="utf-8")
    return qrels, run_file


def test_the_rankings_of_a_small_run_outlive_its_file(tmp_path):
    qrels, run_file = _run_with_ties(tmp_path)
    scores = score_trec_runs(qrels, [run_file], parse_measure_list(["nDCG@10"]))
    run_file.unlink()
    rankings = scores.rankings["ours"]()
    assert {query: [*ids] for query, ids in rankings.items()} == {
        "q1": ["a", "c", "b"],
        "q2": ["a", "b"],
    }


def test_a_run_for_which_there_is_no_room_is_read_again(tmp_path, monkeypatch):
    qrels, run_file = _run_with_ties(tmp_path)
    monkeypatch.setattr(query_hits, "MAX_KEPT_HITS", 4)
    scores = score_trec_runs(qrels, [run_file], parse_measure_list(["nDCG@10"]))
    run_file.write_text(TIED_RUN.replace("0.7", "0.1"), encoding="utf-8")
    assert [*scores.rankings["ours"]()["q1"]] == ["c", "b", "a"]
