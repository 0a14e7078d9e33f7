"""The page of blind preferences in a real browser."""

import json

import pytest

from harness.labels.preferences_file import read_preferences
from tests.support.answers_page import begin, downloading_browser, exported, press, text
from tests.support.browser import (
    axe,
    complaints,
    opened_again,
    requests,
    resize,
)
from tests.support.small import told

pytestmark = pytest.mark.browser


@pytest.fixture
def driver(tmp_path):
    """Return a browser for each test, which may download."""
    with downloading_browser(tmp_path / "browser") as browser:
        yield browser


@pytest.fixture
def opened(driver, finished, tmp_path, capsys):
    """Return a page of two retrievers on six queries."""
    page = tmp_path / "prefer.html"
    told(capsys, "prefer", finished.folder, "bm25", "hashing", "--output", page)
    driver.get(page.as_uri())
    begin(driver)
    return driver


def lists(driver):
    return [
        driver.find_element("css selector", selector).get_attribute("textContent")
        for selector in ("#left", "#right")
    ]


def steps(driver):
    data = "return JSON.parse(document.getElementById('data').textContent)"
    return driver.execute_script(data)["steps"]


def test_keys_answer_and_the_export_has_every_answer(opened):
    keys = "120120120120"
    shown = []
    total = len(steps(opened))
    for number in range(total):
        assert text(opened, "#count") == f"{number} of {total}"
        shown.append((text(opened, "#query"), lists(opened)))
        press(opened, keys[number])
    assert "Done. Export your answers." in text(opened, "#done")
    assert "--from ~/Downloads/preferences.jsonl" in text(opened, "#next")
    assert text(opened, "#export") == f"Export {total} answers"
    (rows,) = read_preferences([exported(opened, "preferences.jsonl")])
    choices = {"1": "left", "2": "right", "0": "same"}
    assert [row.choice for row in rows] == [choices[key] for key in keys[:total]]
    assert {row.judge for row in rows} == {"ann"}
    assert complaints(opened) == requests(opened) == []
    repeats = [
        number for number, step in enumerate(steps(opened)) if step["round"] == 2
    ]
    assert repeats
    for number in repeats:
        first = steps(opened)[number]["query"]
        assert shown[number][0] == shown[first][0]
        assert shown[number][1] == shown[first][1][::-1]


def test_no_retriever_is_named_with_its_list(opened):
    source = opened.page_source
    command = text(opened, "#next") or json.dumps(
        opened.execute_script("return document.getElementById('next').textContent")
    )
    assert "bm25" in command
    assert source.count("bm25") == 1
    assert source.count("hashing") == 1


def test_answers_are_kept_and_undone(opened):
    press(opened, "12")
    opened_again(opened, opened.current_url, "#count", "2 of ")
    press(opened, "u")
    assert text(opened, "#count").startswith("1 of ")
    press(opened, "0")
    (rows,) = read_preferences([exported(opened, "preferences.jsonl")])
    assert [row.choice for row in rows] == ["left", "same"]


def test_a_telephone_has_one_list_above_the_other(opened):
    resize(opened, 390, 800)
    assert opened.execute_script("return document.documentElement.scrollWidth") <= 390
    left, right = (
        opened.find_element("css selector", selector).rect
        for selector in ("#left", "#right")
    )
    assert right["y"] > left["y"] + left["height"] - 1
    opened.find_element("css selector", "[data-choice=right]").click()
    assert text(opened, "#count").startswith("1 of ")


def test_everyone_can_use_it(opened):
    assert axe(opened) == []
