"""A run whose retrievers failed in part is not declared won; ledgers, slices and options are not dropped silently."""

import json
import shutil

import pytest

from harness import records
from harness.records import RetrieverLedger
from harness.report import write_report
from harness.report.sections import trust
from retrievers.errors import InputError
from tests.support import small
from tests.support.small import call, ends


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("incomplete")
    return small.ran(place, more="[statistics]\nmargin = 0.9", report=True).folder


@pytest.fixture(scope="module")
def incomplete(folder, tmp_path_factory):
    copy = shutil.copytree(folder, tmp_path_factory.mktemp("incomplete") / "copy")
    for name in ("gone", "lost"):
        small.with_failed(copy, f"{name}: 401 <b>no key</b>", name)
    write_report(records.read(copy))
    return copy


HEAD = "Incomplete: 2 of 5 retrievers failed; "
RECOMMENDS = ("is the best of", "choose by cost", "Cheapest within", "Use ")


def test_the_report_says_first_that_it_is_incomplete(incomplete):
    page = (incomplete / "report.html").read_text(encoding="utf-8")
    text = (incomplete / "report.md").read_text(encoding="utf-8")
    assert f'<h1 id="decision-title">{HEAD}' in page
    assert text.startswith(f"# {HEAD}")
    assert "gone: 401 &lt;b&gt;no key" in page
    assert "| lost | × failed (lost: 401" in text
    assert "Nothing is recommended" in page
    assert "Nothing is recommended" in text
    for words in RECOMMENDS:
        assert words not in text
        assert words not in page.split("<script")[0]


def test_the_terminal_and_json_say_it_too(incomplete, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    streams = ends(capsys, 0, "report", incomplete)
    assert streams.out.splitlines()[1].startswith(HEAD)
    assert "gone failed: gone: 401" in streams.err
    assert not any(words in streams.out for words in RECOMMENDS)
    found = json.loads(call(capsys, "report", incomplete, "--json").out)
    assert found["incomplete"].startswith(HEAD)
    assert [row["retriever"] for row in found["failed"]] == ["gone", "lost"]


def test_a_whole_run_is_not_incomplete(folder, capsys):
    found = json.loads(call(capsys, "report", folder, "--json").out)
    assert (found["failed"], found["incomplete"]) == ([], "")


def test_what_is_made_of_others_inherits_their_ledger(folder):
    manifest = records.read_manifest(folder)
    ledgers = manifest.ledger.retrievers | {
        "hashing": RetrieverLedger(
            notes={"truncated-query": ("q-swim",), "empty": ("a", "b")}, counts={"embed-queries": {"lost_tokens": 3}}
        ),
        "bm25": RetrieverLedger(notes={"empty": ("a",)}, counts={"embed-queries": {"lost_tokens": 2}}),
    }
    manifest = records.Manifest(
        **{field: getattr(manifest, field) for field in manifest.__dataclass_fields__ if field != "ledger"},
        ledger=records.Ledger(retrievers=ledgers),
    )
    hybrid = trust.inherited(manifest, "hybrid")
    assert hybrid.notes == {"truncated-query": ("q-swim",), "empty": ("a", "b")}
    assert hybrid.counts == {"embed-queries": {"lost_tokens": 5}}
    assert trust.inherited(manifest, "bm25") == ledgers["bm25"]
    assert trust.KINDS["truncated-query"] == "truncated queries"


def test_small_slices_are_named(folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Slices of fewer than ten queries are not tested" in page
    assert "query length: short (up to " in page


@pytest.mark.parametrize("option", ["--skip-no-relevant", "--intersection", "--double"])
def test_what_a_results_folder_cannot_heed_is_refused(folder, option, capsys):
    streams = ends(capsys, InputError.exit_code, "score", folder, option)
    assert f"{option}: is for TREC runs" in streams.err
    if option == "--skip-no-relevant":
        assert call(capsys, "compare", folder, option).code == InputError.exit_code


def test_comparing_a_folder_says_what_is_missing_and_recommends_nothing(incomplete, capsys):
    note = f"{incomplete}: Incomplete: without gone and lost; who leads here leads among those that ran."
    for command in ("compare", "score"):
        streams = call(capsys, command, incomplete)
        assert (streams.code, streams.err.splitlines()[0]) == (0, note)
        assert not [words for words in RECOMMENDS if words in streams.out]
    assert json.loads(call(capsys, "compare", incomplete, "--json").out)["notes"][0] == note


def test_a_list_of_runs_says_how_many_retrievers_failed(incomplete, capsys):
    streams = call(capsys, "report", incomplete.parent)
    head, _, *rows = (line.split() for line in streams.out.splitlines() if line)
    assert head[-1] == "failed"
    assert any(row[-1] == "2" for row in rows)
