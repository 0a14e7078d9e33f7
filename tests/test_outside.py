"""Additions on real collections and models, for who has them: no clone needs them, and all that they hold is held too
by tests that need nothing.

They are looked for in the folder that HARNESS_TEST_DATA names, else in one called `shared` beside the checkout; see
tests/README.md. `pytest -m "not outside"` leaves them out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.dataset import load, reference_of
from harness.evaluation.runs import Conventions, score_runs
from harness.measures import parse_all, score
from harness.pipeline import run
from harness.report import write_report
from harness.running.forecast import Options
from retrievers import bm25
from retrievers.meter import Meter
from tests.harness.measures.test_trec_eval import expected, printed
from tests.support.recompute import verified
from tests.test_known_answers import BM25, MINILM

pytestmark = pytest.mark.outside

FOLDER = Path(os.environ.get("HARNESS_TEST_DATA") or Path(__file__).parents[2] / "shared")


def outside(part: str) -> Path:
    """A part of the outside folder, or a skip where it is absent."""
    if not (FOLDER / part).exists():
        pytest.skip(f"there is no {FOLDER / part}: an addition to the suite")
    return FOLDER / part


# Collections: the README beside them says where each figure comes from.


SPLITS = {"scifact": ("test", "test"), "cranfield": ("all1837", "test"), "jsquad": ("test", "test")}
"""The judgments by which benchmarks/bm25.md has nDCG and recall, in the order of its columns."""


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SPLITS))
def test_the_figures_of_bm25_in_the_benchmarks(name: str) -> None:
    place = list(SPLITS).index(name) + 1
    splits = [load(replace(reference_of(outside(f"data/{name}")), split=split)) for split in SPLITS[name]]
    page = (Path(__file__).parents[1] / "benchmarks" / "bm25.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.split("\n") if line.startswith("| here")
    ]
    figures = {row[0]: row[place] for row in rows if re.match(r"0\.\d", row[place])}
    assert len(figures) == 3
    for label, figure in figures.items():
        retriever = bm25.BM25(**tomllib.loads("\n".join(re.findall("`([^`]+)`", label))))
        queries = splits[0].queries
        retriever.index(splits[0].documents(), Meter())
        answers = {q.id: hits.doc_ids for q, hits in zip(queries, retriever.search(queries, 100, Meter()), strict=True)}
        found = []
        for dataset, measure in zip(splits, ("nDCG@10", "R@100"), strict=True):
            grades = {query: dict(labels.grades or {}) for query, labels in dataset.labels.items() if query in answers}
            found.append(np.mean(score(parse_all([measure]), grades, answers).values[0]))
        assert "{:.4f} / {:.3f}".format(*found) == figure, label


DENSE = {"nDCG@10": 0.37359, "AP": 0.31659, "RR": 0.54011, "R@100": 0.77557, "P@10": 0.24400}


@pytest.mark.slow
def test_minilm_and_bm25_on_cranfield(tmp_path: Path) -> None:
    experiment = tmp_path / "known.toml"
    experiment.write_text(
        f'name = "known"\ndataset = "{outside("data/cranfield")}"\nprimary = "nDCG@10"\n'
        f'measures = {list(DENSE)}\nreport = false\n{MINILM}{BM25}stemming = ""\n'
    )
    found = run(experiment, Options(tmp_path / "out"))
    means = found.summary.set_index(["retriever", "measure"])["mean"]
    assert means["minilm"].to_dict() == pytest.approx(DENSE, abs=2e-4)
    assert means["bm25", "nDCG@10"] == pytest.approx(0.3163, abs=1e-3)
    assert found.manifest.ledger.retrievers["minilm"].notes["empty"] == ("471", "995")
    verified(found.folder)
    write_report(found)  # it looks for the page, too
    # Another program that recomputes a results folder, by other people, with the standard library alone.
    command = [sys.executable, str(outside("tools/verify_results.py")), str(found.folder)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout


# trec_eval: NIST's own test files (9.0.8), and what the 9.0.8 and 10.0 binaries printed, gcc on x86-64.

MET, ALL, DOUBLE = Conventions(intersection=True), Conventions(), Conventions(precision="double")


@pytest.mark.parametrize(
    ("folder", "golden", "qrels", "ranking", "conventions", "rel", "size"),
    [("official", "out.test", "qrels.test", "results.test", MET, 1, 13),
     ("official", "out.test.a", "qrels.test", "results.test", MET, 1, 48),
     ("official", "out.test.aq", "qrels.test", "results.test", MET, 1, 192),
     ("official", "out.test.aqc", "qrels.test", "results.trunc", ALL, 1, 144),
     ("official", "out.test.aql", "qrels.rel_level", "results.test", MET, 2, 192),
     ("official", "out.test.meas_params", "qrels.test", "results.test", MET, 1, 44),
     ("cranfield_bm25", "expected_9.0.8.test.txt", "test.qrel", "run.bm25.top100.txt", MET, 1, 4294),
     ("quirks", "expected_9.0.8_q.txt", "quirks.qrels", "quirks.run", MET, 1, 65),
     ("quirks", "expected_9.0.8_qc.txt", "quirks.qrels", "quirks.run", ALL, 1, 65),
     ("quirks", "expected_10.0_q.txt", "quirks.qrels", "quirks.run", DOUBLE, 1, 39),
     ("quirks", "expected_10.0_qc.txt", "quirks.qrels", "quirks.run", DOUBLE, 1, 78)],
)  # fmt: skip
def test_every_value_of_trec_eval(folder, golden, qrels, ranking, conventions, rel, size):
    data = outside(f"data/trec_eval/{folder}")
    want = expected(data / golden, rel)
    assert len(want) == size
    measures = tuple(dict.fromkeys(measure for _, measure in want))
    got = printed(score_runs(data / qrels, [data / ranking], measures, conventions=conventions))
    assert {cell: got[cell] for cell in want} == want
