"""The report on paper, read from the PDF."""

import base64
import re
import shutil
import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

import harness
from harness.evaluation.evaluation_file import read_or_evaluate
from harness.report.write import write_report
from tests.support import small
from tests.support.browser import needs_browser, resize, settled
from tests.words import SEEN

pytestmark = needs_browser
on_paper = pytest.mark.skipif(
    shutil.which("pdftotext") is None,
    reason="pdftotext (poppler-utils) is not installed",
)
NAMES = [f"bm25-with-k1-of-{i / 10:.1f}-and-a-long-name" for i in range(1, 13)]
SIZES = {"A4": (8.27, 11.69), "Letter": (8.5, 11.0)}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Sixty queries, twelve retrievers."""
    return small.many(tmp_path_factory.mktemp("print"), NAMES, 60).as_uri()


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory, project):
    """The quickstart's data and measures, with hashing instead of the model."""
    return run_quickstart(tmp_path_factory.mktemp("quickstart"), project)


def run_quickstart(folder, project, retrievers=small.RETRIEVERS):
    head = (
        (project / "experiments" / "quickstart.toml")
        .read_text(encoding="utf-8")
        .partition("[[retrievers]]")[0]
    )
    data = (project / "datasets" / "survey-templates-en").as_posix()
    path = folder / "quickstart.toml"
    path.write_text(
        head.replace("datasets/survey-templates-en", data) + retrievers,
        encoding="utf-8",
    )
    results = harness.run(path, harness.RunOptions(results=folder / "results"))
    write_report(with_fixed_times(results))
    return results


def with_fixed_times(results):
    """The results with times that no machine measured: pages have a size and words that
    do not depend on its speed.
    """
    rows = []
    for i, row in enumerate(results.cost_rows):
        latency = row.latency
        if latency is not None:
            latency = latency._replace(p50_ms=2.5 + i, p95_ms=3.5 + i, p99_ms=4.5 + i)
        rows.append(row._replace(seconds=1.25 + i, latency=latency))
    fixed = replace(results, manifest=replace(results.manifest, seconds=75.0))
    fixed.__dict__["cost_rows"] = rows
    return fixed


def print_pages(driver, size, folder):
    """The text of each page, without white space and hyphens."""
    width, height = SIZES[size]
    printed = driver.execute_cdp_cmd(
        "Page.printToPDF", {"paperWidth": width, "paperHeight": height}
    )
    (folder / "page.pdf").write_bytes(base64.b64decode(printed["data"]))
    text = subprocess.run(
        ["pdftotext", str(folder / "page.pdf"), "-"], capture_output=True, check=True
    ).stdout
    # A name in a narrow column has several lines; pdftotext removes their hyphens.
    return [re.sub(r"[\s-]+", "", page) for page in text.decode("utf-8").split("\f")]


@on_paper
@pytest.mark.parametrize("size", SIZES)
def test_every_name_is_printed_and_closed_folds_are_not(driver, page, tmp_path, size):
    driver.get(page)
    pages = print_pages(driver, size, tmp_path)
    # The leaderboard has the shared start of all names once, in its head.
    shared = "bm25-with-k1-of-"
    tails = [name.removeprefix(shared).replace("-", "") for name in NAMES]
    assert shared.replace("-", "") in pages[0]
    assert [tail for tail in tails if tail not in pages[0]] == []
    printed = "".join(pages)
    assert "rankbiserial" not in printed


@pytest.fixture(params=SIZES)
def printed(request, driver, quickstart, tmp_path):
    """The pages of the quickstart's report on each size of paper."""
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext (poppler-utils) is not installed")
    driver.get((quickstart.folder / "report.html").as_uri())
    pages = print_pages(driver, request.param, tmp_path)
    return PrintedReport(request.param, tmp_path / "page.pdf", pages)


class PrintedReport(NamedTuple):
    size: str
    pdf: Path
    pages: list[str]


def quickstart_means(quickstart):
    summary = quickstart.summary[quickstart.summary["measure"] == "nDCG@10"]
    return summary.set_index("retriever")["mean"]


