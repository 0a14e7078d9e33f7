"""The page shows where the leader's rival fails, from the slices of `explain`."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.evaluation.explain import explain_results
from harness.records import Results
from harness.report import slice_comparison
from harness.report.paper import latex_tables
from harness.report.sections.failing_slices import failing_slices, property_texts
from harness.report.sections.fails import fails_section
from harness.report.slice_comparison import compare_slices, view_slices
from harness.report.view import View, build_view
from harness.wording.conclusion import verdict_lines
from harness.wording.explanation import explanation_sentences
from tests.support import small, successes
from tests.support.planted import QUOTED, planted_results


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Results with a slice on which `bad` loses, and their report."""
    return planted_results(tmp_path_factory.mktemp("planted"), report=True)


@pytest.fixture(scope="module")
def view(planted: Results) -> View:
    """The same in reading order."""
    return build_view(planted)


def test_the_page_and_the_command_say_the_same(planted: Results, view: View) -> None:
    sentences = explanation_sentences(explain_results(planted, "bad", "good"))
    shown = [
        text.replace("\N{NO-BREAK SPACE}", " ")
        for text in failing_slices(view).sentences
    ]
    assert shown == sentences


def test_the_section_has_the_strongest_sentence(planted: Results) -> None:
    page = (planted.folder / "report.html").read_text(encoding="utf-8")
    section = page.partition('id="fails"')[2].partition("</section>")[0]
    assert "where the query has quotation marks: 26 queries" in section


def test_the_section_says_nothing_where_no_property_explains_the_difference(
    tmp_path: Path,
) -> None:
    failing = failing_slices(build_view(planted_results(tmp_path, loss=0)))
    assert failing.lead == ""
    assert failing.groups == ()


def test_another_pair_speaks_only_beside_that_of_the_section(
    view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = compare_slices(view, "good", "bad", view_slices(view))
    assert any(row.differs for row in shown.rows)
    # A pair that shows nothing is the first.
    monkeypatch.setattr(slice_comparison, "main_rival", lambda view: "good")
    silent = compare_slices(view, "good", "bad", view_slices(view))
    assert not any(row.differs for row in silent.rows)
    assert [row.p_adjusted for row in silent.rows] == [
        row.p_adjusted for row in shown.rows
    ]


def test_the_slice_is_a_group_of_queries_that_fail_alike(
    planted: Results, view: View
) -> None:
    evidence = fails_section(view).context.browser.evidence
    group = evidence.groups[1]
    texts = [evidence.queries[number].text for number in group.queries]
    assert group.title == "bad loses where the query has quotation marks"
    assert [text.startswith('"') for text in texts] == [True] * QUOTED


def test_markdown_has_the_sentences(planted: Results) -> None:
    text = (planted.folder / "report.md").read_text(encoding="utf-8")
    assert "- bad loses to good where the query has quotation marks" in text


def test_a_card_shows_the_properties_in_which_queries_differ(view: View) -> None:
    texts = property_texts(view)
    expected = [
        "query length: 6 characters",
        "quotation marks: yes",
        "rarest word: in 1 document",
        "shared words: 100 %",
        "document length: 32 characters",
    ]
    assert texts["q0"] == expected
    queries = fails_section(view).context.browser.evidence.queries
    properties = {query.id: query.properties for query in queries}
    assert properties["q0"] == f"Q{', '.join(expected)[1:]}"


def test_one_retriever_has_no_rival(tmp_path: Path) -> None:
    view = build_view(small.ran(tmp_path, retrievers=small.BM25))
    assert failing_slices(view).sentences == ()


def test_few_queries_say_nothing_of_slices(finished: Results) -> None:
    assert failing_slices(build_view(finished)).sentences == ()


def test_queries_fail_alike_only_where_a_slice_is_named(
    planted: Results, tmp_path: Path
) -> None:
    few = small.ran(tmp_path, report=True)
    for results, is_named in ((planted, True), (few, False)):
        page = (results.folder / "report.html").read_text(encoding="utf-8")
        assert ("Queries that fail alike" in page) is is_named


def test_the_queries_are_those_of_the_retriever_to_keep(tmp_path: Path) -> None:
    # "a" has the highest mean; it is not shown to beat "b", which beats "c".
    missed = {"a": {0}, "b": {0, 1}, "c": set(range(20))}
    view = build_view(successes.ran(tmp_path, missed, baseline="b"))
    assert view.evaluation.leader == "a"
    assert verdict_lines(view.evaluation).headline == "Keep b"
    browser = fails_section(view).context.browser
    assert browser.evidence.groups[0].title == "Lost by b"
    lost = f"b lost 1 of {view.n} queries to another retriever."
    assert browser.sentence == f"{lost} It is this one."
    names = view.ranked
    assert {names[query.pair[0]] for query in browser.evidence.queries} == {"b"}
    assert names[browser.evidence.queries[0].pair[1]] == "a"


def test_a_slice_of_queries_with_claims_alone_has_its_group(view: View) -> None:
    without_labels = replace(view, grades={query_id: {} for query_id in view.ids})
    groups = failing_slices(without_labels).groups
    assert groups == failing_slices(view).groups != ()


def test_a_measure_without_a_value_is_a_dash_in_latex(view: View) -> None:
    summary = {name: dict(rows) for name, rows in view.evaluation.summary.items()}
    del summary[view.measures[-1]][view.ranked[-1]]
    evaluation = view.evaluation.model_copy(update={"summary": summary})
    leaderboard = latex_tables(replace(view, evaluation=evaluation))[0].content
    assert "nan" not in leaderboard
    assert r"\textbf{--}" not in leaderboard
    assert " & --" in leaderboard
