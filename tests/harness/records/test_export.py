"""A results folder for other programs: each format is read back by its own library."""

import json
import shutil

import ir_measures
import pandas as pd
import pytest

from harness import records
from harness.export.formats import export_results, export_sets
from harness.pipeline import run
from harness.records import Results
from harness.running.options import RunOptions
from retrievers.errors import InputError
from tests.support import layouts, small
from tests.support.small import refusal


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Results:
    """A run over graded labels, with its report."""
    folder = tmp_path_factory.mktemp("export")
    data = layouts.beir(folder / "data")
    blocks = small.RETRIEVERS
    path = folder / "e.toml"
    path.write_text(
        f'name = "e"\ndataset = "{data.as_posix()}"\nprimary = "nDCG@3"\n'
        f'measures = ["nDCG@3", "RR", "R@2"]\ndepth = 4\n{blocks}'
    )
    return run(path, RunOptions(folder / "out"))


def primary_means(results):
    """Return retriever -> its mean nDCG@3."""
    rows = results.summary[results.summary["measure"] == "nDCG@3"]
    return dict(zip(rows["retriever"], rows["mean"], strict=True))


def test_trec_files_have_the_means_of_the_results(results, tmp_path):
    folder = tmp_path / "trec"
    export_results(results, "trec", folder)
    qrels = list(ir_measures.read_trec_qrels(str(folder / "qrels.trec")))
    measure = ir_measures.nDCG @ 3
    for name, mean in primary_means(results).items():
        trec_run = ir_measures.read_trec_run(str(folder / "runs" / f"{name}.trec"))
        theirs = ir_measures.calc_aggregate([measure], qrels, trec_run)
        assert theirs[measure] == pytest.approx(mean), name


def test_a_folder_with_files_is_not_written_over(results, tmp_path):
    export_results(results, "trec", tmp_path / "trec")
    error = refusal(export_results, results, "trec", tmp_path / "trec")
    assert "is there already" in str(error)


def test_a_file_is_not_a_folder_for_an_export(results, tmp_path):
    (tmp_path / "trec").touch()
    error = refusal(export_results, results, "trec", tmp_path / "trec")
    assert "trec: is a file (name another with --output)" in str(error)


def test_an_export_names_the_file_that_is_missing(results, tmp_path):
    folder = shutil.copytree(results.folder, tmp_path / "copy")
    (folder / "runs" / "bm25.trec").unlink()
    copied = records.read_results(folder)
    error = refusal(export_results, copied, "trec", tmp_path / "trec")
    assert "bm25.trec: is missing (run the experiment again)" in str(error)


def test_mteb_s_main_score_is_the_mean(results, tmp_path):
    export_results(results, "mteb", tmp_path / "mteb")
    result = json.loads((tmp_path / "mteb" / "bm25.json").read_text())
    main_score = result["scores"]["test"][0]["main_score"]
    assert main_score == pytest.approx(primary_means(results)["bm25"])


@pytest.mark.parametrize("name", ["scores", "summary", "comparisons", "tests", "costs"])
def test_parquet_has_every_table(results, tmp_path, name):
    export_results(results, "parquet", tmp_path / "parquet")
    stored = pd.read_parquet(tmp_path / "parquet" / f"{name}.parquet")
    table = getattr(results, name)
    assert stored.columns.tolist() == table.columns.tolist()
    assert len(stored) == len(table)


def test_parquet_has_the_rankings(results, tmp_path):
    export_results(results, "parquet", tmp_path / "parquet")
    rankings = pd.read_parquet(tmp_path / "parquet" / "rankings.parquet")
    assert set(rankings["retriever"]) == set(results.retrievers)


def test_the_command_prints_the_files(results, tmp_path, capsys):
    options = ("--as", "trec", "--output", tmp_path / "out")
    assert "qrels.trec" in small.told(capsys, "export", results.folder, *options)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("trex", "did you mean 'trec'"),
        ("foo", "known: mlflow, mteb, parquet"),
        ("wandb", "--output: cannot go with --as wandb, which writes no file"),
    ],
)
def test_the_command_refuses(results, tmp_path, capsys, form, message):
    options = ("--as", form, "--output", tmp_path / "other")
    assert message in small.told(capsys, "export", results.folder, *options, code=2)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[",
        b"{}",
        b'{"scores": {"test": []}}',
        b'{"scores": 1}',
        b"\xff",
        b"[" * 9999,
    ],
)
def test_a_damaged_result_of_mteb_is_named(results, tmp_path, raw):
    shutil.copytree(results.folder, tmp_path / "copy")
    (tmp_path / "copy" / "tables" / "bm25.mteb.json").write_bytes(raw)
    sets = [records.read_results(tmp_path / "copy")]
    message = "bm25.mteb.json: is missing or damaged .harness report .* writes it anew"
    with pytest.raises(InputError, match=message):
        export_sets(tmp_path, sets, "mteb", tmp_path / "table")
