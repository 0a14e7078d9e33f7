"""The page shows where the leader's rival fails, from the slices of `explain`."""

from pathlib import Path

import pytest

from harness.evaluation.explain import explain_results
from harness.records import Results
from harness.report.sections.failing_slices import failing_slices, property_texts
from harness.report.sections.misses import miss_causes
from harness.report.sections.queries import queries_section
from harness.report.view import View, build_view
from harness.wording.explanation import explanation_sentences
from tests.support import small
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
        text.replace("\N{NO-BREAK SPACE}", " ") for text in failing_slices(view)[0]
    ]
    assert shown == sentences


def test_the_section_of_queries_begins_with_the_strongest_sentence(
    planted: Results,
) -> None:
    page = (planted.folder / "report.html").read_text(encoding="utf-8")
    section = page.partition('id="queries"')[2]
    sentence, _, evidence = section.partition('class="browser')
    assert "where the query has quotation marks: 26 queries" in sentence
    assert evidence


def test_the_slice_is_a_group_of_queries_that_fail_alike(view: View) -> None:
    [(group, _), *_] = queries_section(view).context["groups"]
    texts = [view.query(i).query.text for i in group.query_indices]
    assert group.title == "bad loses"
    assert group.meaning == "where the query has quotation marks"
    assert [text.startswith('"') for text in texts] == [True] * QUOTED


def test_markdown_has_the_sentences(planted: Results) -> None:
    text = (planted.folder / "report.md").read_text(encoding="utf-8")
    assert "- bad loses to good where the query has quotation marks" in text


def test_a_card_shows_the_properties_in_which_queries_differ(view: View) -> None:
    texts = property_texts(view)
    assert texts["q0"] == [
        "query length: 6",
        "quotation marks: yes",
        "rarest word: 1",
        "shared words: 100 %",
        "document length: 32",
    ]


def test_a_query_without_a_shared_word_has_that_cause(tmp_path: Path) -> None:
    queries = [
        {"id": "q1", "query": "zebra", "relevant_documents": ["fish"]},
        {"id": "q2", "query": "fins", "relevant_documents": ["fish"]},
    ]
    small.markdown(tmp_path / "data", small.TEXTS, queries)
    view = build_view(small.ran(tmp_path))
    causes = miss_causes(view)
    assert causes[0]["bm25"] == "no word in common with a relevant document"


def test_one_retriever_has_no_rival(tmp_path: Path) -> None:
    view = build_view(small.ran(tmp_path, retrievers=small.BM25))
    assert failing_slices(view).sentences == ()


def test_few_queries_say_nothing_of_slices(finished: Results) -> None:
    assert failing_slices(build_view(finished)).sentences == ()
