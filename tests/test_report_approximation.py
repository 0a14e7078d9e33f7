"""The report says what approximate search gives up and what it saves, against exact search in the same collection."""

from pathlib import Path

import pytest

import harness
from harness.records import read
from harness.report.approximation import approximations

EXPERIMENT = """
name = "approximate"
dataset = { path = %s, queries = ["queries.json"] }
primary = "nDCG@10"
measures = ["nDCG@10"]
[[retrievers]]
name = "exact"
encoder = { kind = "hashing", dimensions = 64 }
store = "edge"
[[retrievers]]
name = "int8"
encoder = { kind = "hashing", dimensions = 64 }
store = { location = "edge", quantization = "scalar" }
[[retrievers]]
name = "bit"
encoder = { kind = "hashing", dimensions = 64 }
store = { location = "edge", quantization = "binary", oversampling = 1.0 }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("qdrant_edge", reason="the extra `edge` is not installed")
    place = tmp_path_factory.mktemp("approximate")
    data = Path(__file__).parents[1] / "datasets" / "survey-templates-en"
    (place / "e.toml").write_text(EXPERIMENT % f"'{data.as_posix()}'", encoding="utf-8")
    harness.run(place / "e.toml", harness.Options(place / "results"))
    return place / "results" / "approximate"


def test_recall_is_that_of_the_saved_rankings(folder):
    results = read(folder)
    measured = approximations(results)
    assert list(measured) == ["int8", "bit"]
    exact = results.rankings("exact")
    for name, one in measured.items():
        approximate = results.rankings(name)
        assert one.compared == len(exact) == 13
        shares = [
            (len(set(hits.doc_ids[:cut]) & set(exact[query].doc_ids[:cut])), len(exact[query].doc_ids[:cut]))
            for cut in (10, 100)
            for query, hits in approximate.items()
        ]
        assert one.recall_at_10 == pytest.approx(sum(a for a, _ in shares[:13]) / sum(b for _, b in shares[:13]))
        assert one.recall == pytest.approx(sum(a for a, _ in shares[13:]) / sum(b for _, b in shares[13:]))
        assert one.exact_bytes == 4 * 64 * 182
        assert min(one.ms, one.exact_ms) > 0
    assert measured["int8"].bytes == measured["int8"].exact_bytes / 4
    assert measured["bit"].bytes == measured["bit"].exact_bytes / 32
    assert measured["bit"].recall_at_10 < 1


def test_the_pages_show_it(folder):
    one = approximations(read(folder))["bit"]
    row = f"| bit | 13 | {one.recall_at_10:.3f} | {one.recall:.3f} | 1.46 kB | 46.6 kB |"
    assert row in (folder / "report.md").read_text(encoding="utf-8")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<caption>Approximate against exact search</caption>" in page
    assert f'<td class="n">{one.recall_at_10:.3f}</td>' in page
