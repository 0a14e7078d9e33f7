"""The judging page in a real browser: by keyboard, in any script, with nothing lost."""

import re
import time

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.support.ui import WebDriverWait

from harness.dataset.judgments import read_judgments
from harness.labels.judging_page import in_order, write_page
from tests.support.browser import axe, chromium, complaints, needs_browser, requests, resize
from tests.support.hostile import ATTACKS, SCRIPTS
from tests.support.labels_small import pool, write


@pytest.fixture
def driver(tmp_path):
    """A browser for each test: where one test cleared the store, pages of the next were shown an empty one at times."""
    folder = tmp_path / "browser"
    (folder / "downloads").mkdir(parents=True)
    with chromium(folder / "profile", downloads=folder / "downloads") as found:
        found.downloads = folder / "downloads"
        yield found


@pytest.fixture
def opened(driver, tmp_path):
    """A page for a pool of 4 questions with 3 documents: 12 pairs, two of them asked twice."""
    driver.made = pool()
    write_page(tmp_path / "judge.html", driver.made)
    driver.get((tmp_path / "judge.html").as_uri())
    return driver


def press(driver, keys):
    ActionChains(driver).send_keys(keys).perform()


def text(driver, selector):
    return driver.find_element("css selector", selector).text


def counted(driver, count):
    """Wait until the page shows how many are judged: keys and reloading take as long as the browser needs."""
    WebDriverWait(driver, 60).until(lambda _: text(driver, "#count") == count, f"not {count}")


def reopened(driver, count):
    """Open the page anew, each time in a process of its own, until it shows how many are judged.

    A busy Chromium shows a page an empty store now and then, and to every page of that process after it: reloading for
    a minute did not bring it back. The browser's own pages never share a process with a file.
    """
    page = driver.current_url

    def shows(_):
        driver.get("chrome://version")
        driver.get(page)
        return text(driver, "#count") == count

    WebDriverWait(driver, 60).until(shows, f"not {count}")


def begin(driver, name="ann"):
    """Give the judge's name; once more where a busy browser lost the keys of the first try."""

    def begun(_):
        field = driver.find_element("css selector", "#judge")
        if field.is_displayed():
            field.clear()
            field.send_keys(name + "\n")
        return not driver.find_element("css selector", "#judge").is_displayed()

    WebDriverWait(driver, 60).until(begun, "the name is not taken")


def exported(driver):
    """What the page exports, under a name of its own: the browser writes over a file of the same name."""
    driver.find_element("css selector", "#export").click()
    file = driver.downloads / "judgments.jsonl"
    for _ in range(10_000):
        if file.exists() and file.stat().st_size:
            return file.rename(driver.downloads / f"{time.monotonic_ns()}.jsonl")
        time.sleep(0.05)
    raise AssertionError("nothing was downloaded")


def bring(driver, path):
    driver.find_element("css selector", "#import").send_keys(str(path))
    for _ in range(10_000):
        if driver.execute_script("return document.getElementById('import').value") == "":
            return
        time.sleep(0.02)


browser = needs_browser


@browser
def test_a_pool_is_judged_by_keyboard_alone(opened):
    begin(opened, "Ann Ö.")
    order, made = in_order(opened.made), opened.made
    for number, one in enumerate(order):
        query = made.queries[one.query]
        assert text(opened, "#query") == query.query
        assert text(opened, "#text") == query.documents[one.document].text
        counts = {f"{number} of 14", f"{number} of 14, about 1 min left"}  # once three answers took a tenth of a second
        assert text(opened, "#count") in counts
        assert text(opened, "#place") == f"{one.query + 1} of {len(made.queries)}"
        press(opened, "s" if number == 4 else str(number % 4))
    assert "All is judged" in text(opened, "#done")
    found = read_judgments([exported(opened)])
    assert [(one.query_id, one.document_id, one.round) for one in found] == [
        (made.queries[one.query].query_id, made.queries[one.query].documents[one.document].id, one.round)
        for one in order
    ]
    assert [one.grade for one in found] == [None if i == 4 else i % 4 for i in range(14)]
    assert {(one.judge, one.kind, one.pool, one.asked, one.inclusion, one.population) for one in found} == {
        ("Ann Ö.", "human", made.digest, 3, 0.5, 8)
    }
    digests = {document.digest for query in made.queries for document in query.documents}
    assert {one.text for one in found} == digests
    assert all(one.seconds is not None and one.at for one in found)
    assert complaints(opened) == []
    assert requests(opened) == []


