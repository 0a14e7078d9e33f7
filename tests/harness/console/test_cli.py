"""The command line: what it prints, and how it ends."""

import csv
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from harness import pipeline
from harness.cli import app, main
from harness.pipeline import run
from harness.records import Results
from harness.running.forecast import Options
from retrievers.cache import Cache
from retrievers.types import Embedded
from tests.support import small
from tests.support.small import Call

QRELS = "q1 0 d1 1\nq1 0 d2 2\nq2 0 d3 1\nq3 0 d1 0\nq3 0 d4 1\n"
FIRST = "q1 Q0 d2 1 9.1 x\nq1 Q0 d5 2 7.4 x\nq2 Q0 d1 1 3.3 x\nq2 Q0 d3 2 3.1 x\nq3 Q0 d4 1 5.0 x\n"
SECOND = "q1 Q0 d1 1 0.91 y\nq1 Q0 d2 2 0.88 y\nq2 Q0 d3 1 0.75 y\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Judgments and two runs in the working directory."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("qrels.txt", QRELS), ("first.run", FIRST), ("second.run", SECOND)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def commands(group: typer.Typer) -> Iterator[tuple[str, Any]]:
    """Every command by its name, those of groups too."""
    for name, command in typer.main.get_command(group).commands.items():
        inner = getattr(command, "commands", None)
        yield from ((f"{name} {other}", one) for other, one in inner.items()) if inner else [(name, command)]


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def told(value: Any) -> str:
    """A JSON value as a CSV file spells it."""
    return "" if value is None else value if isinstance(value, str) else repr(value)


# Words that are wrong


def test_without_words_the_help_is_shown(call: Call) -> None:
    told = call(code=0)
    assert "Usage: harness " in told.out
    assert all(name.split()[0] in told.out for name, _ in commands(app))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rnu"], "Did you mean 'run'?"),
        (["cache", "inf"], "Did you mean 'info'?"),
        (["run", "--quite", "x"], "; did you mean '--quiet'? (see harness run --help)"),
        (["compare", "r", "--qrels", "q"], "QRELS|RESULTS is given without a name: TREC qrels, or a results"),
        (["run"], "Missing argument 'EXPERIMENT' (see harness run --help)"),
        (["cache"], "Missing command (see harness cache --help)"),
        (["run", "x", "--max-cost", "much"], "'--max-cost'"),
        (["gate", "x"], "Missing option"),
        (["report", "x", "y"], "unexpected extra argument"),
        *(([command, "nowhere"], "nowhere") for command in ("run", "check", "init")),
        *(
            ([command, "results/none"], "results/none: does not exist (")
            for command in ("score", "compare", "report", "reproduce", "pool")
        ),
    ],
)
def test_a_misspelt_command_line_gets_one_line_and_exit_code_2(call: Call, words: list[str], said: str) -> None:
    told = call(*words, code=2)
    assert not told.out
    assert told.err.startswith("error: ")
    assert said in told.err
    assert told.err.count("\n") == 1


# run


def test_run_prints_means_comparisons_and_the_verdict_in_words(call: Call, tmp_path: Path) -> None:
    told = call("run", small.experiment(tmp_path, report=True), "--results", tmp_path / "out", code=0)
    head, *_ = told.out.splitlines()
    assert head == "small · nDCG@3 · 6 queries"
    assert len(told.out.splitlines()) <= 15
    more = call("report", tmp_path / "out" / "small", "--explain").out
    assert "nDCG@3 over 6 queries" in more
    assert "nDCG@3: a and b" in more
    verdict = "Undecided: no difference is shown between the 3 retrievers. 6 queries are too few to show one."
    assert verdict in " ".join(told.out.split())
    assert f"{verdict} Mean ahead of hybrid" in " ".join(more.split())
    assert told.out.endswith(f"report: {tmp_path / 'out' / 'small' / 'report.html'}\n")
    assert max(map(len, told.out.split("\n")[:-2])) <= 80
    stages = [line.split(",")[0].rsplit(":", 1)[0] for line in told.err.splitlines()]
    assert stages == list(dict.fromkeys(stages)), "each stage is told once"
    assert "hashing: embed-queries" in stages


