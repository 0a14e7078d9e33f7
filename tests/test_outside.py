"""Additions on real collections and models, for who has them: no clone needs them, and all that they hold is held too
by tests that need nothing.

They are looked for in the folder that HARNESS_TEST_DATA names, else in one called `shared` beside the checkout; see
tests/README.md. `pytest -m "not outside"` leaves them out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.dataset import Dataset, load, reference_of
from harness.dataset.trec import read_qrels
from harness.evaluation.runs import Conventions, score_runs
from harness.measures import parse_all, score, score_run
from harness.pipeline import run
from harness.records import Results
from harness.report import write_report
from harness.running.forecast import Options
from retrievers import bm25
from retrievers.cache import Cache
from retrievers.meter import Meter
from retrievers.rerankers.cross_encoder import CrossEncoderReranker
from retrievers.runs import read_run
from retrievers.types import Document, Query, Ranking, ranked
from tests.harness.measures.test_trec_eval import expected, printed
from tests.support import layouts
from tests.support.over_store import reranking
from tests.support.recompute import verified
from tests.test_known_answers import BM25, MINILM

pytestmark = pytest.mark.outside

FOLDER = Path(os.environ.get("HARNESS_TEST_DATA") or Path(__file__).parents[2] / "shared")


def outside(part: str) -> Path:
    """A part of the outside folder, or a skip where it is absent."""
    if not (FOLDER / part).exists():
        pytest.skip(f"there is no {FOLDER / part}: an addition to the suite")
    return FOLDER / part


def results(folder: Path, data: str, retrievers: str) -> Results:
    """Run the retrievers on a collection, given as TOML."""
    experiment = folder / "known.toml"
    experiment.write_text(
        f'name = "known"\ndataset = {data}\nprimary = "nDCG@10"\n'
        f'measures = ["nDCG@10", "AP", "RR", "R@100", "P@10"]\nreport = false\n{retrievers}'
    )
    return run(experiment, Options(folder / "out"))


def means(found: Results, retriever: str) -> dict[str, float]:
    """The means of one retriever by measure."""
    rows = found.summary[found.summary["retriever"] == retriever]
    return dict(zip(rows["measure"], rows["mean"], strict=True))


# Collections: the README beside them says where each figure comes from.


SPLITS = {"scifact": ("test", "test"), "cranfield": ("all1837", "test"), "jsquad": ("test", "test")}
"""The judgments by which benchmarks/bm25.md has nDCG and recall, in the order of its columns."""


@pytest.mark.parametrize("name", list(SPLITS))
def test_the_figures_of_bm25_in_the_benchmarks(name: str) -> None:
    place = list(SPLITS).index(name) + 1
    by_gain, by_recall = (load(replace(reference_of(outside(f"data/{name}")), split=split)) for split in SPLITS[name])
    page = (Path(__file__).parents[1] / "benchmarks" / "bm25.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.split("\n") if line.startswith("| here")
    ]
    figures = {row[0]: row[place] for row in rows if re.match(r"0\.\d", row[place])}
    assert len(figures) == 3
    for label, figure in figures.items():
        answers = answered(by_gain, **tomllib.loads("\n".join(re.findall("`([^`]+)`", label))))
        gain, recall = (np.mean(scored(by_gain, answers)), np.mean(scored(by_recall, answers, "R@100")))
        assert f"{gain:.4f} / {recall:.3f}" == figure, label


def test_bm25_on_scifact(tmp_path: Path) -> None:
    found = results(tmp_path, f'"{outside("data/scifact")}"', BM25 + 'stemming = ""\n')
    assert means(found, "bm25")["nDCG@10"] == pytest.approx(0.6618, abs=5e-4)
    verified(found.folder)


def test_bm25_by_character_bigrams_on_japanese(tmp_path: Path) -> None:
    found = results(tmp_path, f'{{ path = "{outside("data/jsquad")}", split = "test" }}', BM25)
    assert means(found, "bm25")["nDCG@10"] == pytest.approx(0.9352, abs=1e-3)
    assert means(found, "bm25")["RR"] == pytest.approx(0.9224, abs=1e-3)


def test_minilm_and_bm25_on_cranfield(tmp_path: Path) -> None:
    found = results(tmp_path, f'"{outside("data/cranfield")}"', MINILM + BM25 + 'stemming = ""\n')
    dense = means(found, "minilm")
    assert dense["nDCG@10"] == pytest.approx(0.37359, abs=2e-4)
    assert dense["AP"] == pytest.approx(0.31659, abs=2e-4)
    assert dense["RR"] == pytest.approx(0.54011, abs=2e-4)
    assert dense["R@100"] == pytest.approx(0.77557, abs=2e-4)
    assert dense["P@10"] == pytest.approx(0.24400, abs=2e-4)
    assert means(found, "bm25")["nDCG@10"] == pytest.approx(0.3163, abs=1e-3)
    assert found.manifest.ledger.retrievers["minilm"].notes["empty"] == ("471", "995")
    verified(found.folder)
    write_report(found)  # it looks for the page, too
    # Another program that recomputes a results folder, by other people, with the standard library alone.
    command = [sys.executable, str(outside("tools/verify_results.py")), str(found.folder)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout


# trec_eval: NIST's own test files (9.0.8), and what the 9.0.8 and 10.0 binaries printed, gcc on x86-64.

MET = Conventions(intersection=True)
ALL = Conventions()
DOUBLE = Conventions(precision="double")


@pytest.mark.parametrize(
    ("folder", "golden", "qrels", "ranking", "conventions", "rel", "size"),
    [
        ("official", "out.test", "qrels.test", "results.test", MET, 1, 13),
        ("official", "out.test.a", "qrels.test", "results.test", MET, 1, 48),
        ("official", "out.test.aq", "qrels.test", "results.test", MET, 1, 192),
        ("official", "out.test.aqc", "qrels.test", "results.trunc", ALL, 1, 144),
        ("official", "out.test.aql", "qrels.rel_level", "results.test", MET, 2, 192),
        ("official", "out.test.meas_params", "qrels.test", "results.test", MET, 1, 44),
        ("cranfield_bm25", "expected_9.0.8.test.txt", "test.qrel", "run.bm25.top100.txt", MET, 1, 4294),
        ("quirks", "expected_9.0.8_q.txt", "quirks.qrels", "quirks.run", MET, 1, 65),
        ("quirks", "expected_9.0.8_qc.txt", "quirks.qrels", "quirks.run", ALL, 1, 65),
        ("quirks", "expected_10.0_q.txt", "quirks.qrels", "quirks.run", DOUBLE, 1, 39),
        ("quirks", "expected_10.0_qc.txt", "quirks.qrels", "quirks.run", DOUBLE, 1, 78),
    ],
)
def test_every_value_of_trec_eval(
    folder: str, golden: str, qrels: str, ranking: str, conventions: Conventions, rel: int, size: int
) -> None:
    data = outside(f"data/trec_eval/{folder}")
    want = expected(data / golden, rel)
    assert len(want) == size
    measures = tuple(dict.fromkeys(measure for _, measure in want))
    result = score_runs(data / qrels, [data / ranking], measures, conventions=conventions)
    got = printed(result)
    assert {cell: got[cell] for cell in want} == want


def test_every_value_of_trec_eval_with_no_more_than_100_documents_a_query() -> None:
    data = outside("data/trec_eval/official")
    want = expected(data / "out.test.aqcM")
    assert len(want) == 144
    judgments, ranking = read_qrels(data / "qrels.test"), read_run(data / "results.trunc")
    first = {
        query: sorted(hits.items(), key=lambda hit: (np.float32(hit[1]), hit[0]))[-100:]
        for query, hits in ranking.items()
    }
    measures = tuple(dict.fromkeys(measure for _, measure in want))
    scores = score_run(measures, judgments, ((query, dict(hits)) for query, hits in first.items()))
    got = printed(scores)
    assert {cell: got[cell] for cell in want} == want


# A model


def test_a_real_cross_encoder_knows_who_wrote_hamlet(tmp_path: Path) -> None:
    # PROVENANCE.md of the model: 0.96 on the right passage, 0.04 on a wrong one.
    passages = {
        "right": Document("right", "", "Hamlet is a tragedy written by William Shakespeare around 1600."),
        "wrong": Document("wrong", "", "The Battle of Hastings was fought in 1066 in the south of England."),
    }
    model = outside("models/minilm-cross-encoder")
    with Cache(tmp_path / "cache") as cache:
        reranker = CrossEncoderReranker(str(model), device="cpu")
        own = reranking(reranker, cache, lambda ids: {i: passages[i] for i in ids})
        (found,) = own.rerank([Query("q", "Who wrote Hamlet?")], [ranked(["wrong", "right"], [2, 1])], Meter())
    assert found.doc_ids == ("right", "wrong")
    right, wrong = 1 / (1 + np.exp(-found.scores))
    assert right > 0.85
    assert wrong < 0.15


def collection(folder: Path) -> layouts.Collection:
    """A BEIR collection without titles and fields: a title goes before its text, as BM25 reads them anyway."""
    dataset = load(reference_of(folder))
    return layouts.Collection(
        {document.id: " ".join(document.content.split()) for document in dataset.documents()},
        {query.id: " ".join(query.text.split()) for query in dataset.judged},
        {query: dict(labels.grades or {}) for query, labels in dataset.labels.items()},
    )


def answered(dataset: Dataset, **options: Any) -> dict[str, Ranking]:
    """What BM25 answers to each query."""
    retriever = bm25.BM25(**options)
    retriever.index(dataset.documents(), Meter())
    return dict(zip((q.id for q in dataset.queries), retriever.search(dataset.queries, 100, Meter()), strict=True))


def scored(dataset: Dataset, answers: dict[str, Ranking], measure: str = "nDCG@10") -> list[float]:
    """What each query scores."""
    grades = {query: dict(labels.grades or {}) for query, labels in dataset.labels.items() if query in answers}
    ids = {query: ranking.doc_ids for query, ranking in answers.items()}
    return score(parse_all([measure]), grades, ids).values[0].tolist()


@pytest.mark.parametrize("name", ["scifact", "cranfield"])
def test_a_collection_is_the_same_through_every_route(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))
    of = collection(outside(f"data/{name}"))
    places: dict[str, Path | str] = {
        route: write(tmp_path / route / "data", of) for route, write in layouts.GRADED.items()
    }
    places |= {"irds": layouts.catalogue(tmp_path / name, of), "hub": layouts.named_hub(tmp_path / "hub", of=of)}
    found = {route: load(reference_of(place)) for route, place in places.items()}
    assert {dataset.digest for dataset in found.values()} == {found["beir"].digest}
    assert len(found) == 14
    answers = {route: answered(dataset) for route, dataset in found.items()}
    for route, dataset in found.items():
        assert answers[route] == answers["beir"], route
        assert scored(dataset, answers[route]) == scored(found["beir"], answers["beir"]), route
    # A whole run says the same.
    run_of = results(tmp_path, json.dumps(str(places["trec"])), BM25)
    assert run_of.rankings("bm25") == answers["beir"]
    assert means(run_of, "bm25")["nDCG@10"] == pytest.approx(np.mean(scored(found["beir"], answers["beir"])), abs=1e-12)
