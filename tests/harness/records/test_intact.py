"""Results folders that are damaged, cut, or made by somebody hostile: one message, exit code 2, nothing outside."""

import json
import shutil
from pathlib import Path

import pytest

from harness import records
from harness.evaluation.readers import scores_of_results
from harness.report import write_report
from retrievers.errors import InputError
from tests.support.small import ends

GATE = ("--baseline", "bm25", "--challenger", "hashing", "--margin", "0.5")


@pytest.fixture
def folder(finished, tmp_path):
    return Path(shutil.copytree(finished.folder, tmp_path / "results"))


def edited(folder: Path, name: str, change) -> Path:
    path = folder / name
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    return folder


def cut(text: str) -> str:
    return text[: text.rstrip("\n").rfind("\n") + 1]


def blanked(text: str) -> str:
    """The last cell that holds anything is empty."""
    last = text.rstrip("\n,")
    return last[: last.rfind(",") + 1] + text[len(last) :]


def infinite(text: str) -> str:
    """The last cell that holds anything is not a finite number."""
    last = text.rstrip("\n,")
    return last[: last.rfind(",") + 1] + "inf" + text[len(last) :]


@pytest.mark.parametrize(
    ("change", "name"), [(cut, "scores.csv"), (blanked, "summary.csv"), (infinite, "comparisons.csv")]
)
def test_a_cut_or_blanked_table_passes_no_gate(folder, capsys, name, change):
    edited(folder, name, change)
    said = ends(capsys, 2, "gate", folder, *GATE)
    assert said.out == ""
    assert f"{name}: cannot be read whole: it was changed or cut" in said.err


def test_a_gate_needs_the_rankings_that_it_reports_on(folder, capsys):
    for path in (folder / "rankings").iterdir():
        path.unlink()
    assert "rankings" in (said := ends(capsys, 2, "gate", folder, *GATE)).err and said.out == ""


def test_a_gate_refuses_the_rankings_of_another_run(folder, capsys):
    other = folder / "rankings" / "bm25.jsonl"
    other.write_bytes((folder / "rankings" / "hashing.jsonl").read_bytes())
    assert "bm25.jsonl: cannot be read whole: it was changed or cut" in ends(capsys, 2, "gate", folder, *GATE).err


@pytest.mark.parametrize("name", ["labels.jsonl", "scores.csv", "rankings/bm25.jsonl"])
def test_a_file_that_is_gone_is_missing(folder, name):
    (folder / name).unlink()
    with pytest.raises(InputError, match=f"{name}: is missing"):
        records.read(folder).rankings("bm25")


def test_a_run_that_was_stopped_is_told_where_its_results_would_be(tmp_path):
    (tmp_path / "small.unfinished").mkdir()
    with pytest.raises(InputError, match=r"does not exist .its run was stopped: run it again"):
        records.read(tmp_path / "small")


@pytest.mark.parametrize("name", ["labels.jsonl", "documents.jsonl", "rankings/bm25.jsonl", "qrels.trec"])
def test_evidence_that_was_cut_is_named(folder, name):
    edited(folder, name, cut)
    with pytest.raises(InputError, match="changed or cut"):
        write_report(records.read(folder))


def renamed(content: dict, name: str) -> dict:
    """A manifest in which the retriever bm25 has another name."""
    return json.loads(json.dumps(content).replace('"bm25"', json.dumps(name)))


@pytest.mark.parametrize("name", ["../../escaped", "/tmp/escaped", "a/b", "..", "", "a\nb", "x" * 65, "a\\b"])
def test_a_name_that_leads_elsewhere_is_refused(folder, name, capsys):
    edited(folder, "manifest.json", lambda text: json.dumps(renamed(json.loads(text), name)))
    assert "is not a name" in ends(capsys, 2, "report", folder).err


@pytest.mark.parametrize("name", ["report.html", "report.md", "tables", "figures", "scores.csv", "rankings/bm25.jsonl"])
def test_a_link_in_the_folder_is_refused_and_never_written_through(folder, tmp_path, name, capsys):
    target = tmp_path / "precious"
    original = folder / name
    if original.is_dir():
        shutil.copytree(original, target)
        shutil.rmtree(original)
        (target / "kept.txt").write_text("precious")
    else:
        target.write_text("precious")
        original.unlink()
    original.symlink_to(target)
    before = sorted(target.rglob("*")) if target.is_dir() else target.read_text()
    assert f"{name}: is a link" in ends(capsys, 2, "report", folder).err
    assert (sorted(target.rglob("*")) if target.is_dir() else target.read_text()) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content.update(seconds=-1.0), "seconds: Input should be greater than or equal to 0"),
        (lambda content: content["tables"].clear(), r"labels.jsonl: cannot be read whole"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused(folder, change, message):
    content = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    change(content)
    (folder / "manifest.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        records.read(folder)


def test_a_manifest_whose_primary_has_no_scores_is_refused(folder):
    content = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    content["resolved"]["primary"] = "RR@7"
    (folder / "manifest.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match=r"scores\.csv: has no scores of RR@7"):
        scores_of_results(records.read(folder))