def test_a_run_without_a_report_says_where_its_results_are_and_another_command_writes_the_page(
    call: Call, tmp_path: Path
) -> None:
    path, place = small.experiment(tmp_path), tmp_path / "out"
    folder, page = place / "small", place / "small" / "report.html"
    told = call("run", path, "--results", place, code=0)
    assert told.out.endswith(f"\nresults: {folder}\n")
    assert "report:" not in told.out
    parts = {"report.html", "report.md", "figures", "tables"}
    assert not parts & {file.name for file in folder.iterdir()}
    index = (place / "index.html").read_text(encoding="utf-8")
    assert "<bdi>small</bdi>" in index and 'href="small/report.html"' not in index
    assert call("reproduce", "--trust", folder).code == 0
    assert call("report", folder).out.endswith(f"\nreport: {page}\n")
    assert parts < {file.name for file in folder.iterdir()}
    assert call("report", place).code == 0
    assert 'href="small/report.html"' in (place / "index.html").read_text(encoding="utf-8")


def test_quiet_is_quiet(call: Call, tmp_path: Path) -> None:
    assert call("run", small.experiment(tmp_path), "--results", tmp_path / "out", "--quiet") == (0, "", "")


@pytest.mark.parametrize("words", [["run", "EXPERIMENT", "--results", "OUT"], ["report", "RESULTS"]])
def test_json_holds_the_rows_of_the_csv_files_in_full_precision(
    call: Call, tmp_path: Path, results: Path, words: list[str]
) -> None:
    places = {"EXPERIMENT": small.experiment(tmp_path), "OUT": tmp_path / "out", "RESULTS": results}
    said = call(*(places.get(word, word) for word in words), "--json")
    found = json.loads(said.out)
    assert list(found) == ["scores", "summary", "comparisons", "failed", "incomplete"]
    assert (found.pop("failed"), found.pop("incomplete")) == ([], "")
    for name, rows in found.items():
        assert [{k: told(v) for k, v in row.items()} for row in rows] == table(results / f"{name}.csv")


def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def with_api(url: str) -> str:
    options = f'model = "m", base_url = "{url}", patience = 0.1, timeout = 60'
    return f'{small.RETRIEVERS}\n[[retrievers]]\nname = "api"\nencoder = {{ kind = "openai", {options} }}\n'


def test_check_warns_of_keys_and_a_run_needs_them(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("OPENAI_API_KEY", "VOYAGE_API_KEY")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    block = """
[[retrievers]]
name = "api"
encoder = { kind = "openai", model = "text-embedding-3-small" }
rerank = { kind = "http", dialect = "voyage", model = "rerank-2.5" }
"""
    path = small.experiment(tmp_path, retrievers=small.RETRIEVERS + block)
    refused = call("run", path, code=2).err
    told = " ".join(call("check", path, code=0).out.split())  # a run that finds all in its cache needs none
    for name in names:
        assert f"retriever 'api': {name}: is not set in the environment" in refused
        assert f"retriever 'api': {name}: is not set in the environment" in told
    assert "a run needs it for what is not cached" in told


def test_a_backend_that_fails_ends_in_3_with_the_others_done(call: Call, tmp_path: Path) -> None:
    path = small.experiment(tmp_path, retrievers=with_api(f"http://127.0.0.1:{closed_port()}/v1"))
    said = call("run", path, "--results", tmp_path / "out", code=3)
    assert "error: api: " in said.err
    assert (said.out + said.err).count("Connection refused") <= 1  # why is told once
    assert "api failed" not in said.out
    assert "hybrid" in said.out
    assert (tmp_path / "out" / "small" / "scores.csv").exists()


def test_an_interrupt_is_one_line_that_says_how_to_go_on(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "run", interrupted)
    said = call("run", small.experiment(tmp_path), "--results", tmp_path)
    assert said == (130, "", "stopped: what was embedded is cached; the same command continues\n")
    (tmp_path / "small.unfinished" / "runs").mkdir(parents=True)
    (tmp_path / "small.unfinished" / "runs" / "bm25.trec").touch()
    said = call("run", small.experiment(tmp_path), "--results", tmp_path)
    assert said.err.count("\n") == 1
    assert f"finished rankings are in {tmp_path / 'small.unfinished'} (harness score " in said.err
    monkeypatch.setattr("harness.running.check.check", interrupted)
    assert call("check", "x") == (130, "", "stopped\n")
    monkeypatch.setattr("harness.labels.pool.read_pool", interrupted)
    kept = "what was paid for is kept; the same command continues"
    assert call("judge", "x") == (130, "", f"stopped: {kept}\n")


def test_an_interrupt_while_the_command_line_is_loaded_is_one_line() -> None:
    stopping = (
        "import sys\n"
        "class Stopping:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'typer':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stopping())\n"
        "from harness.__main__ import start\n"
        "start()\n"
    )
    said = subprocess.run([sys.executable, "-c", stopping], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])})  # fmt: skip
    assert (said.returncode, said.stdout, said.stderr) == (130, "", "stopped\n")
    script = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert script["scripts"] == {"harness": "harness.__main__:start"}


