"""The page of many results: runs with their verdicts, and folders that are skipped."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import harness
from harness import records
from harness.dataset import DatasetReference
from harness.dataset.load import load_dataset
from harness.report.charts.trend import TrendRun, draw_trend, fit_time_axis
from harness.report.index import write_index
from harness.report.results_listing import ResultsListing, list_results
from retrievers.errors import InputError
from tests.support import small
from tests.support.browser import axe, needs_browser, resize
from tests.support.small import Call

pytestmark = pytest.mark.slow

OTHER = (
    '[[retrievers]]\nname = "bm25"\nencoder = { kind = "hashing", dimensions = 3 }\n'
)
RENAMED = '[[retrievers]]\nname = "words"\nkind = "bm25"\n'
WITH_REPORT = ["small", "small.1", "third"]
LISTED = ["fewer", "other", "small", "small.1", "third"]
SKIPPED_REASONS = {
    "cut": "rankings/bm25.jsonl: is missing",
    "damaged": "scores.csv: cannot be read whole",
    "notes": "is not a results folder",
    "small.unfinished": "a run that was stopped, or is under way; 1 finished ranking",
}


@pytest.fixture(scope="module")
def results_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five runs, and four folders that are not results.

    Two runs are of one experiment, two have other retrievers, one has fewer queries.
    """
    folder = tmp_path_factory.mktemp("overview")
    results = folder / "out"
    run_experiments(folder, harness.RunOptions(results))
    for month, name in enumerate(reversed(LISTED), start=1):
        manifest = records.read_manifest(results / name)
        started = f"2026-0{month}-01T08:00:00+00:00"
        records.write_manifest(results / name, replace(manifest, started=started))
    # Without the evaluation, the scores are needed.
    shutil.copytree(results / "small", results / "damaged")
    (results / "damaged" / "evaluation.json").unlink()
    (results / "damaged" / "scores.csv").write_text("", encoding="utf-8")
    shutil.copytree(results / "small", results / "cut")
    (results / "cut" / "rankings" / "bm25.jsonl").unlink()
    for name in WITH_REPORT:
        (results / name / "report.html").touch()
    (results / "small.unfinished" / "runs").mkdir(parents=True)
    (results / "small.unfinished" / "runs" / "bm25.trec").touch()
    for name in ("notes", ".small.old"):
        (results / name).mkdir()
    write_index(results)
    return results


def run_experiments(folder: Path, options: harness.RunOptions) -> None:
    harness.run(small.experiment(folder), options)
    shutil.copytree(folder / "out" / "small", folder / "out" / "small.1")
    other = small.experiment(folder, name="other", retrievers=OTHER + RENAMED)
    harness.run(other, options)
    harness.run(small.experiment(folder, name="third", retrievers=OTHER), options)
    path = small.dataset(folder / "fewer" / "data") / "queries.json"
    rows = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(rows[:4]), encoding="utf-8")
    harness.run(small.experiment(folder / "fewer", name="fewer"), options)


@pytest.fixture(scope="module")
def listing(results_folder: Path) -> ResultsListing:
    return list_results(results_folder)


def read_page(results_folder: Path) -> str:
    return (results_folder / "index.html").read_text(encoding="utf-8")


def test_hidden_folders_are_not_listed_whatever_they_hold(tmp_path: Path) -> None:
    (tmp_path / ".old").mkdir()
    (tmp_path / ".old" / "data_sets.csv").write_text("a,b\n", encoding="utf-8")
    assert list_results(tmp_path) == ((), (), ())


def test_complete_runs_are_listed_with_a_link_to_their_report(
    results_folder: Path, listing: ResultsListing
) -> None:
    page = read_page(results_folder)
    assert [entry.folder for entry in listing.entries] == LISTED
    links = re.findall('href="([^"]*)/report.html"', page)
    assert list(dict.fromkeys(links)) == WITH_REPORT
    assert "<bdi>fewer</bdi></th>" in page


def test_the_last_run_of_each_experiment_is_sorted_as_a_number(
    results_folder: Path,
) -> None:
    page = read_page(results_folder)
    times = re.findall('data-label="last run" data-value="([^"]*)"', page)
    assert times == [
        "20260501080000",
        "20260401080000",
        "20260301080000",
        "20260101080000",
    ]


