"""The judging page in a real browser: by keyboard, in any script, with nothing lost."""

import re

import pytest
from selenium.webdriver.support.ui import WebDriverWait

from harness.dataset.judgment import read_judgments
from harness.labels.judging_order import judging_order
from harness.labels.judging_page import write_judging_page
from tests.support.answers_page import begin, downloading_browser, exported, press, text
from tests.support.browser import axe, complaints, requests, resize
from tests.support.hostile import ATTACKS, SCRIPTS
from tests.support.labels_small import pool, write

pytestmark = pytest.mark.browser


@pytest.fixture
def driver(tmp_path):
    """Return a browser for each test.

    If a test cleared the store, pages of the next test sometimes had an empty one.
    """
    with downloading_browser(tmp_path / "browser") as browser:
        yield browser


def shown(driver, tmp_path, judged_pool):
    """The page of a pool."""
    driver.made = judged_pool
    write_judging_page(tmp_path / "judge.html", judged_pool)
    driver.get((tmp_path / "judge.html").as_uri())
    return driver


@pytest.fixture
def opened(driver, tmp_path):
    """Open a page for 4 queries with 3 documents: 12 pairs, two of them twice."""
    return shown(driver, tmp_path, pool())


def judged(driver, keys, count):
    """Press keys, and wait until the page shows how many pairs are judged."""
    press(driver, keys)
    WebDriverWait(driver, 60).until(
        lambda _: text(driver, "#count").startswith(f"{count} of "), f"not {count}"
    )


def reopened(driver, count, stored=None):
    """Open the page again, each time in a new process, until it shows the count.

    What is to be stored is written in each of them: an empty store keeps nothing.

    A busy Chromium sometimes shows a page an empty store, and then every page of that
    process: reloading for a minute did not bring it back. The browser's own pages never
    share a process with a file.
    """
    page = driver.current_url

    def shows(_):
        driver.get("chrome://version")
        driver.get(page)
        if stored is not None:
            driver.execute_script("Object.assign(localStorage, arguments[0])", stored)
            driver.refresh()
        return text(driver, "#count").startswith(f"{count} of ")

    WebDriverWait(driver, 60).until(shows, f"not {count}")


def grades(driver):
    return [
        judgment.grade
        for judgment in read_judgments([exported(driver, "judgments.jsonl")])
    ]


def bring(driver, path):
    driver.find_element("css selector", "#import").send_keys(str(path))
    is_imported = "return document.getElementById('import').value === ''"
    WebDriverWait(driver, 60, 0.02).until(lambda _: driver.execute_script(is_imported))


def test_a_pool_is_judged_by_keyboard_alone(opened):
    begin(opened, "Ann Ö.")
    judged_pool = opened.made
    order = judging_order(judged_pool)
    for number, pair in enumerate(order):
        query, document = pair.pair_texts(judged_pool)
        assert (text(opened, "#query"), text(opened, "#text")) == (
            query.query,
            document.text,
        )
        assert text(opened, "#count").startswith(f"{number} of 14")
        assert (
            text(opened, "#place") == f"{pair.query + 1} of {len(judged_pool.queries)}"
        )
        press(opened, "s" if number == 4 else str(number % 4))
    assert "Done." in text(opened, "#done")
    judgments = read_judgments([exported(opened, "judgments.jsonl")])
    steps = [(pair.pair_texts(judged_pool), pair.round) for pair in order]
    assert [
        (pair.query_id, pair.document_id, pair.text, pair.round) for pair in judgments
    ] == [
        (query.query_id, document.id, document.digest, round_)
        for (query, document), round_ in steps
    ]
    assert [pair.grade for pair in judgments] == [
        None if i == 4 else i % 4 for i in range(14)
    ]
    assert {
        (pair.judge, pair.kind, pair.pool, pair.asked, pair.inclusion, pair.population)
        for pair in judgments
    } == {("Ann Ö.", "human", judged_pool.digest, 3, 0.5, 8)}
    assert all(pair.seconds is not None and pair.at for pair in judgments)
    assert complaints(opened) == requests(opened) == []


def test_undo_notes_and_keys_that_count_by_their_place_where_they_write_no_latin_letter(
    opened,
):
    begin(opened)
    judged(opened, "3u", 0)
    press(opened, "n")
    judged(opened, "2 is near 3", 0)
    press(opened, "\ue00c")
    judged(opened, "20", 2)
    judgments = read_judgments([exported(opened, "judgments.jsonl")])
    assert [(judgment.grade, judgment.note) for judgment in judgments] == [
        (2, "2 is near 3"),
        (0, ""),
    ]
    judged(opened, "uu", 0)
    assert (
        opened.execute_script("return document.getElementById('note').value")
        == "2 is near 3"
    )
    press(opened, "p")
    assert (
        opened.execute_script("return document.getElementById('policy').open") is True
    )
    for number, (key, code) in enumerate(
        [("&", "Digit1"), ("ы", "KeyS"), ("٢", "Digit2"), ("-", "Minus")]
    ):
        opened.execute_cdp_cmd(
            "Input.dispatchKeyEvent", {"type": "keyDown", "key": key, "code": code}
        )
        judged(opened, "", min(number + 1, 3))
    assert grades(opened) == [1, None, 2]


