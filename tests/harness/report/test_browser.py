"""The report in a real browser: safety, controls, accessibility."""

from __future__ import annotations

import json
import re
import struct
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

import harness
from harness import records
from harness.pages import visible_text
from harness.report.write import write_report
from tests.support import hostile, small
from tests.support.browser import (
    axe,
    chromium,
    complaints,
    media,
    needs_browser,
    requests,
    resize,
    scroll_through,
    settled,
)

pytestmark = needs_browser


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The report on hostile strings, as a URL."""
    folder = tmp_path_factory.mktemp("hostile")
    results = harness.run(
        hostile.write(folder), harness.RunOptions(results=folder / "results")
    )
    return (results.folder / "report.html").as_uri()


@pytest.fixture
def opened(driver, page):
    """The page, freshly opened at 1280 pixels in a light scheme, scripts on."""
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    media(driver, prefers_color_scheme="light")
    resize(driver, 1280)
    complaints(driver), requests(driver)
    driver.get(page)
    return driver


def texts(driver, selector):
    return driver.execute_script(
        "return [...document.querySelectorAll(arguments[0])]"
        ".map((x) => x.textContent.trim())",
        selector,
    )


def numbers(driver, selector):
    return [float(text.replace("−", "-")) for text in texts(driver, selector)]


def click(driver, selector):
    driver.execute_script("document.querySelector(arguments[0]).click()", selector)


def choose(driver, selector, option):
    """Choose in a list by place."""
    driver.execute_script(
        "const select = document.querySelector(arguments[0]);"
        "select.selectedIndex = arguments[1];"
        "select.dispatchEvent(new Event('change', { bubbles: true }))",
        selector,
        option,
    )


def write_in(driver, selector, words):
    driver.execute_script(
        "const box = document.querySelector(arguments[0]); box.value = arguments[1];"
        "box.dispatchEvent(new Event('input'))",
        selector,
        words,
    )


def list_all_queries(driver):
    """Show every query in the list: the last group, without its fold."""
    driver.execute_script(
        "[...document.querySelectorAll('[data-group]')].at(-1).click();"
        "const more = document.querySelector('#found li:last-child button');"
        "if (!more.dataset.query) more.click()"
    )


QUERY_BUTTONS = "#found button[data-query]"
LISTED = f"{QUERY_BUTTONS} > :first-child"
GAPS = f"{QUERY_BUTTONS} > :last-child"


def card_texts(driver):
    """Every text of the card, in its order; a title appears whole."""
    return driver.execute_script("""
        const text = (node) => node.textContent.trim();
        const all = (selector) =>
          [...document.querySelectorAll(`#card ${selector}`)].map(text);
        const side = (key) => {
          const head = document.querySelector(`#card .side.${key}`);
          return [text(head.querySelector(".name")), text(head.querySelector("b"))];
        };
        const lines = [...document.querySelectorAll("#card .links line")].map(
          (line) => [line.getAttribute("y1"), line.getAttribute("y2"),
                     line.getAttribute("class") || ""].map(String));
        return {
          asked: all("#asked"), finding: all("#finding"),
          a: side("a"), b: side("b"), lines,
          hits: [...document.querySelectorAll("#card .hits li")].map((hit) => [
            text(hit.querySelector(".rank")), text(hit.querySelector(".title")),
            text(hit.querySelector("i")), hit.className.trim(),
          ]),
        };
    """)


def test_nothing_hostile_runs_and_nothing_is_fetched(opened):
    scroll_through(opened)
    settled(opened)
    list_all_queries(opened)
    for position in range(20):
        opened.execute_script(
            f"document.querySelectorAll('{QUERY_BUTTONS}')[arguments[0]].click()",
            position,
        )
    assert opened.execute_script("return window.pwned") is None
    assert complaints(opened) == []
    assert requests(opened) == []
    assert texts(opened, "img, iframe, object, [onerror], [onmouseover]") == []
    directions = opened.execute_script(
        "return Object.fromEntries([...document.querySelectorAll(arguments[0])]"
        ".map((x) => [x.textContent, getComputedStyle(x).direction]))",
        LISTED,
    )
    assert {f"{hostile.ATTACKS[0]} 0", f"{hostile.ATTACKS[1]} 1"} <= set(directions)
    assert {
        direction
        for text, direction in directions.items()
        if "استطلاع" in text or "סקר" in text
    } == {"rtl"}
    assert {
        direction
        for text, direction in directions.items()
        if "Опрос" in text or "顧客" in text
    } == {"ltr"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results whose strings may be replaced."""
    parent = tmp_path_factory.mktemp("replaced")
    return harness.run(
        hostile.write(parent, queries=6), harness.RunOptions(results=parent / "results")
    ).folder


