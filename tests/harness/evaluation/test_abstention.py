"""Queries that nothing answers, by their definitions: areas, DeLong's variance, floors, Abstain, ceilings."""

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from harness.dataset import load
from harness.evaluation.evaluate import evaluation_of, read_evaluation
from harness.pipeline import run
from harness.running.forecast import Options
from harness.stats.paired_tests import area, compare_areas
from tests.support.small import refusal

SCORES = st.lists(st.sampled_from([-np.inf, 0.0, 0.25, 0.5, 0.75, 1.0]), min_size=2, max_size=9).map(np.array)


def wins(positive, negative):
    return float(positive > negative) + float(positive == negative) / 2


def by_hand(positives, negatives):
    """The area and DeLong's variance, pair by pair."""
    table = np.array([[wins(p, n) for n in negatives] for p in positives])
    variance = np.var(table.mean(1), ddof=1) / len(positives) + np.var(table.mean(0), ddof=1) / len(negatives)
    return table.mean(), variance


@given(SCORES, SCORES)
def test_the_area_is_the_share_of_pairs_in_order_with_delongs_interval(positives, negatives):
    found = area(positives, negatives)
    value, variance = by_hand(positives, negatives)
    assert found.value == pytest.approx(value)
    half = stats.norm.ppf(0.975) * variance**0.5
    assert (found.low, found.high) == pytest.approx((max(0, value - half), min(1, value + half)))
    u = stats.mannwhitneyu(positives, negatives).statistic
    assert found.value == pytest.approx(u / (len(positives) * len(negatives)))


@given(st.data())
def test_two_areas_over_the_same_queries_are_compared_by_their_covariance(data):
    m, n = data.draw(st.integers(2, 7)), data.draw(st.integers(2, 7))
    draw = st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=m + n, max_size=m + n)
    first, second = (np.array(data.draw(draw)) for _ in range(2))
    tables = [np.array([[wins(p, q) for q in one[m:]] for p in one[:m]]) for one in (first, second)]
    gap = tables[0] - tables[1]
    variance = np.var(gap.mean(1), ddof=1) / m + np.var(gap.mean(0), ddof=1) / n  # that of the difference itself
    found = compare_areas((first[:m], first[m:]), (second[:m], second[m:]))
    assert found.difference == pytest.approx(gap.mean(), abs=1e-12)
    if variance > 1e-12:
        assert found.p_value == pytest.approx(2 * stats.norm.sf(abs(gap.mean()) / variance**0.5))
    back = compare_areas((second[:m], second[m:]), (first[:m], first[m:]))
    assert back.p_value == pytest.approx(found.p_value)


ANSWERED = [f"a{n}" for n in range(10)]
LOST = [f"u{n}" for n in range(5)]


def experiment(folder, *, floor=None, measures=("Success@5", "Abstain")):
    """A run whose first hit of query a<n> is right with score 0.5 + n/20, of u<n> wrong with score 0.4 + n/20."""
    data = folder / "data"
    data.mkdir()
    ids = [f"d{n}" for n in range(10)]
    (data / "documents.jsonl").write_text("".join(json.dumps({"id": id_, "text": id_}) + "\n" for id_ in ids))
    rows = [{"id": id_, "query": f"what {id_}", "relevant": [f"d{n}"]} for n, id_ in enumerate(ANSWERED)]
    rows += [{"id": id_, "query": f"what {id_}", "relevant": [], "answerable": False} for id_ in LOST]
    (data / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    hits = [
        *((id_, f"d{n}", 0.5 + n / 20) for n, id_ in enumerate(ANSWERED)),
        *((id_, "d0", 0.4 + n / 20) for n, id_ in enumerate(LOST)),
    ]
    (folder / "served.trec").write_text("".join(f"{id_} Q0 {doc} 1 {score} x\n" for id_, doc, score in hits))
    table = {"name": "served", "kind": "run", "path": str(folder / "served.trec"), "comparable_scores": True}
    more = {} if floor is None else {"floor": floor}
    retrievers = [{**table, **more}, {"name": "words", "kind": "bm25"}]
    return {"name": "abstain", "dataset": str(data), "primary": measures[0], "measures": list(measures),
            "report": False, "retrievers": retrievers}  # fmt: skip


def test_scores_tell_what_nothing_answers(tmp_path):
    found = run(experiment(tmp_path), Options(tmp_path / "out"))
    evaluation = evaluation_of(found)
    (floor,) = evaluation.abstention.floors
    pairs = list(product([0.5 + n / 20 for n in range(10)], [0.4 + n / 20 for n in range(5)]))
    assert floor.area == pytest.approx(np.mean([wins(a, u) for a, u in pairs]))
    assert floor.floor == pytest.approx(0.5)  # all ten succeed; 95 % of ten are ten
    assert 0 <= floor.above <= 1 and 0 <= floor.kept <= 1
    assert (evaluation.abstention.answerable, evaluation.abstention.unanswerable) == (10, 5)
    assert read_evaluation(found.folder, found.manifest).abstention == evaluation.abstention


@pytest.mark.parametrize(("floor", "success", "abstained"), [(None, 1.0, 0.0), (0.5, 1.0, 2 / 5), (0.75, 0.5, 1.0)])
def test_a_floor_drops_hits_and_success_and_abstain_follow(tmp_path, floor, success, abstained):
    found = run(experiment(tmp_path, floor=floor), Options(tmp_path / "out"))
    summary = found.summary[found.summary["retriever"] == "served"].set_index("measure")
    assert (summary.loc["Success@5", "mean"], summary.loc["Success@5", "count"]) == (success, 10)
    assert (summary.loc["Abstain", "mean"], summary.loc["Abstain", "count"]) == (pytest.approx(abstained), 5)


def test_a_router_and_a_union_are_ceilings(tmp_path):
    found = run(experiment(tmp_path, measures=("RR@5",)), Options(tmp_path / "out"))
    ceilings, scores = evaluation_of(found).ceilings, found.scores
    table = scores[scores["measure"] == "RR@5"].pivot(index="query_id", columns="retriever", values="value")
    assert ceilings.router == pytest.approx(table.max(axis=1).mean())
    assert (ceilings.union_recall, ceilings.best_recall, ceilings.cutoff) == (1.0, 1.0, 5)


def test_an_answerable_contradiction_is_one_clear_error(tmp_path):
    experiment(tmp_path)
    with (tmp_path / "data" / "queries.jsonl").open("a") as file:
        file.write(json.dumps({"id": "x", "query": "why", "relevant": ["d1"], "answerable": False}) + "\n")
    assert "query 'x' is said to have no answer, and has relevant documents" in str(refusal(load, tmp_path / "data"))
