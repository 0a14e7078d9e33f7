"""A results folder for other programs: each form is read back by the library that owns it, where it is here."""

import json
import shutil
from pathlib import Path

import ir_measures
import pandas as pd
import pytest

from harness import records
from harness.dataset import load, reference_of
from harness.pipeline import run
from harness.records import Results
from harness.records.export import export
from harness.running.options import Options
from retrievers.errors import InputError
from tests import layouts, small


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Results:
    """A run over graded labels, with its report."""
    folder = tmp_path_factory.mktemp("export")
    data = layouts.beir(folder / "data")
    blocks = small.RETRIEVERS
    path = folder / "e.toml"
    path.write_text(f'name = "e"\ndataset = "{data.as_posix()}"\nprimary = "nDCG@3"\n'
                    f'measures = ["nDCG@3", "RR", "R@2"]\ndepth = 4\n{blocks}')  # fmt: skip
    return run(path, Options(folder / "out"))


def means(results: Results, measure: str) -> dict[str, float]:
    rows = results.summary[results.summary["measure"] == measure]
    return dict(zip(rows["retriever"], rows["mean"], strict=True))


@pytest.mark.parametrize("form", ["trec", "ir-measures"])
def test_ir_measures_finds_the_same_means(results, tmp_path, form):
    export(results, form, tmp_path / "out")
    qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "out" / "qrels.trec")))
    for name, mean in means(results, "nDCG@3").items():
        found = ir_measures.read_trec_run(str(tmp_path / "out" / "runs" / f"{name}.trec"))
        assert ir_measures.calc_aggregate([ir_measures.nDCG @ 3], qrels, found)[ir_measures.nDCG @ 3] == pytest.approx(
            mean
        )


def test_a_beir_folder_is_the_data_set_again(results, tmp_path):
    export(results, "beir", tmp_path / "out")
    again = load(reference_of(tmp_path / "out"))
    assert again.digest == results.manifest.dataset.digest


def test_ranx_reads_json_by_query_and_document(results, tmp_path):
    # The shape that ranx 0.3.21 reads in Qrels.from_file and Run.from_file (data_structures/qrels.py).
    export(results, "ranx", tmp_path / "out")
    qrels = json.loads((tmp_path / "out" / "qrels.json").read_text())
    assert qrels == layouts.GRADES
    found = json.loads((tmp_path / "out" / "runs" / "bm25.json").read_text())
    assert {query: list(hits) for query, hits in found.items()} == {
        query: list(ranking.doc_ids) for query, ranking in results.rankings("bm25").items()
    }


def test_mteb_and_a_models_card(results, tmp_path):
    export(results, "mteb", tmp_path / "mteb")
    said = json.loads((tmp_path / "mteb" / "bm25.json").read_text())
    assert said["scores"]["test"][0]["main_score"] == pytest.approx(means(results, "nDCG@3")["bm25"])
    export(results, "model-card", tmp_path / "card")
    yaml = pytest.importorskip("yaml")
    (index,) = yaml.safe_load((tmp_path / "card" / "hashing.yaml").read_text())["model-index"]
    metrics = {metric["type"]: metric["value"] for metric in index["results"][0]["metrics"]}
    assert metrics["ndcg_at_3"] == pytest.approx(means(results, "nDCG@3")["hashing"])


def test_parquet_holds_every_table(results, tmp_path):
    export(results, "parquet", tmp_path / "out")
    for name in ("scores", "summary", "comparisons", "tests", "costs"):
        found = pd.read_parquet(tmp_path / "out" / f"{name}.parquet")
        assert found.columns.tolist() == getattr(results, name).columns.tolist()
        assert len(found) == len(getattr(results, name))
    rankings = pd.read_parquet(tmp_path / "out" / "rankings.parquet")
    assert set(rankings["retriever"]) == set(results.retrievers)


def test_the_command(results, tmp_path, capsys):
    assert "qrels.trec" in small.told(capsys, "export", results.folder, "--as", "trec", "--output", tmp_path / "out")
    wrong = ("export", results.folder, "--as", "trex", "--output", tmp_path / "other")
    assert "did you mean 'trec'" in small.told(capsys, *wrong, code=2)
    wandb = ("export", results.folder, "--as", "wandb", "--output", tmp_path / "out")
    assert "--output: cannot go with --as wandb, which writes no file" in small.told(capsys, *wandb, code=2)
    assert "known: beir, ir-measures, mlflow" in small.told(capsys, "export", results.folder, "--as", "foo", code=2)


def test_what_is_there_is_not_overwritten_and_other_data_are_refused(results, tmp_path):
    export(results, "trec", tmp_path / "out")
    with pytest.raises(InputError, match="is there already"):
        export(results, "trec", tmp_path / "out")
    corpus = Path(results.manifest.dataset.path) / "corpus.jsonl"
    before = corpus.read_bytes()
    corpus.write_bytes(before.replace(b"boats", b"ships"))
    try:
        with pytest.raises(InputError, match="is no longer the data of these results"):
            export(records.read(results.folder), "beir", tmp_path / "beir")
        assert not (tmp_path / "beir").exists()
        assert not (tmp_path / "beir.unfinished").exists()
    finally:
        corpus.write_bytes(before)


@pytest.mark.parametrize("raw", [b"", b"[", b"{}", b'{"scores": {"test": []}}', b'{"scores": 1}', b"\xff", b"[" * 9999])
def test_a_damaged_result_of_mteb_is_named(results, tmp_path, raw):
    shutil.copytree(results.folder, tmp_path / "copy")
    (tmp_path / "copy" / "tables" / "bm25.mteb.json").write_bytes(raw)
    with pytest.raises(InputError, match=r"bm25.mteb.json: is (damaged|not UTF-8) .harness report .* writes it anew"):
        export(records.read(tmp_path / "copy"), "model-card", tmp_path / "card")