# check


def test_check_tells_what_it_found(call: Call, tmp_path: Path) -> None:
    path = small.experiment(tmp_path)
    assert "nothing is wrong" in call("check", path).out
    found = json.loads(call("check", path, "--json").out)
    assert (found["problems"], found["documents"], found["queries"]) == ([], 6, 6)
    assert json.loads(call("check", tmp_path / "data", "--json").out)["digest"] == found["digest"]


def test_check_lists_every_problem(call: Call, tmp_path: Path) -> None:
    path = small.experiment(tmp_path)
    labels = tmp_path / "data" / "queries.json"
    rows = json.loads(labels.read_text(encoding="utf-8"))
    rows[0]["relevant_documents"] = ["appel"]
    rows[1]["tags"] = 3
    labels.write_text(json.dumps(rows), encoding="utf-8")
    said = call("check", path, code=2)
    assert "error: 2 problems" in said.err
    found = call("check", path, "--json", code=2)
    assert not found.err
    assert {problem["where"].rpartition("/")[2] for problem in json.loads(found.out)["problems"]} == {
        "queries.json[0]", "queries.json[1]"
    }  # fmt: skip


# score


def test_score_of_trec_files(call: Call, files: Path) -> None:
    said = call("score", "qrels.txt", "first.run", "second.run", "-m", "nDCG@10", "-m", "P@1", "--json")
    means = {(row["retriever"], row["measure"]): row["mean"] for row in json.loads(said.out)["summary"]}
    # By hand: ideal of q1 2 + 1/log2(3); first.run finds d2 there, d3 second, d4 first.
    assert means["first", "nDCG@10"] == pytest.approx((2 / 2.6309297535714573 + 0.6309297535714575 + 1) / 3)
    assert means["first", "P@1"] == pytest.approx(2 / 3)
    assert means["second", "P@1"] == pytest.approx(2 / 3)
    assert "second: judged queries that the run lacks: 1" in said.err


def test_score_leaves_queries_out_only_when_told(call: Call, files: Path) -> None:
    for option, count, mean in (("--json", 3, 2 / 3), ("--intersection", 2, 1.0)):
        said = call("score", "qrels.txt", "second.run", "-m", "P@1", "--json", option)
        (row,) = json.loads(said.out)["summary"]
        assert (row["count"], row["mean"]) == (count, pytest.approx(mean))


def test_score_by_query_as_table_csv_and_json(call: Call, files: Path) -> None:
    words = ["score", "qrels.txt", "first.run", "-m", "AP", "-q"]
    shown = ["first", "query", "AP", "─" * 13, "q1", "0.5000", "q2", "0.5000", "q3", "1.0000"]
    assert call(*words).out.split() == shown
    rows = list(csv.DictReader(call(*words, "--format", "csv").out.splitlines()))
    assert rows == [{k: told(v) for k, v in row.items()} for row in json.loads(call(*words, "--json").out)["scores"]]
    assert [row["value"] for row in rows] == ["0.5", "0.5", "1.0"]


