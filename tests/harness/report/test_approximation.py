"""The report says what approximate search gives up and what it saves, against exact search in the same collection."""

from pathlib import Path

import pytest

import harness
from harness.console.reproduction_text import reproduction_sentence
from harness.records import read_results
from harness.report.sections.approximate_search import compare_with_exact
from harness.reproduce import approximate_retrievers, reproduce

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[3] / "datasets" / "survey-templates-en"


def ran(folder, stores, depth=100, dimensions=64, other_retrievers=()):
    """The results of hashing encoders by their stores; then what more there is."""
    encoder = {"kind": "hashing", "dimensions": dimensions}
    retrievers = [
        {"name": name, "store": store, "encoder": encoder}
        for name, store in stores.items()
    ]
    tables = {
        "name": "approximate",
        "dataset": {"path": str(DATA), "queries": ["queries.json"]},
        "depth": depth,
    }
    experiment = {
        **tables,
        "primary": "nDCG@10",
        "measures": ["nDCG@10"],
        "retrievers": [*retrievers, *other_retrievers],
    }
    folder.mkdir(exist_ok=True)
    return harness.run(experiment, harness.RunOptions(folder / "results"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("qdrant_edge", reason="the extra `edge` is not installed")
    quantized = {"location": "edge", "quantization": "binary", "oversampling": 1.0}
    stores = {
        "exact": "edge",
        "int8": {"location": "edge", "quantization": "scalar"},
        "bit": quantized,
    }
    return ran(tmp_path_factory.mktemp("approximate"), stores).folder


def test_recall_is_that_of_the_saved_rankings_and_the_pages_show_it(folder):
    results = read_results(folder)
    measured = compare_with_exact(results)
    assert list(measured) == ["int8", "bit"]
    exact = results.rankings("exact")
    for name, row in measured.items():
        approximate = results.rankings(name)
        assert row["compared"] == len(exact) == 13
        for cutoff, recall in ((10, row["recall_at_10"]), (100, row["recall"])):
            shared = sum(
                len({*hits.doc_ids[:cutoff]} & {*exact[q].doc_ids[:cutoff]})
                for q, hits in approximate.items()
            )
            assert recall == pytest.approx(
                shared / sum(len(hits.doc_ids[:cutoff]) for hits in exact.values())
            )
        assert row["exact_bytes"] == 4 * 64 * 182
        assert min(row["ms"], row["exact_ms"]) > 0
    assert measured["int8"]["bytes"] == measured["int8"]["exact_bytes"] / 4
    assert measured["bit"]["bytes"] == measured["bit"]["exact_bytes"] / 32
    row = measured["bit"]
    assert row["recall_at_10"] < 1
    row = f"| bit | 13 | {row['recall_at_10']:.3f} | {row['recall']:.3f} | 1.46 kB | 46.6 kB |"
    assert row in (folder / "report.md").read_text(encoding="utf-8")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<caption>Approximate against exact search</caption>" in page
    assert f'<td class="n">{row["recall_at_10"]:.3f}</td>' in page


def graph(folder, dimensions):
    pytest.importorskip("qdrant_edge", reason="the extra `edge` is not installed")
    store = {"location": "edge", "m": 4, "ef_construct": 4, "ef": 4}
    other_retrievers = (
        {"name": "words", "kind": "bm25"},
        {"name": "both", "kind": "fusion", "of": ["graph", "words"]},
    )
    return ran(folder, {"graph": store}, 10, dimensions, other_retrievers)


def test_an_index_that_is_made_anew_may_find_others_and_is_reproduced(tmp_path):
    results = graph(tmp_path / "a", 64)
    assert approximate_retrievers(results) == ("graph", "both")
    again = reproduce(results.folder, harness.RunOptions(fresh=True))
    assert set(again.approximate) == {"graph", "both"}
    assert all(0 < share <= 1 for share in again.approximate.values())
    assert again.largest < 1e-4
    if again.differing:
        assert (
            "graph searches an approximate index, which no two builds make alike"
            in reproduction_sentence(again)
        )
    assert "cannot be seeded" in (results.folder / "report.md").read_text(
        encoding="utf-8"
    )
    assert "cannot be seeded" in (results.folder / "report.html").read_text(
        encoding="utf-8"
    )
