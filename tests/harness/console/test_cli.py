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
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from harness import records
from harness.cli import app, main
from harness.evaluation.evaluation_file import read_or_evaluate
from harness.pipeline import run
from harness.records import Results
from harness.running.options import RunOptions
from harness.wording.conclusion import conclusion_sentences
from harness.wording.reading import QUALITY_PHRASES
from retrievers.cache import Cache
from retrievers.types import Embedded
from tests.support import layouts, small
from tests.support.small import Call

PROJECT = Path(__file__).parents[3]
FILES = {
    "qrels": "q1 0 d1 1\nq1 0 d2 2\nq2 0 d3 1\nq3 0 d1 0\nq3 0 d4 1\n",
    "first.run": (
        "q1 Q0 d2 1 9.1 x\nq1 Q0 d5 2 7.4 x\nq2 Q0 d1 1 3.3 x\nq2 Q0 d3 2 3.1 x\n"
        "q3 Q0 d4 1 5.0 x\n"
    ),
    "second.run": "q1 Q0 d1 1 0.91 y\nq1 Q0 d2 2 0.88 y\nq2 Q0 d3 1 0.75 y\n",
    "page.html": "<html>",
    "empty.txt": "\n",
    "misspelt.txt": "q-swum\n",
}
"""Judgments and two runs; a file instead of a folder; names of queries."""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Those files in the working directory."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def commands(group: typer.Typer) -> Iterator[tuple[str, Any]]:
    """Every command by its name, also those of groups."""
    for name, command in typer.main.get_command(group).commands.items():
        group_commands = getattr(command, "commands", None)
        if not group_commands:
            yield name, command
            continue
        for inner_name, inner_command in group_commands.items():
            yield f"{name} {inner_name}", inner_command


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def csv_cell(value: Any) -> str:
    """A value of JSON as a CSV file has it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else repr(value)


def as_csv_rows(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Rows of JSON as a CSV file has them."""
    return [as_csv_row(row) for row in rows]


def as_csv_row(row: dict[str, Any]) -> dict[str, str]:
    return {key: csv_cell(value) for key, value in row.items()}


# Words that are wrong