@pytest.mark.parametrize(("folder", "reason"), SKIPPED_REASONS.items())
def test_a_folder_that_is_not_listed_has_its_reason(
    results_folder: Path, listing: ResultsListing, folder: str, reason: str
) -> None:
    reasons = dict(listing.skipped)
    assert list(reasons) == list(SKIPPED_REASONS)
    assert reason in reasons[folder]
    assert str(results_folder) not in reasons[folder]


@pytest.mark.parametrize("folder", LISTED)
def test_a_run_is_listed_with_the_means_of_its_summary(
    results_folder: Path, listing: ResultsListing, folder: str
) -> None:
    entry = listing.entries[LISTED.index(folder)]
    summary = records.read_results(results_folder / folder).summary
    rows = summary[summary["measure"] == entry.primary]
    means = rows.set_index("retriever")["mean"]
    assert entry.means == means.to_dict()
    assert [*entry.means.values()] == sorted(means, reverse=True)


@pytest.mark.parametrize("folder", LISTED)
def test_a_run_is_listed_with_the_verdict_of_its_comparisons(
    results_folder: Path, listing: ResultsListing, folder: str
) -> None:
    entry = listing.entries[LISTED.index(folder)]
    leader = next(iter(entry.means))
    comparisons = records.read_results(results_folder / folder).comparisons
    rows = comparisons[comparisons["measure"] == entry.primary]
    rows = rows[(rows["a"] == leader) | (rows["b"] == leader)]
    verdicts = rows["verdict"].str.split(":").str[0]
    undecided = (verdicts == "undecided").sum()
    expected = "use"
    if rows.empty:
        expected = "alone"
    elif undecided:
        expected = "undecided"
    assert (entry.verdict.word, entry.verdict.retriever) == (expected, leader)


def test_a_run_has_the_command_that_compares_it_with_the_one_before(
    results_folder: Path,
) -> None:
    commands = re.findall(
        "<code>(harness compare [^<]*)</code>", read_page(results_folder)
    )
    assert commands == ["harness compare out/small.1 out/small"]


def test_a_run_by_another_measure_is_not_compared(tmp_path: Path) -> None:
    options = harness.RunOptions(tmp_path / "out")
    path = small.experiment(tmp_path, retrievers=small.BM25)
    harness.run(path, options)
    shutil.copytree(tmp_path / "out" / "small", tmp_path / "out" / "earlier")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('primary = "nDCG@3"', 'primary = "AP"'), "utf-8")
    harness.run(path, options)
    page = read_page(tmp_path / "out")
    assert "other data or measure</span>" in page
    assert "harness compare" not in page


def test_other_queries_break_the_trend() -> None:
    days = ["2026-09-28", "2026-10-05", "2026-10-19"]
    runs = [
        TrendRun(days[0], 0.5, "good", "a", "few queries", 13),
        TrendRun(days[1], 0.6, "undecided", "a", "few queries", 13),
        TrendRun(days[2], 0.4, "undecided", "b", "more queries", 138),
    ]
    trend = draw_trend(runs, fit_time_axis(days))
    first, second, third = trend.points
    assert trend.lines == ((first, second),)
    assert [gap.words for gap in trend.breaks] == ["13 queries"]
    assert first.x < second.x < trend.breaks[0].x < third.x
    # The highest mean is highest on the page.
    assert second.y < first.y < third.y
    assert trend.description.startswith("28 Sep: a 0.500; 5 Oct: a 0.600")


def test_report_prints_the_runs(call: Call, results_folder: Path) -> None:
    result = call("report", results_folder, code=0)
    lines = [line for line in result.out.splitlines() if " 2026-" in line]
    assert [line.split()[0] for line in lines] == LISTED
    assert result.out.endswith(f"index: {results_folder / 'index.html'}\n")
    assert "not listed: damaged: scores.csv: cannot be read whole" in result.err


@pytest.mark.parametrize("option", ["--no-texts", "--explain"])
def test_an_option_without_effect_on_a_list_is_refused(
    call: Call, results_folder: Path, option: str
) -> None:
    message = call("report", results_folder, option, code=2).err
    assert f"{option}: is for the results of one experiment" in message


def test_report_prints_the_runs_as_json(call: Call, results_folder: Path) -> None:
    output = json.loads(call("report", results_folder, "--json").out)
    assert [run["folder"] for run in output["runs"]] == LISTED
    assert set(output["runs"][2]["means"]) == {"bm25", "hashing", "hybrid"}
    skipped_folders = [skipped["folder"] for skipped in output["not_listed"]]
    assert skipped_folders == list(SKIPPED_REASONS)


