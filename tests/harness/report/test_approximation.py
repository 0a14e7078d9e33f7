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


def ran(place, stores, depth=100, dimensions=64, more=()):
    """The results of hashing encoders by their stores; then what more there is."""
    encoder = {"kind": "hashing", "dimensions": dimensions}
    blocks = [
        {"name": name, "store": store, "encoder": encoder}
        for name, store in stores.items()
    ]
    tables = {
        "name": "approximate",
        "dataset": {"path": str(DATA), "queries": ["queries.json"]},
        "depth": depth,
    }
    written = {
        **tables,
        "primary": "nDCG@10",
        "measures": ["nDCG@10"],
        "retrievers": [*blocks, *more],
    }
    place.mkdir(exist_ok=True)
    return harness.run(written, harness.RunOptions(place / "results"))


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
    for name, one in measured.items():
        approximate = results.rankings(name)
        assert one["compared"] == len(exact) == 13
        for cut, recall in ((10, one["recall_at_10"]), (100, one["recall"])):
            found = sum(
                len({*hits.doc_ids[:cut]} & {*exact[q].doc_ids[:cut]})
                for q, hits in approximate.items()
            )
            assert recall == pytest.approx(
                found / sum(len(hits.doc_ids[:cut]) for hits in exact.values())
            )
        assert one["exact_bytes"] == 4 * 64 * 182
        assert min(one["ms"], one["exact_ms"]) > 0
    assert measured["int8"]["bytes"] == measured["int8"]["exact_bytes"] / 4
    assert measured["bit"]["bytes"] == measured["bit"]["exact_bytes"] / 32
    one = measured["bit"]
    assert one["recall_at_10"] < 1
    row = f"| bit | 13 | {one['recall_at_10']:.3f} | {one['recall']:.3f} | 1.46 kB | 46.6 kB |"
    assert row in (folder / "report.md").read_text(encoding="utf-8")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<caption>Approximate against exact search</caption>" in page
    assert f'<td class="n">{one["recall_at_10"]:.3f}</td>' in page


def graph(place, dimensions):
    pytest.importorskip("qdrant_edge", reason="the extra `edge` is not installed")
    store = {"location": "edge", "m": 4, "ef_construct": 4, "ef": 4}
    more = (
        {"name": "words", "kind": "bm25"},
        {"name": "both", "kind": "fusion", "of": ["graph", "words"]},
    )
    return ran(place, {"graph": store}, 10, dimensions, more)


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
