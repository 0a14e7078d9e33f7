"""A results folder for other programs: each form is read back by the library that owns it, where it is here."""

import json
import shutil

import ir_measures
import pandas as pd
import pytest

from harness import records
from harness.pipeline import run
from harness.records import Results
from harness.records.export import export, export_sets
from harness.running.forecast import Options
from retrievers.errors import InputError
from tests.support import layouts, small


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


def test_ir_measures_finds_the_same_means(results, tmp_path):
    export(results, "trec", tmp_path / "out")
    qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "out" / "qrels.trec")))
    for name, mean in means(results, "nDCG@3").items():
        found = ir_measures.read_trec_run(str(tmp_path / "out" / "runs" / f"{name}.trec"))
        assert ir_measures.calc_aggregate([ir_measures.nDCG @ 3], qrels, found)[ir_measures.nDCG @ 3] == pytest.approx(
            mean
        )


def test_mteb_has_the_primary_mean(results, tmp_path):
    export(results, "mteb", tmp_path / "mteb")
    said = json.loads((tmp_path / "mteb" / "bm25.json").read_text())
    assert said["scores"]["test"][0]["main_score"] == pytest.approx(means(results, "nDCG@3")["bm25"])


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
    assert "known: mlflow, mteb, parquet" in small.told(capsys, "export", results.folder, "--as", "foo", code=2)


def test_what_is_there_is_not_overwritten(results, tmp_path):
    export(results, "trec", tmp_path / "out")
    with pytest.raises(InputError, match="is there already"):
        export(results, "trec", tmp_path / "out")


@pytest.mark.parametrize("raw", [b"", b"[", b"{}", b'{"scores": {"test": []}}', b'{"scores": 1}', b"\xff", b"[" * 9999])
def test_a_damaged_result_of_mteb_is_named(results, tmp_path, raw):
    shutil.copytree(results.folder, tmp_path / "copy")
    (tmp_path / "copy" / "tables" / "bm25.mteb.json").write_bytes(raw)
    with pytest.raises(InputError, match=r"bm25.mteb.json: is (damaged|not UTF-8) .harness report .* writes it anew"):
        export_sets(tmp_path, [records.read(tmp_path / "copy")], "mteb", tmp_path / "table")
