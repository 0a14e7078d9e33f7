"""Approximate search against exact search in the same collection."""

import sys
from pathlib import Path

import pytest

import harness
from harness.console.reproduction_text import reproduction_sentence
from harness.records import read_results
from harness.report.sections.approximate_search import compare_with_exact
from harness.reproduce import approximate_retrievers, reproduce

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[3] / "datasets" / "survey-templates-en"


def run_stores(folder, stores, depth=100, dimensions=64, other_retrievers=()):
    """The results of hashing encoders by their stores, and of other retrievers."""
    encoder = {"kind": "hashing", "dimensions": dimensions}
    retrievers = [
        {"name": name, "store": store, "encoder": encoder}
        for name, store in stores.items()
    ]
    experiment = {
        "name": "approximate",
        "dataset": {"path": str(DATA), "queries": ["queries.json"]},
        "depth": depth,
        "primary": "nDCG@10",
        "measures": ["nDCG@10"],
        "retrievers": [*retrievers, *other_retrievers],
    }
    folder.mkdir(exist_ok=True)
    return harness.run(experiment, harness.RunOptions(folder / "results"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("qdrant_edge", reason="the extra `edge` is not installed")
    stores = {
        "exact": "edge",
        "int8": {"location": "edge", "quantization": "scalar"},
        "bit": {"location": "edge", "quantization": "binary", "oversampling": 1.0},
    }
    return run_stores(tmp_path_factory.mktemp("approximate"), stores).folder


@pytest.mark.parametrize("retriever", ["int8", "bit"])
@pytest.mark.parametrize(("cutoff", "key"), [(10, "recall_at_10"), (100, "recall")])
def test_recall_is_that_of_the_saved_rankings(folder, retriever, cutoff, key):
    results = read_results(folder)
    row = compare_with_exact(results)[retriever]
    exact = results.rankings("exact")
    shared_hits = 0
    for query_id, ranking in results.rankings(retriever).items():
        exact_hits = exact[query_id].doc_ids[:cutoff]
        shared_hits += len({*ranking.doc_ids[:cutoff]} & {*exact_hits})
    all_hits = sum(len(ranking.doc_ids[:cutoff]) for ranking in exact.values())
    assert row.compared == len(exact) == 13
    assert getattr(row, key) == pytest.approx(shared_hits / all_hits)


def test_quantized_vectors_are_smaller(folder):
    rows = compare_with_exact(read_results(folder))
    assert list(rows) == ["int8", "bit"]
    for row in rows.values():
        assert row.exact_bytes == 4 * 64 * 182
        assert min(row.ms, row.exact_ms) > 0
    assert rows["int8"].bytes == rows["int8"].exact_bytes / 4
    assert rows["bit"].bytes == rows["bit"].exact_bytes / 32


def test_the_report_shows_the_recall(folder):
    row = compare_with_exact(read_results(folder))["bit"]
    assert row.recall_at_10 < 1
    recalls = f"{row.recall_at_10:.3f} | {row.recall:.3f}"
    markdown = (folder / "report.md").read_text(encoding="utf-8")
    assert f"| bit | 13 | {recalls} | 1.46 kB | 46.6 kB |" in markdown
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<summary>Approximate against exact search</summary>" in page
    assert f"<td>{row.recall_at_10:.3f}</td>" in page


def run_graph(folder, dimensions=64):
    """The results of a graph index, and of a fusion with it."""
    store = {"location": "edge", "m": 4, "ef_construct": 4, "ef": 4}
    other_retrievers = (
        {"name": "words", "kind": "bm25"},
        {"name": "both", "kind": "fusion", "of": ["graph", "words"]},
    )
    return run_stores(
        folder,
        {"graph": store},
        depth=10,
        dimensions=dimensions,
        other_retrievers=other_retrievers,
    )


@pytest.fixture
def graph_results(tmp_path):
    pytest.importorskip("qdrant_edge", reason="the extra `edge` is not installed")
    return run_graph(tmp_path / "first")


def test_a_new_graph_index_is_reproduced_although_hits_may_differ(graph_results):
    assert approximate_retrievers(graph_results) == ("graph", "both")
    reproduction = reproduce(graph_results.folder, harness.RunOptions(fresh=True))
    assert set(reproduction.approximate) == {"graph", "both"}
    assert (
        reproduction.largest_difference == 0
    )  # words alone are searched exactly, and alike


def test_a_graph_whose_hits_differ_is_reproduced_with_the_share_that_recurs(
    graph_results, tmp_path, monkeypatch
):
    """Half the dimensions stand for another build of the graph: other hits, surely."""
    other_build = run_graph(tmp_path / "second", dimensions=32)
    module = sys.modules[reproduce.__module__]
    monkeypatch.setattr(module, "run_built", lambda *_: other_build)
    reproduction = reproduce(graph_results.folder)
    hits_now = other_build.rankings("graph")
    recurring_hits = 0
    for query_id, ranking in graph_results.rankings("graph").items():
        recurring_hits += len({*ranking.doc_ids} & {*hits_now[query_id].doc_ids})
    share = recurring_hits / (13 * 10)  # queries, hits of each
    assert 0 < share < 1
    assert reproduction.approximate["graph"] == pytest.approx(share)
    assert "rankings/graph.jsonl" in reproduction.differing_files
    assert (
        "graph searches an approximate index, which no two builds make alike: "
        f"{100 * share:.1f} % of its first 10 hits are there again"
    ) in reproduction_sentence(reproduction)


@pytest.mark.parametrize("file", ["report.md", "report.html"])
def test_the_report_warns_that_a_graph_cannot_be_seeded(graph_results, file):
    text = (graph_results.folder / file).read_text(encoding="utf-8")
    assert "cannot be seeded" in text
