"""Every value of trec_eval for the files in tests/data/trec_eval, and its peers.

To the 4 decimals that it prints. `tests/support/trec_golden.py` makes those files and
names the program of the values. tests/test_outside.py compares NIST's own files with
the output of the real binaries. Peers are pytrec_eval-terrier, ir-measures and gdeval,
to 1e-9: random runs with ties, unjudged and missing queries, documents without a
judgment, negative grades.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.measures import Measure, MeasureValues, measure_run, parse_measure
from harness.scoring.conventions import RunConventions
from harness.scoring.scores import Scores
from harness.scoring.trec_runs import score_trec_runs
from tests.support import trec_golden
from tests.support.scored import at_level
from tests.support.trec_golden import FOLDER

MEASURES_WITHOUT_CUTOFF = {
    "map": "AP",
    "recip_rank": "RR",
    "Rprec": "Rprec",
    "Rprec_mult_1.00": "Rprec",
    "bpref": "Bpref",
    "ndcg": "nDCG",
    "set_P": "SetP",
    "set_recall": "SetR",
    "set_F": "SetF",
    "set_map": "SetAP",
}
MEASURES_WITH_CUTOFF = {
    "P": "P",
    "recall": "R",
    "map_cut": "AP",
    "ndcg_cut": "nDCG",
    "success": "Success",
}


def ours(name: str, rel: int = 1) -> Measure | None:
    """Return our measure for trec_eval's `name`; None if only trec_eval has it."""
    if name in MEASURES_WITHOUT_CUTOFF:
        return at_level(MEASURES_WITHOUT_CUTOFF[name], rel)
    match = re.fullmatch(r"(\w+?)_(\d+)", name)
    if match is None or match[1] not in MEASURES_WITH_CUTOFF:
        return None
    return at_level(f"{MEASURES_WITH_CUTOFF[match[1]]}@{match[2]}", rel)


def expected(path: Path, rel: int = 1) -> dict[tuple[str, Measure], str]:
    """Return (query or "all", measure) -> the value in a file of trec_eval."""
    values: dict[tuple[str, Measure], str] = {}
    for line in path.read_text().splitlines():
        if not line:
            continue
        name, query, value = line.split("\t")
        measure = ours(name.strip(), rel)
        if measure is not None:
            values[query, measure] = value
    return values


def printed(result: Scores | MeasureValues) -> dict[tuple[str, Measure], str]:
    """Return every value as trec_eval prints it, and the means."""
    if isinstance(result, MeasureValues):
        values = dict(zip(map(str, result.measures), result.values, strict=True))
        ids: tuple[str, ...] = result.query_ids
    else:
        (run,) = result.retrievers
        values = {measure: of[run] for measure, of in result.values.items()}
        ids = result.ids
    cells: dict[tuple[str, Measure], str] = {}
    for name, row in values.items():
        measure = parse_measure(name)
        for query, value in zip(ids, row, strict=True):
            cells[query, measure] = f"{value:.4f}"
        cells["all", measure] = f"{row[~np.isnan(row)].mean():.4f}"
    return cells


@pytest.mark.parametrize("rel", trec_golden.LEVELS)
@pytest.mark.parametrize(
    ("option", "intersection", "rankings"), [("q", True, 18), ("c", False, 1)]
)
def test_every_value_of_trec_eval(
    option: str, intersection: bool, rankings: int, rel: int
) -> None:
    want = expected(FOLDER / f"expected.l{rel}.{option}.txt", rel)
    assert len(want) == rankings * len(trec_golden.MEASURES)
    measures = tuple(dict.fromkeys(measure for _, measure in want))
    result = score_trec_runs(
        FOLDER / "drawn.qrels",
        [FOLDER / "drawn.run"],
        measures,
        conventions=RunConventions(intersection=intersection),
    )
    got = printed(result)
    assert {cell: got[cell] for cell in want} == want


def test_the_files_are_those_that_trec_eval_made() -> None:
    for name, text in trec_golden.files().items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, (
            f"{name}: run python -m tests.support.trec_golden"
        )


