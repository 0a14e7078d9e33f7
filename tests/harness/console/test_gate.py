"""The gate's four outcomes with their exit codes."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.evaluation import gate
from harness.pipeline import run
from harness.records import Results
from harness.running.options import RunOptions
from harness.scoring.scores import Scores
from harness.scoring.stored_scores import stored_scores
from tests.support import small
from tests.support.small import Call
from tests.support.successes import MISSED, ran


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Of "a" against "b" 8 of 40 queries are won, 1 is lost; "same" is "a"."""
    folder = tmp_path_factory.mktemp("gated")
    return ran(folder, {**MISSED, "same": MISSED["a"]}, report=False)


CASES = [
    ("same", "a", "0.02", "unchanged", 0, 0),
    ("a", "b", "0.1", "passed", 0, 0),
    ("b", "a", "0.1", "worse", 1, 1),
    ("c", "b", "0.1", "not shown", 1, 0),
]
"""Challenger, baseline, margin, outcome, exit code, that of --fail-if worse."""


def words(results: Results, challenger: str, baseline: str, margin: str) -> list[str]:
    arms = ["--challenger", challenger, "--baseline", baseline]
    return ["gate", str(results.folder), *arms, "--margin", margin]


@pytest.mark.parametrize(
    ("challenger", "baseline", "margin", "outcome", "code", "code_if_worse"), CASES
)
def test_each_outcome_has_its_exit_codes(
    results: Results,
    call: Call,
    challenger: str,
    baseline: str,
    margin: str,
    outcome: str,
    code: int,
    code_if_worse: int,
) -> None:
    gate = words(results, challenger, baseline, margin)
    told = call(*gate, code=code)
    assert told.out.startswith(outcome)
    assert not told.err
    lenient = call(*gate, "--fail-if", "worse", code=code_if_worse)
    assert lenient.out.startswith(outcome)
    assert not lenient.err
    strict = call(*gate, "--fail-if", "not-passed", code=code)
    assert strict == told


@pytest.mark.parametrize(
    ("challenger", "baseline", "margin", "outcome", "code", "code_if_worse"), CASES
)
def test_each_outcome_is_in_the_json(
    results: Results,
    call: Call,
    challenger: str,
    baseline: str,
    margin: str,
    outcome: str,
    code: int,
    code_if_worse: int,
) -> None:
    gate = words(results, challenger, baseline, margin)
    printed = json.loads(call(*gate, "--json", code=code).out)
    assert printed["outcome"] == outcome
    assert printed["passed"] == (code == 0)
    json_words = ["--json", "--fail-if", "worse"]
    lenient = json.loads(call(*gate, *json_words, code=code_if_worse).out)
    assert lenient == printed


