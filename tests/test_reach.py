"""What a model would not read is told before the run, and is what the run then counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.pipeline import run
from harness.report.sections.decision import alerts
from harness.running.check import check
from harness.running.options import Options
from harness.running.plan import plan
from tests import small, tiny
from tests.small import ended
from tests.test_report_slices import view_of

pytestmark = pytest.mark.usefixtures("own_cache")

OTHERS = """
[[retrievers]]
name = "bm25"
kind = "bm25"

[[retrievers]]
name = "hybrid"
kind = "fusion"
of = ["bm25", "m"]

[[retrievers]]
name = "again"
kind = "fusion"
of = ["hybrid", "bm25"]
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny.bi_encoder(tmp_path_factory.mktemp("tiny"), prompts={"document": "passage: "}).as_posix()


def experiment(folder: Path, model: str, more: str = "") -> Path:
    block = f'[[retrievers]]\nname = "m"\nencoder = {{ kind = "sentence-transformers", model = "{model}", '
    path = small.experiment(folder, retrievers=f'{block}device = "cpu" }}\n{more}\n{OTHERS}')
    for name, words in (("long", 40), ("longer", 70)):
        (folder / "data" / f"{name}.md").write_text(" ".join(["wing"] * words), encoding="utf-8")
    return path


def test_what_is_told_before_is_what_the_run_counts(tmp_path: Path, model: str) -> None:
    path = experiment(tmp_path, model, "derive = { dimensions = [8] }")
    (reach,) = plan(path, results=tmp_path).reaches
    assert reach.exact
    assert (reach.retriever, reach.limit, reach.others) == ("m", tiny.LIMIT, ("m-8", "hybrid", "again"))
    results = run(path, Options(tmp_path / "out"))
    ledger = results.manifest.ledger.retrievers
    assert len(ledger["m"].notes["truncated"]) == reach.beyond >= 2
    assert ledger["m"].counts["embed-documents"]["lost_tokens"] == reach.lost > 0
    assert ledger["m-8"].notes["truncated"] == ledger["m"].notes["truncated"]
    told = f"m would read only the beginning of {reach.beyond} of 8 documents (12 tokens) and leave {reach.lost} of "
    (warning,) = [one for one in check(path).warnings if "beginning" in one]
    assert warning.startswith(told)
    assert warning.endswith("take a model that reads more; m-8, hybrid and again are made of it")
    assert check(path).summary.reaches == (reach,)
    (alert,) = [one.text for one in alerts(view_of(results)) if "start" in one.text]
    assert alert == "m, m-8, hybrid and again read only the start of 100 % of the documents: try chunking."


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_the_plan_tells_it(words: list[str], tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("plan", experiment(tmp_path, model), "--results", tmp_path, *words) == 0
    printed = capsys.readouterr().out
    if words:
        (reach,) = json.loads(printed)["reaches"]
        assert (reach["retriever"], reach["others"]) == ("m", ["hybrid", "again"])
    else:
        assert "m would read only the beginning of" in " ".join(printed.split())


def test_passages_that_fit_lose_nothing(tmp_path: Path, model: str) -> None:
    path = experiment(tmp_path, model, 'chunk = { size = 12, unit = "tokens" }')
    (reach,) = plan(path, results=tmp_path).reaches
    assert (reach.beyond, reach.lost) == (0, 0)
    assert not [one for one in check(path).warnings if "beginning" in one]
    assert not [note for note in plan(path, results=tmp_path).notes if "beginning" in note]
    results = run(path, Options(tmp_path / "out"))
    assert not results.manifest.ledger.retrievers["m"].notes.get("truncated")
