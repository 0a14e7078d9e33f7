"""A results folder for other programs: each form is read back by the library that owns it, where it is here."""

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


def test_each_form_is_what_the_results_say(results, tmp_path):
    for form in ("trec", "mteb", "parquet"):
        export_results(results, form, tmp_path / form)
    assert "is there already" in str(
        refusal(export_results, results, "trec", tmp_path / "trec")
    )
    qrels, measure = (
        list(ir_measures.read_trec_qrels(str(tmp_path / "trec" / "qrels.trec"))),
        ir_measures.nDCG @ 3,
    )
    rows = results.summary[results.summary["measure"] == "nDCG@3"]
    means = dict(zip(rows["retriever"], rows["mean"], strict=True))
    for name, mean in means.items():
        found = ir_measures.read_trec_run(
            str(tmp_path / "trec" / "runs" / f"{name}.trec")
        )
        assert ir_measures.calc_aggregate([measure], qrels, found)[
            measure
        ] == pytest.approx(mean)
    said = json.loads((tmp_path / "mteb" / "bm25.json").read_text())
    assert said["scores"]["test"][0]["main_score"] == pytest.approx(means["bm25"])
    for name in ("scores", "summary", "comparisons", "tests", "costs"):
        found = pd.read_parquet(tmp_path / "parquet" / f"{name}.parquet")
        table = getattr(results, name)
        assert (found.columns.tolist(), len(found)) == (
            table.columns.tolist(),
            len(table),
        )
    assert set(
        pd.read_parquet(tmp_path / "parquet" / "rankings.parquet")["retriever"]
    ) == set(results.retrievers)


def test_the_command(results, tmp_path, capsys):
    assert "qrels.trec" in small.told(
        capsys, "export", results.folder, "--as", "trec", "--output", tmp_path / "out"
    )
    for form, told in (
        ("trex", "did you mean 'trec'"),
        ("foo", "known: mlflow, mteb, parquet"),
        ("wandb", "--output: cannot go with --as wandb, which writes no file"),
    ):
        assert told in small.told(
            capsys,
            "export",
            results.folder,
            "--as",
            form,
            "--output",
            tmp_path / "other",
            code=2,
        )


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
    with pytest.raises(
        InputError,
        match=r"bm25.mteb.json: is missing or damaged .harness report .* writes it anew",
    ):
        export_sets(
            tmp_path,
            [records.read_results(tmp_path / "copy")],
            "mteb",
            tmp_path / "table",
        )