# Printed by trec_eval 9.0.8 and 10.0 (-q, built with gcc for x86-64) for query q3,
# whose three scores differ by 1e-8.
VALUES_BY_VERSION = {
    "map": ("1.0000", "0.5833"),
    "Rprec": ("1.0000", "0.5000"),
    "bpref": ("1.0000", "1.0000"),
    "recip_rank": ("1.0000", "0.5000"),
    "P_5": ("0.4000", "0.4000"),
    "recall_5": ("1.0000", "1.0000"),
    "ndcg": ("1.0000", "0.6199"),
    "ndcg_cut_3": ("1.0000", "0.6199"),
    "success_1": ("1.0000", "0.0000"),
    "success_5": ("1.0000", "1.0000"),
}


@pytest.mark.parametrize(("precision", "version"), [("single", 0), ("double", 1)])
def test_scores_that_part_only_beyond_32_bits_tie_in_9_0_8_and_not_in_10_0(
    precision: str, version: int
) -> None:
    run = {"q3": {"d9": 1.00000001, "d1": 1.00000002, "d0": 1.00000003}}
    measures = {name: ours(name) for name in VALUES_BY_VERSION}
    scores = measure_run(
        list(measures.values()), {"q3": {"d1": 1, "d9": 2}}, run, precision=precision
    )
    got = dict(zip(scores.measures, scores.values[:, 0], strict=True))
    assert {name: f"{got[measure]:.4f}" for name, measure in measures.items()} == {
        name: values[version] for name, values in VALUES_BY_VERSION.items()
    }


QUERIES = ("q1", "q2", "q3", "q4")
DOCUMENTS = (*(f"d{i}" for i in range(12)), "ä", "z", "\U0001f600")
TIED = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.0 + 1e-9, -1.0, 1e300])
GRADES = st.integers(-1, 4)
# pytrec_eval-terrier 0.5.11 corrupts its memory if all grades of a query are negative
judged = st.dictionaries(st.sampled_from(DOCUMENTS), GRADES, min_size=1).filter(
    lambda j: max(j.values()) >= 0
)
judgments = st.dictionaries(st.sampled_from(QUERIES), judged, min_size=1)


def runs(
    scores: st.SearchStrategy[float],
) -> st.SearchStrategy[dict[str, dict[str, float]]]:
    return st.dictionaries(
        st.sampled_from((*QUERIES, "unjudged")),
        st.dictionaries(st.sampled_from(DOCUMENTS), scores, min_size=1),
    )


TREC_EVAL = {
    "P@1": "P_1",
    "P@5": "P_5",
    "P@20": "P_20",
    "R@1": "recall_1",
    "R@5": "recall_5",
    "R@20": "recall_20",
    "AP": "map",
    "AP@3": "map_cut_3",
    "nDCG": "ndcg",
    "nDCG@3": "ndcg_cut_3",
    "nDCG@20": "ndcg_cut_20",
    "RR": "recip_rank",
    "Rprec": "Rprec",
    "Bpref": "bpref",
    "Success@1": "success_1",
    "Success@5": "success_5",
    "SetP": "set_P",
    "SetR": "set_recall",
    "SetF": "set_F",
    "SetAP": "set_map",
}


def requested_measures() -> set[str]:
    """Return the measures of TREC_EVAL as pytrec_eval expects them: `P.1,5,20`."""
    cutoffs: dict[str, list[str]] = {}
    measures: set[str] = set()
    for name in TREC_EVAL.values():
        family, _, cutoff = name.rpartition("_")
        if cutoff.isdigit():
            cutoffs.setdefault(family, []).append(cutoff)
        else:
            measures.add(name)
    for family, family_cutoffs in cutoffs.items():
        measures.add(f"{family}.{','.join(sorted(family_cutoffs))}")
    return measures


@settings(max_examples=120, deadline=None)
@given(judgments, runs(TIED), st.integers(1, 3))
def test_pytrec_eval(
    qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]], rel: int
) -> None:
    evaluator = pytrec_eval.RelevanceEvaluator(
        qrels, requested_measures(), relevance_level=rel
    )
    theirs = evaluator.evaluate(run)
    scores = measure_run([at_level(name, rel) for name in TREC_EVAL], qrels, run)
    for row, name in zip(scores.values, TREC_EVAL.values(), strict=True):
        want = [theirs[q][name] if q in theirs else 0.0 for q in scores.query_ids]
        np.testing.assert_allclose(row, want, rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.parametrize(
    ("returned", "relevant", "hits"),
    [(1000, 204, 153), (10, 16, 3), (10, 64, 6), (20, 8, 3)],
)
def test_set_average_precision_to_the_last_bit(
    returned: int, relevant: int, hits: int
) -> None:
    """A product of two quotients gives 0.11474999999999999 for 0.11475.

    Its fourth decimal would differ.
    """
    qrels = {"q": {f"r{i}": 1 for i in range(relevant)}}
    run = {"q": {f"r{i}" if i < hits else f"x{i}": 1.0 for i in range(returned)}}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"set_map"}).evaluate(run)["q"][
        "set_map"
    ]
    assert measure_run([parse_measure("SetAP")], qrels, run).values[0, 0] == theirs