@pytest.fixture
def copied(tmp_path: Path, results_folder: Path) -> Path:
    """A folder with a copy of one run."""
    shutil.copytree(results_folder / "small", tmp_path / "out" / "small")
    return tmp_path / "out"


def test_the_page_replaces_a_link_and_does_not_follow_it(
    tmp_path: Path, copied: Path, results_folder: Path
) -> None:
    target = tmp_path / "target"
    shutil.copy(results_folder / "index.html", target)
    (copied / "index.html").symlink_to(target)
    write_index(copied)
    assert target.read_bytes() == (results_folder / "index.html").read_bytes()
    assert not (copied / "index.html").is_symlink()


def test_a_page_that_harness_did_not_write_is_not_replaced(
    call: Call, copied: Path
) -> None:
    (copied / "index.html").write_text("<p>My own</p>", encoding="utf-8")
    with pytest.raises(InputError, match="is not a page of harness"):
        write_index(copied)
    assert call("report", copied, code=2).out == ""


def test_a_run_finishes_although_the_page_cannot_be_written(
    tmp_path: Path, copied: Path
) -> None:
    (copied / "index.html").write_text("<p>My own</p>", encoding="utf-8")
    messages: list[str] = []
    experiment = small.experiment(tmp_path, retrievers=RENAMED)
    harness.run(experiment, harness.RunOptions(copied, on_message=messages.append))
    assert messages[-1].startswith("the page of all results is not written: ")
    assert read_page(copied) == "<p>My own</p>"
    assert not list(copied.glob(".index.html*"))


def test_a_run_writes_the_page_which_is_no_document_of_a_data_set(
    tmp_path: Path,
) -> None:
    folder = small.dataset(tmp_path / "data")
    before = load_dataset(DatasetReference(folder))
    harness.run(
        small.experiment(tmp_path, retrievers=RENAMED, report=True),
        harness.RunOptions(folder / "results"),
    )
    assert "small/report.html" in (folder / "results" / "index.html").read_text(
        encoding="utf-8"
    )
    (folder / "index.html").write_text(
        "<p>a page of the data set itself</p>", encoding="utf-8"
    )
    assert (
        load_dataset(DatasetReference(folder)).document_count
        == before.document_count + 1
    )


def test_hostile_names_stay_text(tmp_path: Path, results_folder: Path) -> None:
    shutil.copytree(results_folder / "small", tmp_path / "small")
    manifest = records.read_manifest(tmp_path / "small")
    hostile = "</script><img src=x onerror=alert(1)>{{ 7 * 7 }}"
    dataset = replace(manifest.dataset, path=hostile)
    records.write_manifest(
        tmp_path / "small", replace(manifest, dataset=dataset, started=hostile)
    )
    (tmp_path / "<b>x").mkdir()
    write_index(tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "<img" not in page
    assert "<b>x" not in page
    assert "{{ 7 * 7 }}" in page
    assert len(re.findall("</script>", page)) == 1


@needs_browser
def test_experiments_are_sorted_found_and_opened_and_fit_every_width(
    driver, results_folder
):
    driver.get((results_folder / "index.html").as_uri())
    driver.refresh()
    names = (
        "return [...document.querySelectorAll('#results > tbody:not([hidden])')]"
        ".map((x) => x.rows[0].cells[0].textContent)"
    )
    by_date = driver.execute_script(names)
    click_heading = (
        "document.querySelector('#results thead th:nth-child(1) button').click()"
    )
    driver.execute_script(click_heading)
    assert driver.execute_script(names) == sorted(by_date)
    driver.execute_script(click_heading)
    assert driver.execute_script(names) == sorted(by_date, reverse=True)
    driver.execute_script(
        "const box = document.querySelector('#find'); box.value = 'OTHER';"
        "box.dispatchEvent(new Event('input'))"
    )
    assert driver.execute_script(names) == ["other"]
    driver.refresh()
    commands = "document.querySelector('.runs code').checkVisibility()"
    assert not driver.execute_script(f"return {commands}")
    driver.execute_script("document.querySelector('[data-runs]').click()")
    assert driver.execute_script(f"return {commands}")
    for width in (320, 390, 1280, 1920):
        resize(driver, width)
        assert (
            driver.execute_script("return document.documentElement.scrollWidth")
            <= width
        )
        assert axe(driver) == []
