"""The filter of the page in a real browser."""

from __future__ import annotations

import json
import re
import shutil
from itertools import product
from urllib.parse import quote

import pytest

from harness import records
from harness.report.sections.page_budget import unpack_json
from harness.report.write import write_report
from tests.support import small
from tests.support.browser import complaints, needs_browser, scroll_through, settled

pytestmark = needs_browser


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """48 queries of two kinds, asked of three retrievers."""
    folder = tmp_path_factory.mktemp("filter")
    data = small.dataset(folder / "data")
    queries = []
    for number, tag in product(range(4), ("names", "=words")):
        for query_id, text, documents in small.QUERIES:
            row = {
                "id": f"{query_id}/{tag} {number}",
                "query": f"{text} {'zzz' * number}",
                "relevant_documents": documents,
                "tags": tag,
            }
            queries.append(row)
    (data / "queries.json").write_text(json.dumps(queries), encoding="utf-8")
    return small.ran(folder, more="[statistics]\nmargin = 0.05", report=True)


def look(driver, results, words=""):
    """The page at an address, freshly opened."""
    driver.get("about:blank")
    driver.get((results.folder / "report.html").as_uri() + words)
    settled(driver)


def text_of(driver, selector):
    return texts(driver, selector)[0]


def texts(driver, selector):
    return driver.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((x) => x.textContent)",
        selector,
    )


def mean(results, retriever, measure, tag):
    scores = results.scores
    chosen = scores[(scores["retriever"] == retriever) & (scores["measure"] == measure)]
    return chosen[chosen["query_id"].str.contains(tag, regex=False)]["value"].mean()


def test_the_filter_shows_the_means_of_a_slice_and_a_measure(driver, results):
    look(
        driver,
        results,
        f"#a=bm25&b=hashing&slice={quote('tags: =words')}&measure=R%402",
    )
    reading = text_of(driver, "#client-filter-reading")
    expected = {
        name: mean(results, name, "R@2", "=words") for name in ("bm25", "hashing")
    }
    means = ", ".join(f"{name} {value:.3f}" for name, value in expected.items())
    assert reading.startswith(f"R@2, 24 of 48 queries (tags: =words): {means}; ")
    assert reading.endswith("Exploratory: no test was made for this choice.")
    values = results.scores[results.scores["measure"] == "R@2"].pivot(
        index="query_id", columns="retriever", values="value"
    )
    values = values[values.index.str.contains("=words", regex=False)]
    won = (values["bm25"] > values["hashing"]).sum()
    lost = (values["bm25"] < values["hashing"]).sum()
    assert f"bm25 won {won}, tied {24 - won - lost}, lost {lost}." in reading
    # The leaderboard and the list say the same means.
    board = driver.execute_script(
        "return [...document.querySelectorAll('.board tr[data-r]')]"
        ".map((x) => [x.querySelector('th bdi').textContent,"
        " x.querySelector('.chosen').textContent])"
    )
    assert {name: value for name, value in board if name in expected} == {
        name: f"{value:.3f}" for name, value in expected.items()
    }
    assert text_of(driver, "#look-count") == "24 of 48 queries"
    query = text_of(driver, "#look-list input:checked + .i")
    assert text_of(driver, "#look-detail .head b") == f"{values['bm25'][query]:.3f}"
    # What was tested keeps its intervals.
    assert len(texts(driver, ".board .strip .span")) == 6
    assert (
        len(texts(driver, "#slices .broad .span"))
        == len(texts(driver, "#slices .broad .dot"))
        > 6
    )
    assert complaints(driver) == []


def test_names_in_a_link_that_the_page_lacks_are_ignored(driver, results):
    look(
        driver,
        results,
        "#a=nobody&b=<script>&slice=__proto__&measure=X&q=<img src=x>"
        "&group=constructor",
    )
    assert "all 48 queries" in text_of(driver, "#client-filter-reading")
    assert driver.execute_script("return document.querySelectorAll('img').length") == 0


def test_no_query_is_shown_instead_of_one_that_the_page_lacks(
    driver, results, tmp_path, monkeypatch
):
    monkeypatch.setattr("harness.report.sections.page_budget.MAX_PAGE_BYTES", 1_000)
    light = records.read_results(shutil.copytree(results.folder, tmp_path / "light"))
    write_report(light)
    page = (light.folder / "report.html").read_text(encoding="utf-8")
    evidence = unpack_json(re.search(r'id="evidence">([^<]*)<', page)[1])
    page_ids = [query["id"] for query in evidence["queries"]]
    ids = unpack_json(re.search(r'id="scores">([^<]*)<', page)[1])["ids"]
    missing_id = next(query_id for query_id in ids if query_id not in page_ids)
    for query, checked in ((page_ids[0], page_ids[:1]), (missing_id, [])):
        look(driver, light, f"#q={quote(query)}")
        assert texts(driver, "#look-list input:checked + .i") == checked
        assert text_of(driver, "#look-count").endswith(
            f"; {missing_id} is not on this page"
        ) == (query == missing_id)
    href = "return document.querySelector('#look-list a').getAttribute('href')"
    assert driver.execute_script(href).startswith(
        "queries.html#a="
    )  # every query has a row, and its rankings a page


def test_a_figure_is_copied_as_tsv_that_no_spreadsheet_runs(driver, results):
    look(driver, results, f"#slice={quote('tags: =words')}")
    scroll_through(driver)
    driver.execute_script(
        "navigator.clipboard.writeText = async (text) => { window.copied = text; };"
    )

    def press(selector, label):
        driver.execute_script(
            "[...document.querySelectorAll(arguments[0])]"
            ".find((x) => x.textContent === arguments[1]).click()",
            selector,
            label,
        )
        return driver.execute_script("return window.copied")

    rows = press("#slices figure .copies button", "Data as TSV").splitlines()
    assert rows[0].split("\t")[:2] == ["slice", "difference"]
    assert {row.split("\t")[0] for row in rows[1:]} >= {"all queries", "tags: =words"}
    table = press("#slices details .copies button", "Copy table").splitlines()
    assert 2 * (len(table) - 1) == len(rows) - 1  # two pairs, a panel and a table each
    # Every row has a cell in each column, where a head spans rows and where a mark has
    # one fact, too.
    rows = press("#tests p.copies button", "Copy table").splitlines()
    assert len({row.count("\t") for row in rows}) == 1 < len(rows)
    cells = "\t".join(table).split("\t")
    assert not [cell for cell in cells if re.match(r"[=@|%]|[+-](?![\d.])", cell)]


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("顧客満足度の調査", "新しい顧客に聞く満足の度合い", ["顧客", "満足"]),
        ("опрос клиентов", "Опросы для клиентов банка", ["Опросы", "клиентов"]),
        ("استطلاع رضا", "هذا استطلاع جديد", ["استطلاع"]),
        ("แบบสำรวจ", "ทำแบบสำรวจ", None),
        ("survey of cats", "A cat and the Surveys of dogs", ["Surveys", "of"]),
    ],
)
def test_words_are_marked_in_any_script(driver, results, project, query, text, marked):
    source = (
        project / "harness" / "report" / "templates" / "scripts" / "texts.js"
    ).read_text(encoding="utf-8")
    driver.get("about:blank")
    words = driver.execute_script(
        "const fold = (text) => text.normalize('NFKC').toLocaleLowerCase();"
        f"{source}\nconst words = wordsOf(arguments[0]).map((x) => x.word);"
        "const hits = hitsIn(arguments[1], words);"
        "return hits.map((x) => arguments[1].slice(x.from, x.to));",
        query,
        text,
    )
    assert words == marked if marked is not None else words
