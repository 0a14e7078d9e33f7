"""The tutorial docs/labels.md: every command is run, and the pool is judged in Chromium by keyboard."""

import json
import shutil
from pathlib import Path

import pytest

from harness import records
from harness.dataset.judgments import Judgment
from harness.labels.judging_page import Signature, in_order, judgment_of
from harness.labels.pool import digest_of, read_pool
from tests.support.browser import NO_BROWSER, judged_by_keyboard
from tests.test_docs import PROJECT, blocks, run, shown

pytestmark = pytest.mark.slow

PAGE = PROJECT / "docs" / "labels.md"


def grades(pool) -> list[int]:
    """What somebody gives who knows the data set's own labels, in the order of the page."""
    rows = json.loads(Path("datasets/survey-templates-en/queries-extended.json").read_text(encoding="utf-8"))
    relevant = {row["id"]: row["relevant_documents"] for row in rows}
    found = []
    for one in in_order(pool):
        query, document = one.shown(pool)
        listed = relevant[query.query_id]
        found.append(max(3 - listed.index(document.id), 1) if document.id in listed else 0)
    return found


def judged_without_a_browser(pool) -> None:
    by = Signature("ann", "human", digest_of(pool.policy))
    said: list[Judgment] = [
        judgment_of(pool, one, grade, by) for one, grade in zip(in_order(pool), grades(pool), strict=True)
    ]
    Path("judgments.jsonl").write_text("".join(one.line() for one in said), encoding="utf-8")


def test_the_tutorial_of_labels(tmp_path, monkeypatch, capsys):
    reader = tmp_path / "reader"
    shutil.copytree(PROJECT / "datasets" / "survey-templates-en", reader / "datasets" / "survey-templates-en")
    monkeypatch.chdir(reader)
    monkeypatch.setenv("COLUMNS", "80")
    scored = None
    for block in blocks(PAGE):
        if block.title:
            Path(block.title).write_text(block.text, encoding="utf-8")
        if block.language != "console":
            continue
        for one in shown(block):
            run(one, capsys)
            if one.command == "harness judge pool.jsonl":
                pool, scored = read_pool(Path("pool.jsonl")), records.read("results/survey").scored
                if NO_BROWSER:
                    judged_without_a_browser(pool)
                else:
                    keys = "".join(map(str, grades(pool)))
                    shutil.copy(judged_by_keyboard(Path("judge.html"), tmp_path, "ann", keys), "judgments.jsonl")
    second = records.read("results/survey")
    assert "People judged 30 queries" in (reader / "results" / "survey" / "report.html").read_text(encoding="utf-8")
    assert scored is False
    assert (
        len(set(second.scores["query_id"])) + len(second.manifest.ledger.dataset.get("no-relevant-document", ())) == 30
    )
