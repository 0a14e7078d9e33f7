"""The report shows what stands beside a verdict, for every pair, and that it does not decide."""

from pathlib import Path

import pytest

from harness import records
from harness.pipeline import run
from harness.report import evidence as room
from harness.report.evidence import evidence, in_words
from harness.report.view import View, view_of
from harness.running.options import Options
from tests import small


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("evidence")
    more = 'baseline = "bm25"\n[statistics]\nmargin = 0.1'
    return run(small.experiment(place, more=more), Options(place / "out")).folder


@pytest.fixture(scope="module")
def view(folder: Path) -> View:
    return view_of(records.read(folder))


def test_every_pair_has_its_evidence_also_those_that_no_test_compares(view: View) -> None:
    rows = {(row.a, row.b): row for row in evidence(view)}
    assert set(rows) == {("bm25", "hashing"), ("bm25", "hybrid"), ("hashing", "hybrid")}
    for (a, b), row in rows.items():
        chances = row.details.probabilities
        assert 0 <= chances.a_better + chances.b_better <= 1
        assert chances.within is not None
        ahead = view.mean(view.primary, a) - view.mean(view.primary, b)
        assert (chances.a_better - chances.b_better) * ahead >= 0
        tops = [view.results.rankings(name) for name in (a, b)]
        shares = [
            len({*one.doc_ids} & {*tops[1][query].doc_ids}) / max(len(one.doc_ids), len(tops[1][query].doc_ids))
            for query, one in tops[0].items()
        ]
        assert row.overlap.top == pytest.approx(sum(shares) / len(shares))  # depth is 5: these are all of them


def test_the_effect_is_that_of_the_comparison(view: View) -> None:
    rows = {frozenset((row.a, row.b)): row for row in evidence(view)}
    for row in view.comparisons[view.primary]:
        assert abs(rows[frozenset((row.a, row.b))].effect_size or 0) == pytest.approx(abs(row.effect_size or 0))


def test_page_and_markdown_name_the_method_and_that_nothing_is_decided(folder: Path, view: View) -> None:
    for name in ("report.html", "report.md"):
        page = (folder / name).read_text(encoding="utf-8")
        assert "Bayesian bootstrap" in page
        assert "one of this decides" in page
        assert "P(within 0.1)" in page.replace("&#46;", ".")
    assert len(in_words(view)) == 2
    assert all("mean difference in nDCG" in sentence for sentence in in_words(view))


def test_what_would_take_minutes_is_left_out(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST", 3 * view.n - 1)
    assert evidence(view) == []
