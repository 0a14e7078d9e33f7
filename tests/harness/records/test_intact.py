"""Results folders that are damaged, cut, or made by somebody hostile: one message, exit code 2, nothing outside."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from harness import records
from harness.evaluation.gate import gate
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


def without_digests(folder: Path) -> Path:
    """As folders were written before the manifest had digests."""
    return edited(folder, "manifest.json", lambda text: json.dumps(json.loads(text) | {"tables": {}}))


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


@pytest.mark.parametrize("digests", [True, False])
def test_a_gate_needs_the_rankings_that_it_reports_on(folder, capsys, digests):
    for path in ((folder if digests else without_digests(folder)) / "rankings").iterdir():
        path.unlink()
    assert "rankings" in (said := ends(capsys, 2, "gate", folder, *GATE)).err and said.out == ""


def test_a_gate_refuses_the_rankings_of_another_run(folder, capsys):
    other = folder / "rankings" / "bm25.jsonl"
    other.write_bytes((folder / "rankings" / "hashing.jsonl").read_bytes())
    assert "bm25.jsonl: cannot be read whole: it was changed or cut" in ends(capsys, 2, "gate", folder, *GATE).err


@pytest.mark.parametrize("change", [cut, infinite])
def test_scores_must_be_whole_even_where_no_digest_is_known(folder, capsys, change):
    edited(without_digests(folder), "scores.csv", change)
    for command in (("gate", folder, *GATE), ("report", folder), ("reproduce", folder, "--trust")):
        assert "scores.csv: " in ends(capsys, 2, *command).err


def test_evidence_that_is_missing_is_named(folder):
    without_digests(folder)
    (folder / "qrels.trec").unlink()
    with pytest.raises(InputError, match=r"qrels\.trec"):
        records.read(folder).grades()


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


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"query_id": "q-swim", "doc_ids": ["fish"], "scores": [1.0]}', "is answered twice"),
        ('{"query_id": "nobody", "doc_ids": ["fish"], "scores": [1.0]}', "was not asked"),
        ('{"query_id": "q-swim", "doc_ids": ["fish", "car"], "scores": [1.0]}', "2 documents have 1 scores"),
        ('{"query_id": "q-swim", "doc_ids": ["fish"], "scores": [1e999]}', "not finite"),
        ('{"query_id": "q-swim", "doc_ids": ["fish", "fish"], "scores": [2, 1]}', "occurs twice"),
        ('{"query_id": "q-swim", "doc_ids": [7], "scores": [1.0]}', "doc_ids.0: Input should be a valid string"),
        ("[" * 100_000, "recursion limit"),
    ],
)
def test_a_ranking_that_no_run_writes_is_refused(folder, line, message):
    edited(without_digests(folder), "rankings/bm25.jsonl", lambda text: text + line + "\n")
    with pytest.raises(InputError, match=message):
        records.read(folder).rankings("bm25")


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("labels.jsonl", {"grades": dict.fromkeys(map(str, range(1000)), "x")}),
        ("labels.jsonl", {"given": {"a": dict.fromkeys(map(str, range(1000)), 1.5)}}),
        ("labels.jsonl", {"given": dict.fromkeys(map(str, range(1000)), 1)}),
        ("labels.jsonl", {"fields": {str(i): [] for i in range(1000)}}),
        ("labels.jsonl", {"ranked": [1] * 1000}),
        ("labels.jsonl", {"groups": [1] * 1000}),
        ("labels.jsonl", {"groups": [[1] * 1000] * 1000}),
        ("labels.jsonl", {"claims": [1] * 1000}),
        ("rankings/bm25.jsonl", {"doc_ids": [1] * 1000, "scores": ["x"] * 1000}),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_of_a_line_of_wrong_values_the_first_are_told_and_no_more_are_kept(folder, name, row):
    line = json.dumps({"query_id": "x", "text": "t", "fields": {}} | row)
    edited(without_digests(folder), name, lambda text: text + line + "\n")
    with pytest.raises(
        InputError, match=r"should be a valid \w+( in '\w+')?( and [1-9] more)? \(run the experiment again\)$"
    ):
        records.read(folder).rankings("bm25")


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
    "rows", [([], []), ([1.0], [1.0, 0.0]), ([1.0, np.nan], [0.0, 0.0]), ([1.0, np.inf], [0.0, 0.0])]
)
def test_a_gate_refuses_rows_that_do_not_fit_and_scores_that_are_not_finite(rows):
    first, second = map(np.array, rows)
    with pytest.raises(ValueError, match=r"two equally long rows are needed|finite"):
        gate(first, second, margin=0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content["resolved"]["statistics"].update(alpha="high"), "resolved.statistics.alpha"),
        (lambda content: content["resolved"]["retrievers"][0].update(of="hybrid"), "in a circle"),
        (lambda content: content["resolved"]["retrievers"][0].update(of=3), r"resolved.retrievers.0.of"),
        (lambda content: content["retrievers"].pop("bm25"), "not those of the experiment"),
        (lambda content: content["ledger"].pop("bm25"), "ledger: lacks bm25"),
        (lambda content: content.update(seconds=-1.0), "seconds: Input should be greater than or equal to 0"),
        (lambda content: content["dataset"].update(queries=7), "7 were asked or judged"),
        (lambda content: content["dataset"].update(scored=5), r"scores.csv: has 144 scores, and 120 were made"),
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
