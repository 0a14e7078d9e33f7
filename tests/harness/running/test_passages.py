"""Runs that measure passages: kept in the results folder, read back, measured again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness import records
from harness.evaluation.gate import GateArm, gate_retrievers
from harness.evaluation.join_folders import score_folders
from harness.pipeline import run
from harness.records import Results
from harness.running.options import RunOptions
from tests.support.small import call, module, refusal, signed_anew, told

FRUIT = "Apples grow on trees and are red. Pears grow on trees and are green."
ROADS = "Cars drive on roads with four wheels. Trains drive on rails with wheels."
SEA = "Fish swim in water and have fins. Boats swim on water."
QUERIES = [
    {
        "id": "q1",
        "query": "green pears on trees",
        "relevant": [{"id": "fruit", "spans": ["Pears grow on trees and are green."]}],
    },
    {
        "id": "q2",
        "query": "trains drive on rails",
        "relevant": [{"id": "roads", "spans": ["Trains drive on rails"]}],
    },
    {
        "id": "q3",
        "query": "boats swim",
        "relevant": [{"id": "sea", "spans": [[34, 54]]}],
    },
]
MEASURES = [
    "R(tokens=12)",
    "P(tokens=12)",
    "nDCG(tokens=12)",
    "R(unit='chars')@1",
    "P(unit='chars')@1",
    "IoU@1",
    "IoU(tokens=12)",
]
CUT = """
[[retrievers]]
name = "cut"
kind = "bm25"
chunk = { size = 36, by = "words" }
"""
WHOLE = """
[[retrievers]]
name = "whole"
kind = "bm25"
"""


def experiment(
    folder: Path, retrievers: str = CUT + WHOLE, *, more: str = "", depth: int = 10
) -> Path:
    """An experiment on three documents whose labels have spans."""
    data = folder / "data"
    data.mkdir(exist_ok=True)
    rows = [
        {"_id": name, "text": text}
        for name, text in {"fruit": FRUIT, "roads": ROADS, "sea": SEA}.items()
    ]
    (data / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    lines = [
        json.dumps(
            {"_id": row["id"], "text": row["query"], "relevant": row["relevant"]}
        )
        for row in QUERIES
    ]
    (data / "queries.jsonl").write_text("\n".join(lines))
    path = folder / "passages.toml"
    path.write_text(
        f'name = "passages"\ndataset = "{data.as_posix()}"\n'
        f"primary = {json.dumps(MEASURES[0])}\nmeasures = {json.dumps(MEASURES)}\n"
        f"depth = {depth}\nreport = false\n{more}\n{retrievers}"
    )
    return path


def ran(folder: Path, *arguments: str, **options: object) -> Results:
    """The results of such an experiment."""
    path = experiment(folder, *arguments, **options)  # type: ignore[arg-type]
    return run(path, RunOptions(folder / "out"))


def means(results: Results, retriever: str) -> dict[str, float]:
    """Measure -> mean of a retriever."""
    return {
        row["measure"]: row["mean"]
        for row in results.rows("summary")
        if row["retriever"] == retriever
    }


def test_passages_are_measured_before_they_are_collapsed(tmp_path: Path) -> None:
    results = ran(tmp_path)
    # Every first passage of `cut` has the labelled sentence, or nearly all of it; no
    # whole document, of 13 to 18 tokens, fits into 12.
    assert means(results, "cut")["R(tokens=12)"] == 1
    assert means(results, "whole")["R(tokens=12)"] == 0
    whole = [
        len("Pears grow on trees and are green.") / len(FRUIT),
        len("Trains drive on rails") / len(ROADS),
        len("Boats swim on water.") / len(SEA),
    ]
    assert means(results, "whole")["P(unit='chars')@1"] == pytest.approx(sum(whole) / 3)
    assert means(results, "whole")["R(unit='chars')@1"] == 1


def test_passages_are_kept_with_the_ranking(tmp_path: Path) -> None:
    results = ran(tmp_path)
    first = results.rankings("cut")["q1"].passages
    whole = results.rankings("whole")["q1"].passages
    assert first is not None
    assert whole is not None
    assert FRUIT[first[0].start : first[0].end] == "Pears grow on trees and are green."
    # 13 words and 14: 4/3 of them, rounded up.
    assert whole[0][:4] == ("fruit", 0, len(FRUIT), 19)


@pytest.mark.parametrize("name", MEASURES)
def test_a_stored_folder_scores_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    results = ran(tmp_path)
    printed = json.loads(
        call(capsys, "score", results.folder, "-m", name, "-q", "--json").out
    )
    again = {
        (row["retriever"], row["query_id"]): row["value"] for row in printed["scores"]
    }
    columns = results.score_columns
    first = {
        (retriever, query): value
        for retriever, query, measure, value in zip(
            columns["retriever"],
            columns["query_id"],
            columns["measure"],
            columns["value"],
            strict=True,
        )
        if measure == name
    }
    assert again == first


def test_other_passages_of_the_same_documents_are_another_ranking(
    tmp_path: Path,
) -> None:
    other = CUT.replace('"cut"', '"other"').replace("36", "40")
    path = experiment(tmp_path, CUT + other)
    path.write_text(path.read_text().replace("tokens=12", "tokens=99"))
    results = run(path, RunOptions(tmp_path / "out"))
    copy = tmp_path / "copy"
    shutil.copytree(results.folder, copy)
    joined = score_folders([results.folder, copy], ["R(tokens=99)"])
    first, second = (read()["q1"] for read in joined.rankings.values())
    assert first == second
    assert not joined.identical
    gate = gate_retrievers(
        GateArm(results, "cut"), GateArm(results, "other"), margin=0.1
    )
    assert gate.mean_difference == 0
    assert gate.outcome == "not shown"


def test_a_folder_without_passages_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = experiment(tmp_path)
    path.write_text(
        path.read_text()
        .replace(json.dumps(MEASURES), '["RR"]')
        .replace(json.dumps(MEASURES[0]), '"RR"')
    )
    results = run(path, RunOptions(tmp_path / "out"))
    output = told(capsys, "score", results.folder, "-m", "R(tokens=9)", code=2)
    assert "whole's rankings keep no passages" in output


def test_a_table_of_the_budget_keeps_passages_for_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = experiment(tmp_path, more="[budget]")
    path.write_text(
        path.read_text()
        .replace(json.dumps(MEASURES), '["RR"]')
        .replace(json.dumps(MEASURES[0]), '"RR"')
    )
    results = run(path, RunOptions(tmp_path / "out"))
    assert "1.0000" in told(capsys, "score", results.folder, "-m", "R(tokens=30)")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (', 34, 68, ', ', 68, 34, ', "is not a passage"),
        (', 34, 68, ', ', 34, "68", ', "passages.0.2"),
        (', 34, 68, ', ', ', "passages"),
    ],
)  # fmt: skip
def test_an_edited_passage_is_one_sentence(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    old: str,
    new: str,
    message: str,
) -> None:
    folder = ran(tmp_path).folder
    path = folder / "rankings" / "cut.jsonl"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    signed_anew(folder)
    output = told(capsys, "score", folder, "-m", "R(tokens=12)", code=2)
    assert "cut.jsonl" in output
    assert message in output.replace("\n", " ")
    assert "Traceback" not in output


def test_the_terminal_says_what_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = told(capsys, "run", experiment(tmp_path), "--results", tmp_path / "out")
    text = " ".join(output.split())
    assert "Passages of whole are whole documents." in text
    assert "Tokens are words times 4/3, rounded up for each passage" in text


def test_a_declared_tokenizer_counts(tmp_path: Path) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    tokenizer = Tokenizer(WordLevel({"?": 0}, unk_token="?"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    table = f'[budget]\ntokenizer = "{tmp_path.as_posix()}"'
    results = ran(tmp_path, more=table)
    passages = results.rankings("cut")["q1"].passages
    assert passages is not None
    assert passages[0].tokens == 8  # seven words and a full stop
    kinds = [warning["kind"] for warning in _warnings(results)]
    assert "estimated tokens" not in kinds


def _warnings(results: Results) -> list[dict[str, object]]:
    text = (results.folder / "evaluation.json").read_text()
    rows: list[dict[str, object]] = json.loads(text)["warnings"]
    return rows


def test_a_tokenizer_that_is_missing_ends_the_run_before_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = experiment(tmp_path, more='[budget]\ntokenizer = "no/such/folder"')
    assert "budget.tokenizer" in told(capsys, "check", path, code=2)
    output = told(capsys, "run", path, "--results", tmp_path / "out", code=2)
    assert "budget.tokenizer" in output


def test_passages_that_end_before_the_context_are_counted(tmp_path: Path) -> None:
    short = [
        warning
        for warning in _warnings(ran(tmp_path, depth=1))
        if warning["kind"] == "short contexts"
    ]
    assert [warning["retrievers"] for warning in short] == [["cut"]]


def test_a_fusion_and_a_filter_have_passages_of_their_parts(tmp_path: Path) -> None:
    more = """