def test_score_shows_every_measure_of_every_run_whatever_the_room(
    call: Call, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        shutil.copy("first.run", f"a-run-with-a-long-name-{number}.run")
    said = call("score", "qrels.txt", *sorted(Path().glob("*.run")))
    lines = said.out.split("\n")
    assert all(sum(f"long-name-{number}" in line for line in lines) == 1 for number in range(9))  # a run a line
    assert max(map(len, said.out.split("\n"))) <= 80


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["qrels.txt"], "no run was named"),
        (["qrels.txt", "first.run", "-m", "ndgc"], "did you mean 'nDCG'?"),
        (["qrels.txt", "first.run", "--grades", "binary"], "for results folders"),
        (["qrels.txt", "first.run", "--queries", "nowhere"], "cannot be read"),
        (["first.run", "qrels.txt"], "is a run, not qrels"),
        (["qrels.txt", "nope"], "error: nope: cannot be read: No such file or directory (give a file"),
        (["qrels.txt", "first.run", "first.run"], "error: first.run: is named twice (name each run once)"),
        (["qrels.txt", "first.run", "-m", "P(groups='first')@1"], "there are no AND/OR groups in TREC qrels"),
        (["qrels.txt", "first.run", "--format", "csv", "--json"], "cannot go with --format csv"),
    ],
)
def test_score_refuses(call: Call, files: Path, words: list[str], said: str) -> None:
    assert said in call("score", *words, code=2).err
    assert "only one run" in call("compare", "qrels.txt", "first.run").err


def test_score_of_a_results_folder_is_what_the_run_found(call: Call, results: Path) -> None:
    found = json.loads(call("score", results, "-q", "--json").out)
    expected = {(r["retriever"], r["query_id"], r["measure"]): r["value"] for r in table(results / "scores.csv")}
    assert {(r["retriever"], r["query_id"], r["measure"]): told(r["value"]) for r in found["scores"]} == expected
    assert [{k: told(v) for k, v in row.items()} for row in found["summary"]] == table(results / "summary.csv")


def test_score_by_another_grade_rule_is_what_a_run_with_it_finds(call: Call, tmp_path: Path, results: Path) -> None:
    for rule, written in (("binary", '"binary"'), ("[[1, 3], [2, 1]]", "[[1, 3], [2, 1]]")):
        other = small.ran(tmp_path, more=f"[relevance]\ngrades = {written}").folder
        found = json.loads(call("score", results, "--grades", rule, "--json").out)["summary"]
        assert [{k: told(v) for k, v in row.items()} for row in found] == table(other / "summary.csv")
    assert "is not a grade rule" in call("score", results, "--grades", "binar").err
    assert "is not a grade rule" in call("score", results, "--grades", "[[1, 3").err
    assert call("score", results, "--grades", "explicit").err.startswith("error: --grades: query 'q-")


def test_score_below_the_depth_that_was_kept_is_refused(call: Call, tmp_path: Path, results: Path) -> None:
    told = call("score", results, "-m", "nDCG@10", "-m", "P@5", "-m", "R@6")
    assert (told.code, told.out) == (2, "")
    assert "measure 'nDCG@10': needs depth 10 (the run has depth 5: raise it" in told.err
    assert "'R@6'" in told.err and "'P@5'" not in told.err
    # Seven deep, all six documents were kept: there is nothing below.
    path = small.experiment(tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace("depth = 5", "depth = 7"), encoding="utf-8")
    whole = run(path, Options(tmp_path / "out")).folder
    assert call("score", whole, "-m", "nDCG@10").code == 0


def test_score_of_a_results_folder_knows_its_groups(call: Call, tmp_path: Path) -> None:
    path = small.experiment(tmp_path)
    groups = [{"id": "q", "query": "things with wheels", "relevant_documents": [["train"], ["car", "boat"]]}]
    (tmp_path / "data" / "queries.json").write_text(json.dumps(groups), encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8").replace('"RR"', "\"R(groups='first')@3\""), encoding="utf-8")
    folder = run(path, Options(tmp_path / "out")).folder
    found = json.loads(call("score", folder, "--json").out)["summary"]
    assert [{k: told(v) for k, v in row.items()} for row in found] == table(folder / "summary.csv")
    assert {(row["retriever"], row["measure"]): row["mean"] for row in found}["bm25", "R(groups='first')@3"] == 1


