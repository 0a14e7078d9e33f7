"""The report shows what stands beside a verdict, for every pair, and that it does not decide."""

import json
from itertools import combinations
from pathlib import Path

import pytest

from harness import records
from harness.pipeline import run
from harness.report.sections import tests as room
from harness.report.sections.tests import in_words, left_out, pair_evidence, section
from harness.report.view import View, view_of
from harness.running.options import Options
from tests.support import small
from tests.support.small import ends


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("evidence")
    more = 'baseline = "bm25"\n[statistics]\nmargin = 0.1'
    return run(small.experiment(place, more=more, report=True), Options(place / "out")).folder


@pytest.fixture(scope="module")
def view(folder: Path) -> View:
    return view_of(records.read(folder))


def test_every_pair_has_its_evidence_also_those_that_no_test_compares(view: View) -> None:
    rows = {(row.a, row.b): row for row in pair_evidence(view)}
    assert sorted(map(sorted, rows)) == [["bm25", "hashing"], ["bm25", "hybrid"], ["hashing", "hybrid"]]
    for (a, b), row in rows.items():
        assert row.overlap is not None
        tops = [view.results.rankings(name) for name in (a, b)]
        shares = [
            len({*one.doc_ids} & {*tops[1][query].doc_ids}) / max(len(one.doc_ids), len(tops[1][query].doc_ids))
            for query, one in tops[0].items()
        ]
        assert row.overlap.top == pytest.approx(sum(shares) / len(shares))  # depth is 5: these are all of them


def test_the_effect_is_that_of_the_comparison(view: View) -> None:
    rows = {frozenset((row.a, row.b)): row for row in pair_evidence(view)}
    for row in view.comparisons[view.primary]:
        assert abs(rows[frozenset((row.a, row.b))].effect_size or 0) == pytest.approx(abs(row.effect_size or 0))


def test_page_and_markdown_name_the_method_and_that_nothing_is_decided(folder: Path, view: View) -> None:
    for name in ("report.html", "report.md"):
        page = (folder / name).read_text(encoding="utf-8")
        assert "rank-biserial correlation" in page
        assert "one of this decides" in page
    assert len(in_words(view, view.comparisons[view.primary])) == 2
    assert all("mean difference in nDCG" in sentence for sentence in in_words(view, view.comparisons[view.primary]))


def test_the_leaders_pairs_stand_where_the_page_would_wait_for_all_and_the_page_says_so(
    folder: Path, view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert left_out(view, len(pair_evidence(view))) == ""
    monkeypatch.setattr(room, "LOOKED_AT", 2 * view.n)
    kept = pair_evidence(view)
    assert len(kept) == 2
    assert all(view.ranked[0] in (row.a, row.b) for row in kept)
    sentence = f"1 pair is left out: with {view.n} queries each the page would wait for them."
    assert left_out(view, len(kept)).startswith(sentence)
    written = section(view)
    assert written is not None
    assert written.context["evidence_left_out"].startswith(sentence)
    monkeypatch.setattr(room, "LOOKED_AT", 1)
    (row,) = pair_evidence(view)
    assert (row.a, row.b) == tuple(view.ranked[:2])


def test_compare_gives_the_same_evidence_of_every_pair_as_data(
    folder: Path, view: View, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("compare", folder, "--measure", view.primary, "--margin", "0.1", "--baseline", "bm25", "--json")
    rows = json.loads(small.told(capsys, *asked))["evidence"]
    assert rows == [row.as_json() for row in pair_evidence(view)]
    assert {frozenset((row["a"], row["b"])) for row in rows} == {
        frozenset(pair) for pair in combinations(view.retrievers, 2)
    }
    assert all(0 < row["rbo"] <= 1 and 0 <= row["top_10_in_common"] <= 1 for row in rows)
    runs = sorted((folder / "runs").glob("*.trec"))
    of_files = json.loads(ends(capsys, 0, "compare", folder / "qrels.trec", *runs, "--json").out)["evidence"]
    shares = {frozenset((row["a"], row["b"])): row["rbo"] for row in rows}
    assert {frozenset((row["a"], row["b"])): pytest.approx(row["rbo"]) for row in of_files} == shares
