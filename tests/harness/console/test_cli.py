"""The command line: what it prints, and how it ends."""

import csv
import hashlib
import io
import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from harness.cli import app
from harness.pipeline import run
from harness.records import Results
from harness.running.options import RunOptions
from harness.wording.reading import QUALITY_PHRASES
from retrievers.cache import Cache
from retrievers.types import Embedded
from tests.support import layouts, small
from tests.support.small import Call

PROJECT = Path(__file__).parents[3]
FILES = {
    "qrels": "q1 0 d1 1\nq1 0 d2 2\nq2 0 d3 1\nq3 0 d1 0\nq3 0 d4 1\n",
    "first.run": "q1 Q0 d2 1 9.1 x\nq1 Q0 d5 2 7.4 x\nq2 Q0 d1 1 3.3 x\nq2 Q0 d3 2 3.1 x\nq3 Q0 d4 1 5.0 x\n",
    "second.run": "q1 Q0 d1 1 0.91 y\nq1 Q0 d2 2 0.88 y\nq2 Q0 d3 1 0.75 y\n",
    "page.html": "<html>",
    "empty.txt": "\n",
    "misspelt.txt": "q-swum\n",
}
"""Judgments and two runs; a file where a folder is meant; names of queries."""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Those files in the working directory."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def commands(group: typer.Typer) -> Iterator[tuple[str, Any]]:
    """Every command by its name, those of groups too."""
    for name, command in typer.main.get_command(group).commands.items():
        group_commands = getattr(command, "commands", None)
        yield from (
            (
                (f"{name} {inner_name}", inner_command)
                for inner_name, inner_command in group_commands.items()
            )
            if group_commands
            else [(name, command)]
        )


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def spelt(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Rows of JSON as a CSV file spells them."""
    return [
        {
            key: ""
            if value is None
            else value
            if isinstance(value, str)
            else repr(value)
            for key, value in row.items()
        }
        for row in rows
    ]


# Words that are wrong


GATE = "--baseline a --challenger b --margin"
REFUSED = [
    ("rnu", "Did you mean 'run'?"),
    ("cache inf", "Did you mean 'info'?"),
    ("run --quite x", "; did you mean '--quiet'? (see harness run --help)"),
    ("cache", "Missing command (see harness cache --help)"),
    ("run x --max-cost much", "'--max-cost'"),
    ("gate x", "Missing option"),
    ("report x y", "unexpected extra arg"),
    *((f"{command} nowhere", "nowhere") for command in ("run", "check", "init")),
    *(
        (f"{command} results/none", "results/none: does not exist (")
        for command in ("score", "compare", "report", "reproduce", "pool")
    ),
    *(
        (f"{command} page.html {more}", "page.html: is not a results folder")
        for command, more in (
            ("report", ""),
            ("reproduce", ""),
            ("gate", f"{GATE} 0.02"),
        )
    ),
    ("score qrels", "no run was named"),
    ("score qrels first.run -m ndgc", "did you mean 'nDCG'?"),
    ("score qrels first.run --grades binary", "for results folders"),
    ("check " + "x" * 5000, "too long"),
    ("score qrels first.run --queries nowhere", "cannot be read"),
    ("score first.run qrels", "is a run, not qrels"),
    (
        "score qrels first.run first.run",
        "error: first.run: is named twice (name each run once)",
    ),
    (
        "score qrels first.run -m P(groups='first')@1",
        "there are no AND/OR groups in TREC qrels",
    ),
    ("score qrels first.run --format csv --json", "cannot go with --format csv"),
    ("score RESULTS --grades binar", "is not a grade rule"),
    ("score RESULTS --grades [[1", "is not a grade rule"),
    ("score RESULTS --grades explicit", "error: relevance.grades: query 'q-"),
    ("score RESULTS --queries misspelt.txt", "did you mean 'q-swim'?"),
    ("score RESULTS --queries empty.txt", "error: empty.txt: names no query ("),
    ("score RESULTS x.run", "x.run: does not exist"),
    ("score RESULTS first.run", "which has its own runs"),
    (
        "score RESULTS -m R@6",
        "measure 'R@6': needs depth 6 (the run has depth 5: raise it",
    ),
    ("compare qrels first.run", "only one run"),
    ("compare RESULTS --baseline bm52", "(did you mean 'bm25'?)"),
    ("compare RESULTS -m RR --margin 5", "is larger than the measure's range"),
    (
        "gate RESULTS --baseline bm25 --challenger bm25 --margin 1",
        "bm25: would be compared with itself (name two",
    ),
    *(
        (
            f"gate RESULTS --baseline hashing --challenger bm25 --margin {one}",
            "is not a finite number above 0",
        )
        for one in ("-1", "0", "nan", "inf")
    ),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_what_cannot_be_meant_gets_one_line_and_exit_code_2(
    call, files, results, words, message
):
    result = call(
        *(str(results) if word == "RESULTS" else word for word in words.split()), code=2
    )
    assert (result.out, result.err[:7], result.err.count("\n")) == ("", "error: ", 1)
    assert message in result.err and len(result.err) < 6000


def test_every_list_of_errors_stops_at_20(call: Call, tmp_path: Path) -> None:
    """Grades in a BEIR folder that are not numbers: 3,941 mistakes, and no two of them equal."""
    folder = layouts.beir(tmp_path / "d")
    (folder / "qrels" / "test.tsv").write_text(
        "".join(f"q1\tcar\tgrade{n}\n" for n in range(3941)), encoding="utf-8"
    )
    lines = call("check", folder, code=2).err.rstrip("\n").split("\n")
    assert (len(lines), lines[0], lines[-1]) == (
        22,
        "error: 3,941 problems",
        "  and 3,921 more",
    )


def test_everything_that_reading_counts_has_its_words() -> None:
    files = (PROJECT / "harness" / "dataset").glob("*.py")
    kinds = {
        kind
        for file in files
        for kind in re.findall(r'\.note\("([a-z-]+)"', file.read_text(encoding="utf-8"))
    }
    assert set() < kinds <= QUALITY_PHRASES.keys()


# run


def test_run_prints_means_comparisons_and_the_verdict_in_words(
    call: Call, tmp_path: Path
) -> None:
    result = call(
        "run",
        small.experiment(tmp_path, report=True),
        "--results",
        tmp_path / "out",
        code=0,
    )
    lines = result.out.splitlines()
    assert lines[0] == "small · nDCG@3 · 6 queries" and len(lines) <= 15
    assert result.out.endswith(
        f"report: {tmp_path / 'out' / 'small' / 'report.html'}\n"
    )
    assert max(map(len, lines[:-1])) <= 80
    explanation = " ".join(
        call("report", tmp_path / "out" / "small", "--explain").out.split()
    )
    verdict = "Undecided: no difference is shown between the 3 retrievers. 6 queries are too few to show one."
    assert verdict in " ".join(result.out.split())
    for text in (
        "nDCG@3 over 6 queries",
        "nDCG@3: a and b",
        f"{verdict} Mean ahead of hybrid",
    ):
        assert text in explanation
    stages = [line.split(",")[0].rsplit(":", 1)[0] for line in result.err.splitlines()]
    assert stages == list(dict.fromkeys(stages)), "each stage is told once"
    assert "hashing: embed-queries" in stages


def test_a_run_without_a_report_says_where_its_results_are_and_another_command_writes_the_page(
    call, tmp_path
):
    path, results_folder = small.experiment(tmp_path), tmp_path / "out"
    folder, report_parts = (
        results_folder / "small",
        {"report.html", "report.md", "figures", "tables"},
    )
    result = call("run", path, "--results", results_folder, code=0)
    assert result.out.endswith(f"\nresults: {folder}\n") and "report:" not in result.out
    assert not report_parts & {file.name for file in folder.iterdir()}
    index = (results_folder / "index.html").read_text(encoding="utf-8")
    assert "<bdi>small</bdi>" in index and 'href="small/report.html"' not in index
    call("reproduce", "--trust", folder, code=0)
    assert call("report", folder).out.endswith(f"\nreport: {folder / 'report.html'}\n")
    assert report_parts < {file.name for file in folder.iterdir()}
    call("report", results_folder, code=0)
    assert 'href="small/report.html"' in (results_folder / "index.html").read_text(
        encoding="utf-8"
    )
    assert call("run", path, "--results", results_folder, "--quiet") == (0, "", "")


@pytest.mark.parametrize(
    "words", [["run", "EXPERIMENT", "--results", "OUT"], ["report", "RESULTS"]]
)
def test_json_holds_the_rows_of_the_csv_files_in_full_precision(
    call, tmp_path, results, words
):
    paths = {
        "EXPERIMENT": small.experiment(tmp_path),
        "OUT": tmp_path / "out",
        "RESULTS": results,
    }
    tables = json.loads(call(*(paths.get(word, word) for word in words), "--json").out)
    assert list(tables) == ["scores", "summary", "comparisons", "failed", "incomplete"]
    assert (tables.pop("failed"), tables.pop("incomplete")) == ([], "")
    assert all(
        spelt(rows) == table(results / f"{name}.csv") for name, rows in tables.items()
    )


KEYS = ("OPENAI_API_KEY", "VOYAGE_API_KEY")
PAID = """
[[retrievers]]
name = "api"
encoder = { kind = "openai", model = "text-embedding-3-small" }
rerank = { kind = "http", dialect = "voyage", model = "rerank-2.5" }
"""


def test_check_warns_of_keys_and_a_run_needs_them(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    path = small.experiment(tmp_path, retrievers=small.RETRIEVERS + PAID)
    errors = call("run", path, code=2).err
    output = " ".join(
        call("check", path, code=0).out.split()
    )  # a run that finds all in its cache needs none
    for name in KEYS:
        missing = f"retriever 'api': {name}: is not set in the environment"
        assert missing in errors and missing in output
    assert "a run needs it for what is not cached" in output


def test_a_backend_that_fails_ends_in_3_with_the_others_done(
    call: Call, tmp_path: Path
) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    options = f'kind = "openai", model = "m", base_url = "{url}", patience = 0.1, timeout = 60'
    retriever = f'[[retrievers]]\nname = "api"\nencoder = {{ {options} }}\n'
    path = small.experiment(tmp_path, retrievers=small.RETRIEVERS + retriever)
    result = call("run", path, "--results", tmp_path / "out", code=3)
    assert "error: api: " in result.err
    assert (result.out + result.err).count(
        "Connection refused"
    ) <= 1  # why is told once
    assert "api failed" not in result.out and "hybrid" in result.out
    assert (tmp_path / "out" / "small" / "scores.csv").exists()


def test_an_interrupt_is_one_line_that_says_how_to_go_on(call, tmp_path, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for function in (
        "harness.several_sets.run_built",
        "harness.preflight.check.check_target",
        "harness.labels.pool.read_pool",
    ):
        monkeypatch.setattr(function, interrupted)
    words = ("run", small.experiment(tmp_path), "--results", tmp_path)
    assert call(*words) == (
        130,
        "",
        "stopped: what was embedded is cached; the same command continues\n",
    )
    assert call("check", "x") == (130, "", "stopped\n")
    message = "what was paid for is kept; the same command continues"
    assert call("judge", "x") == (130, "", f"stopped: {message}\n")


def test_check_tells_what_it_found_or_every_problem(call: Call, tmp_path: Path) -> None:
    path, queries_path = small.experiment(tmp_path), tmp_path / "data" / "queries.json"
    assert "nothing is wrong" in call("check", path, code=0).out
    report = json.loads(call("check", path, "--json").out)
    assert (report["problems"], report["documents"], report["queries"]) == ([], 6, 6)
    assert (
        json.loads(call("check", tmp_path / "data", "--json").out)["digest"]
        == report["digest"]
    )
    rows = json.loads(queries_path.read_text(encoding="utf-8"))
    rows[0]["relevant_documents"], rows[1]["tags"] = ["appel"], 3
    queries_path.write_text(json.dumps(rows), encoding="utf-8")
    assert "error: 2 problems" in call("check", path, code=2).err
    result = call("check", path, "--json", code=2)
    where = {
        problem["where"].rpartition("/")[2]
        for problem in json.loads(result.out)["problems"]
    }
    assert (result.err, where) == ("", {"queries.json[0]", "queries.json[1]"})


# score and compare


def test_score_and_compare_of_trec_files(call: Call, files: Path) -> None:
    result = call(
        "score",
        "qrels",
        "first.run",
        "second.run",
        "-m",
        "nDCG@10",
        "-m",
        "P@1",
        "--json",
    )
    means = {
        (row["retriever"], row["measure"]): row["mean"]
        for row in json.loads(result.out)["summary"]
    }
    # By hand: ideal of q1 2 + 1/log2(3); first.run finds d2 there, d3 second, d4 first.
    assert means["first", "nDCG@10"] == pytest.approx(
        (2 / 2.6309297535714573 + 0.6309297535714575 + 1) / 3
    )
    assert (means["first", "P@1"], means["second", "P@1"]) == pytest.approx(
        (2 / 3, 2 / 3)
    )
    assert "second: judged queries that the run lacks: 1" in result.err
    result = call(
        "score", "qrels", "second.run", "-m", "P@1", "--json", "--intersection"
    )  # only when told
    assert [
        (row["count"], row["mean"]) for row in json.loads(result.out)["summary"]
    ] == [(2, 1.0)]
    words = ["score", "qrels", "first.run", "-m", "AP", "-q"]
    expected_words = [
        "first",
        "query",
        "AP",
        "─" * 13,
        "q1",
        "0.5000",
        "q2",
        "0.5000",
        "q3",
        "1.0000",
    ]
    assert call(*words).out.split() == expected_words
    rows = list(csv.DictReader(io.StringIO(call(*words, "--format", "csv").out)))
    assert rows == spelt(json.loads(call(*words, "--json").out)["scores"])
    assert [row["value"] for row in rows] == ["0.5", "0.5", "1.0"]
    out = call(
        "compare",
        "qrels",
        "first.run",
        "second.run",
        "-m",
        "RR",
        "-m",
        "AP",
        "--format",
        "csv",
        code=0,
    ).out
    assert [
        (row["measure"], row["a"], row["b"], row["n"])
        for row in csv.DictReader(io.StringIO(out))
    ] == [("RR", "first", "second", "3"), ("AP", "first", "second", "3")]


def test_score_and_compare_of_a_results_folder_are_what_the_run_found(
    call, results, tmp_path
):
    output = json.loads(call("score", results, "-q", "--json").out)
    rows = [
        (r["retriever"], r["query_id"], r["measure"], r["value"])
        for r in spelt(output["scores"])
    ]
    expected = [
        (r["retriever"], r["query_id"], r["measure"], r["value"])
        for r in table(results / "scores.csv")
    ]
    assert sorted(rows) == sorted(expected)
    assert spelt(output["summary"]) == table(results / "summary.csv")
    query_ids = tmp_path / "some.txt"
    query_ids.write_text("q-swim\n\nq-rails\n", encoding="utf-8")
    output = json.loads(
        call("score", results, "--queries", query_ids, "-q", "-m", "RR", "--json").out
    )
    assert {row["query_id"] for row in output["scores"]} == {"q-swim", "q-rails"}
    call("score", results, "-m", "R@5", code=0)  # as deep as the run
    measures = ("-m", "nDCG@3", "-m", "RR", "--json")
    runs = [results / "runs" / f"{name}.trec" for name in ("bm25", "hashing", "hybrid")]
    output = json.loads(call("compare", results / "qrels.trec", *runs, *measures).out)
    expected = [
        row
        for row in table(results / "comparisons.csv")
        if row["measure"] in ("nDCG@3", "RR")
    ]
    assert spelt(output["comparisons"]) == expected
    assert (
        output["comparisons"]
        == json.loads(call("compare", results, *measures).out)["comparisons"]
    )
    assert {row["retriever"] for row in output["summary"]} == {
        "bm25",
        "hashing",
        "hybrid",
    }
    text = call(
        "compare",
        results,
        "-m",
        "RR",
        "--baseline",
        "bm25",
        "--margin",
        "0.9",
        "--explain",
    ).out
    assert (
        "RR: a against b = bm25" in text
        and "as good as bm25 within 0.9" in " ".join(text.split())
    )


def test_score_by_another_grade_rule_or_depth_or_by_groups_is_what_a_run_with_it_finds(
    call, tmp_path, results
):
    for rule, toml_rule in (
        ("binary", '"binary"'),
        ("[[1, 3], [2, 1]]", "[[1, 3], [2, 1]]"),
    ):
        folder = small.ran(tmp_path, more=f"[relevance]\ngrades = {toml_rule}").folder
        assert spelt(
            json.loads(call("score", results, "--grades", rule, "--json").out)[
                "summary"
            ]
        ) == table(folder / "summary.csv")
    path = small.experiment(tmp_path, name="grouped")
    text = path.read_text(encoding="utf-8").replace("depth = 5", "depth = 7")
    path.write_text(text.replace('"RR"', "\"R(groups='first')@3\""), encoding="utf-8")
    groups = [
        {
            "id": "q",
            "query": "things with wheels",
            "relevant_documents": [["train"], ["car", "boat"]],
        }
    ]
    (tmp_path / "data" / "queries.json").write_text(
        json.dumps(groups), encoding="utf-8"
    )
    folder = run(path, RunOptions(tmp_path / "out")).folder
    summary = json.loads(call("score", folder, "--json").out)["summary"]
    assert spelt(summary) == table(folder / "summary.csv")
    assert {(row["retriever"], row["measure"]): row["mean"] for row in summary}[
        "bm25", "R(groups='first')@3"
    ] == 1
    call(
        "score", folder, "-m", "nDCG@10", code=0
    )  # seven deep, all six documents were kept: nothing is below


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="pipes end otherwise there")
def test_a_reader_that_goes_away_is_no_failure(results: Path) -> None:
    words = [sys.executable, "-m", "harness", "score", str(results), "-q"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=PROJECT
    ) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.close()
        assert b"Traceback" not in running.stderr.read()
        assert running.wait(600) == 0


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="there is no disk that is always full here"
)
@pytest.mark.parametrize("words", [["score", "-q"], ["score", "--format", "csv"]])
def test_a_full_disk_behind_standard_output_is_one_message(
    results: Path, words: list[str]
) -> None:
    command = [sys.executable, "-m", "harness", words[0], str(results), *words[1:]]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            command,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=PROJECT,
            check=False,
        )
    assert ended.returncode == 2
    assert ended.stderr.endswith("error: [Errno 28] No space left on device\n")
    assert "Traceback" not in ended.stderr and "Exception" not in ended.stderr


def test_gate(call: Call, results: Path) -> None:
    passed = call(
        "gate",
        results,
        "--baseline",
        "hashing",
        "--challenger",
        "bm25",
        "--margin",
        "0.9",
    )
    assert (passed.code, passed.err) == (0, "")
    assert passed.out.startswith("gate passed: not worse by 0.9: shown on 6 queries")
    manifest = (results / "manifest.json").read_bytes()
    run_label = f"run of {json.loads(manifest)['started']}, digest {hashlib.sha256(manifest).hexdigest()[:12]}"
    assert passed.out.endswith(f"; {run_label}\n")
    words = [
        "gate",
        results,
        "--baseline",
        "bm25",
        "--challenger",
        "hashing",
        "--margin",
        "0.01",
    ]
    failed = call(*words)
    assert (failed.code, failed.out) == (1, "")
    assert failed.err.startswith("gate failed: ")
    assert failed.err.count("\n") == 1 and failed.err.endswith(f"; {run_label}\n")
    result = call(*words, "--json")
    assert json.loads(result.out)["which"] == run_label
    assert (
        result.code,
        json.loads(result.out)["passed"],
        json.loads(result.out)["n"],
    ) == (1, False, 6)


def test_gate_in_a_job_of_github(
    call: Call, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    words = (
        "gate",
        results,
        "--format",
        "github",
        "--baseline",
        "hashing",
        "--challenger",
        "bm25",
        "--margin",
    )
    for margin, code, annotation in (
        ("0.9", 0, "::notice title=Retrieval gate passed::not worse by 0.9: shown on"),
        ("0.01", 1, "::error title=Retrieval gate failed::"),
    ):
        result = call(*words, margin)
        assert (result.code, result.out.count("\n")) == (
            code,
            1,
        ) and result.out.startswith(annotation)
    text = summary.read_text(encoding="utf-8")
    assert (
        text.startswith("### Retrieval gate passed\n\n")
        and text.count("```text") == 2
        and "● bm25" in text
    )


# reproduce


@pytest.fixture
def copied(tmp_path: Path, finished: Results) -> Path:
    """Results that a test may change, with their data."""
    return small.copied(finished.folder.parents[1], tmp_path) / "out" / "small"


def test_reproduce_says_what_differs(call: Call, copied: Path) -> None:
    result = call("reproduce", "--trust", copied, code=0)
    assert (
        result.out
        == "reproduced: rankings, scores and comparisons are the same to the byte\n"
    )
    assert (
        json.loads(call("reproduce", "--trust", copied, "--fresh", "--json").out)[
            "differing"
        ]
        == []
    )
    summary = copied / "summary.csv"
    original = summary.read_text(encoding="utf-8")
    (row, *_) = [line for line in original.split("\n") if line.startswith("bm25,RR,")]
    cells = row.split(",")

    def moved(by: float) -> str:
        return original.replace(
            row, ",".join([*cells[:3], repr(float(cells[3]) + by), *cells[4:]])
        )

    rankings = copied / "rankings" / "bm25.jsonl"
    rankings.write_text(rankings.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    summary.write_text(moved(5e-5), encoding="utf-8")
    small.signed_anew(copied)
    result = call("reproduce", "--trust", copied, code=0)
    assert (
        "means within 0.0001 (largest difference 5e-05); not the same to the byte: rankings/bm25.jsonl"
        in result.out
    )
    summary.write_text(moved(0.01), encoding="utf-8")
    assert (
        "summary.csv: cannot be read whole: it was changed"
        in call("reproduce", "--trust", copied, code=2).err
    )
    small.signed_anew(copied)
    result = call("reproduce", "--trust", copied, code=1)
    assert "not reproduced: RR of bm25 was " in result.err
    (copied.parents[1] / "data" / "pear.md").write_text(
        "# pear\n\nanother text", encoding="utf-8"
    )
    result = call("reproduce", "--trust", copied, code=2)
    assert (
        "is not the data of these results: a document, query or label has changed ("
        in result.err
    )


def test_reproduce_fails_where_a_retriever_answers_otherwise_or_no_more(
    call, tmp_path, monkeypatch
):
    code = "def ask(queries, depth):\n    return [ANSWER for _ in queries]\n"
    module = small.module(tmp_path, monkeypatch, f"ANSWER = ['train']\n{code}")
    retriever = (
        f'[[retrievers]]\nname = "theirs"\nkind = "python"\ncall = "{module}:ask"\n'
    )
    call(
        "run",
        small.experiment(tmp_path, retrievers=retriever + small.BM25),
        "--results",
        tmp_path / "out",
        code=0,
    )
    results = tmp_path / "out" / "small"
    for answer, reason in (
        (
            ["boat"],
            "DCG@3 of theirs was 0.833333 and is now 0.333333",
        ),  # grades 3, 1, 1; then 1, 1: of six queries
        (7, "theirs: "),
    ):
        monkeypatch.setattr(sys.modules[module], "ANSWER", answer)
        assert (
            f"not reproduced: {reason}"
            in call("reproduce", results, "--trust", code=1).err
        )
    monkeypatch.setattr(sys.modules[module], "ANSWER", ["train"])
    call("reproduce", results, "--trust", code=0)


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


COMPLETED = {
    "harness re": "report reproduce",
    "harness cache in": "info",
    "harness run --ma": "--max-cost",
    "harness score -m nD": "nDCG",
    "harness compare RESULTS --baseline b": "bm25",
    "harness compare RESULTS --test r": "randomization",
    "harness compare RESULTS --correction h": "holm",
    "harness gate RESULTS --baseline bm25 --challenger h": "hashing hybrid",
    "harness gate nowhere --baseline b": "",
    "harness run small.toml --only h": "hashing hybrid",
    "harness run damaged.toml --only h": "",
    "harness cache clear hash": "hashing:n1",
}


def test_the_shell_completes(
    call: Call, files: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(files))
    with Cache(files / "cache.sqlite") as cache:
        cache.put(
            "hashing:n1",
            [b"k" * 16],
            Embedded(np.zeros((1, 2), np.float32), *np.zeros((2, 1), np.int64)),
        )
    small.experiment(files)
    (files / "damaged.toml").write_text("[[retrievers", encoding="utf-8")
    monkeypatch.setenv("_HARNESS_COMPLETE", "complete_bash")
    for words, expected in COMPLETED.items():
        monkeypatch.setenv("COMP_WORDS", words.replace("RESULTS", str(results)))
        monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
        assert call().out.split() == expected.split(), words


def test_help_names_every_command_with_its_whole_sentence_and_every_option_has_help(
    call: Call,
) -> None:
    for name, command in commands(app):
        assert command.help, name
        assert not [option.name for option in command.params if not option.help], name
    assert call(code=0).out == call("--help", code=0).out
    for words in ((), ("cache",), ("labels",), ("queries",), ("answers",)):
        help_text = " ".join(call(*words, "--help").out.split())
        groups = [
            help_text.find(f"{name}: ") for name in ("Compare", "Label", "Maintain")
        ]
        assert words or (-1 not in groups and groups == sorted(groups))
        assert "..." not in help_text.partition("Options:")[2]
        prefix = "".join(f"{word} " for word in words)
        for name, command in commands(app):
            if name.startswith(prefix) and name.count(" ") == len(words):
                sentence = " ".join(command.help.split()).partition(". ")[0]
                assert f"{name.removeprefix(prefix)} {sentence}" in help_text


def test_the_version(call: Call) -> None:
    assert call("--version") == (0, f"harness {version('retriever-harness')}\n", "")