def test_score_of_some_queries(call: Call, tmp_path: Path, results: Path) -> None:
    chosen = tmp_path / "some.txt"
    chosen.write_text("q-swim\n\nq-rails\n", encoding="utf-8")
    found = json.loads(call("score", results, "--queries", chosen, "-q", "-m", "RR", "--json").out)
    assert {row["query_id"] for row in found["scores"]} == {"q-swim", "q-rails"}
    chosen.write_text("q-swum\n", encoding="utf-8")
    assert "did you mean 'q-swim'?" in call("score", results, "--queries", chosen).err
    chosen.write_text("\n", encoding="utf-8")
    assert call("score", results, "--queries", chosen).err.startswith(f"error: {chosen}: names no query (")
    assert "x.run: does not exist" in call("score", results, "x.run").err
    assert "which has its own runs" in call("score", results, results / "manifest.json").err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="pipes end otherwise there")
def test_a_reader_that_goes_away_is_no_failure(results: Path) -> None:
    words = [sys.executable, "-m", "harness", "score", str(results), "-q"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=Path(__file__).parents[3]
    ) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.close()
        assert b"Traceback" not in running.stderr.read()
        assert running.wait(600) == 0


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full here")
@pytest.mark.parametrize("words", [["score", "-q"], ["score", "--format", "csv"]])
def test_a_full_disk_behind_standard_output_is_one_message(results: Path, words: list[str]) -> None:
    command = [sys.executable, "-m", "harness", words[0], str(results), *words[1:]]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3], check=False
        )
    assert ended.returncode == 2
    assert ended.stderr.endswith(
        "error: standard output: cannot be written: No space left on device (free disk space)\n"
    )
    assert "Traceback" not in ended.stderr and "Exception" not in ended.stderr


# compare and gate


def test_compare_on_trec_files_is_what_the_run_found(call: Call, results: Path) -> None:
    runs = [results / "runs" / f"{name}.trec" for name in ("bm25", "hashing", "hybrid")]
    found = json.loads(call("compare", results / "qrels.trec", *runs, "-m", "nDCG@3", "-m", "RR", "--json").out)
    expected = [row for row in table(results / "comparisons.csv") if row["measure"] in ("nDCG@3", "RR")]
    assert [{k: told(v) for k, v in row.items()} for row in found["comparisons"]] == expected
    of_folder = json.loads(call("compare", results, "-m", "nDCG@3", "-m", "RR", "--json").out)
    assert found["comparisons"] == of_folder["comparisons"]
    assert {row["retriever"] for row in found["summary"]} == {"bm25", "hashing", "hybrid"}


def test_compare_with_a_baseline(call: Call, results: Path) -> None:
    said = call("compare", results, "-m", "RR", "--baseline", "bm25", "--margin", "0.9", "--explain")
    assert "RR: a against b = bm25" in said.out
    assert "as good as bm25 within 0.9" in " ".join(said.out.split())
    assert call("compare", results, "--baseline", "bm52").err.endswith("(did you mean 'bm25'?)\n")
    assert "unknown 'wilcoxn'" in call("compare", results, "--test", "wilcoxn").err
    assert "is larger than the measure's range" in call("compare", results, "-m", "RR", "--margin", "5").err