GATE = "--baseline a --challenger b --margin"
REFUSED = [
    ("rnu", "Did you mean 'run'?"),
    ("cache inf", "Did you mean 'info'?"),
    ("run --quite x", "; did you mean '--quiet'? (see harness run --help)"),
    ("cache", "Missing command (see harness cache --help)"),
    ("run x --max-cost much", "'--max-cost'"),
    ("gate x", "'--baseline'; harness gate needs --baseline, --challenger, --margin"),
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
    ("score qrels first.run x/../first.run", "first.run: is named twice"),
    (
        "score qrels first.run -m P(groups='first')@1",
        "there are no AND/OR groups in qrels",
    ),
    (
        "score qrels first.run -m Abstain",
        "measure 'Abstain': qrels do not say which queries have no answer",
    ),
    (
        "score RESULTS -m Abstain",
        "measure 'Abstain': Abstain needs queries without an answer, and there are",
    ),
    ("score qrels first.run --format csv --json", "cannot go with --format csv"),
    ("score RESULTS --grades binar", "is not a grade rule"),
    ("score RESULTS --grades [[1", "is not a grade rule"),
    (f"score RESULTS --grades {'[' * 5000}", "is not a grade rule"),
    ("score RESULTS --grades explicit", "error: relevance.grades: query 'q-"),
    ("score RESULTS --queries misspelt.txt", "did you mean 'q-swim'?"),
    ("score RESULTS --queries empty.txt", "error: empty.txt: names no query id ("),
    ("score RESULTS x.run", "x.run: does not exist"),
    ("score RESULTS first.run", "which has its own runs"),
    (
        "score RESULTS -m R@6",
        "measure 'R@6': needs depth 6 (the run has depth 5: raise it",
    ),
    ("compare qrels first.run", "only one run"),
    ("compare RESULTS --baseline bm52", "(did you mean 'bm25'?)"),
    ("compare RESULTS -m RR --margin 5", "is larger than the measure's range (0 to 1)"),
    ("compare RESULTS --margin -1", "error: --margin: -1.0 is not a number above 0"),
    ("compare RESULTS --test T", "error: --test: unknown 'T' (did you mean 't'?)"),
    (
        "compare RESULTS --correction b",
        "error: --correction: unknown 'b' (did you mean",
    ),
    (
        "gate RESULTS --baseline bm25 --challenger bm25 --margin 1",
        "bm25: would be compared with itself (name two",
    ),
    *(
        (
            f"gate RESULTS --baseline hashing --challenger bm25 --margin {margin}",
            "is not a number above 0",
        )
        for margin in ("-1", "0", "nan", "inf")
    ),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_a_mistake_gets_one_line_and_exit_code_2(call, files, results, words, message):
    arguments = [word.replace("RESULTS", str(results)) for word in words.split()]
    result = call(*arguments, code=2)
    assert result.out == ""
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    assert message in result.err
    assert len(result.err) < 6000


def test_every_list_of_errors_stops_at_20(call: Call, tmp_path: Path) -> None:
    """Grades in a BEIR folder that are not numbers: 3,941 different mistakes."""
    folder = layouts.beir(tmp_path / "d")
    rows = "".join(f"q1\tcar\tgrade{n}\n" for n in range(3941))
    (folder / "qrels" / "test.tsv").write_text(rows, encoding="utf-8")
    lines = call("check", folder, code=2).err.rstrip("\n").split("\n")
    assert len(lines) == 22
    assert lines[0] == "error: 3,941 problems"
    assert lines[-1] == "  and 3,921 more"


def test_everything_that_reading_counts_has_its_words() -> None:
    files = (PROJECT / "harness" / "dataset").glob("*.py")
    kinds = {
        kind
        for file in files
        for kind in re.findall(r'\.note\("([a-z-]+)"', file.read_text(encoding="utf-8"))
    }
    assert set() < kinds <= QUALITY_PHRASES.keys()


# run


VERDICT = "Undecided. 4 queries differ: no corrected p can reach .05; 7 are needed."


@pytest.fixture
def run_result(call: Call, tmp_path: Path) -> Any:
    """The output of a run with a report, in OUT/small."""
    experiment = small.experiment(tmp_path, report=True)
    return call("run", experiment, "--results", tmp_path / "out", code=0)


def test_run_prints_the_verdict_in_words_and_the_path_of_the_report(
    run_result: Any, tmp_path: Path
) -> None:
    lines = run_result.out.splitlines()
    assert lines[0] == "small · nDCG@3 · 6 queries"
    assert len(lines) <= 16
    assert max(map(len, lines[:-1])) <= 80
    assert VERDICT in " ".join(run_result.out.split())
    page = tmp_path / "out" / "small" / "report.html"
    assert run_result.out.endswith(f"report: {page}\n")


@pytest.mark.parametrize(
    "text",
    [
        "nDCG@3 over 6 queries",
        "nDCG@3: a and b",
        f"{VERDICT} Mean ahead of hybrid",
    ],
)
def test_explain_prints_means_and_comparisons(
    call: Call, results: Path, text: str
) -> None:
    assert text in " ".join(call("report", results, "--explain").out.split())


def test_explain_reads_a_finished_run_and_measures_nothing_again(
    call: Call, tmp_path: Path
) -> None:
    experiment = small.experiment(tmp_path, more="[latency]\nsample = 2")
    folder = tmp_path / "out"
    call("run", experiment, "--results", folder, code=0)
    files = {path: path.read_bytes() for path in (folder / "small").rglob("*.csv")}
    explained = call("run", experiment, "--results", folder, "--explain", code=0)
    assert "nDCG@3: a and b" in explained.out
    assert "index" not in explained.err
    assert {path: path.read_bytes() for path in files} == files


@pytest.mark.parametrize("change", ["an experiment", "data", "--fresh"])
def test_explain_runs_what_has_changed(call: Call, tmp_path: Path, change: str) -> None:
    experiment = small.experiment(tmp_path)
    folder = tmp_path / "out"
    call("run", experiment, "--results", folder, code=0)
    options = ["--explain"]
    if change == "an experiment":
        small.experiment(tmp_path, more="seed = 1")
    elif change == "data":
        (tmp_path / "data" / "new.md").write_text("# new", encoding="utf-8")
    else:
        options.append(change)
    result = call("run", experiment, "--results", folder, *options, code=0)
    assert "bm25: index" in result.err


def test_the_first_verdict_has_at_most_seventy_words(run_result: Any) -> None:
    verdict, _, costs = run_result.out.partition("p95")
    words = [token for token in verdict.split() if re.search(r"\w", token)]
    assert len(words) <= 70  # with all figures; signs and lines are none
    assert re.search(r"^report:", costs, re.MULTILINE)


def test_run_prints_each_stage_once(run_result: Any) -> None:
    lines = run_result.err.splitlines()
    stages = [line.split(",")[0].rsplit(":", 1)[0] for line in lines]
    assert stages == list(dict.fromkeys(stages))
    assert "hashing: embed-queries" in stages


REPORT_PARTS = {"report.html", "report.md", "figures", "tables"}


@pytest.fixture
def unreported(call: Call, tmp_path: Path) -> Path:
    """The folder of a run without a report."""
    experiment = small.experiment(tmp_path)
    result = call("run", experiment, "--results", tmp_path / "out", code=0)
    folder = tmp_path / "out" / "small"
    assert result.out.endswith(f"\nresults: {folder}\n")
    assert "report:" not in result.out
    return folder


def file_names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def test_a_run_without_a_report_is_listed_without_a_link(unreported: Path) -> None:
    assert not REPORT_PARTS & file_names(unreported)
    index = (unreported.parent / "index.html").read_text(encoding="utf-8")
    assert "<bdi>small</bdi>" in index
    assert 'href="small/report.html"' not in index


def test_report_writes_the_page_of_a_run_without_one(
    call: Call, unreported: Path
) -> None:
    call("reproduce", "--trust", unreported, code=0)
    page = unreported / "report.html"
    assert call("report", unreported).out.endswith(f"\nreport: {page}\n")
    assert file_names(unreported) > REPORT_PARTS
    call("report", unreported.parent, code=0)
    index = (unreported.parent / "index.html").read_text(encoding="utf-8")
    assert 'href="small/report.html"' in index


def test_a_quiet_run_prints_nothing(call: Call, tmp_path: Path) -> None:
    experiment = small.experiment(tmp_path)
    result = call("run", experiment, "--results", tmp_path / "out", "--quiet")
    assert result == (0, "", "")


@pytest.fixture(
    params=[["run", "EXPERIMENT", "--results", "OUT"], ["report", "RESULTS"]],
    ids=["run", "report"],
)
def json_output(request, call, tmp_path, results):
    """What a run prints, and the report of a finished one."""
    paths = {
        "EXPERIMENT": small.experiment(tmp_path),
        "OUT": tmp_path / "out",
        "RESULTS": results,
    }
    arguments = [paths.get(word, word) for word in request.param]
    return json.loads(call(*arguments, "--json").out)


def test_json_has_the_rows_of_the_csv_files_in_full_precision(json_output, results):
    tables = ["scores", "summary", "comparisons"]
    assert list(json_output) == [*tables, "failed", "incomplete", "verdict", "board"]
    assert json_output["failed"] == []
    assert json_output["incomplete"] == ""
    for name in ("scores", "summary", "comparisons"):
        assert as_csv_rows(json_output[name]) == read_csv(results / f"{name}.csv")


def test_json_has_the_verdict_and_the_leaderboard_of_the_terminal(json_output, results):
    evaluation = read_or_evaluate(records.read_results(results))
    verdict = json_output["verdict"]
    sentences = conclusion_sentences(evaluation)
    assert sentences[0].startswith(verdict["headline"])
    assert list(verdict) == ["headline", "reason", "next"]
    assert {verdict["reason"], verdict["next"]} <= {"", *sentences}
    assert json_output["board"] == [asdict(row) for row in evaluation.board.rows]


def test_json_of_a_run_without_labels_has_no_verdict(call, tmp_path):
    small.dataset(tmp_path / "data", labelled=False)
    path = small.experiment(tmp_path)
    output = json.loads(call("run", path, "--results", tmp_path, "--json").out)
    assert output["verdict"] is None
    assert output["board"] == []


def test_retrievers_with_the_same_settings_are_named(call, tmp_path):
    twice = small.BM25 + small.BM25.replace('name = "bm25"', 'name = "again"')
    path = small.experiment(tmp_path, retrievers=twice)
    printed = call("run", path, "--results", tmp_path / "out", code=0).out
    note = "bm25 and again have the same settings: one retriever under several names."
    assert note in " ".join(printed.split())


KEYS = ("OPENAI_API_KEY", "VOYAGE_API_KEY")
PAID = """
[[retrievers]]
name = "api"
encoder = { kind = "openai", model = "text-embedding-3-small" }
rerank = { kind = "http", dialect = "voyage", model = "rerank-2.5" }
"""


@pytest.mark.parametrize("key", KEYS)
def test_check_warns_of_a_missing_key_and_a_run_needs_it(
    call: Call, tmp_path: Path, no_paid_keys: None, key: str
) -> None:
    path = small.experiment(tmp_path, retrievers=small.RETRIEVERS + PAID)
    missing = f"retriever 'api': {key}: is not set in the environment"
    assert missing in call("run", path, code=2).err
    # A run that finds everything in its cache needs no key.
    output = " ".join(call("check", path, code=0).out.split())
    assert missing in output
    assert "a run needs it for what is not cached" in output


@pytest.fixture
def no_paid_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)