[[retrievers]]
name = "hashing"
encoder = { kind = "hashing", dimensions = 64 }
chunk = { size = 36, by = "words" }

[[retrievers]]
name = "hybrid"
kind = "fusion"
of = ["cut", "hashing"]

[[retrievers]]
name = "mixed"
kind = "fusion"
of = ["cut", "whole"]
"""
    results = ran(tmp_path, CUT + WHOLE + more)
    hybrid = results.rankings("hybrid")["q1"].passages
    mixed = results.rankings("mixed")["q1"].passages
    cut = results.rankings("cut")["q1"].passages
    assert hybrid is not None
    assert mixed is not None
    assert cut is not None
    assert hybrid[0].span == cut[0].span
    spans = {passage.span[:3] for passage in mixed}
    assert ("fruit", 0, len(FRUIT)) in spans
    assert cut[0].span in spans


def test_a_function_that_changes_texts_fails_its_retriever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = module(
        tmp_path, monkeypatch, "def cut(text):\n    return ['In short: ' + text]\n"
    )
    changed = f"""
[[retrievers]]
name = "changed"
kind = "bm25"
chunk = {{ call = "{name}:cut" }}
"""
    results = ran(tmp_path, CUT + changed)
    assert results.retrievers == ("cut",)
    error = results.manifest.retrievers["changed"].error
    assert "passages are not in the text of their documents (3 documents" in error


def test_a_sweep_of_sizes_chooses_by_the_context(tmp_path: Path) -> None:
    sweep = """