def test_gate(call: Call, results: Path) -> None:
    passed = call("gate", results, "--baseline", "hashing", "--challenger", "bm25", "--margin", "0.9")
    assert (passed.code, passed.err) == (0, "")
    assert passed.out.startswith("gate passed: not worse by 0.9: shown on 6 queries")
    manifest = (results / "manifest.json").read_bytes()
    which = f"run of {json.loads(manifest)['started']}, digest {hashlib.sha256(manifest).hexdigest()[:12]}"
    assert passed.out.endswith(f"; {which}\n")
    words = ["gate", results, "--baseline", "bm25", "--challenger", "hashing", "--margin", "0.01"]
    failed = call(*words)
    assert (failed.code, failed.out) == (1, "")
    assert failed.err.startswith("gate failed: ")
    assert failed.err.count("\n") == 1 and failed.err.endswith(f"; {which}\n")
    found = call(*words, "--json")
    assert json.loads(found.out)["which"] == which
    assert (found.code, json.loads(found.out)["passed"], json.loads(found.out)["n"]) == (1, False, 6)


def test_gate_in_a_job_of_github(call: Call, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    words = ("gate", results, "--format", "github", "--baseline", "hashing", "--challenger", "bm25", "--margin")
    for margin, code, begins in (("0.9", 0, "::notice title=Retrieval gate passed::not worse by 0.9: shown on"),
                                 ("0.01", 1, "::error title=Retrieval gate failed::")):  # fmt: skip
        told = call(*words, margin)
        assert (told.code, told.out.count("\n")) == (code, 1) and told.out.startswith(begins)
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("### Retrieval gate passed\n\n") and text.count("```text") == 2 and "● bm25" in text


@pytest.mark.parametrize(
    ("baseline", "challenger", "margin", "said"),
    [("hashing", "bm2", "0", "did you mean 'bm25'?"),
     ("bm25", "bm25", "0.02", "error: bm25: would be compared with itself (name two different retrievers)\n"),
     *(("hashing", "bm25", one, "is not a finite number above 0") for one in ("-1", "0", "nan", "inf"))],
)  # fmt: skip
def test_gate_refuses(call: Call, results: Path, baseline: str, challenger: str, margin: str, said: str) -> None:
    told = call("gate", results, "--baseline", baseline, "--challenger", challenger, "--margin", margin, code=2)
    assert said in told.err and not told.out


# reproduce


@pytest.fixture
def copied(tmp_path: Path, finished: Results) -> Path:
    """Results that a test may change, with their data."""
    return small.copied(finished.folder.parents[1], tmp_path) / "out" / "small"


def test_reproduce(call: Call, copied: Path) -> None:
    said = call("reproduce", "--trust", copied)
    assert (said.code, said.out) == (0, "reproduced: rankings, scores and comparisons are the same to the byte\n")
    assert json.loads(call("reproduce", "--trust", copied, "--fresh", "--json").out)["differing"] == []


def test_reproduce_says_what_differs(call: Call, copied: Path) -> None:
    summary = copied / "summary.csv"
    whole = summary.read_text(encoding="utf-8")
    (row, *_) = [line for line in whole.split("\n") if line.startswith("bm25,RR,")]
    cells = row.split(",")

    def moved(by: float) -> str:
        return whole.replace(row, ",".join([*cells[:3], repr(float(cells[3]) + by), *cells[4:]]))

    rankings = copied / "rankings" / "bm25.jsonl"
    rankings.write_text(rankings.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    summary.write_text(moved(5e-5), encoding="utf-8")
    small.signed_anew(copied)
    said = call("reproduce", "--trust", copied, code=0)
    assert "means within 0.0001 (largest difference 5e-05); not the same to the byte: rankings/bm25.jsonl" in said.out
    summary.write_text(moved(0.01), encoding="utf-8")
    said = call("reproduce", "--trust", copied, code=2)
    assert "summary.csv: cannot be read whole: it was changed" in said.err
    small.signed_anew(copied)
    said = call("reproduce", "--trust", copied)
    assert said.code == 1
    assert "summary.csv: does not follow from the folder's rankings and labels" in said.err


def test_reproduce_fails_where_a_retriever_answers_otherwise_or_no_more(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "def ask(queries, depth):\n    return [ANSWER for _ in queries]\n"
    module = small.module(tmp_path, monkeypatch, f"ANSWER = ['train']\n{code}")
    block = f'[[retrievers]]\nname = "theirs"\nkind = "python"\ncall = "{module}:ask"\n'
    assert (
        call("run", small.experiment(tmp_path, retrievers=block + small.BM25), "--results", tmp_path / "out").code == 0
    )
    results = tmp_path / "out" / "small"
    for answer, why in (
        (["boat"], "DCG@3 of theirs was 0.833333 and is now 0.333333"),  # grades 3, 1, 1; then 1, 1: of six queries
        (7, "theirs: "),
    ):
        monkeypatch.setattr(sys.modules[module], "ANSWER", answer)
        said = call("reproduce", results, "--trust")
        assert said.code == 1
        assert f"not reproduced: {why}" in said.err
    monkeypatch.setattr(sys.modules[module], "ANSWER", ["train"])
    assert call("reproduce", results, "--trust").code == 0


def test_reproduce_wants_the_same_data(call: Call, copied: Path, tmp_path: Path) -> None:
    (tmp_path / "data" / "pear.md").write_text("# pear\n\nanother text", encoding="utf-8")
    said = call("reproduce", "--trust", copied, code=2)
    assert "is not the data of these results: a document, query or label has changed (" in said.err


# cache


def test_cache(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    assert call("cache", "info").out.endswith(": 0 rows\n")
    experiment = small.experiment(tmp_path)
    call("run", experiment, "--results", tmp_path / "out", "--quiet")
    (model,) = json.loads(call("cache", "info", "--json").out)["models"]
    assert model["rows"] == 12
    assert model["fingerprint"] in call("cache", "info").out
    assert call("cache", "clear").code == 2
    assert "is not in the cache" in call("cache", "clear", "hashin").err
    assert "12 rows removed" in call("cache", "clear", model["fingerprint"]).out
    assert "0 rows removed" in call("cache", "clear", "--all").out


# the shell


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("harness re", ["report", "reproduce"]),
        ("harness cache in", ["info"]),
        ("harness run --ma", ["--max-cost"]),
        ("harness score -m nD", ["nDCG"]),
        ("harness compare RESULTS --baseline b", ["bm25"]),
        ("harness compare RESULTS --test r", ["randomization"]),
        ("harness compare RESULTS --correction h", ["holm"]),
        ("harness gate RESULTS --baseline bm25 --challenger h", ["hashing", "hybrid"]),
        ("harness gate nowhere --baseline b", []),
        ("harness run small.toml --only h", ["hashing", "hybrid"]),
        ("harness run damaged.toml --only h", []),
        ("harness cache clear hash", ["hashing:n1"]),
    ],
)
def test_the_shell_completes(
    call: Call, tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch, words: str, expected: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    with Cache(tmp_path / "cache.sqlite") as cache:
        cache.put("hashing:n1", [b"k" * 16], Embedded(np.zeros((1, 2), np.float32), *np.zeros((2, 1), np.int64)))
    small.experiment(tmp_path)
    (tmp_path / "damaged.toml").write_text("[[retrievers", encoding="utf-8")
    words = words.replace("RESULTS", str(results))
    monkeypatch.setenv("_HARNESS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    assert call().out.split() == expected


def test_help_names_every_command_with_its_whole_sentence(call: Call) -> None:
    for words in ((), ("cache",), ("labels",), ("queries",), ("answers",)):
        said = " ".join(call(*words, "--help").out.split())
        groups = [said.find(f"{name}: ") for name in ("Compare", "Label", "Maintain")]
        assert words or (-1 not in groups and groups == sorted(groups))
        assert "..." not in said.partition("Options:")[2]
        prefix = "".join(f"{word} " for word in words)
        for name, command in commands(app):
            if name.startswith(prefix) and name.count(" ") == len(words):
                sentence = " ".join(command.help.split()).partition(". ")[0]
                assert f"{name.removeprefix(prefix)} {sentence}" in said


def test_every_command_and_every_option_has_help() -> None:
    for name, command in commands(app):
        assert command.help, name
        assert not [option.name for option in command.params if not option.help], name


def test_the_version(call: Call) -> None:
    assert call("--version") == (0, f"harness {version('retriever-harness')}\n", "")


def test_closed_standard_streams_are_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    sys.stdout.close()
    sys.stderr.close()
    assert ended.value.code == 0