def test_a_backend_that_fails_ends_in_3_with_the_others_done(
    call: Call, tmp_path: Path
) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    server = f'base_url = "{url}", patience = 0.1, timeout = 60'
    encoder = f'{{ kind = "openai", model = "m", {server} }}'
    retriever = f'[[retrievers]]\nname = "api"\nencoder = {encoder}\n'
    path = small.experiment(tmp_path, retrievers=small.RETRIEVERS + retriever)
    result = call("run", path, "--results", tmp_path / "out", code=3)
    assert "error: api: " in result.err
    assert result.err.count("connection refused") == 1
    headline = " ".join(result.out.split())
    assert "No recommendation: api failed (" in headline
    assert headline.count("connection refused)") == 1
    assert "hybrid" in result.out
    assert (tmp_path / "out" / "small" / "scores.csv").exists()


@pytest.mark.parametrize(
    ("function", "words", "message"),
    [
        (
            "harness.several_sets.run_built",
            ["run", "EXPERIMENT"],
            "stopped: what was embedded is cached; the same command continues\n",
        ),
        ("harness.preflight.check.check_target", ["check", "x"], "stopped\n"),
        (
            "harness.labels.pool.read_pool",
            ["judge", "x"],
            "stopped: what was paid for is kept; the same command continues\n",
        ),
    ],
    ids=["run", "check", "judge"],
)
def test_an_interrupt_is_one_line_that_says_how_to_continue(
    call, tmp_path, monkeypatch, function, words, message
):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(function, interrupt)
    monkeypatch.chdir(tmp_path)
    experiment = str(small.experiment(tmp_path))
    arguments = [word.replace("EXPERIMENT", experiment) for word in words]
    assert call(*arguments) == (130, "", message)