def test_the_leaderboard_and_the_card_are_on_the_first_page(printed, quickstart):
    for retriever, mean in quickstart_means(quickstart).items():
        assert retriever in printed.pages[0]
        assert f"{mean:.3f}" in printed.pages[0]
    assert "Boxed:gradesofthelabelleddocuments" in printed.pages[0]


def test_the_quickstart_takes_two_pages(printed):
    assert len([page for page in printed.pages if page]) <= 2


@on_paper
@pytest.mark.parametrize("size", SIZES)
def test_twelve_retrievers_and_a_query_are_on_the_first_of_three_pages(
    driver, tmp_path_factory, tmp_path, size
):
    names = [f"retriever-{i}" for i in range(1, 13)]
    driver.get(small.many(tmp_path_factory.mktemp("twelve"), names, 60).as_uri())
    pages = [page for page in print_pages(driver, size, tmp_path) if page]
    assert len(pages) <= 3
    assert [name for name in names if name.replace("-", "") not in pages[0]] == []
    assert "Boxed:gradesofthelabelleddocuments" in pages[0]


def test_the_sections_are_printed_in_order(printed):
    titles = [
        "Whereitfails",
        "Queriesthatfailalike",
        "Allmeasures",
        "Runitagain",
    ]
    title_pages = []
    for title in titles:
        numbers = [i for i, page in enumerate(printed.pages) if title in page]
        title_pages.append(numbers[0])
    assert title_pages == sorted(title_pages)


def test_the_printed_leaderboard_has_difference_interval_and_counts(
    printed, quickstart
):
    first_page = printed.pages[0]
    board = read_or_evaluate(quickstart).board
    for row in board.rows[1:]:
        assert f"{row.difference:.3f}" in first_page
        interval = f"({row.low:z.3f},{row.high:z.3f})"
        assert interval.replace("-", "−") in first_page
        assert f"{row.wins}–{row.losses}" in first_page


@pytest.mark.parametrize(
    "words", ["Copyasimage", "Findaquery", "Skipto", "Quote", "Slicebyslice"]
)
def test_controls_are_not_printed(printed, words):
    assert words not in "".join(printed.pages)


def test_the_report_has_the_size_of_the_paper(printed):
    command = ["pdfinfo", str(printed.pdf)]
    info = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    (points,) = re.findall(r"Page size: +([\d.]+) x ([\d.]+) pts", info)
    expected = [round(72 * inches) for inches in SIZES[printed.size]]
    assert [round(float(text)) for text in points] == pytest.approx(expected, abs=1)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory, project):
    """The sweep of the examples, with twelve configurations instead of nine."""
    experiment = (project / "experiments" / "bm25-grid.toml").read_text(
        encoding="utf-8"
    )
    tables = tomllib.loads(
        experiment.replace("datasets/", f"{project.as_posix()}/datasets/")
    )
    tables["sweep"]["k1"].append(1.5)
    return harness.run(
        tables, harness.RunOptions(results=tmp_path_factory.mktemp("sweep"))
    )


def bm25(count):
    return "".join(
        f'\n[[retrievers]]\nname = "bm25-{i}"\nkind = "bm25"\nk1 = {i / 5:.1f}\n'
        for i in range(1, count + 1)
    )


SIX = small.RETRIEVERS + bm25(3)
FAILED = '\n[[retrievers]]\nname = "ours"\nkind = "python"\ncall = "math:sqrt"\n'
EN = "datasets/survey-templates-en"
JA = "datasets/survey-templates-ja"
VERDICT_WORDS = "Use |Undecided|Keep|leads|beat|scores |Nothing is|No winner"
BOTH = f'{{ path = "{EN}", queries = ["queries.json", "queries-extended.json"] }}'
KINDS = {
    "one": (f'"{EN}"', "", bm25(1)),
    "six": (BOTH, "", SIX),
    "baseline": (BOTH, 'baseline = "hashing"\n[statistics]\nmargin = 0.02', SIX),
    "looks": (BOTH, "[statistics]\nlooks = { queries = [100, 138, 300] }", SIX),
    "failed": (BOTH, "", SIX + FAILED),
    "twelve": (BOTH, "", bm25(12)),
    "claims": (f'"{EN}"', 'primary = "ClaimRecall@5"\n[judge]\nkind = "lexical"', SIX),
    "no-answer": ('"datasets/no-answer"', 'measures = ["nDCG@10", "Abstain"]', SIX),
    "sets": (f'["{EN}", "{JA}", "datasets/no-answer"]', "", SIX),
    "unlabelled": ("", "", SIX),
}