@browser
def test_undo_and_notes(opened):
    begin(opened)
    press(opened, "3")
    press(opened, "u")
    assert text(opened, "#count") == "0 of 14"
    press(opened, "n")
    press(opened, "2 is near 3")
    assert text(opened, "#count") == "0 of 14"
    press(opened, "\ue00c")
    press(opened, "2")
    press(opened, "0")
    found = read_judgments([exported(opened)])
    assert [(one.grade, one.note) for one in found] == [(2, "2 is near 3"), (0, "")]
    press(opened, "uu")
    assert opened.execute_script("return document.getElementById('note').value") == "2 is near 3"
    press(opened, "p")
    assert opened.execute_script("return document.getElementById('policy').open") is True


@browser
def test_a_key_counts_by_its_place_where_it_writes_no_latin_letter(opened):
    begin(opened)
    for number, (key, code) in enumerate([("&", "Digit1"), ("ы", "KeyS"), ("٢", "Digit2"), ("-", "Minus")]):
        opened.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyDown", "key": key, "code": code})
        assert text(opened, "#count").startswith(f"{min(number + 1, 3)} of 14")
    assert [one.grade for one in read_judgments([exported(opened)])] == [1, None, 2]


@browser
def test_marks_that_are_no_markdown_stay_and_a_megabyte_of_lines_is_shown(driver, tmp_path):
    """A line ```python lost its last letter, 2**3 read 23, and 100,000 parts were too many arguments."""
    kept = "```python\n**Note: open\nx = 2**3 and 4**5\n2 ** 3 ** 4\n"
    write_page(tmp_path / "judge.html", pool(1, 1, texts=[kept + "**bold** `code`\n" * 40_000]))
    driver.get((tmp_path / "judge.html").as_uri())
    begin(driver)
    shown = driver.execute_script("return document.getElementById('text').textContent")
    assert shown == kept + "bold code\n" * 40_000


SEEN = """
const [text, answer] = ["#text", ".answer"].map((one) => document.querySelector(one).getBoundingClientRect());
return text.top >= 0 && Math.min(answer.top, innerHeight) - text.top >= Math.min(60, text.height);
"""
"""Whether the beginning of the text stands free, above the bar with the grades."""


@browser
@pytest.mark.parametrize("size", [(1200, 900), (1280, 1000), (1024, 700), (430, 270)])
def test_the_beginning_of_each_text_is_in_sight_and_what_is_not_is_not_judged(driver, tmp_path, size):
    made = pool(1, 2, texts=["How is it paid?", ("A long text. " * 40 + "\n") * 8])
    write_page(tmp_path / "judge.html", made)
    resize(driver, *size)
    driver.get((tmp_path / "judge.html").as_uri())
    begin(driver)
    assert driver.execute_script(SEEN)
    assert driver.execute_script("return document.getElementById('policy').open") is False
    press(driver, "p")
    driver.execute_script("document.querySelector('article').style.marginTop = '3000px'; scrollTo(0, 0)")
    press(driver, "2")
    assert text(driver, "#count").startswith("0 of") and "not visible" in text(driver, "#message")
    driver.execute_script("const a = document.querySelector('article'); a.style.marginTop = ''; a.scrollIntoView()")
    press(driver, "2")
    assert text(driver, "#count").startswith("1 of") and driver.execute_script(SEEN)


@browser
def test_nothing_is_lost_by_closing_the_window(opened):
    begin(opened)
    press(opened, "1")
    press(opened, "2")
    counted(opened, "2 of 14")
    reopened(opened, "2 of 14")
    press(opened, "u")
    counted(opened, "1 of 14")


@browser
def test_a_page_that_was_shown_an_empty_store_writes_over_nothing(opened):
    """As a busy Chromium does, once in fifty: the page forgot all that was judged as soon as the judge went on."""
    begin(opened)
    press(opened, "1")
    press(opened, "2")
    counted(opened, "2 of 14")
    kept = opened.execute_script("const kept = { ...localStorage }; localStorage.clear(); return kept")
    opened.refresh()
    begin(opened, "anne")
    press(opened, "3")
    counted(opened, "1 of 14")
    opened.execute_script("Object.assign(localStorage, { ...arguments[0], ...localStorage })", kept)
    reopened(opened, "2 of 14")
    opened.find_element("css selector", "#rename").click()
    begin(opened, "ann")
    found = read_judgments([exported(opened)])
    assert [(one.grade, one.judge) for one in found] == [(3, "ann"), (2, "ann")]


