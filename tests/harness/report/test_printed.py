"""The report on paper, read back from the PDF, twelve retrievers among them: nothing is cut; and its first screen."""

import base64
import re
import shutil
import subprocess
import tomllib

import pytest

import harness
from tests.support import small
from tests.support.browser import needs_browser, resize
from tests.words import SEEN, count

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
    """The quickstart's data and measures, with hashing in the place of the model."""
    folder = tmp_path_factory.mktemp("quickstart")
    head = (
        (project / "experiments" / "quickstart.toml")
        .read_text(encoding="utf-8")
        .partition("[[retrievers]]")[0]
    )
    data = (project / "datasets" / "survey-templates-en").as_posix()
    path = folder / "quickstart.toml"
    path.write_text(
        head.replace("datasets/survey-templates-en", data) + small.RETRIEVERS,
        encoding="utf-8",
    )
    return harness.run(path, harness.RunOptions(results=folder / "results"))


def pages_of(driver, size, folder):
    """The text of each page, without white space and hyphens."""
    width, height = SIZES[size]
    printed = driver.execute_cdp_cmd(
        "Page.printToPDF", {"paperWidth": width, "paperHeight": height}
    )
    (folder / "page.pdf").write_bytes(base64.b64decode(printed["data"]))
    text = subprocess.run(
        ["pdftotext", str(folder / "page.pdf"), "-"], capture_output=True, check=True
    ).stdout
    # A name in a narrow column stands on several lines, whose hyphens pdftotext takes away.
    return [re.sub(r"[\s-]+", "", page) for page in text.decode("utf-8").split("\f")]


@on_paper
@pytest.mark.parametrize("size", SIZES)
def test_every_name_stands_on_every_page_that_needs_it(driver, page, tmp_path, size):
    driver.get(page)
    pages = pages_of(driver, size, tmp_path)
    assert all(
        name.replace("-", "") in "".join(pages[:3]) for name in NAMES
    )  # the leaderboard
    assert "exactWilcoxonp" not in "".join(pages)  # a closed fold takes no room


@on_paper
@pytest.mark.parametrize("size", SIZES)
def test_the_quickstart_is_whole_on_paper(driver, quickstart, tmp_path, size):
    driver.get((quickstart.folder / "report.html").as_uri())
    pages = pages_of(driver, size, tmp_path)
    text = "".join(pages)
    summary = quickstart.summary[quickstart.summary["measure"] == "nDCG@10"].set_index(
        "retriever"
    )["mean"]
    for name, mean in summary.items():  # the leaderboard stands on the first page
        assert name in pages[0]
        assert f"{mean:.3f}" in pages[0]
    titles = [
        "Costandspeed",
        "Slices",
        "Queriesthatfailalike",
        "Trust",
        "Allmeasures",
        "Provenance",
    ]
    title_pages = [
        next(number for number, page in enumerate(pages) if title in page)
        for title in titles
    ]
    assert title_pages == sorted(title_pages)
    # The leaderboard keeps what decides: difference, interval, wins, adjusted p.
    rows = quickstart.comparisons[quickstart.comparisons["measure"] == "nDCG@10"]
    leader = summary.idxmax()
    for row in rows[(rows["a"] == leader) | (rows["b"] == leader)].itertuples():
        low, high = (
            sorted(map(abs, (row.ci_low, row.ci_high)))
            if row.ci_low * row.ci_high > 0
            else (0, 0)
        )
        assert f"{abs(row.mean_difference):.3f}" in pages[0]
        assert not low or f"({low:.3f},{high:.3f})" in pages[0]
        assert any(
            f"{x}–{row.ties}–{y}" in pages[0]
            for x, y in ((row.wins, row.losses), (row.losses, row.wins))
        )
    for word in (
        "Copytable",
        "Copyorsave",
        "Skipto",
        "Quote",
        "Slicebyslice",
    ):  # there is nothing to press on paper
        assert word not in text
    width, height = (round(72 * inches) for inches in SIZES[size])
    info = subprocess.run(
        ["pdfinfo", str(tmp_path / "page.pdf")],
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    (size_in_points,) = re.findall(r"Page size: +([\d.]+) x ([\d.]+) pts", info)
    assert [round(float(points)) for points in size_in_points] == pytest.approx(
        [width, height], abs=1
    )


@pytest.fixture(scope="module")
def sweep(tmp_path_factory, project):
    """The sweep of the examples, twelve configurations in the place of its nine."""
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
EN, JA = ("datasets/survey-templates-en", "datasets/survey-templates-ja")
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


@pytest.mark.parametrize("kind", [*KINDS, "quickstart", "sweep"])
def test_the_first_screen_has_at_most_120_words_and_the_quickstart_300_kilobytes(
    kind, request, driver, tmp_path, project, monkeypatch
):
    if kind in KINDS:
        data, more, retrievers = KINDS[kind]
        data = data.replace("datasets/", f"{project.as_posix()}/datasets/")
        data = (
            data or f'"{small.dataset(tmp_path / "data", labelled=False).as_posix()}"'
        )
        path, first = (
            tmp_path / f"{kind}.toml",
            "" if "primary" in more else 'primary = "nDCG@10"\n',
        )
        path.write_text(
            f'name = "{kind}"\ndataset = {data}\n{first}{more}\n{retrievers}',
            encoding="utf-8",
        )
        run = harness.run_sets if kind == "sets" else harness.run
        run(path, harness.RunOptions(results=tmp_path / "out"))
        page = tmp_path / "out" / kind / "report.html"
    else:
        page = request.getfixturevalue(kind).folder / "report.html"
    assert page.stat().st_size <= 300_000 or kind != "quickstart"
    resize(driver, 1280, 800)
    driver.get(page.as_uri())
    text = driver.execute_script(SEEN)
    assert re.search(
        "Use |[Uu]ndecided|Keep|Take|beat|ran alone|Incomplete|has the highest mean|No query",
        text,
    )
    assert count(text) <= 120, text


def test_nothing_is_wider_than_the_paper(driver, page):
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    # A4 less two margins of 12 mm, at 96 dots an inch.
    size = {"width": 703, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(page)
    wide = driver.execute_script("""
        return [...document.querySelectorAll("table, figure svg, .columns")]
          .filter((node) => node.checkVisibility() && node.getBoundingClientRect().right > 703 + 1)
          .map((node) => node.outerHTML.slice(0, 80));
    """)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert wide == []
