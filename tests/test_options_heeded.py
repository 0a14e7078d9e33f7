"""Options that would change nothing are refused: what somebody gave, he believes to be heeded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.labels.pool import read_pool
from tests import small
from tests.test_cli import Call, call, results

__all__ = ["call", "results"]


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("embed small.toml --to parts --engine ray --shard 2/4", "--shard"),
        ("embed small.toml --to parts --address ray://here:1", "--address"),
        ("plan RESULTS --shards 3", "--shards"),
        ("plan RESULTS --results elsewhere", "--results"),
        ("check data --results elsewhere", "--results"),
        ("compare RESULTS --report page.html", "--report"),
        ("compare RESULTS --range 0 2", "--range"),
        ("compare RESULTS/scores.csv --grades binary", "--grades"),
        ("pool RESULTS --pair bm25", "--pair"),
        ("pool RESULTS --next 3 --seed 7", "--seed"),
        ("pool RESULTS --next 3 --for llm", "--for"),
        ("pool RESULTS --next 3 --judged judgments.jsonl", "--judged"),
        ("judge pool.jsonl --base-url http://localhost:1", "--base-url"),
        ("judge pool.jsonl --key KEY", "--key"),
        ("judge pool.jsonl --repeat 2", "--repeat"),
        ("judge pool.jsonl --longest 500", "--longest"),
        ("judge pool.jsonl --max-cost 1", "--max-cost"),
        ("judge pool.jsonl --price 1,2", "--price"),
        ("judge pool.jsonl --plan", "--plan"),
        ("labels merge judgments.jsonl --into data --policy policy.txt", "--policy"),
    ],
)
def test_an_option_without_effect_is_refused(
    call: Call, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, option: str
) -> None:
    monkeypatch.chdir(tmp_path)
    small.experiment(tmp_path)
    if words.startswith("judge"):
        call("pool", results)
    before = set(tmp_path.iterdir())
    said = call(*words.replace("RESULTS", str(results)).split())
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"error: {option}: ")
    assert set(tmp_path.iterdir()) == before


def test_a_judging_page_is_told_as_json(
    call: Call, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call("pool", results)
    pool = read_pool(tmp_path / "pool.jsonl")
    told = json.loads(call("judge", "pool.jsonl", "--json").out)
    assert told == {"path": "judge.html", "digest": pool.digest, "pairs": pool.pairs}
    assert (tmp_path / "judge.html").exists()