WILD = st.text(st.characters(), max_size=40) | st.sampled_from(hostile.ATTACKS)


@settings(
    max_examples=3,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(WILD, min_size=6, max_size=6))
def test_any_strings_are_shown_as_they_are(driver, folder, strings):
    for name, keys in (
        ("labels.jsonl", ("text", "fields")),
        ("documents.jsonl", ("title", "text")),
    ):
        rows = list(records.read_json_lines(folder / name))
        for i, row in enumerate(rows):
            row |= {
                key: {"tag": strings[i % 6]} if key == "fields" else strings[i % 6]
                for key in keys
            }
        (folder / name).write_text(
            "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
        )
    write_report(records.read_results(small.signed_anew(folder)))
    complaints(driver)
    driver.get((folder / "report.html").as_uri())
    scroll_through(driver)
    settled(driver)
    list_all_queries(driver)
    assert sorted(texts(driver, LISTED)) == sorted(
        visible_text(string).strip() for string in strings
    )
    assert driver.execute_script("return window.pwned") is None
    assert complaints(driver) == []


@pytest.mark.parametrize(
    ("table", "column"),
    [("#board", 3), ("#measures table", 2), ("#pairs > .scroll table", 2)],
)
def test_a_head_sorts_and_sorts_back(opened, table, column):
    settled(opened)
    cells = f"{table} tbody:first-of-type td:nth-child({column})"
    button = f"{table} thead th:nth-child({column}) button"
    for expected in (True, False):
        click(opened, button)
        shown = numbers(opened, cells)
        assert len(set(shown)) > 1
        assert shown == sorted(shown, reverse=expected)


SECONDS = {"ms": 0.001, "s": 1, "min": 60, "h": 3600}


def seconds(text):
    parts = re.findall(r"([\d.]+) (ms|s|min|h)\b", text)
    return sum(float(number) * SECONDS[unit] for number, unit in parts)


def test_times_sort_by_their_units(opened):
    settled(opened)
    heads = texts(opened, "#cost .stages thead th")
    column = heads.index("time") + 1
    for expected in (True, False):
        click(opened, f"#cost .stages thead th:nth-child({column}) button")
        times = texts(opened, f"#cost .stages tbody td:nth-child({column})")
        assert {text.split()[-1] for text in times} >= {"ms"}
        shown = [seconds(text) for text in times if text]
        assert shown == sorted(shown, reverse=expected)


def test_the_list_has_the_gaps_of_the_leader_the_largest_loss_first(opened):
    settled(opened)
    list_all_queries(opened)
    gaps = numbers(opened, GAPS)
    assert len(gaps) == 20
    assert gaps == sorted(gaps)


def test_a_query_is_found_and_its_pair_is_chosen(opened):
    settled(opened)
    list_all_queries(opened)
    write_in(opened, "#find", "удовлетворённости")
    assert len(texts(opened, LISTED)) == 1
    click(opened, QUERY_BUTTONS)
    assert "Опрос" in texts(opened, "#asked")[0]
    before = card_texts(opened)
    choose(opened, "[data-side=a]", 2)
    choose(opened, "[data-side=b]", 0)
    after = card_texts(opened)
    names = opened.execute_script(
        "return [...document.querySelector('[data-side=a]').options]"
        ".map((option) => option.text)"
    )
    assert [after["a"][0], after["b"][0]] == [names[2], names[0]]
    assert after["asked"] == before["asked"]
    assert after["hits"] != before["hits"]


def listed_ids(opened):
    titles = opened.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((row) => row.title)",
        QUERY_BUTTONS,
    )
    return [title.partition(":")[0] for title in titles]


def test_a_search_goes_beyond_the_group_and_says_if_nothing_is_found(opened):
    settled(opened)
    write_in(opened, "#find", "q")  # every id has it
    all_ids = listed_ids(opened)
    assert len(all_ids) == 20
    write_in(opened, "#find", all_ids[-1])
    assert listed_ids(opened) == [all_ids[-1]]
    write_in(opened, "#find", "no such query")
    assert texts(opened, "#found li") == ["No query found."]