def test_an_outcome_that_does_not_fail_is_a_notice_in_a_job(
    results: Results, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    gate = words(results, "c", "b", "0.1")
    github = ["--format", "github"]
    failed = call(*gate, *github, code=1).out
    assert failed.startswith("::error title=Retrieval gate: not shown::not shown: ")
    lenient = call(*gate, *github, "--fail-if", "worse", code=0).out
    assert lenient.startswith("::notice title=Retrieval gate: not shown::not shown: ")


@pytest.mark.parametrize(
    ("challenger", "head", "row"),
    [
        ("b", "| before | after | difference |", "| b | "),
        ("a", "| before: b | after: a | difference |", "|  | "),
    ],
)
def test_the_summary_of_two_folders_has_both_means_and_their_difference(
    results: Results,
    call: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    challenger: str,
    head: str,
    row: str,
) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    earlier = shutil.copytree(results.folder, tmp_path / "earlier")
    gate = words(results, challenger, "b", "0.9")
    call(*gate, "--from", earlier, "--format", "github", code=0)
    text = summary.read_text(encoding="utf-8")
    scores = results.scores
    primary = results.manifest.resolved.primary
    means = scores[scores["measure"] == primary].groupby("retriever")["value"].mean()
    before, after = (means[name] for name in ("b", challenger))
    difference = f"{after - before:+.4f}"
    assert head in text
    assert f"{row}{before:.4f} | {after:.4f} | {difference} |" in text


def test_a_loss_within_the_margin_passes_also_if_only_worse_fails(
    results: Results, call: Call
) -> None:
    """The margin decides whether a challenger that is shown to be worse passes."""
    gate = words(results, "b", "a", "0.6")
    passed = call(*gate, "--fail-if", "worse", code=0).out
    assert passed.startswith("passed: ")
    assert "; worse, but within the margin; " in passed


def test_retrievers_without_a_query_of_both_are_refused(
    results: Results, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def undefined(stored: Results) -> Scores:
        scores = stored_scores(stored)
        columns = {
            name: np.full(scores.n, np.nan) for name in scores.values[scores.primary]
        }
        return replace(scores, values={scores.primary: columns})

    monkeypatch.setattr(gate, "stored_scores", undefined)
    message = call(*words(results, "a", "b", "0.1"), code=2).err
    assert "has no query with a value of" in " ".join(message.split())


def test_a_gate_names_what_its_digest_is_of(results: Results, call: Call) -> None:
    told = call(*words(results, "same", "a", "0.02"), code=0).out
    assert f"; {results.run_label}" in told
    assert ", manifest digest " in results.run_label


def test_no_test_has_no_p_in_the_json(results: Results, call: Call) -> None:
    gate = words(results, "b", "a", "0.01")
    assert json.loads(call(*gate, "--json", code=1).out)["p_value"] is None


def test_a_gate_finds_worse_without_a_correction(results: Results, call: Call) -> None:
    """One challenger: the sign test of 1 won and 8 lost, 2 x 10 / 2^9."""
    told = call(*words(results, "b", "a", "0.1"), code=1)
    assert told.out.startswith("worse on 40 queries (difference −0.1750, p = 0.0391)")


def test_an_earlier_run_of_an_earlier_version_is_refused_with_the_command_for_it(
    results: Results, call: Call, tmp_path: Path
) -> None:
    earlier = tmp_path / "earlier"
    shutil.copytree(results.folder, earlier)
    manifest = json.loads((earlier / "manifest.json").read_text(encoding="utf-8"))
    manifest |= {"schema": 1, "experiment_file": "last week.toml"}
    (earlier / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    arguments = words(results, "a", "b", "0.1")
    refused = call(*arguments, "--from", earlier, code=2)
    message = " ".join(refused.err.split())
    assert "was made by an earlier version" in message
    assert "`harness run 'last week.toml'` again" in message


UNREACHABLE = """[[retrievers]]
name = "ours"
kind = "http"
url = "http://127.0.0.1:9/search?q={query}&n={depth}"
ids = "hits"
patience = 0.1
"""


@pytest.fixture(scope="module")
def with_failure(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The gate of a challenger that failed in its run."""
    folder = tmp_path_factory.mktemp("failed")
    experiment = small.experiment(folder, retrievers=small.BM25 + UNREACHABLE)
    results = run(experiment, RunOptions(folder / "out"))
    return words(results, "ours", "bm25", "0.1")


@pytest.mark.parametrize("fail_if", ["worse", "not-passed"])
def test_a_challenger_that_failed_in_its_run_fails_the_gate(
    with_failure: list[str], call: Call, fail_if: str
) -> None:
    told = call(*with_failure, "--fail-if", fail_if, code=1)
    message = " ".join(told.out.split())
    reason = "cannot reach http://127.0.0.1:9/search: connection refused"
    assert message.startswith(f"ours failed: {reason}")
    assert "; run of " in message


def test_a_failed_challenger_is_in_the_json(
    with_failure: list[str], call: Call
) -> None:
    printed = json.loads(call(*with_failure, "--json", code=1).out)
    assert (printed["passed"], printed["outcome"]) == (False, "failed")
    assert printed["reason"].startswith("ours failed: ")


def test_a_failed_challenger_is_annotated(
    with_failure: list[str], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    printed = call(*with_failure, "--format", "github", code=1).out
    assert printed.startswith("::error title=Retrieval gate: failed::ours failed: ")
    assert "### Retrieval gate: failed\n\nours failed: " in printed


@pytest.mark.parametrize(
    ("margin", "problem"),
    [
        ("1e-310", "is too close to 0"),
        ("inf", "is not a number above 0"),
        ("nan", "is not a number above 0"),
        ("0", "is not a number above 0"),
    ],
)
def test_a_margin_that_no_test_can_have_is_refused(
    results: Results, call: Call, margin: str, problem: str
) -> None:
    refused = call(*words(results, "a", "b", margin), code=2)
    assert problem in refused.err