def test_check_describes_an_experiment_without_problems(
    call: Call, tmp_path: Path
) -> None:
    path = small.experiment(tmp_path)
    assert "nothing is wrong" in call("check", path, code=0).out
    report = json.loads(call("check", path, "--json").out)
    assert report["problems"] == []
    assert report["documents"] == 6
    assert report["queries"] == 6


def test_check_finds_the_same_data_in_a_data_set_alone(
    call: Call, tmp_path: Path
) -> None:
    path = small.experiment(tmp_path)
    of_experiment = json.loads(call("check", path, "--json").out)
    of_dataset = json.loads(call("check", tmp_path / "data", "--json").out)
    assert of_dataset["digest"] == of_experiment["digest"]


def test_check_lists_every_problem(call: Call, tmp_path: Path) -> None:
    path = small.experiment(tmp_path)
    queries_path = tmp_path / "data" / "queries.json"
    rows = json.loads(queries_path.read_text(encoding="utf-8"))
    rows[0]["relevant_documents"] = ["appel"]
    rows[1]["tags"] = 3
    queries_path.write_text(json.dumps(rows), encoding="utf-8")
    assert "error: 2 problems" in call("check", path, code=2).err
    result = call("check", path, "--json", code=2)
    problems = json.loads(result.out)["problems"]
    where = {problem["where"].rpartition("/")[2] for problem in problems}
    assert result.err == ""
    assert where == {"queries.json[0]", "queries.json[1]"}


# score and compare


def test_score_of_trec_files_gives_the_means_by_hand(call: Call, files: Path) -> None:
    measures = ["-m", "nDCG@10", "-m", "P@1"]
    result = call("score", "qrels", "first.run", "second.run", *measures, "--json")
    means = {
        (row["retriever"], row["measure"]): row["mean"]
        for row in json.loads(result.out)["summary"]
    }
    # Ideal of q1: 2 + 1/log2(3); first.run finds d2 there, d3 second, d4 first.
    expected = (2 / 2.6309297535714573 + 0.6309297535714575 + 1) / 3
    assert means["first", "nDCG@10"] == pytest.approx(expected)
    assert means["first", "P@1"] == pytest.approx(2 / 3)
    assert means["second", "P@1"] == pytest.approx(2 / 3)
    assert "second: judged queries that the run lacks: 1" in result.err