def test_next_and_previous_go_through_the_group(opened):
    settled(opened)
    first = texts(opened, "#asked")
    assert texts(opened, "#place")[0].startswith("1 of ")
    click(opened, "[data-by='1']")
    assert texts(opened, "#asked") != first
    assert texts(opened, "#place")[0].startswith("2 of ")
    click(opened, "[data-by='-1']")
    assert texts(opened, "#asked") == first


def test_a_link_restores_the_query_and_the_pair(opened, page):
    settled(opened)
    list_all_queries(opened)
    opened.execute_script(f"document.querySelectorAll('{QUERY_BUTTONS}')[7].click()")
    choose(opened, "[data-side=a]", 2)
    choose(opened, "[data-side=b]", 0)
    shown = card_texts(opened)
    link = opened.current_url
    assert link.startswith(page + "#query=")
    opened.get("about:blank")
    opened.get(link)
    settled(opened)
    assert card_texts(opened) == shown
    assert complaints(opened) == []


def test_names_in_a_link_that_the_page_lacks_are_ignored(opened, page):
    settled(opened)
    shown = card_texts(opened)
    opened.get("about:blank")
    opened.get(f"{page}#query=none&a=nobody&b=%3Cb%3E")
    settled(opened)
    assert card_texts(opened) == shown
    assert complaints(opened) == []


def test_the_script_draws_the_card_that_the_page_has(driver, page):
    media(driver, prefers_color_scheme="light")
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    driver.get(page)
    written = card_texts(driver)
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    driver.get(page)
    settled(driver)
    assert card_texts(driver) == written
    assert written["hits"]


HOOK = """
    window.painted = [];
    const { fillText } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
      window.painted.push(String(text));
      return fillText.call(this, text, ...rest);
    };
    const write = arguments[0]
      ? async () => { throw new DOMException("no", "NotAllowedError"); }
      : async (items) => { window.copied = await items[0].getType("image/png"); };
    const value = { write };
    Object.defineProperty(navigator, "clipboard", { value, configurable: true });
"""


def said_after_copy(driver):
    """What the page says after its button copied, or saved, the image."""
    click(driver, "#copy")
    return driver.execute_async_script("""
        const done = arguments[0], said = document.querySelector("#said");
        const wait = () =>
          (said.textContent ? done(said.textContent) : setTimeout(wait, 20));
        wait();
    """)


def test_the_image_says_what_the_card_says(opened):
    settled(opened)
    opened.execute_script(HOOK, False)
    assert said_after_copy(opened) == "Copied."
    kind, size = opened.execute_script("return [copied.type, copied.size]")
    assert kind == "image/png"
    assert size > 10_000
    painted = opened.execute_script("return window.painted")
    card = card_texts(opened)
    expected = [*card["finding"], *card["a"], *card["b"]]
    for rank, title, grade, _ in card["hits"]:
        expected += [rank, title, *([grade] if grade else [])]
    # A text that has no room ends with an ellipsis.
    starts = [text.removesuffix("…") for text in painted]
    missing = [
        text
        for text in expected
        if text
        and not any(
            text == start or (start and text.startswith(start)) for start in starts
        )
    ]
    assert missing == []
    asked = card["asked"][0].replace("…", "")
    assert any(start and start in asked for start in starts)
    assert "retriever-harness" in painted
    assert any("20 queries" in text for text in painted)


def saved_image(downloads: Path) -> bytes:
    """Return the image that is saved; the browser makes, and removes, an empty one."""
    for _ in range(200):
        for file in downloads.glob("*.png"):
            with suppress(FileNotFoundError):
                content = file.read_bytes()
                if content:
                    return content
        time.sleep(0.05)
    pytest.fail("no image was saved")


def test_an_image_that_the_clipboard_refuses_is_saved(tmp_path_factory, page):
    downloads = tmp_path_factory.mktemp("downloads")
    with chromium(tmp_path_factory.mktemp("profile"), downloads=downloads) as driver:
        driver.get(page)
        settled(driver)
        driver.execute_script(HOOK, True)
        assert said_after_copy(driver) == "Saved as PNG."
        image = saved_image(downloads)
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", image[16:24])
    assert width == 2400
    assert height > 1000


@pytest.fixture
def sliced_page(tmp_path):
    """Twelve queries of each of two tags, three retrievers."""
    rows = [
        {
            "id": f"{query_id}-{i}",
            "query": f"{text} {i}",
            "relevant_documents": documents,
            "tags": ["even" if i % 2 else "odd"],
        }
        for i in range(4)
        for query_id, text, documents in small.QUERIES
    ]
    path = small.dataset(tmp_path / "data") / "queries.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return (small.ran(tmp_path, report=True).folder / "report.html").as_uri()


