"""The tutorial docs/labels.md.

Every command is run, and the pool is judged by the labels of the data set itself.
"""

import json
import shutil
from pathlib import Path

import pytest

from harness import records
from harness.labels.judging_order import JudgeSignature, build_judgment, judging_order
from harness.labels.pool import digest_texts, read_pool
from tests.support.labels_small import write
from tests.test_docs import PROJECT, blocks, run, shown

pytestmark = pytest.mark.slow


def judge(pool) -> None:
    """Write what the page would export."""
    rows = json.loads(
        Path("datasets/survey-templates-en/queries-extended.json").read_text(
            encoding="utf-8"
        )
    )
    relevant = {row["id"]: row["relevant_documents"] for row in rows}
    signature = JudgeSignature("ann", "human", digest_texts(pool.policy))
    judgments = []
    for pair in judging_order(pool):
        query, document = pair.pair_texts(pool)
        listed = relevant[query.query_id]
        grade = max(3 - listed.index(document.id), 1) if document.id in listed else 0
        judgments.append(build_judgment(pool, pair, grade, signature))
    write(Path("judgments.jsonl"), judgments)


def test_the_tutorial_of_labels(tmp_path, monkeypatch, capsys):
    templates = Path("datasets", "survey-templates-en")
    shutil.copytree(PROJECT / templates, tmp_path / templates)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    scored = None
    for block in blocks(PROJECT / "docs" / "labels.md"):
        if block.title:
            Path(block.title).write_text(block.text, encoding="utf-8")
        if block.language != "console":
            continue
        for command_block in shown(block):
            run(command_block, capsys)
            if command_block.command == "harness judge pool.jsonl":
                scored = records.read_results("results/survey").scored
                judge(read_pool(Path("pool.jsonl")))
    results = records.read_results("results/survey")
    assert scored is False
    assert "People judged 30 queries" in (results.folder / "report.html").read_text(
        encoding="utf-8"
    )
    assert (
        len(
            {
                *results.scores["query_id"],
                *results.manifest.ledger.dataset.get("no-relevant-document", ()),
            }
        )
        == 30
    )