IR_MEASURES = [
    "P(rel=2)@5",
    "P@20",
    "R@5",
    "AP(rel=2)",
    "AP@4",
    "nDCG@5",
    "nDCG",
    "RR",
    "RR(rel=3)",
    "Rprec",
    "Bpref(rel=2)",
    "Success@3",
    "SetP",
    "SetR",
    "SetF",
    "SetAP(rel=2)",
]


reads_numbers = pytest.mark.filterwarnings(
    "ignore:.*removed in Python 3.14:DeprecationWarning"
)
"""ir-measures parses its names by what Python 3.14 no longer has."""


@reads_numbers
@settings(max_examples=60, deadline=None)
@given(judgments, runs(TIED))
def test_ir_measures(
    qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]
) -> None:
    measures = [ir_measures.parse_measure(name) for name in IR_MEASURES]
    theirs = {
        (str(m.measure), m.query_id): m.value
        for m in ir_measures.iter_calc(measures, qrels, run)
    }
    scores = measure_run([parse_measure(name) for name in IR_MEASURES], qrels, run)
    for name, row in zip(IR_MEASURES, scores.values, strict=True):
        want = [theirs[name, q] for q in scores.query_ids]
        np.testing.assert_allclose(row, want, rtol=0, atol=1e-9, err_msg=name)


@reads_numbers
@settings(max_examples=50, deadline=None)
@given(
    judgments,
    st.permutations(range(15)),
    st.integers(1, 15),
    st.sampled_from(["Judged@1", "Judged@5", "Judged"]),
)
def test_judged_of_ir_measures(
    qrels: dict[str, dict[str, int]], order: list[int], depth: int, name: str
) -> None:
    hits = {DOCUMENTS[i]: float(i) for i in order[:depth]}
    run = dict.fromkeys(QUERIES, hits)
    theirs = {
        m.query_id: m.value
        for m in ir_measures.iter_calc([ir_measures.parse_measure(name)], qrels, run)
    }
    scores = measure_run([parse_measure(name)], qrels, run)
    np.testing.assert_allclose(
        scores.values[0], [theirs[q] for q in scores.query_ids], rtol=0, atol=1e-9
    )


@reads_numbers
@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval is a Perl program")
def test_err_and_exponential_ndcg_of_gdeval() -> None:
    """gdeval (through ir-measures): the largest grade is 4; it prints 5 decimals."""
    random = np.random.default_rng(7)
    qrels: dict[str, dict[str, int]] = {}
    for query in ("1", "2", "3", "4"):
        grades = random.integers(0, 5, 30)
        qrels[query] = {str(d): int(grade) for d, grade in enumerate(grades)}
    run: dict[str, dict[str, float]] = {}
    for query in qrels:
        documents = map(str, random.permutation(60)[:40])
        run[query] = dict(zip(documents, random.random(40).tolist(), strict=True))
    assert max(max(judged.values()) for judged in qrels.values()) == 4
    names = ["ERR@5", "ERR@20", "nDCG(dcg='exp-log2')@5", "nDCG(dcg='exp-log2')@20"]
    measures = [ir_measures.parse_measure(name) for name in names]
    theirs = {
        (str(m.measure), m.query_id): m.value
        for m in ir_measures.iter_calc(measures, qrels, run)
    }
    scores = measure_run([parse_measure(name) for name in names], qrels, run)
    for name, row in zip(names, scores.values, strict=True):
        np.testing.assert_allclose(
            row,
            [theirs[name, q] for q in scores.query_ids],
            rtol=0,
            atol=5.1e-6,
            err_msg=name,
        )