def test_the_last_column_of_slices_shows_any_pair(driver, sliced_page):
    driver.get(sliced_page)
    settled(driver)
    head = "#leads thead th:last-child"
    cell = "#leads tbody tr:first-child td:last-child span"
    before = numbers(driver, cell)
    choose(driver, "#lead-a", 2)
    choose(driver, "#lead-b", 1)
    turned = numbers(driver, cell)
    choose(driver, "#lead-a", 1)
    choose(driver, "#lead-b", 2)
    assert " over " in texts(driver, head)[0]
    assert numbers(driver, cell) == [-number for number in turned]
    assert turned not in ([0.0], before)


@pytest.fixture(scope="module")
def many_page(tmp_path_factory):
    """Sixty queries, twelve retrievers."""
    names = [f"retriever-{i}" for i in range(1, 13)]
    return small.many(tmp_path_factory.mktemp("many"), names, 60).as_uri()


def test_the_result_is_quoted_and_its_files_are_at_hand(opened, page):
    summaries = "[...document.querySelectorAll('#again summary')]"
    opened.execute_script(f"{summaries}.forEach((summary) => summary.click())")
    quoted = texts(opened, "#again details pre")
    assert any(
        re.match(r"On 20 queries: .* adjusted p .*Decided by the sign-flip test", text)
        for text in quoted
    )
    assert any(text.startswith("@misc{hostile2") for text in quoted)
    assert any("\\input{tables/leaderboard.tex}" in text for text in quoted)
    links = opened.execute_script(
        "return [...document.querySelectorAll('#again li a')].map((x) => x.href)"
    )
    assert {"leaderboard.tex", "scores.csv", "manifest.json"} <= {
        link.rpartition("/")[2] for link in links
    }
    assert all(Path(unquote(urlparse(link).path)).is_file() for link in links)


def test_the_keyboard_alone_reaches_everything(opened):
    settled(opened)
    opened.execute_script(
        "document.querySelectorAll('details').forEach((x) => { x.open = true })"
    )
    # what scrolls becomes a stop once it is laid out
    opened.execute_async_script("""
        const done = arguments[0];
        requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 100)));
    """)
    stops = opened.execute_script("""
        const kinds = 'a, button, input, select, summary, [tabindex]';
        const stops = [...document.querySelectorAll(kinds)]
          .filter((x) => x.checkVisibility() && !x.disabled);
        window.reached = new Set();
        document.addEventListener(
          'focusin', (event) => window.reached.add(event.target));
        window.wanted = stops;
        return stops.length;
    """)
    keys = ActionChains(opened)
    for _ in range(stops + 10):
        keys.send_keys(Keys.TAB)
    keys.perform()
    missed = opened.execute_script(
        "return window.wanted.filter((x) => !window.reached.has(x))"
        ".map((x) => x.outerHTML.slice(0, 120))"
    )
    assert missed == []
    assert texts(opened, "a.skip") == ["Skip to the decision", "Skip to the queries"]


@pytest.mark.parametrize("name", ["page", "many_page"])
@pytest.mark.parametrize(
    ("width", "scheme"),
    [(320, "light"), (390, "dark"), (1280, "dark"), (1920, "light")],
)
def test_axe_finds_no_violation_and_the_page_never_scrolls_sideways(
    opened, request, name, width, scheme
):
    opened.get(request.getfixturevalue(name))
    settled(opened)
    media(opened, prefers_color_scheme=scheme)
    resize(opened, width)
    opened.execute_script(
        "document.querySelectorAll('details').forEach((x) => { x.open = true })"
    )
    assert opened.execute_script("return document.documentElement.scrollWidth") <= width
    # What scrolls gets its tab stop in the next frame.
    opened.execute_async_script(
        "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
    )
    assert axe(opened) == []


def test_it_works_with_scripts_off(driver, page):
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    complaints(driver)
    driver.get(page)
    # Selenium's own scripts still run.
    visible = (
        "return [...document.querySelectorAll(arguments[0])]"
        ".map((x) => x.checkVisibility())"
    )
    assert not any(driver.execute_script(visible, ".scripted"))
    for selector in ("#card", "#board", ".groups li", "#found li", "figure.chart"):
        assert any(driver.execute_script(visible, selector)), selector
    assert complaints(driver) == []
