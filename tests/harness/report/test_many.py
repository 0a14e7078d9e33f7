"""Twelve retrievers with the longest names there can be, on a screen of 1280 pixels: nothing is cut."""

import re

import pytest

from harness.report import charts
from harness.report.charts import figure, svg
from tests.support import small
from tests.support.browser import needs_browser, resize, scroll_through, settled

pytestmark = pytest.mark.slow

NAMES = [f"{f'bm25-with-k1-of-{i / 10:.1f}-and-':n<61}-{i:02}" for i in range(1, 13)]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Twenty queries, twelve retrievers, their latency measured."""
    return small.many(tmp_path_factory.mktemp("many"), NAMES, 20, "[latency]\nsample = 5")


@pytest.fixture
def opened(driver, page):
    resize(driver, 1280)
    driver.get(page.as_uri())
    settled(driver)
    return driver


@needs_browser
def test_every_column_of_the_leaderboard_is_seen(opened):
    wide, seen, heads = opened.execute_script("""
        const board = document.querySelector('.scroll:has(> .board)');
        const heads = [...board.querySelectorAll('thead th')].filter((x) => x.checkVisibility());
        return [board.scrollWidth, board.clientWidth, heads.map((x) => x.textContent)];
    """)
    assert {"mean", "behind the leader", "won–tied–lost", "p"} <= set(heads)
    assert wide <= seen


@needs_browser
@pytest.mark.parametrize("width", [400, 1280])
def test_a_column_that_stays_leaves_room_for_the_others(driver, page, width):
    resize(driver, width)
    driver.get(page.as_uri())
    shares = driver.execute_script("""
        document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
        const first = document.querySelector(".comparisons tbody th");
        return [getComputedStyle(first).position, first.offsetWidth / first.closest(".scroll").clientWidth];
    """)
    assert shares[0] == "sticky"
    assert shares[1] <= 0.5


@needs_browser
def test_charts_are_no_wider_than_the_page_and_show_whole_names(opened):
    scroll_through(opened)
    cut, names = opened.execute_script("""
        const charts = [...document.querySelectorAll('figure.chart')].filter((x) => x.checkVisibility());
        const cut = charts.map((x) => [x.dataset.figure, x.querySelector('.scroll')])
          .filter(([, x]) => x.scrollWidth > x.clientWidth + 1).map(([name]) => name);
        const texts = charts.map((x) =>
          [x.dataset.figure, [...x.querySelectorAll('.plot text')].map((t) => t.textContent)]);
        return [cut, texts];
    """)
    assert names
    assert cut == []
    assert [name for name, texts in names if any("…" in one for one in texts)] == []


@pytest.mark.parametrize("size", [0.004, 0.00004, 0.4, 30.0])
def test_no_two_ticks_of_a_difference_read_the_same(size):
    rows = [charts.ForestRow("x", "x", size / 2, 0.0, size, 5, "")]
    drawn = svg(figure("f", "t", "d", lambda width: charts.forest({"": rows}, "m", None, width)))
    ticks = re.findall(r">([+−]?[\d.,e]+)</text>", drawn)
    assert len(ticks) > 2
    assert len(set(ticks)) == len(ticks)


def test_no_tick_of_a_score_lies_below_the_lowest_interval():
    dots = [charts.Dot("x", 0.063, 0.02, 0.19, price=1), charts.Dot("y", 0.55, 0.39, 0.72, price=5)]
    looks, says = {"x": "#000000", "y": "#000000"}, charts.PriceAxis("ms", "ms")
    drawn = svg(figure("f", "t", "d", lambda width: charts.trade_off(dots, [(1, 0.063)], looks, says, width)))
    ticks = re.findall(r">([\u2212-]?[\d.]+)</text>", drawn)
    assert "0.2" in ticks or "0.20" in ticks
    assert [tick for tick in ticks if tick[0] in "\u2212-"] == []
