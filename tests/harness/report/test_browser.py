"""The report in a real browser: safety, controls, accessibility."""

from __future__ import annotations

import json
import re
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


def choose(driver, **values):
    """Choose in the lists of the filter, by place."""
    for name, index in values.items():
        driver.execute_script(
            "const select = document.querySelector(`#client-filter-${arguments[0]}`);"
            "select.selectedIndex = arguments[1]; select.dispatchEvent(new "
            "Event('input'))",
            name,
            index,
        )


def sorts(driver, values, button):
    """A click on a head sorts down, a second up, a third as it was."""
    first = numbers(driver, values)
    for expected in (sorted(first, reverse=True), sorted(first), first):
        click(driver, button)
        assert numbers(driver, values) == expected
    return first


def click(driver, selector):
    driver.execute_script("document.querySelector(arguments[0]).click()", selector)


def test_nothing_hostile_runs_and_nothing_is_fetched(opened):
    scroll_through(opened)
    settled(opened)
    list_all_queries(opened)
    for position in range(20):
        opened.execute_script(
            "document.querySelectorAll('#look-list input')[arguments[0]].click()",
            position,
        )
    assert opened.execute_script("return window.pwned") is None
    assert complaints(opened) == []
    assert requests(opened) == []
    assert texts(opened, "img, iframe, object, [onerror], [onmouseover]") == []
    directions = opened.execute_script("""
        return Object.fromEntries([...document.querySelectorAll('#look-list .q')]
          .map((x) => [x.textContent, getComputedStyle(x).direction]));
    """)
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


def list_all_queries(driver):
    """Show every query in the list."""
    driver.execute_script("document.querySelector('#look-more > button')?.click()")


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
    driver.execute_script(
        "document.querySelector('.queries thead button').click()"
    )  # by their place in the file
    assert texts(driver, "#look-list .q") == [
        visible_text(string).strip() for string in strings
    ]
    assert driver.execute_script("return window.pwned") is None
    assert complaints(driver) == []


def test_tables_sort_and_the_grid_is_linked_from_the_leaderboard(opened):
    settled(opened)
    list_all_queries(opened)
    assert (
        len(
            sorts(
                opened,
                "#look-list td:nth-child(2)",
                ".queries thead th:nth-child(2) button",
            )
        )
        == 20
    )
    table = "#tests table.comparisons"
    assert (
        len(
            set(
                sorts(
                    opened,
                    f"{table} tbody td:nth-child(4)",
                    f"{table} thead th:nth-child(4) button",
                )
            )
        )
        == 3
    )
    click(opened, "#look-gap")
    gaps = numbers(opened, "#look-list .d")
    assert gaps == sorted(gaps, reverse=True)
    links = opened.execute_script(
        "return [...document.querySelectorAll('.board .wtl a')]"
        ".map((x) => [x.hash, x.text])"
    )
    kinds = {hash_.rpartition("=")[2] for hash_, _ in links}
    assert kinds > {"won"}
    assert kinds <= {"won", "tied", "lost"}
    for hash_, number in links:
        opened.execute_script("location.hash = arguments[0]", hash_)
        opened.execute_async_script("setTimeout(arguments[0], 50)")
        assert texts(opened, "#look-count")[0].startswith(f"{number} of 20 queries")
        list_all_queries(opened)
        signs = {(x > 0) - (x < 0) for x in numbers(opened, "#look-list .d")}
        assert signs == {{"won": 1, "lost": -1, "tied": 0}[hash_.rpartition("=")[2]]}


def test_a_query_is_looked_into(opened):
    settled(opened)
    assert len(texts(opened, "#look-list label")) == 20
    assert texts(opened, "#look-detail .columns h4 .name") == texts(
        opened, "#look-detail table thead .name"
    )
    assert len(texts(opened, "#look-detail .columns ol")) == 3
    assert "2" in texts(opened, "#look-detail .grade.best > :first-child")
    opened.execute_script("""
        const box = document.querySelector('#look-text');
        box.value = 'удовлетворённости';
        box.dispatchEvent(new Event('input'));
    """)
    assert len(texts(opened, "#look-list label")) == 1
    assert "Опрос" in texts(opened, "#look-detail h3")[0]
    (difference,) = numbers(opened, "#look-list .d")
    a, b = opened.execute_script(
        "return ['a', 'b'].map((x) =>"
        " document.querySelector('#client-filter-' + x).selectedIndex)"
    )
    choose(opened, a=b, b=a)
    assert numbers(opened, "#look-list .d") == [-difference]


