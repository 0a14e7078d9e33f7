"""Agreement with independent programs to 1e-9: pytrec_eval-terrier, ir-measures, gdeval.

Random runs with ties, unjudged and missing queries, documents without a judgment, negative grades.
"""

from __future__ import annotations

import shutil

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.measures import parse, score_run
from tests.support.scored import at_level

QUERIES = ("q1", "q2", "q3", "q4")
DOCUMENTS = (*(f"d{i}" for i in range(12)), "ä", "z", "\U0001f600")
TIED = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.0 + 1e-9, -1.0, 1e300])
GRADES = st.integers(-1, 4)
# pytrec_eval-terrier 0.5.11 corrupts its memory where all grades of a query are negative
judged = st.dictionaries(st.sampled_from(DOCUMENTS), GRADES, min_size=1).filter(lambda j: max(j.values()) >= 0)
judgments = st.dictionaries(st.sampled_from(QUERIES), judged, min_size=1)


def runs(scores: st.SearchStrategy[float]) -> st.SearchStrategy[dict[str, dict[str, float]]]:
    return st.dictionaries(
        st.sampled_from((*QUERIES, "unjudged")), st.dictionaries(st.sampled_from(DOCUMENTS), scores, min_size=1)
    )


TREC_EVAL = {
    "P@1": "P_1", "P@5": "P_5", "P@20": "P_20", "R@1": "recall_1", "R@5": "recall_5", "R@20": "recall_20",
    "AP": "map", "AP@3": "map_cut_3", "nDCG": "ndcg", "nDCG@3": "ndcg_cut_3", "nDCG@20": "ndcg_cut_20",
    "RR": "recip_rank", "Rprec": "Rprec", "Bpref": "bpref", "Success@1": "success_1", "Success@5": "success_5",
    "SetP": "set_P", "SetR": "set_recall", "SetF": "set_F", "SetAP": "set_map",
}  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(judgments, runs(TIED), st.integers(1, 3))
def test_pytrec_eval(qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]], rel: int) -> None:
    families: dict[str, set[str]] = {}
    for name in TREC_EVAL.values():
        family, _, cutoff = name.rpartition("_")
        families.setdefault(family, set()).add(cutoff) if cutoff.isdigit() else families.setdefault(name, set())
    asked = {f"{family}.{','.join(sorted(cuts))}" if cuts else family for family, cuts in families.items()}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, asked, relevance_level=rel).evaluate(run)
    scores = score_run([at_level(name, rel) for name in TREC_EVAL], qrels, run.items())
    for row, name in zip(scores.values, TREC_EVAL.values(), strict=True):
        want = [theirs[q][name] if q in theirs else 0.0 for q in scores.query_ids]
        np.testing.assert_allclose(row, want, rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.parametrize(("returned", "relevant", "hits"), [(1000, 204, 153), (10, 16, 3), (10, 64, 6), (20, 8, 3)])
def test_set_average_precision_to_the_last_bit(returned: int, relevant: int, hits: int) -> None:
    """A product of two quotients gives 0.11474999999999999 for 0.11475, and so another fourth decimal."""
    qrels = {"q": {f"r{i}": 1 for i in range(relevant)}}
    run = {"q": {f"r{i}" if i < hits else f"x{i}": 1.0 for i in range(returned)}}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"set_map"}).evaluate(run)["q"]["set_map"]
    assert score_run([parse("SetAP")], qrels, run.items()).values[0, 0] == theirs


IR_MEASURES = [
    "P(rel=2)@5", "P@20", "R@5", "AP(rel=2)", "AP@4", "nDCG@5", "nDCG", "RR", "RR(rel=3)", "Rprec", "Bpref(rel=2)",
    "Success@3", "SetP", "SetR", "SetF", "SetAP(rel=2)",
]  # fmt: skip


reads_numbers = pytest.mark.filterwarnings("ignore:.*removed in Python 3.14:DeprecationWarning")
"""ir-measures parses its names by what Python 3.14 no longer has."""


@reads_numbers
@settings(max_examples=60, deadline=None)
@given(judgments, runs(TIED))
def test_ir_measures(qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]) -> None:
    theirs = {
        (str(m.measure), m.query_id): m.value
        for m in ir_measures.iter_calc([ir_measures.parse_measure(name) for name in IR_MEASURES], qrels, run)
    }
    scores = score_run([parse(name) for name in IR_MEASURES], qrels, run.items())
    for name, row in zip(IR_MEASURES, scores.values, strict=True):
        want = [theirs[name, q] for q in scores.query_ids]
        np.testing.assert_allclose(row, want, rtol=0, atol=1e-9, err_msg=name)


@reads_numbers
@settings(max_examples=50, deadline=None)
@given(judgments, st.permutations(range(15)), st.integers(1, 15), st.sampled_from(["Judged@1", "Judged@5", "Judged"]))
def test_judged_of_ir_measures(qrels: dict[str, dict[str, int]], order: list[int], depth: int, name: str) -> None:
    run = {q: {DOCUMENTS[i]: float(i) for i in order[:depth]} for q in QUERIES}
    theirs = {m.query_id: m.value for m in ir_measures.iter_calc([ir_measures.parse_measure(name)], qrels, run)}
    scores = score_run([parse(name)], qrels, run.items())
    np.testing.assert_allclose(scores.values[0], [theirs[q] for q in scores.query_ids], rtol=0, atol=1e-9)


@reads_numbers
@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval is a Perl program")
def test_err_and_exponential_ndcg_of_gdeval() -> None:
    """gdeval (through ir-measures) takes 4 as the largest grade and prints 5 decimals."""
    random = np.random.default_rng(7)
    qrels = {q: {str(d): int(g) for d, g in enumerate(random.integers(0, 5, 30))} for q in ("1", "2", "3", "4")}
    run = {
        q: {str(d): float(s) for d, s in zip(random.permutation(60)[:40], random.random(40), strict=True)}
        for q in qrels
    }
    assert max(max(judged.values()) for judged in qrels.values()) == 4
    names = ["ERR@5", "ERR@20", "nDCG(dcg='exp-log2')@5", "nDCG(dcg='exp-log2')@20"]
    measures = [ir_measures.parse_measure(name) for name in names]
    theirs = {(str(m.measure), m.query_id): m.value for m in ir_measures.iter_calc(measures, qrels, run)}
    scores = score_run([parse(name) for name in names], qrels, run.items())
    for name, row in zip(names, scores.values, strict=True):
        np.testing.assert_allclose(row, [theirs[name, q] for q in scores.query_ids], rtol=0, atol=5.1e-6, err_msg=name)