def test_score_leaves_out_missing_queries_only_with_intersection(
    call: Call, files: Path
) -> None:
    words = ["score", "qrels", "second.run", "-m", "P@1", "--json", "--intersection"]
    (row,) = json.loads(call(*words).out)["summary"]
    assert (row["count"], row["mean"]) == (2, 1.0)


BY_QUERY = ["score", "qrels", "first.run", "-m", "AP", "-q"]


def test_score_by_query_prints_a_table(call: Call, files: Path) -> None:
    lines = call(*BY_QUERY).out.splitlines()
    assert [line.split() for line in lines] == [
        ["first"],
        ["query", "AP"],
        ["─" * 13],
        ["q1", "0.5000"],
        ["q2", "0.5000"],
        ["q3", "1.0000"],
    ]


def test_score_by_query_prints_the_same_rows_as_csv_and_json(
    call: Call, files: Path
) -> None:
    text = call(*BY_QUERY, "--format", "csv").out
    rows = list(csv.DictReader(io.StringIO(text)))
    output = json.loads(call(*BY_QUERY, "--json").out)
    assert rows == as_csv_rows(output["scores"])
    assert [row["value"] for row in rows] == ["0.5", "0.5", "1.0"]


def test_compare_of_trec_files_prints_a_row_per_measure(
    call: Call, files: Path
) -> None:
    words = ["compare", "qrels", "first.run", "second.run", "-m", "RR", "-m", "AP"]
    text = call(*words, "--format", "csv", code=0).out
    rows = csv.DictReader(io.StringIO(text))
    assert [(row["measure"], row["a"], row["b"], row["n"]) for row in rows] == [
        ("RR", "first", "second", "3"),
        ("AP", "first", "second", "3"),
    ]


def score_keys(rows: list[dict[str, str]]) -> list[tuple[str, ...]]:
    return sorted(
        (row["retriever"], row["query_id"], row["measure"], row["value"])
        for row in rows
    )


def test_score_of_a_results_folder_gives_the_scores_of_the_run(call, results):
    output = json.loads(call("score", results, "-q", "--json").out)
    rows = as_csv_rows(output["scores"])
    assert score_keys(rows) == score_keys(read_csv(results / "scores.csv"))
    assert as_csv_rows(output["summary"]) == read_csv(results / "summary.csv")
    call("score", results, "-m", "R@5", code=0)  # as deep as the run


def test_score_of_a_results_folder_has_the_intervals_of_the_run(call, tmp_path):
    folder = small.ran(tmp_path, more="statistics.alpha = 0.2").folder
    output = json.loads(call("score", folder, "--json").out)
    assert as_csv_rows(output["summary"]) == read_csv(folder / "summary.csv")


def test_score_of_chosen_queries(call, results, tmp_path):
    path = tmp_path / "some.txt"
    path.write_text("q-swim\n\nq-rails\n", encoding="utf-8")
    words = ["score", results, "--queries", path, "-q", "-m", "RR", "--json"]
    rows = json.loads(call(*words).out)["scores"]
    assert {row["query_id"] for row in rows} == {"q-swim", "q-rails"}


RETRIEVERS = ("bm25", "hashing", "hybrid")


def test_compare_of_the_runs_gives_the_comparisons_of_the_folder(call, results):
    measures = ("-m", "nDCG@3", "-m", "RR", "--json")
    runs = [results / "runs" / f"{name}.trec" for name in RETRIEVERS]
    of_runs = json.loads(call("compare", results / "qrels.trec", *runs, *measures).out)
    of_folder = json.loads(call("compare", results, *measures).out)
    expected = [
        row
        for row in read_csv(results / "comparisons.csv")
        if row["measure"] in ("nDCG@3", "RR")
    ]
    assert as_csv_rows(of_runs["comparisons"]) == expected
    assert of_runs["comparisons"] == of_folder["comparisons"]
    assert {row["retriever"] for row in of_runs["summary"]} == {*RETRIEVERS}


def test_compare_with_a_baseline_and_a_margin(call, results):
    options = ["--baseline", "bm25", "--margin", "0.9", "--explain"]
    text = " ".join(call("compare", results, "-m", "RR", *options).out.split())
    assert "RR: a against b = bm25" in text
    # Neither the measure nor the margin is the experiment's.
    choices = "measure RR (declared: nDCG@3) and margin 0.9 (declared: none)"
    assert f"Exploratory, by {choices}: bm25 has the best mean" in text
    assert "as good as" not in text