[sweep]
default = "whole"
of = "cut"
"chunk.size" = [20, 36, 60]
"""
    results = ran(tmp_path, CUT + WHOLE, more=sweep)
    choice = json.loads((results.folder / "evaluation.json").read_text())["sweep"]
    assert choice["default"] == "whole"
    assert set(results.retrievers) == {"cut", "whole", "cut[20]", "cut[60]"}


def test_without_spans_characters_are_refused_before_the_run(
    tmp_path: Path,
) -> None:
    path = experiment(tmp_path)
    file = tmp_path / "data" / "queries.jsonl"
    rows = [{"_id": "q", "text": "pears", "relevant": ["fruit"]}]
    file.write_text("\n".join(map(json.dumps, rows)))
    error = refusal(run, path, RunOptions(tmp_path / "out"))
    assert "needs labelled spans, and no query has any" in str(error)


def test_hits_that_are_no_documents_have_no_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = module(
        tmp_path,
        monkeypatch,
        "def search(queries, depth):\n"
        "    return [['fruit', 'elsewhere'] for _ in queries]\n",
    )
    table = f"""
[[retrievers]]
name = "ours"
kind = "python"
call = "{name}:search"
unknown_hits = "irrelevant"
"""
    results = ran(tmp_path, CUT + table)
    assert results.retrievers == ("cut",)
    error = results.manifest.retrievers["ours"].error
    assert "such as 'elsewhere': they cannot be counted in tokens" in error


def test_the_report_draws_recall_against_tokens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = experiment(tmp_path, depth=2)
    path.write_text(path.read_text().replace("report = false\n", ""))
    folder = run(path, RunOptions(tmp_path / "out")).folder
    told(capsys, "report", folder)
    lines = (folder / "report.md").read_text(encoding="utf-8").split("\n")
    head = lines[lines.index("## The same context") + 2]
    budgets = [cell.strip() for cell in head.split("|")[2:-1]]
    assert budgets == ["10", "12", "20"]
    rows = {
        name: line.split("|")[2:-1]
        for name in ("cut", "whole")
        for line in lines
        if line.startswith(f"| {name} | ") and len(line.split("|")) == 6
    }
    measured = told(
        capsys, "score", folder, "-m", "R(tokens=12, unit='chars')", "--json"
    )
    means = {row["retriever"]: row["mean"] for row in json.loads(measured)["summary"]}
    assert float(rows["cut"][1]) == pytest.approx(means["cut"], abs=0.0005)
    # Two passages are kept, of fewer than 20 tokens: what more would find is unknown.
    assert rows["cut"][2].strip() == "–"
    assert (folder / "figures" / "recall-tokens.svg").is_file()


def test_passages_survive_a_run_of_one_retriever(tmp_path: Path) -> None:
    before = ran(tmp_path)
    path = tmp_path / "passages.toml"
    after = run(path, RunOptions(tmp_path / "out", only=("cut",)))
    assert means(after, "whole") == means(before, "whole")
    assert records.read_results(after.folder).rankings("whole")["q1"].passages