def test_closing_the_window_or_an_empty_store_loses_no_judgments(
    opened,
):
    """A busy Chromium does so once in fifty; the page then forgot all judgments."""
    begin(opened)
    judged(opened, "123", 3)
    reopened(opened, 3)
    judged(opened, "u", 2)
    stored = opened.execute_script(
        "const kept = { ...localStorage }; localStorage.clear(); return kept"
    )
    opened.refresh()
    begin(opened, "anne")
    judged(opened, "3", 1)
    both = opened.execute_script("return { ...arguments[0], ...localStorage }", stored)
    reopened(opened, 2, both)
    opened.find_element("css selector", "#rename").click()
    begin(opened, "ann")
    assert [
        (judgment.grade, judgment.judge)
        for judgment in read_judgments([exported(opened, "judgments.jsonl")])
    ] == [
        (3, "ann"),
        (2, "ann"),
    ]


def test_two_tabs_lose_nothing_of_each_other(opened):
    """Undoing in one tab, or opening a page, overwrote judgments of another tab."""
    first, page = opened.current_window_handle, opened.current_url
    begin(opened)
    judged(opened, "1", 1)
    opened.switch_to.new_window("tab")
    opened.get(page)
    judged(opened, "", 1)
    opened.switch_to.window(first)
    judged(opened, "2", 2)
    opened.switch_to.window(opened.window_handles[1])
    judged(opened, "", 2)
    judged(opened, "u", 1)
    opened.close()
    opened.switch_to.window(first)
    judged(opened, "", 1)
    judged(opened, "3", 2)
    assert grades(opened) == [1, 3]


UNFIT = [
    ({"pool": "another"}, "it belongs to pool another; this page shows pool"),
    ({"document_id": "elsewhere"}, "its query or document is not on this page"),
    ({"judge": "ben"}, "it is by ben; this page belongs to ann"),
    ({"grade": 3}, "it contradicts a judgment on this page"),
    ({"grade": 7}, "grade 7 is not on the scale"),
]


def test_an_export_is_imported_and_a_file_that_does_not_fit_is_refused_whole(
    opened, tmp_path
):
    begin(opened)
    judged(opened, "12", 2)
    file = exported(opened, "judgments.jsonl")
    opened.execute_script("localStorage.clear()")
    opened.refresh()
    bring(opened, file)
    judged(opened, "", 2)
    judged(opened, "0", 3)
    assert grades(opened) == [1, 2, 0]
    judged(opened, "uu", 1)
    first, second = read_judgments([file])
    for changes, message in UNFIT:
        bring(
            opened,
            write(tmp_path / "in.jsonl", [second, first.model_copy(update=changes)]),
        )
        assert f"line 2: {message}" in text(opened, "#message")
        judged(opened, "", 1)


def test_hostile_texts_in_every_script_are_shown_as_they_are(driver, tmp_path):
    strings = [pair for pair in (*ATTACKS, *SCRIPTS) if pair.strip() == pair]
    judged_pool = pool(len(strings), 1, texts=strings, policy=ATTACKS[1])
    begin(shown(driver, tmp_path, judged_pool), "<b>ann</b>")
    directions = {}
    for pair in judging_order(judged_pool):
        query, document = pair.pair_texts(judged_pool)
        page_texts = driver.execute_script("""
            const query = document.getElementById("query");
            const text = document.getElementById("text");
            const direction = getComputedStyle(query).direction;
            return [query.textContent, text.textContent, direction];
        """)
        # Of Markdown, only the marks of headings, lists and code are removed.
        rendered = re.sub(r"^#{1,6}\s+|`", "", document.text, flags=re.MULTILINE)
        assert page_texts[:2] == [
            query.query,
            re.sub(r"^(\s*)[-*+]\s+", r"\1• ", rendered, flags=re.MULTILINE),
        ]
        directions[query.query] = page_texts[2]
        press(driver, "0")
    assert driver.execute_script("return window.pwned") is None
    assert (
        driver.execute_script(
            "return document.querySelectorAll('img, iframe, object, [onerror]').length"
        )
        == 0
    )
    assert {
        directions[pair] for pair in strings if "استطلاع" in pair or "סקר" in pair
    } == {"rtl"}
    assert {
        directions[pair] for pair in strings if "Опрос" in pair or "顧客" in pair
    } == {"ltr"}
    assert complaints(driver) == requests(driver) == []


def test_everyone_can_use_it_on_a_telephone_too(opened):
    assert axe(opened) == []
    begin(opened)
    assert axe(opened) == []
    resize(opened, 360, 700)
    assert opened.execute_script("return document.documentElement.scrollWidth") <= 360