@pytest.mark.parametrize(
    ("option", "choice"),
    [
        (["-m", "RR"], "measure RR (declared: nDCG@3)"),
        (["--margin", "0.9"], "margin 0.9 (declared: none)"),
        (["--test", "t"], "test t (declared: randomization)"),
        (["--correction", "bonferroni"], "correction bonferroni (declared: holm)"),
    ],
    ids=["measure", "margin", "test", "correction"],
)
def test_a_choice_made_after_the_run_is_exploratory_in_the_first_line(
    call, results, option, choice
):
    text = call("compare", results, *option, code=0).out
    title, *lines = text.splitlines()
    assert title.endswith("over 6 queries")
    first = " ".join(" ".join(lines).split())
    assert first.startswith(f"Exploratory, by {choice}: ")
    assert "Use " not in text
    assert "as good as" not in text


def test_the_declared_choices_are_not_exploratory(call, results):
    options = ["-m", "nDCG@3", "--test", "randomization", "--correction", "holm"]
    assert "Exploratory" not in call("compare", results, *options, code=0).out


@pytest.mark.parametrize(
    ("rule", "toml_rule"),
    [("binary", '"binary"'), ("[[1, 3], [2, 1]]", "[[1, 3], [2, 1]]")],
    ids=["binary", "a table"],
)
def test_score_by_another_grade_rule_gives_the_scores_of_a_run_with_it(
    call, tmp_path, results, rule, toml_rule
):
    folder = small.ran(tmp_path, more=f"[relevance]\ngrades = {toml_rule}").folder
    output = json.loads(call("score", results, "--grades", rule, "--json").out)
    assert as_csv_rows(output["summary"]) == read_csv(folder / "summary.csv")


@pytest.fixture
def grouped(tmp_path):
    """The folder of a run with depth 7, by AND/OR groups."""
    path = small.experiment(tmp_path, name="grouped")
    text = path.read_text(encoding="utf-8").replace("depth = 5", "depth = 7")
    path.write_text(text.replace('"RR"', "\"R(groups='first')@3\""), encoding="utf-8")
    row = {
        "id": "q",
        "query": "things with wheels",
        "relevant_documents": [["train"], ["car", "boat"]],
    }
    queries_path = tmp_path / "data" / "queries.json"
    queries_path.write_text(json.dumps([row]), encoding="utf-8")
    return run(path, RunOptions(tmp_path / "out")).folder


def test_score_by_groups_gives_the_scores_of_the_run(call, grouped):
    summary = json.loads(call("score", grouped, "--json").out)["summary"]
    assert as_csv_rows(summary) == read_csv(grouped / "summary.csv")
    means = {(row["retriever"], row["measure"]): row["mean"] for row in summary}
    assert means["bm25", "R(groups='first')@3"] == 1


def test_score_below_the_depth_is_allowed_if_all_documents_were_kept(call, grouped):
    """There are six documents, and the run is seven deep."""
    output = json.loads(call("score", grouped, "-m", "nDCG@10", "--json").out)
    means = {row["measure"]: row["mean"] for row in output["summary"]}
    assert 0 < means["nDCG@10"] <= 1


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


def gate_words(results: Path, baseline: str, challenger: str, margin: str) -> list[Any]:
    return [
        *("gate", results, "--baseline", baseline),
        *("--challenger", challenger, "--margin", margin),
    ]


@pytest.fixture
def run_label(results: Path) -> str:
    """The run, as the gate names it."""
    manifest = (results / "manifest.json").read_bytes()
    started = json.loads(manifest)["started"]
    digest = hashlib.sha256(manifest).hexdigest()[:12]
    return f"run of {started}, manifest digest {digest}"


def test_a_gate_that_passes(call: Call, results: Path, run_label: str) -> None:
    passed = call(*gate_words(results, "hashing", "bm25", "0.9"))
    assert passed.code == 0
    assert passed.err == ""
    # All 64 signs of d + 0.9 and of the query with the loss of 1: 1 of 2^7 x 2.
    start = "passed: not worse by 0.9 on 6 queries (difference +0.1921, p = 0.0156); "
    assert passed.out.startswith(start)
    assert passed.out.endswith(f"; {run_label}\n")


