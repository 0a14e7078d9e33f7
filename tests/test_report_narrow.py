"""The report on a telephone: charts give up width before they have to be scrolled."""

import json

import pytest

import harness
from harness import records
from harness.report import write_report
from tests import small
from tests.browser import chromium, complaints, needs_browser, resize, scroll_through, settled

pytestmark = needs_browser
WORDS = ("apples", "pears", "cars", "trains", "boats", "fish")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """48 queries with tags, so that slices are drawn, and eight measures."""
    folder = tmp_path_factory.mktemp("narrow")
    data = small.dataset(folder / "data")
    texts = list(small.TEXTS)
    queries = [
        {
            "id": f"q{i:02}",
            "query": f"{WORDS[i % 6]} {i}" if i % 2 else f"the {small.TEXTS[texts[i % 6]]} {i}",
            "relevant_documents": [texts[i % 6]],
            "tags": ["one word and a number" if i % 2 else "a sentence"],
        }
        for i in range(48)
    ]
    (data / "queries.json").write_text(json.dumps(queries), encoding="utf-8")
    path = small.experiment(folder, report=True)
    return harness.run(path, harness.Options(results=folder / "results")).folder / "report.html"


def test_every_chart_fits_on_a_telephone(page, tmp_path):
    with chromium(tmp_path / "profile", width=400) as driver:
        driver.get(page.as_uri())
        scroll_through(driver)
        assert complaints(driver) == []
        charts = driver.execute_script("""
            return [...document.querySelectorAll("figure.chart")].map((figure) => {
              const box = figure.querySelector(".scroll");
              return [figure.dataset.figure, box.scrollWidth - box.clientWidth];
            });
        """)
        assert {"slices", "measures", "tradeoff-bytes"} <= {name for name, _ in charts}
        assert [name for name, over in charts if over > 0] == []
        resize(driver, 1280)
        driver.refresh()
        scroll_through(driver)
        wide = driver.execute_script(
            "return document.querySelector('figure[data-figure=slices] .broad').getBoundingClientRect().width"
        )
        assert wide > 500


@pytest.fixture(scope="module")
def claimed(tmp_path_factory):
    """Questions with claims and without labels; one of the retrievers failed."""
    folder = tmp_path_factory.mktemp("claimed")
    data = small.dataset(folder / "data")
    queries = [{"query": f"{word} {i}", "claims": [f"{word} swim"]} for i, word in enumerate(WORDS)]
    (data / "queries.json").write_text(json.dumps(queries), encoding="utf-8")
    path = small.experiment(folder, more='[judge]\nkind = "lexical"\n', report=True)
    lines = path.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not line.startswith(("primary", "measures"))]
    named = ['primary = "ClaimRecall@3"', 'measures = ["ClaimRecall@3"]']
    path.write_text("\n".join([*kept[:1], *named, *kept[1:]]), encoding="utf-8")
    results = harness.run(path, harness.Options(results=folder / "results")).folder
    small.with_failed(results, "401: the service does not take the key")
    write_report(records.read(results))
    return results / "report.html"


def test_a_page_without_labels_has_no_empty_table_and_a_failure_reads_as_a_sentence(claimed, tmp_path):
    with chromium(tmp_path / "profile", width=400) as driver:
        driver.get(claimed.as_uri())
        settled(driver)
        shown = "return getComputedStyle(document.querySelector(arguments[0])).display"
        assert driver.execute_script(shown, ".board .failed td") == "block"
        assert driver.execute_script(shown, "#look-detail [aria-label^=Relevant]") == "none"
        assert complaints(driver) == []
    assert "No query has labels of documents" in claimed.read_text(encoding="utf-8")
