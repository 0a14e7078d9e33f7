"""The report on paper: twelve retrievers are whole on A4 and Letter, read back from the PDF."""

import base64
import json
import re
import shutil
import subprocess

import pytest

import harness
from tests import small
from tests.browser import chromium, needs_browser

pytestmark = [
    needs_browser,
    pytest.mark.skipif(shutil.which("pdftotext") is None, reason="pdftotext (poppler-utils) is not installed"),
]
NAMES = [f"bm25-with-k1-of-{i / 10:.1f}-and-a-long-name" for i in range(1, 13)]
SIZES = {"A4": (8.27, 11.69), "Letter": (8.5, 11.0)}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Sixty queries, twelve retrievers."""
    folder = tmp_path_factory.mktemp("print")
    data = small.dataset(folder / "data")
    texts = list(small.TEXTS)
    queries = [
        {"id": f"query{i:02}", "query": f"{small.TEXTS[texts[i % 6]]} {i}", "relevant_documents": [texts[i % 6]]}
        for i in range(60)
    ]
    (data / "queries.json").write_text(json.dumps(queries), encoding="utf-8")
    blocks = "".join(
        f'\n[[retrievers]]\nname = "{name}"\nkind = "bm25"\nk1 = {i / 10:.1f}\n' for i, name in enumerate(NAMES, 1)
    )
    results = harness.run(small.experiment(folder, retrievers=blocks), harness.Options(results=folder / "results"))
    return (results.folder / "report.html").as_uri()


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def bare(name):
    return name.replace("-", "")


def pages_of(driver, size, folder):
    width, height = SIZES[size]
    printed = driver.execute_cdp_cmd("Page.printToPDF", {"paperWidth": width, "paperHeight": height})
    (folder / "page.pdf").write_bytes(base64.b64decode(printed["data"]))
    text = subprocess.run(["pdftotext", str(folder / "page.pdf"), "-"], capture_output=True, check=True).stdout
    # A name in a narrow column stands on several lines, whose hyphens pdftotext takes away.
    return [re.sub(r"[\s-]+", "", page) for page in text.decode("utf-8").split("\f")]


@pytest.mark.parametrize("size", SIZES)
def test_every_name_stands_on_every_page_that_needs_it(driver, page, tmp_path, size):
    driver.get(page)
    pages = pages_of(driver, size, tmp_path)
    assert all(bare(name) in pages[0] + pages[1] + pages[2] for name in NAMES)  # the leaderboard
    rows = [page for page in pages if len(set(re.findall(r"query\d\d", page))) > 8]
    assert rows
    for text in rows:  # pages of the table of queries: heads that stand side by side are read line by line
        assert text.count("longname") >= len(NAMES)
        assert all(f"{i / 10:.1f}anda" in text for i in range(1, 13))
    # The first chart comes before the table of queries.
    charts = next(number for number, text in enumerate(pages) if "Slices" in text or "Querybyquery" in text)
    assert charts < min(pages.index(text) for text in rows)
    (matrix,) = [text for text in pages if "therowagainstthecolumn" in text]
    assert all(bare(name) in matrix + pages[pages.index(matrix) + 1] for name in NAMES)


def test_nothing_is_wider_than_the_paper(driver, page):
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    # A4 less two margins of 12 mm, at 96 dots an inch.
    size = {"width": 703, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(page)
    wide = driver.execute_script("""
        return [...document.querySelectorAll("table, figure svg, .columns, .atlas")]
          .filter((node) => node.checkVisibility() && node.getBoundingClientRect().right > 703 + 1)
          .map((node) => node.outerHTML.slice(0, 80));
    """)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert wide == []
