"""The page of a trial in a real browser: a question at a time, nothing lost."""

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from harness.dataset.judgment import read_judgments
from harness.init import template
from tests.support import small
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
QUESTIONS = ["what grows on trees", "things that have wheels"]
WIDTHS = [1280, 390]


@pytest.fixture
def trial(tmp_path, monkeypatch, capsys):
    """Return the arguments of a trial of six pages, whose page is written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(template, "has_offline_model", lambda: False)
    small.dataset(tmp_path / "wiki", labelled=False)
    (tmp_path / "wiki" / "queries.json").unlink()
    words = ["try", "wiki"]
    asked = [word for text in QUESTIONS for word in ("-q", text)]
    told(capsys, *words, *asked)
    return words


@pytest.fixture
def driver(tmp_path):
    """Return a browser for each test, which may download."""
    with downloading_browser(tmp_path / "browser") as browser:
        yield browser


def opened(driver, judge="ann"):
    """The page; a busy browser may lose the keys of a name."""
    driver.get(Path("wiki-try/judge.html").resolve().as_uri())
    begin(driver, judge)
    return driver


def chips(driver):
    return driver.find_elements("css selector", "#documents button")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_question_is_judged_at_a_time(trial, driver, width):
    resize(driver, width, 800)
    page = opened(driver)
    question = text(page, "#query")
    documents = len(chips(page))
    assert documents >= 5
    assert text(page, "#buttons").split() == ["2", "right", "1", "partly", "0", "no"]
    press(page, Keys.ARROW_RIGHT)
    assert chips(page)[1].get_attribute("aria-current") == "true"
    press(page, "2")
    assert "✓2" in chips(page)[1].get_attribute("textContent")
    assert chips(page)[2].get_attribute("aria-current") == "true"
    press(page, "x")
    assert text(page, "#query") != question
    assert text(page, "#export") == f"Export {documents} labels"
    judgments = read_judgments([exported(page, "judgments.jsonl")])
    assert sorted(judgment.grade for judgment in judgments) == [0] * (documents - 1) + [
        2
    ]
    press(page, "u")
    assert text(page, "#query") == question
    assert text(page, "#export") == "Export 1 label"
    scroll_width = page.execute_script("return document.documentElement.scrollWidth")
    assert scroll_width <= width
    assert complaints(page) == requests(page) == []


def test_the_words_of_the_question_are_marked(trial, driver):
    page = opened(driver)
    words = set()
    for button in range(len(chips(page))):
        chips(page)[button].click()
        marks = page.find_elements("css selector", "#text mark")
        words.update(mark.text for mark in marks)
    assert words & {"wheels", "grow", "trees"}
    assert "have" not in words
    assert "on" not in words


def test_what_to_type_next_is_shown_when_all_is_judged(trial, driver):
    page = opened(driver)
    for _ in range(20):
        if page.find_element("css selector", "#done").is_displayed():
            break
        press(page, "x")
    command = "harness try wiki --labels ~/Downloads/judgments.jsonl"
    assert text(page, "#next") == command
    assert "Done." in text(page, "#done")


def test_labels_that_were_not_exported_survive_a_page_with_more_questions(
    trial, driver, capsys
):
    page = opened(driver)
    press(page, "x")
    before = text(page, "#export")
    told(capsys, *trial, "-q", "what swims in water")
    again = Path("wiki-try/judge.html").resolve().as_uri()
    opened_again(page, again, "#export", before)
    assert not page.find_element("css selector", "#judge").is_displayed()
    press(page, "2")
    assert (
        len(read_judgments([exported(page, "judgments.jsonl")]))
        == int(before.split()[1]) + 1
    )


def test_labels_that_were_taken_in_are_shown_as_done(trial, driver, capsys):
    page = opened(driver)
    press(page, "2")
    file = exported(page, "judgments.jsonl")
    page.execute_script("localStorage.clear()")
    told(capsys, *trial, "--labels", file)
    page.get(Path("wiki-try/judge.html").resolve().as_uri())
    assert text(page, "#export") == "Export 1 label"
    assert "✓2" in text(page, "#documents")


def test_everyone_can_use_it(trial, driver):
    assert axe(opened(driver)) == []