def test_a_gate_that_fails(call: Call, results: Path, run_label: str) -> None:
    failed = call(*gate_words(results, "bm25", "hashing", "0.01"))
    assert failed.code == 1
    assert failed.err == ""
    # ln 0.05 / ln 0.99 = 298.07
    sentence = "with 6 queries a loss of 0.01 cannot be ruled out (299 needed)"
    assert failed.out.startswith(f"not shown: {sentence}; ")
    assert failed.out.count("\n") == 1
    assert failed.out.endswith(f"; {run_label}\n")


def test_a_gate_as_json(call: Call, results: Path, run_label: str) -> None:
    failed = call(*gate_words(results, "bm25", "hashing", "0.01"), "--json")
    output = json.loads(failed.out)
    assert failed.code == 1
    assert output["which"] == run_label
    assert output["passed"] is False
    assert output["outcome"] == "not shown"
    assert output["n"] == 6


@pytest.fixture
def job_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the summary of a job."""
    path = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    return path


@pytest.mark.parametrize(
    ("margin", "code", "annotation"),
    [
        (
            "0.9",
            0,
            "::notice title=Retrieval gate: passed::passed: not worse by 0.9 on 6 ",
        ),
        ("0.01", 1, "::error title=Retrieval gate: not shown::not shown: with 6 "),
    ],
    ids=["passed", "not shown"],
)
def test_a_gate_in_a_job_of_github_prints_an_annotation(
    call: Call,
    results: Path,
    job_summary: Path,
    margin: str,
    code: int,
    annotation: str,
) -> None:
    words = gate_words(results, "hashing", "bm25", margin)
    result = call(*words, "--format", "github")
    assert result.code == code
    assert result.out.count("\n") == 1
    assert result.out.startswith(annotation)


def test_gates_in_a_job_of_github_are_added_to_its_summary(
    call: Call, results: Path, job_summary: Path
) -> None:
    for margin in ("0.9", "0.01"):
        words = gate_words(results, "hashing", "bm25", margin)
        call(*words, "--format", "github")
    text = job_summary.read_text(encoding="utf-8")
    assert text.startswith("### Retrieval gate: passed\n\n")
    assert "\n### Retrieval gate: not shown\n\n" in text
    assert text.count("```text") == 2
    assert "● bm25" in text


# reproduce


@pytest.fixture
def copied(tmp_path: Path, finished: Results) -> Path:
    """Results that a test may change, with their data."""
    return small.copied(finished.folder.parents[1], tmp_path) / "out" / "small"


def test_reproduce_finds_the_same_results(call: Call, copied: Path) -> None:
    result = call("reproduce", "--trust", copied, code=0)
    assert result.out == (
        "reproduced: rankings, scores and comparisons are the same to the byte\n"
    )
    result = call("reproduce", "--trust", copied, "--fresh", "--json")
    assert json.loads(result.out)["differing"] == []


def move_mean(folder: Path, by: float) -> None:
    """Change the mean RR of bm25 in summary.csv."""
    path = folder / "summary.csv"
    text = path.read_text(encoding="utf-8")
    (row,) = [line for line in text.split("\n") if line.startswith("bm25,RR,")]
    cells = row.split(",")
    cells[3] = repr(float(cells[3]) + by)
    path.write_text(text.replace(row, ",".join(cells)), encoding="utf-8")


def test_reproduce_accepts_a_small_difference(call: Call, copied: Path) -> None:
    rankings = copied / "rankings" / "bm25.jsonl"
    rankings.write_text(rankings.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    move_mean(copied, 5e-5)
    small.signed_anew(copied)
    result = call("reproduce", "--trust", copied, code=0)
    assert (
        "means within 0.0001 (largest difference 5e-05); "
        "not the same to the byte: rankings/bm25.jsonl"
    ) in result.out


def test_reproduce_refuses_a_changed_file(call: Call, copied: Path) -> None:
    move_mean(copied, 0.01)
    error = call("reproduce", "--trust", copied, code=2).err
    assert "summary.csv: cannot be read whole: it was changed" in error


def test_reproduce_fails_if_a_mean_differs(call: Call, copied: Path) -> None:
    move_mean(copied, 0.01)
    small.signed_anew(copied)
    error = call("reproduce", "--trust", copied, code=1).err
    assert "not reproduced: RR of bm25 was " in error


def test_reproduce_refuses_changed_data(call: Call, copied: Path) -> None:
    document = copied.parents[1] / "data" / "pear.md"
    document.write_text("# pear\n\nanother text", encoding="utf-8")
    error = call("reproduce", "--trust", copied, code=2).err
    assert (
        "is not the data of these results: a document, query or label has changed ("
    ) in error


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        # Grades 3, 1, 1; then 1, 1: of six queries.
        (["boat"], "DCG@3 of theirs was 0.833333 and is now 0.333333"),
        (7, "theirs: "),
    ],
    ids=["another ranking", "a failure"],
)
def test_reproduce_fails_if_a_retriever_gives_another_ranking_or_fails(
    call, tmp_path, monkeypatch, answer, reason
):
    code = "def ask(queries, depth):\n    return [ANSWER for _ in queries]\n"
    module = small.module(tmp_path, monkeypatch, f"ANSWER = ['train']\n{code}")
    call_option = f'call = "{module}:ask"'
    theirs = f'[[retrievers]]\nname = "theirs"\nkind = "python"\n{call_option}\n'
    path = small.experiment(tmp_path, retrievers=theirs + small.BM25)
    call("run", path, "--results", tmp_path / "out", code=0)
    results = tmp_path / "out" / "small"
    monkeypatch.setattr(sys.modules[module], "ANSWER", answer)
    error = call("reproduce", results, "--trust", code=1).err
    assert f"not reproduced: {reason}" in error
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
    refused = call("cache", "clear", model["fingerprint"], "--all", code=2).err
    assert "FINGERPRINT: cannot go with --all" in refused
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
    "harness run data/documents.jsonl --only h": "",
    "harness run nowhere --only h": "",
    "harness run nameless.toml --only h": "hashing",
    "harness cache clear hash": "hashing:n1",
}


@pytest.fixture
def shell(
    files: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> pytest.MonkeyPatch:
    """A shell that completes, with a cached model, and two experiment files."""
    monkeypatch.setenv("HARNESS_CACHE", str(files))
    vectors = Embedded(np.zeros((1, 2), np.float32), *np.zeros((2, 1), np.int64))
    with Cache(files / "cache.sqlite") as cache:
        cache.put("hashing:n1", [b"k" * 16], vectors)
    small.experiment(files)
    (files / "damaged.toml").write_text("[[retrievers", encoding="utf-8")
    (files / "nameless.toml").write_text(
        'retrievers = [{ name = "hashing" }, { kind = "bm25" }]', encoding="utf-8"
    )
    monkeypatch.setenv("_HARNESS_COMPLETE", "complete_bash")
    return monkeypatch


@pytest.mark.parametrize(("words", "expected"), COMPLETED.items())
def test_the_shell_completes(
    call: Call, shell: pytest.MonkeyPatch, results: Path, words: str, expected: str
) -> None:
    shell.setenv("COMP_WORDS", words.replace("RESULTS", str(results)))
    shell.setenv("COMP_CWORD", str(words.count(" ")))
    assert call().out.split() == expected.split()


@pytest.mark.parametrize(
    ("name", "command"), [pytest.param(*pair, id=pair[0]) for pair in commands(app)]
)
def test_every_command_and_every_option_has_help(name: str, command: Any) -> None:
    assert command.help
    assert [option.name for option in command.params if not option.help] == []


def test_no_arguments_print_the_help(call: Call) -> None:
    assert call(code=0).out == call("--help", code=0).out


def test_the_help_has_the_headings_in_order(call: Call) -> None:
    text = " ".join(call("--help").out.split())
    positions = [text.find(f"{head}: ") for head in ("Compare", "Label", "Maintain")]
    assert -1 not in positions
    assert positions == sorted(positions)


@pytest.mark.parametrize("group", ["", "cache", "labels", "queries", "answers"])
def test_the_help_has_the_whole_first_sentence_of_every_command(
    call: Call, group: str
) -> None:
    text = " ".join(call(*group.split(), "--help").out.split())
    assert "..." not in text.partition("Options:")[2]
    for name, command in commands(app):
        *group_name, command_name = name.split()
        if group_name == group.split():
            sentence = " ".join(command.help.split()).partition(". ")[0]
            assert f"{command_name} {sentence}" in text


def test_the_version(call: Call) -> None:
    assert call("--version") == (0, f"harness {version('retriever-harness')}\n", "")


def test_too_little_memory_is_one_message(monkeypatch, capsys):
    def fails(*_, **__):
        raise MemoryError

    monkeypatch.setattr("harness.cli.app", fails)
    with pytest.raises(SystemExit) as ended_with:
        main(["demo"])
    assert ended_with.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: not enough memory for this process; ")
