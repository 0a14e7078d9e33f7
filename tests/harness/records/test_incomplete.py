"""A run with failed retrievers has no winner; no ledger is dropped silently."""

import json
import shutil
from dataclasses import replace

import pytest

from harness import records
from harness.report.sections.quality_counts import quality_with_parts
from harness.report.write import write_report
from tests.support import small
from tests.support.small import call, ends


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("incomplete")
    return small.ran(folder, more="[statistics]\nmargin = 0.9", report=True).folder


@pytest.fixture(scope="module")
def incomplete(folder, tmp_path_factory):
    copy = shutil.copytree(folder, tmp_path_factory.mktemp("incomplete") / "copy")
    for name in ("gone", "lost"):
        small.with_failed(copy, f"{name}: 401 <b>no key</b>", name)
    write_report(records.read_results(copy))
    return copy


HEAD = "No recommendation: gone and lost failed (401 "
RECOMMENDS = ("is the best of", "choose by cost", "Cheapest within", "Use ")


def test_the_report_the_terminal_and_json_say_first_that_it_is_incomplete(
    incomplete, folder, capsys, monkeypatch
):
    page = (incomplete / "report.html").read_text(encoding="utf-8")
    text = (incomplete / "report.md").read_text(encoding="utf-8")
    assert f'<h1 id="decision-title"><b>{HEAD}' in page and text.startswith(f"# {HEAD}")
    assert (
        "gone: 401 &lt;b&gt;no key" in page and "| lost | × failed (lost: 401" in text
    )
    monkeypatch.setenv("COLUMNS", "160")
    streams = ends(capsys, 0, "report", incomplete)
    assert streams.out.splitlines()[1].startswith(HEAD)
    assert "gone: gone: 401" in streams.err
    for output in (page.split("<script")[0], text, streams.out):
        assert "No recommendation" in output
        assert not [words for words in RECOMMENDS if words in output]
    printed = json.loads(call(capsys, "report", incomplete, "--json").out)
    assert printed["incomplete"].startswith(HEAD)
    assert [row["retriever"] for row in printed["failed"]] == ["gone", "lost"]
    complete = json.loads(call(capsys, "report", folder, "--json").out)
    assert (complete["failed"], complete["incomplete"]) == ([], "")
    streams = call(capsys, "report", incomplete.parent)
    head, _, *rows = (line.split() for line in streams.out.splitlines() if line)
    assert head[-1] == "failed" and any(row[-1] == "2" for row in rows)


def test_a_fusion_inherits_the_ledgers_of_its_parts(folder):
    manifest = records.read_manifest(folder)
    lost = records.RetrieverQuality(
        notes={"empty": ("a",)}, counts={"embed-queries": {"lost_tokens": 3}}
    )
    ledger = records.DataQuality(
        retrievers={**manifest.ledger.retrievers, "hashing": lost, "bm25": lost}
    )
    quality = quality_with_parts(replace(manifest, ledger=ledger), "hybrid")
    assert quality.notes == lost.notes
    assert quality.counts == {"embed-queries": {"lost_tokens": 6}}


def missing_note(folder):
    missing = "Incomplete: without gone and lost"
    return f"{folder}: {missing}; the leader is the best of those that ran."


@pytest.mark.parametrize("command", ["compare", "score"])
def test_a_command_says_what_is_missing_and_recommends_nothing(
    incomplete, capsys, command
):
    streams = call(capsys, command, incomplete)
    assert streams.code == 0
    assert streams.err.splitlines()[0] == missing_note(incomplete)
    assert not [words for words in RECOMMENDS if words in streams.out]


def test_the_notes_of_a_comparison_name_what_is_missing(incomplete, capsys):
    printed = json.loads(call(capsys, "compare", incomplete, "--json").out)
    assert printed["notes"][0] == missing_note(incomplete)