@pytest.fixture
def kind_page(kind, tmp_path, project):
    """The report of a kind of experiment."""
    dataset, more, retrievers = KINDS[kind]
    dataset = dataset.replace("datasets/", f"{project.as_posix()}/datasets/")
    if not dataset:
        folder = small.dataset(tmp_path / "data", labelled=False)
        dataset = f'"{folder.as_posix()}"'
    primary = "" if "primary" in more else 'primary = "nDCG@10"\n'
    path = tmp_path / f"{kind}.toml"
    path.write_text(
        f'name = "{kind}"\ndataset = {dataset}\n{primary}{more}\n{retrievers}',
        encoding="utf-8",
    )
    run = harness.run_sets if kind == "sets" else harness.run
    run(path, harness.RunOptions(results=tmp_path / "out"))
    return tmp_path / "out" / kind / "report.html"


def check_first_screen(driver, page):
    """The first screen has a verdict and the leaderboard."""
    resize(driver, 1280, 800)
    driver.get(page.as_uri())
    text = driver.execute_script(SEEN)
    assert re.search(VERDICT_WORDS, driver.execute_script(HEADLINE))
    assert driver.execute_script(BOARD_TOP) < 400
    assert "Where" in text


HEADLINE = "return document.querySelector('h1').textContent"
BOARD_TOP = "return document.querySelector('#board').getBoundingClientRect().top"
VISIBLE_WORDS = """
    const words = (node) => {
      if (node.nodeType === Node.TEXT_NODE)
        return node.textContent.split(/\\s+/).filter(Boolean).length;
      if (node.nodeType !== Node.ELEMENT_NODE || !node.checkVisibility()) return 0;
      if (["SCRIPT", "STYLE", "OPTION"].includes(node.tagName)) return 0;
      if (node.classList.contains("hidden")) return 0;
      return [...node.childNodes].reduce((sum, child) => sum + words(child), 0);
    };
    return words(document.body);
"""


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_screen_has_the_verdict_and_the_board(driver, kind_page):
    check_first_screen(driver, kind_page)


@pytest.mark.parametrize("example", ["quickstart", "sweep"])
def test_the_first_screen_of_an_example_has_the_verdict(driver, request, example):
    folder = request.getfixturevalue(example).folder
    check_first_screen(driver, folder / "report.html")


def test_the_quickstart_has_at_most_250_kilobytes(quickstart):
    assert (quickstart.folder / "report.html").stat().st_size <= 250_000


def test_twelve_retrievers_have_at_most_220_kilobytes(tmp_path, project):
    retrievers = small.RETRIEVERS + "".join(
        f'[[retrievers]]\nname = "hashing-{dimensions}"\n'
        f'encoder = {{ kind = "hashing", dimensions = {dimensions} }}\n'
        for dimensions in (32, 48, 64, 96, 128, 192, 256, 384, 768)
    )
    results = run_quickstart(tmp_path, project, retrievers)
    assert len(results.retrievers) == 12
    assert (results.folder / "report.html").stat().st_size <= 220_000


def test_the_quickstart_has_at_most_900_words_before_anything_is_opened(
    driver, quickstart
):
    resize(driver, 1280, 800)
    driver.get((quickstart.folder / "report.html").as_uri())
    settled(driver)
    assert 500 < driver.execute_script(VISIBLE_WORDS) <= 900


def test_nothing_is_wider_than_the_paper(driver, page):
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    # A4 less two margins of 12 mm, at 96 dots an inch.
    size = {"width": 703, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(page)
    wide = driver.execute_script("""
        return [...document.querySelectorAll("table, figure svg, .columns")]
          .filter((node) => node.checkVisibility())
          .filter((node) => node.getBoundingClientRect().right > 703 + 1)
          .map((node) => node.outerHTML.slice(0, 80));
    """)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert wide == []