@browser
def test_two_tabs_lose_nothing_of_each_other(opened):
    """Undoing wrote what one tab knew over what the other had judged since; so did opening a page."""
    first, page = opened.current_window_handle, opened.current_url
    begin(opened)
    press(opened, "1")
    counted(opened, "1 of 14")
    opened.switch_to.new_window("tab")
    try:
        opened.get(page)
        counted(opened, "1 of 14")
        opened.switch_to.window(first)
        press(opened, "2")
        counted(opened, "2 of 14")
        opened.switch_to.window(opened.window_handles[1])
        counted(opened, "2 of 14")
        press(opened, "u")
        counted(opened, "1 of 14")
    finally:
        opened.close()
        opened.switch_to.window(first)
    counted(opened, "1 of 14")
    press(opened, "3")
    assert [one.grade for one in read_judgments([exported(opened)])] == [1, 3]


@browser
def test_a_browser_that_keeps_nothing_says_so_and_still_judges(opened):
    source = """
        Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('denied', 'SecurityError'); } });
    """
    script = opened.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})
    try:
        opened.refresh()
        assert "stores nothing" in text(opened, "#message")
        begin(opened)
        press(opened, "1")
        assert [one.grade for one in read_judgments([exported(opened)])] == [1]
    finally:
        opened.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": script["identifier"]})
        opened.execute_script("window.addEventListener('beforeunload', (e) => e.stopImmediatePropagation(), true)")


@browser
def test_an_export_is_imported_and_judging_goes_on(opened):
    begin(opened)
    press(opened, "1")
    press(opened, "2")
    file = exported(opened)
    opened.execute_script("localStorage.clear()")
    opened.refresh()
    bring(opened, file)
    assert text(opened, "#count") == "2 of 14"
    press(opened, "0")
    assert [one.grade for one in read_judgments([exported(opened)])] == [1, 2, 0]


@browser
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pool": "another"}, "it belongs to pool another; this page shows pool"),
        ({"document_id": "elsewhere"}, "its query or document is not on this page"),
        ({"judge": "ben"}, "it is by ben; this page belongs to ann"),
        ({"grade": 3}, "it contradicts a judgment on this page"),
        ({"grade": 7}, "grade 7 is not on the scale"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_whole(opened, tmp_path, changes, message):
    begin(opened)
    press(opened, "1")
    (first,) = read_judgments([exported(opened)])
    second = first.model_copy(update={"document_id": in_next(opened), "grade": 2})
    bring(opened, write(tmp_path / "in.jsonl", [second, first.model_copy(update=changes)]))
    assert f"line 2: {message}" in text(opened, "#message")
    assert text(opened, "#count") == "1 of 14"


def in_next(driver):
    one = in_order(driver.made)[1]
    return driver.made.queries[one.query].documents[one.document].id


@browser
def test_hostile_texts_in_every_script_are_shown_as_they_are(driver, tmp_path):
    strings = [one for one in (*ATTACKS, *SCRIPTS) if one.strip() == one]
    made = pool(len(strings), 1, texts=strings, policy=ATTACKS[1])
    write_page(tmp_path / "judge.html", made)
    driver.get((tmp_path / "judge.html").as_uri())
    begin(driver, "<b>ann</b>")
    directions = {}
    for one in in_order(made):
        query = made.queries[one.query]
        shown = driver.execute_script(
            """return ['query', 'text'].map((id) => document.getElementById(id).textContent)"""
        )
        # Markdown reads as it is meant: the marks of headings, lists and code go, and nothing else.
        rendered = re.sub(r"^#{1,6}\s+|`", "", query.documents[0].text, flags=re.MULTILINE)
        assert shown == [query.query, re.sub(r"^(\s*)[-*+]\s+", r"\1• ", rendered, flags=re.MULTILINE)]
        directions[query.query] = driver.execute_script(
            "return getComputedStyle(document.getElementById('query')).direction"
        )
        press(driver, "0")
    assert driver.execute_script("return window.pwned") is None
    assert driver.execute_script("return document.querySelectorAll('img, iframe, object, [onerror]').length") == 0
    assert {directions[one] for one in strings if "استطلاع" in one or "סקר" in one} == {"rtl"}
    assert {directions[one] for one in strings if "Опрос" in one or "顧客" in one} == {"ltr"}
    assert complaints(driver) == []
    assert requests(driver) == []


@browser
def test_everyone_can_use_it_on_a_telephone_too(opened):
    assert axe(opened) == []
    begin(opened)
    assert axe(opened) == []
    resize(opened, 360, 700)
    assert opened.execute_script("return document.documentElement.scrollWidth") <= 360
    resize(opened, 1280)