def test_a_link_restores_what_is_looked_at(opened, page):
    settled(opened)
    choose(opened, a=2, b=0)
    opened.execute_script("document.querySelectorAll('#look-list input')[7].click()")
    detail = texts(opened, "#look-detail h3") + texts(
        opened, "#look-detail .columns h4 .name"
    )
    link = opened.current_url
    assert link.startswith(page + "#a=")
    # A way within the page leaves the address, and each choice is a step of the
    # history.
    click(opened, "nav a[href='#tests']")
    assert opened.current_url == link
    opened.back()
    assert opened.current_url != link
    assert opened.current_url.startswith(page)
    opened.forward()
    assert opened.current_url == link
    assert (
        texts(opened, "#look-detail h3")
        + texts(opened, "#look-detail .columns h4 .name")
        == detail
    )
    opened.get("about:blank")
    opened.get(link)
    settled(opened)
    assert (
        texts(opened, "#look-detail h3")
        + texts(opened, "#look-detail .columns h4 .name")
        == detail
    )
    assert complaints(opened) == []


def test_the_result_is_quoted_and_its_files_are_at_hand(opened, page):
    click(opened, "[popovertarget=quote]")
    opened.execute_async_script(
        "setTimeout(arguments[0], 100)"
    )  # a popover says after a moment that it is open
    sentence, latex, bibtex, digest, address = texts(
        opened, "[popover]:popover-open pre"
    )
    assert address == opened.current_url
    assert texts(opened, "[popover]:popover-open button") == ["Copy"] * 5
    assert re.match(
        r"On 20 queries: .* adjusted p .*Decided by the sign-flip test", sentence
    )
    assert "\\input{tables/leaderboard.tex}" in latex
    assert bibtex.startswith("@misc{hostile2")
    assert len(digest) == 64
    assert digest in bibtex
    ActionChains(opened).send_keys(Keys.ESCAPE).perform()
    click(opened, "[popovertarget=files]")
    assert texts(opened, "[popover]:popover-open pre") == []  # one at a time
    links = opened.execute_script(
        "return [...document.querySelectorAll('.files a')].map((x) => x.href)"
    )
    assert {"leaderboard.tex", "scores.csv", "manifest.json"} <= {
        link.rpartition("/")[2] for link in links
    }
    assert all(Path(unquote(urlparse(link).path)).is_file() for link in links)
    ActionChains(opened).send_keys(Keys.ESCAPE).perform()
    assert texts(opened, "[popover]:popover-open") == []


def test_the_keyboard_alone_reaches_everything(opened):
    scroll_through(opened)
    opened.execute_script(
        "document.querySelectorAll('details')"
        ".forEach((x) => { x.removeAttribute('name'); x.open = true })"
    )
    # what scrolls becomes a stop once it is laid out
    opened.execute_async_script("""
        const done = arguments[0];
        requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 100)));
    """)
    stops = opened.execute_script("""
        const kinds = 'a, button, input, select, summary, [tabindex]';
        const stops = [...document.querySelectorAll(kinds)]
          .filter((x) => x.checkVisibility() && !(x.type === 'radio' && !x.checked));
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
    assert texts(opened, "a.skip") == [
        "Skip to the decision",
        "Skip to the queries",
        "Skip to the filter",
    ]
    radio = "document.querySelector('#look-list input:checked')"
    opened.execute_script(f"{radio}.focus()")
    before = texts(opened, "#look-detail h3")
    ActionChains(opened).send_keys(Keys.ARROW_DOWN).perform()
    assert texts(opened, "#look-detail h3") != before


@pytest.mark.parametrize(
    ("width", "scheme"),
    [(320, "light"), (400, "light"), (1280, "dark"), (1920, "light")],
)
def test_axe_finds_no_violation_and_the_page_never_scrolls_sideways(
    opened, width, scheme
):
    media(opened, prefers_color_scheme=scheme)
    resize(opened, width)
    scroll_through(opened)
    assert opened.execute_script("return document.documentElement.scrollWidth") <= width
    assert axe(opened) == []
    click(opened, "[popovertarget=files]")
    assert axe(opened) == []


def test_it_works_with_scripts_off(driver, page):
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    complaints(driver)
    driver.get(page)
    # Selenium's own scripts still run.
    assert texts(driver, "#queries .printed caption")[:1] == ["Queries that fail alike"]
    visible = (
        "return [...document.querySelectorAll(arguments[0])]"
        ".map((x) => x.checkVisibility())"
    )
    assert not any(driver.execute_script(visible, ".scripted"))
    assert all(
        driver.execute_script(
            visible,
            (
                ".printed, figure.chart:not(details *) .plot > svg:not(.narrow), "
                "table.board"
            ),
        )
    )
